//! The routes between all switches, and the layer of each pair of switches.

use super::network::{NONE, Network};

/// The routes between all switches.
///
/// The routes to a destination form a tree, because LFTs ignore the source of packets. So the next switch depends only
/// on the current switch and the destination.
#[derive(Clone)]
pub(super) struct Routes {
    switches: usize,
    /// Indexed by destination and switch: the slot of the next switch; [`NONE`] if there is no route yet.
    slots: Vec<u8>,
}

impl Routes {
    pub(super) fn none(switches: usize) -> Self {
        Self { switches, slots: vec![NONE; switches * switches] }
    }

    /// Returns the slots of the next switches towards a destination, by switch.
    pub(super) fn to(&self, destination: usize) -> &[u8] {
        &self.slots[destination * self.switches..][..self.switches]
    }

    /// Returns the slots of the next switches towards a destination, by switch, for writing.
    pub(super) fn to_mut(&mut self, destination: usize) -> &mut [u8] {
        &mut self.slots[destination * self.switches..][..self.switches]
    }

    /// Returns the slot of the next switch on every route for writing, indexed by destination and then by current
    /// switch.
    pub(super) fn rows_mut(&mut self) -> &mut [u8] {
        &mut self.slots
    }

    /// Returns the turns on the route between two switches, each as the channels before and after the turn.
    ///
    /// # Panics
    /// The iterator panics if there is no route.
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

/// Iterator over the turns of a route; see [`Routes::turns`].
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

/// The routes, and the layer of every pair of switches.
pub(super) struct Layout {
    pub(super) routes: Routes,
    /// The layer of each pair, indexed by both switches in any order. [`NONE`] on the diagonal and for unconnected
    /// switches.
    pub(super) layers: Vec<u8>,
    /// By layer: the position of each channel in an order of the channels that all turns of the layer follow.
    pub(super) orders: Vec<Vec<u32>>,
}

impl Layout {
    /// Returns the number of layers.
    pub(super) fn count(&self) -> usize {
        self.orders.len()
    }
}

/// Returns the connected pairs of switches that have no layer. The lower switch of a pair comes first.
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
