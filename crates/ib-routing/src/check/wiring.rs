//! The far ends of all switch ports, in a flat table.

use ib_topology::PortId;

use crate::subnet::{EndPortId, Peer, Subnet, SwitchId};

/// The far end of a switch port, where a packet arrives that leaves through this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// The port has no link.
    Nothing,
    /// A switch, and its port at which the packet arrives.
    Switch(u16, u8),
    /// An end port, which may be port 0 of the switch itself.
    EndPort(EndPortId),
}

/// Index of an output port of a switch, and of the directed link that starts there. The ports 0 to n of switch 0 come
/// first, then the ports of switch 1, and so on.
pub(crate) type Channel = u32;

/// Value that stands for the channel of an LFT entry if its switch has no port of this number.
pub(crate) const NO_CHANNEL: Channel = Channel::MAX;

/// Value that stands for the next switch if a port does not lead to a switch.
pub(crate) const NO_SWITCH: u16 = u16::MAX;

/// The far ends of all output ports of a subnet.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    /// The first channel of each switch, followed by the total number of channels.
    first: Vec<Channel>,
    hops: Vec<Hop>,
    /// The switch at the end of each channel. These are stored separately because they are read most often.
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
                    // No engine uses loopback cables, but tables read from a file may use them. So such a cable is
                    // stored as a link from the switch to itself.
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

    /// Returns the channel of a port of a switch; [`NO_CHANNEL`] if the switch has no such port. An LFT entry of 255 is
    /// never a port.
    pub(crate) fn channel(&self, switch: usize, port: u8) -> Channel {
        let channel = self.first[switch] + Channel::from(port);
        if channel < self.first[switch + 1] { channel } else { NO_CHANNEL }
    }

    /// Returns true if a switch has a port of this number.
    pub(crate) fn has_port(&self, switch: SwitchId, port: u8) -> bool {
        self.channel(switch.index(), port) != NO_CHANNEL
    }

    /// Returns the ports of a switch whose far ends differ between this wiring and another wiring of the same switches.
    pub(crate) fn differing(&self, other: &Self, switch: SwitchId) -> impl Iterator<Item = u8> {
        let all = self.first[switch.index()] as usize..self.first[switch.index() + 1] as usize;
        let pairs = self.hops[all.clone()].iter().zip(&other.hops[all]);
        (0..).zip(pairs).filter(|(_, (one, other))| one != other).map(|(port, _)| port)
    }

    /// Returns the first channel of each switch, followed by the total number of channels.
    pub(crate) fn offsets(&self) -> &[Channel] {
        &self.first
    }

    /// Returns the far end of a channel; [`Hop::Nothing`] for [`NO_CHANNEL`].
    pub(crate) fn hop(&self, channel: Channel) -> Hop {
        self.hops.get(channel as usize).copied().unwrap_or(Hop::Nothing)
    }

    /// Returns the switch at the end of a channel; [`NO_SWITCH`] if none.
    pub(crate) fn next(&self, channel: Channel) -> u16 {
        self.next.get(channel as usize).copied().unwrap_or(NO_SWITCH)
    }

    /// Returns the switch and the port at which a channel starts.
    pub(crate) fn port(&self, channel: Channel) -> (SwitchId, u8) {
        let switch = self.first.partition_point(|&first| first <= channel) - 1;
        (SwitchId(switch as u16), (channel - self.first[switch]) as u8)
    }

    /// Returns the number of ports of the largest switch, including port 0.
    pub(crate) fn widest(&self) -> usize {
        self.first.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0)
    }

    /// Returns the channels that lead from switch to switch, in ascending order.
    pub(crate) fn switch_channels(&self) -> impl Iterator<Item = Channel> + '_ {
        let hops = self.hops.iter().enumerate();
        hops.filter(|(_, hop)| matches!(hop, Hop::Switch(..))).map(|(index, _)| index as Channel)
    }
}

/// If a port of a switch is linked to a port of the same switch, returns that port.
fn loopback(subnet: &Subnet<'_>, switch: SwitchId, port: u8) -> Option<u8> {
    let (fabric, node) = (subnet.fabric(), subnet.switch(switch).node);
    let id: PortId = fabric.port_id(node, port)?;
    fabric.peer(id).filter(|peer| peer.node == node).map(|peer| peer.number)
}
