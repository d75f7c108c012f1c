//! The next switch on the way from every switch to every other, and each pair's layer.

use super::network::{NONE, Network};

/// The routes between all switches.
///
/// A destination's routes form a tree, because forwarding tables know nothing of where a packet
/// comes from: the way on depends on the switch and the destination alone.
#[derive(Clone)]
pub(super) struct Routes {
    switches: usize,
    /// `[destination][switch]`: the slot of the next switch; [`NONE`] where there is none yet.
    slots: Vec<u8>,
}

impl Routes {
    pub(super) fn none(switches: usize) -> Self {
        Self { switches, slots: vec![NONE; switches * switches] }
    }

    /// Returns, for one destination, the slot of the next switch by switch.
    pub(super) fn to(&self, destination: usize) -> &[u8] {
        &self.slots[destination * self.switches..][..self.switches]
    }

    /// Returns, for one destination, the slots for writing.
    pub(super) fn to_mut(&mut self, destination: usize) -> &mut [u8] {
        &mut self.slots[destination * self.switches..][..self.switches]
    }

    /// Returns the slots of all destinations for writing.
    pub(super) fn rows_mut(&mut self) -> &mut [u8] {
        &mut self.slots
    }

    /// Returns the turns on the way between two switches, as the channels on either side.
    ///
    /// # Panics
    /// The iterator panics where the route is missing.
    pub(super) fn turns<'r>(
        &'r self,
        network: &'r Network<'_>,
        from: usize,
        to: usize,
    ) -> Turns<'r> {
        let row = self.to(to);
        let channel = (from != to).then(|| network.channel(from, row[from]));
        Turns { network, row, channel, to }
    }
}

/// The iterator of [`Routes::turns`].
pub(super) struct Turns<'r> {
    network: &'r Network<'r>,
    row: &'r [u8],
    channel: Option<usize>,
    to: usize,
}

impl Iterator for Turns<'_> {
    type Item = (usize, usize);

    fn next(&mut self) -> Option<(usize, usize)> {
        let channel = self.channel.take()?;
        let switch = self.network.head(channel);
        if switch == self.to {
            return None;
        }
        let onward = self.network.channel(switch, self.row[switch]);
        self.channel = Some(onward);
        Some((channel, onward))
    }
}

/// Routes with every pair's layer.
pub(super) struct Layout {
    pub(super) routes: Routes,
    /// `[switch][switch]`, the same both ways; [`NONE`] on the diagonal and between switches that
    /// do not reach each other.
    pub(super) layers: Vec<u8>,
    /// For each layer an order of the channels that all its turns follow: the place by channel.
    pub(super) orders: Vec<Vec<u32>>,
}

impl Layout {
    /// Returns the number of layers.
    pub(super) fn count(&self) -> usize {
        self.orders.len()
    }
}

/// The pairs of switches that reach each other and have no layer yet, the lower switch first.
pub(super) fn open_pairs(network: &Network<'_>, layers: &[u8]) -> Vec<(u16, u16)> {
    let switches = network.switches();
    let mut pairs = Vec::new();
    for a in 0..switches {
        for b in a + 1..switches {
            if layers[a * switches + b] == NONE && network.joined(a, b) {
                pairs.push((a as u16, b as u16));
            }
        }
    }
    pairs
}
