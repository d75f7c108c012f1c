//! What can be seen of a fabric without asking its agents: names, places, routes, counters.

use ib_topology::{NodeId, PortId};
use ib_types::{Instant, PKey, ServiceLevel};
use ib_wire::mad::sm::{NodeInfo, PortInfo, PortState};

use crate::command::{Command, in_force};
use crate::counters::Counters;
use crate::loss::Loss;
use crate::options::LogLevel;
use crate::sim::Sim;
use crate::stats::Stats;
use crate::tap::Tapped;

impl Sim {
    /// Returns how often links have changed their state and forwarding tables their entries: where packets go is out of date
    /// once this has moved.
    #[must_use]
    pub const fn route_changes(&self) -> u64 {
        self.fabric().route_changes()
    }

    /// Returns the node of a name: the name in its file, or else its description.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.fabric().find_node(name)
    }

    /// Returns a port by its number on a node.
    #[must_use]
    pub fn find_port(&self, node: NodeId, number: u8) -> Option<PortId> {
        self.fabric().find_port(node, number)
    }

    /// Returns the end port by which a node is reached: the management port of a switch, the first
    /// port with a link of anything else, or its port 1.
    #[must_use]
    pub fn end_port(&self, node: NodeId) -> Option<PortId> {
        self.fabric().end_port(node)
    }

    /// Returns the first end port of the fabric: that of the first node that is no switch, or else
    /// of the first switch; `None` in an empty fabric.
    #[must_use]
    pub fn first_end_port(&self) -> Option<PortId> {
        self.fabric().first_end_port()
    }

    /// Returns true when there is a port of this number.
    #[must_use]
    pub fn has_port(&self, port: PortId) -> bool {
        self.fabric().has_port(port)
    }

    /// Returns the node and the number of a port.
    #[must_use]
    pub fn place(&self, port: PortId) -> (NodeId, u8) {
        let port = self.fabric().port(port);
        (port.node, port.number)
    }

    /// Returns the name of a node in its file.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.fabric().node(node).name
    }

    /// Returns all nodes in the order of the fabric's file.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.fabric().node_ids()
    }

    /// Returns whether a node is a switch, whose ports start with the management port 0.
    #[must_use]
    pub fn is_switch(&self, node: NodeId) -> bool {
        self.fabric().is_switch(node)
    }

    /// Returns the linear forwarding table of a switch by LID, as far as it is in use and was written;
    /// empty for another node.
    #[must_use]
    pub fn forwarding_table(&self, node: NodeId) -> &[u8] {
        let Some(switch) = &self.fabric().node(node).switch else { return &[] };
        let used = usize::from(switch.info.linear_fdb_top) + 1;
        &switch.linear[..switch.linear.len().min(used)]
    }

    /// Returns the ports that a packet from one LID to another leaves and enters by, as far as the
    /// tables lead it, and why it does not arrive if it does not.
    ///
    /// # Errors
    /// Returns the LID that no end port has when the packet could not even start.
    pub fn route(&self, from: u16, to: u16) -> Result<(Vec<PortId>, Option<Loss>), u16> {
        self.fabric().route(from, to)
    }

    /// Returns what a port says of itself.
    #[must_use]
    pub fn port_info(&self, port: PortId) -> PortInfo {
        self.fabric().port(port).info
    }

    /// Returns what a node says of itself to a request that arrives by a port.
    #[must_use]
    pub fn node_info(&self, port: PortId) -> NodeInfo {
        self.fabric().node_info(port)
    }

    /// Returns the first 32 P_Keys of a port.
    #[must_use]
    pub fn p_keys(&self, port: PortId) -> [PKey; 32] {
        std::array::from_fn(|index| self.fabric().port(port).p_key(index))
    }

    /// Returns how often a subnet manager has wanted everybody at a port to register again (`ClientReregister`).
    #[must_use]
    pub fn registrations(&self, port: PortId) -> u32 {
        self.fabric().port(port).registrations
    }

    /// Tells whether a LID is one of a port's.
    #[must_use]
    pub fn has_lid(&self, port: PortId, lid: u16) -> bool {
        self.fabric().port(port).has_lid(lid)
    }

    /// Returns what a port has counted.
    #[must_use]
    pub fn counters(&self, port: PortId) -> Counters {
        self.fabric().counters(port, self.now())
    }

    /// Returns how many bytes a port has sent, as its counter has it: without the CRCs of the link.
    #[must_use]
    pub fn sent_bytes(&self, port: PortId) -> u64 {
        self.fabric().port(port).counters.xmit_data * 4
    }

    /// Returns whether a cable is between two ports and both are in use.
    #[must_use]
    pub fn is_active(&self, one: PortId, other: PortId) -> bool {
        let is_active =
            |port: PortId| self.fabric().port(port).info.port_state == PortState::ACTIVE;
        self.fabric().port(one).cable == Some(other) && is_active(one) && is_active(other)
    }

    /// Returns since when a link is not in use: since one of its ports left the state ACTIVE, or since the start if one has
    /// never been active. `None` if [`Sim::is_active`].
    #[must_use]
    pub fn inactive_since(&self, one: PortId, other: PortId) -> Option<Instant> {
        if self.is_active(one, other) {
            return None;
        }
        let ends = [one, other].map(|port| self.fabric().port(port));
        let inactive = ends.iter().filter(|port| port.info.port_state != PortState::ACTIVE);
        // Both are active if their cable leads elsewhere.
        Some(inactive.map(|port| port.inactive_since).min().unwrap_or_default())
    }

    /// Returns the VL by which a packet of a service level leaves by a port that has come in by another one of the same
    /// node, 0 where it starts; `None` where the port has no such VL.
    #[must_use]
    pub fn vl(&self, arrival: u8, leaving: PortId, level: ServiceLevel) -> Option<u8> {
        let port = self.fabric().port(leaving);
        Some(port.vl(arrival, level)).filter(|&vl| vl < port.data_vls())
    }

    /// Returns the other end of a port's cable.
    #[must_use]
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.fabric().port(port).cable
    }

    /// Returns what happened since this was last asked, one line each; empty unless
    /// [`Options::log`](crate::Options::log) asks for it.
    pub fn take_log(&mut self) -> String {
        self.net.log.take()
    }

    /// Has so much logged from now on.
    pub const fn set_log(&mut self, level: LogLevel) {
        self.net.log.level = level;
    }

    /// Returns the totals of the whole fabric.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.net.stats
    }

    /// Returns the packets that were sent or lost since this was last asked; empty unless
    /// [`Options::tap`](crate::Options::tap) asks for them.
    pub fn take_packets(&mut self) -> Vec<Tapped> {
        self.net.tap.take()
    }

    /// Keeps packets no longer.
    pub fn stop_tap(&mut self) {
        self.net.tap.stop();
    }

    /// Returns what is wrong with a node beside its ports: that it has no power, and where a switch
    /// deviates from its forwarding table.
    #[must_use]
    pub fn in_force_at_node(&self, node: NodeId) -> Vec<Command> {
        in_force::at_node(self.fabric().node(node))
    }

    /// Returns what is wrong with a port and its cable: that it was pulled and can be plugged back in,
    /// faults, requests that are lost, and flaps, with how often the link still goes down.
    ///
    /// An M_Key is not among it: whether a manager or somebody else has set it is not known. It is in
    /// [`Sim::port_info`].
    #[must_use]
    pub fn in_force_at_port(&self, port: PortId) -> Vec<Command> {
        in_force::at_port(self.fabric(), &self.script, port)
    }
}

#[cfg(test)]
mod tests;
