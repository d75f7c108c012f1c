//! The switches, the channels between them, and the turns from channel to channel.

use crate::hops::{HopMatrix, NO_HOPS};
use crate::subnet::{Attachment, Subnet, SwitchId};

/// Value for a slot, a layer or a stretch (see [`super::orientation`]) that does not exist.
pub(super) const NONE: u8 = u8::MAX;

/// The switches of a subnet, numbered and joined by channels.
///
/// A channel stands for all links from one switch to another. A switch has one channel per neighbour. A switch numbers
/// its neighbours in the order of its lowest port to each. The number of a neighbour is called its slot. A turn is a
/// channel followed by a slot of the switch at which the channel ends. Channels and turns are numbered consecutively.
pub(super) struct Network<'a> {
    hops: &'a HopMatrix,
    /// The first channel of each switch, followed by the total number of channels.
    first: Vec<u32>,
    /// By channel: the switch at which the channel ends.
    head: Vec<u16>,
    /// By channel: the switch at which the channel starts.
    tail: Vec<u16>,
    reverse: Vec<u32>,
    /// The first turn of each channel, followed by the total number of turns.
    first_turn: Vec<u32>,
    hosts: Vec<u32>,
}

impl<'a> Network<'a> {
    pub(super) fn new(subnet: &Subnet<'_>, hops: &'a HopMatrix) -> Self {
        let switches = subnet.switches().len();
        let mut first = vec![0];
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        for id in subnet.switch_ids() {
            let start = head.len();
            for (_, other, _) in subnet.switch_links(id) {
                if !head[start..].contains(&other.0) {
                    head.push(other.0);
                    tail.push(id.0);
                }
            }
            first.push(head.len() as u32);
        }
        let mut hosts = vec![0; switches];
        for port in subnet.end_ports() {
            if let Attachment::Port(switch, _) = port.attachment {
                hosts[switch.index()] += 1;
            }
        }
        let mut network =
            Self { hops, first, head, tail, reverse: Vec::new(), first_turn: vec![0], hosts };
        for channel in 0..network.channels() {
            let (tail, head) = (network.tail(channel), network.head(channel));
            let back = network.channel_to(head, tail).expect("every channel has a reverse channel");
            network.reverse.push(back as u32);
            let turns = network.first_turn[channel] + network.neighbours(head).len() as u32;
            network.first_turn.push(turns);
        }
        network
    }

    pub(super) fn switches(&self) -> usize {
        self.hosts.len()
    }

    pub(super) fn channels(&self) -> usize {
        self.head.len()
    }

    pub(super) fn turns(&self) -> usize {
        self.first_turn[self.channels()] as usize
    }

    /// Returns the neighbours of a switch, in the order of their slots.
    pub(super) fn neighbours(&self, switch: usize) -> &[u16] {
        &self.head[self.channels_of(switch)]
    }

    /// Returns the channels that leave a switch, in the order of their slots.
    pub(super) fn channels_of(&self, switch: usize) -> std::ops::Range<usize> {
        self.first[switch] as usize..self.first[switch + 1] as usize
    }

    /// Returns the channel from a switch to the neighbour in the given slot.
    pub(super) fn channel(&self, switch: usize, slot: u8) -> usize {
        self.first[switch] as usize + usize::from(slot)
    }

    pub(super) fn channel_to(&self, from: usize, to: usize) -> Option<usize> {
        let slot = self.neighbours(from).iter().position(|&switch| usize::from(switch) == to)?;
        Some(self.first[from] as usize + slot)
    }

    /// Returns the switch at the end of a channel.
    pub(super) fn head(&self, channel: usize) -> usize {
        usize::from(self.head[channel])
    }

    /// Returns the switch at the start of a channel.
    pub(super) fn tail(&self, channel: usize) -> usize {
        usize::from(self.tail[channel])
    }

    /// Returns the slot of a channel at the switch where it starts.
    pub(super) fn slot(&self, channel: usize) -> usize {
        channel - self.first[self.tail(channel)] as usize
    }

    /// Returns the channel between the same switches in the opposite direction.
    pub(super) fn reverse(&self, channel: usize) -> usize {
        self.reverse[channel] as usize
    }

    /// Returns the turns from a channel, in the order of the next channel's slot.
    pub(super) fn turns_of(&self, channel: usize) -> std::ops::Range<usize> {
        self.first_turn[channel] as usize..self.first_turn[channel + 1] as usize
    }

    /// Returns the turn from a channel into the given slot of the switch at its end.
    pub(super) fn turn(&self, channel: usize, slot: u8) -> usize {
        self.first_turn[channel] as usize + usize::from(slot)
    }

    /// Returns the hops from every switch to a switch. The hops in the opposite direction are the same.
    pub(super) fn distances(&self, to: usize) -> &'a [u8] {
        self.hops.least_row(SwitchId(to as u16))
    }

    /// Returns true if two switches are different and connected.
    pub(super) fn joined(&self, a: usize, b: usize) -> bool {
        a != b && self.distances(a)[b] != NO_HOPS
    }

    /// Returns the number of channel adapter and router ports that are linked to a switch.
    pub(super) fn hosts(&self, switch: usize) -> u32 {
        self.hosts[switch]
    }
}
