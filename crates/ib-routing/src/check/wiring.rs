//! What every output port of every switch leads to, in one flat table.

use ib_topology::PortId;

use crate::subnet::{EndPortId, Peer, Subnet, SwitchId};

/// Where a packet is after it left a switch by some port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// Nowhere: no cable is plugged in.
    Nothing,
    /// In this switch, which it entered by this port.
    Switch(u16, u8),
    /// At a port that has LIDs, a switch's own port 0 included.
    EndPort(EndPortId),
}

/// The index of an output port of a switch: ports 0 to n of switch 0, then those of switch 1 and
/// so on. As a directed link it is the channel that starts there.
pub(crate) type Channel = u32;

/// Stands for a table entry that names no port of its switch.
pub(crate) const NO_CHANNEL: Channel = Channel::MAX;

/// Stands for a hop that does not lead to a switch.
pub(crate) const NO_SWITCH: u16 = u16::MAX;

/// The hops behind all channels of a subnet.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    /// The first channel of each switch, and the number of channels last.
    first: Vec<Channel>,
    hops: Vec<Hop>,
    /// The switch behind each channel: what is asked most, in the least memory.
    next: Vec<u16>,
}

impl Wiring {
    pub(crate) fn new(subnet: &Subnet<'_>) -> Self {
        let mut wiring = Self { first: vec![0], hops: Vec::new(), next: Vec::new() };
        for id in subnet.switch_ids() {
            for (port, peer) in subnet.peers(id).iter().enumerate() {
                wiring.hops.push(match *peer {
                    _ if port == 0 => Hop::EndPort(subnet.switch(id).end_port),
                    Peer::Switch(next, there) => Hop::Switch(next.0, there),
                    Peer::EndPort(end) => Hop::EndPort(end),
                    // No engine uses a loopback cable, but anybody's table may.
                    Peer::None => loopback(subnet, id, port as u8)
                        .map_or(Hop::Nothing, |there| Hop::Switch(id.0, there)),
                });
            }
            wiring.first.push(wiring.hops.len() as Channel);
        }
        let next = |hop: &Hop| if let Hop::Switch(next, _) = *hop { next } else { NO_SWITCH };
        wiring.next = wiring.hops.iter().map(next).collect();
        wiring
    }

    pub(crate) fn switches(&self) -> usize {
        self.first.len() - 1
    }

    pub(crate) fn channels(&self) -> usize {
        self.hops.len()
    }

    /// Returns the channel of a switch's port; [`NO_CHANNEL`] when it has no such port, as for
    /// entry 255, which is beyond the widest switch.
    pub(crate) fn channel(&self, switch: usize, port: u8) -> Channel {
        let channel = self.first[switch] + Channel::from(port);
        if channel < self.first[switch + 1] { channel } else { NO_CHANNEL }
    }

    /// Returns true when a switch has a port of this number.
    pub(crate) fn has_port(&self, switch: SwitchId, port: u8) -> bool {
        self.channel(switch.index(), port) != NO_CHANNEL
    }

    /// Returns the ports of a switch that lead elsewhere than by another wiring of the same switches.
    pub(crate) fn differing(&self, other: &Self, switch: SwitchId) -> impl Iterator<Item = u8> {
        let all = self.first[switch.index()] as usize..self.first[switch.index() + 1] as usize;
        let pairs = self.hops[all.clone()].iter().zip(&other.hops[all]);
        (0..).zip(pairs).filter(|(_, (one, other))| one != other).map(|(port, _)| port)
    }

    /// Returns the first channel of each switch, and the number of channels last.
    pub(crate) fn offsets(&self) -> &[Channel] {
        &self.first
    }

    /// Returns the hop over a channel; nothing lies behind [`NO_CHANNEL`].
    pub(crate) fn hop(&self, channel: Channel) -> Hop {
        self.hops.get(channel as usize).copied().unwrap_or(Hop::Nothing)
    }

    /// Returns the switch behind a channel, [`NO_SWITCH`] when there is none.
    pub(crate) fn next(&self, channel: Channel) -> u16 {
        self.next.get(channel as usize).copied().unwrap_or(NO_SWITCH)
    }

    /// Returns the switch and port where a channel starts.
    pub(crate) fn port(&self, channel: Channel) -> (SwitchId, u8) {
        let switch = self.first.partition_point(|&first| first <= channel) - 1;
        (SwitchId(switch as u16), (channel - self.first[switch]) as u8)
    }

    /// Returns the number of ports, port 0 included, of the switch with the most.
    pub(crate) fn widest(&self) -> usize {
        self.first.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }

    /// Returns the channels that lead from switch to switch, in order.
    pub(crate) fn switch_channels(&self) -> impl Iterator<Item = Channel> + '_ {
        let hops = self.hops.iter().enumerate();
        hops.filter(|(_, hop)| matches!(hop, Hop::Switch(..))).map(|(index, _)| index as Channel)
    }
}

/// Returns the other end of a cable from a switch to itself.
fn loopback(subnet: &Subnet<'_>, switch: SwitchId, port: u8) -> Option<u8> {
    let (fabric, node) = (subnet.fabric(), subnet.switch(switch).node);
    let id: PortId = fabric.port_id(node, port)?;
    fabric.peer(id).filter(|peer| peer.node == node).map(|peer| peer.number)
}
