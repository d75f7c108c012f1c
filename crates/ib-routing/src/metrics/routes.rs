//! Follows single routes to find their links.

use ib_types::NodeKind;

use crate::check::wiring::{Channel, Hop, Wiring};
use crate::lft::Lfts;
use crate::subnet::{EndPortId, Subnet, SwitchId};

/// Forwarding tables, and the links that they can use.
pub(super) struct Routes<'a> {
    pub(super) subnet: &'a Subnet<'a>,
    lfts: &'a Lfts,
    wiring: Wiring,
    /// The channels between switches, in ascending order.
    links: Vec<Channel>,
    /// The index in `links` of each channel.
    index_of: Vec<u32>,
}

impl<'a> Routes<'a> {
    pub(super) fn new(subnet: &'a Subnet<'a>, lfts: &'a Lfts) -> Self {
        let wiring = Wiring::new(subnet);
        let links: Vec<_> = wiring.switch_channels().collect();
        let mut index_of = vec![0; wiring.channels()];
        for (index, &channel) in (0..).zip(&links) {
            index_of[channel as usize] = index;
        }
        Self { subnet, lfts, wiring, links, index_of }
    }

    pub(super) fn channels(&self) -> usize {
        self.wiring.channels()
    }

    /// Returns the channels between switches, in ascending order.
    pub(super) fn switch_channels(&self) -> &[Channel] {
        &self.links
    }

    /// Returns the index of a channel among the channels between switches; 0 if it does not lead from switch to switch.
    pub(super) fn link_index(&self, channel: Channel) -> usize {
        self.index_of[channel as usize] as usize
    }

    /// Returns the signalling rate of each channel in Mbit/s.
    pub(super) fn rates(&self) -> Vec<u32> {
        let fabric = self.subnet.fabric();
        let ports = self.subnet.switches().iter().flat_map(|switch| fabric.ports_of(switch.node));
        ports.map(|(_, port)| port.rate.megabits_per_second()).collect()
    }

    /// Returns the ports of channel adapters in the order of their LIDs.
    pub(super) fn adapters_by_lid(&self) -> Vec<EndPortId> {
        let adapter =
            |&id: &EndPortId| self.subnet.end_port_node(id).kind == NodeKind::ChannelAdapter;
        let mut ports: Vec<_> = self.subnet.end_port_ids().filter(adapter).collect();
        ports.sort_by_key(|&id| self.subnet.end_port(id).base_lid);
        ports
    }

    /// Returns the switch to which an end port is attached; `None` if the port is linked to another host.
    pub(super) fn entry(&self, port: EndPortId) -> Option<SwitchId> {
        self.subnet.end_port(port).attachment.switch()
    }

    /// Appends the channels on the route from a switch to the base LID of an end port. Channels to hosts are left out.
    ///
    /// Returns false and leaves `path` unchanged if the packets do not arrive.
    pub(super) fn append(&self, from: SwitchId, to: EndPortId, path: &mut Vec<Channel>) -> bool {
        let lid = self.subnet.end_port(to).base_lid.get();
        let start = path.len();
        let mut switch = from;
        // A path without a loop enters every switch at most once, so packets that pass more switches do not arrive.
        for _ in 0..self.wiring.switches() {
            let channel = self.wiring.channel(switch.index(), self.lfts.port(switch, lid));
            match self.wiring.hop(channel) {
                Hop::EndPort(end) if end == to => return true,
                Hop::EndPort(_) | Hop::Nothing => break,
                Hop::Switch(next, _) => {
                    path.push(channel);
                    switch = SwitchId(next);
                }
            }
        }
        path.truncate(start);
        false
    }
}
