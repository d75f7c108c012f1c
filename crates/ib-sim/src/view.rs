//! Queries of the fabric state without MADs: names, ports, routes, counters.

use ib_topology::{NodeId, PortId};
use ib_types::{Instant, PKey, ServiceLevel};
use ib_wire::mad::sm::{NodeInfo, PortInfo, PortState};

use crate::command::{Command, active_faults};
use crate::counters::Counters;
use crate::loss::Loss;
use crate::loss::Stats;
use crate::options::LogLevel;
use crate::sim::Sim;
use crate::tap::CapturedPacket;

impl Sim {
    /// Returns the number of changes of port states, LFTs and `LinearFDBTop`. When this number has changed, routes
    /// that were computed before are out of date.
    #[must_use]
    pub const fn route_changes(&self) -> u64 {
        self.fabric().route_changes()
    }

    /// Returns the node with this name. If there is none, returns the node with this description.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.fabric().find_node(name)
    }

    /// Returns the port of a node with this number; `None` if the node has no such port.
    #[must_use]
    pub fn find_port(&self, node: NodeId, number: u8) -> Option<PortId> {
        self.fabric().find_port(node, number)
    }

    /// Returns the end port of a node: port 0 of a switch, otherwise the first linked port, or port
    /// 1.
    #[must_use]
    pub fn end_port(&self, node: NodeId) -> Option<PortId> {
        self.fabric().end_port(node)
    }

    /// Returns the end port of the first node that is not a switch. If all nodes are switches,
    /// returns that of the first switch. Returns `None` if the fabric is empty.
    #[must_use]
    pub fn first_end_port(&self) -> Option<PortId> {
        self.fabric().first_end_port()
    }

    /// Returns true if the port exists.
    #[must_use]
    pub fn has_port(&self, port: PortId) -> bool {
        self.fabric().has_port(port)
    }

    /// Returns the node of a port, and the port's number.
    #[must_use]
    pub fn place(&self, port: PortId) -> (NodeId, u8) {
        let port = self.fabric().port(port);
        (port.node, port.number)
    }

    /// Returns the name of a node in the fabric file.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.fabric().node(node).name
    }

    /// Returns all nodes in the order of the fabric file.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.fabric().node_ids()
    }

    /// Returns true if a node is a switch. The ports of a switch are numbered from 0.
    #[must_use]
    pub fn is_switch(&self, node: NodeId) -> bool {
        self.fabric().is_switch(node)
    }

    /// Returns the LFT of a switch, by LID. It ends at `LinearFDBTop` or at the last written block.
    /// The LFT of other nodes is empty.
    #[must_use]
    pub fn forwarding_table(&self, node: NodeId) -> &[u8] {
        let Some(switch) = &self.fabric().node(node).switch else { return &[] };
        let used = usize::from(switch.info.linear_fdb_top) + 1;
        &switch.linear[..switch.linear.len().min(used)]
    }

    /// Returns the path of a packet from one LID to another according to the LFTs: the egress and
    /// ingress ports. If the packet does not arrive, also returns the reason.
    ///
    /// # Errors
    /// Returns the source LID if no end port has it.
    pub fn route(&self, from: u16, to: u16) -> Result<(Vec<PortId>, Option<Loss>), u16> {
        self.fabric().route(from, to)
    }

    /// Returns the PortInfo of a port.
    #[must_use]
    pub fn port_info(&self, port: PortId) -> PortInfo {
        self.fabric().port(port).info
    }

    /// Returns the NodeInfo in the response to a request that arrives at a port.
    #[must_use]
    pub fn node_info(&self, port: PortId) -> NodeInfo {
        self.fabric().node_info(port)
    }

    /// Returns block `block` of a port's `P_KeyTable`: 32 entries. Entries beyond the table are 0, which is no P_Key.
    #[must_use]
    pub fn p_key_block(&self, port: PortId, block: u16) -> [PKey; 32] {
        let first = usize::from(block) * 32;
        std::array::from_fn(|index| self.fabric().port(port).p_key(first + index))
    }

    /// Returns how many times subnet managers have set `ClientReregister` in the PortInfo of a port.
    #[must_use]
    pub fn registrations(&self, port: PortId) -> u32 {
        self.fabric().port(port).registrations
    }

    /// Returns true if a LID belongs to a port.
    #[must_use]
    pub fn has_lid(&self, port: PortId, lid: u16) -> bool {
        self.fabric().port(port).has_lid(lid)
    }

    /// Returns the counters of a port.
    #[must_use]
    pub fn counters(&self, port: PortId) -> Counters {
        self.fabric().counters(port, self.now())
    }

    /// Returns the number of bytes that a port has sent, without VCRCs, according to its data
    /// counter.
    #[must_use]
    pub fn sent_bytes(&self, port: PortId) -> u64 {
        self.fabric().port(port).counters.xmit_data * 4
    }

    /// Returns true if a cable joins two ports and both are active.
    #[must_use]
    pub fn is_active(&self, one: PortId, other: PortId) -> bool {
        let is_active =
            |port: PortId| self.fabric().port(port).info.port_state == PortState::ACTIVE;
        self.fabric().port(one).cable == Some(other) && is_active(one) && is_active(other)
    }

    /// Returns the time when a link became inactive; `None` if the link is active ([`Sim::is_active`]).
    ///
    /// If only one of the ports is not Active, returns the time when this port left the state Active. If neither is
    /// Active, returns the earlier of the two times. A port that was never Active has the time zero.
    #[must_use]
    pub fn inactive_since(&self, one: PortId, other: PortId) -> Option<Instant> {
        if self.is_active(one, other) {
            return None;
        }
        let ends = [one, other].map(|port| self.fabric().port(port));
        let inactive = ends.iter().filter(|port| port.info.port_state != PortState::ACTIVE);
        // Both ports can be Active although no cable joins them, if each has a cable to another
        // port. In this case, the function returns zero.
        Some(inactive.map(|port| port.inactive_since).min().unwrap_or_default())
    }

    /// Returns the VL on which a packet is sent out of a port. `arrival` is the number of the port
    /// at which the packet has arrived at the node; at the source node, it is 0. Returns `None` if
    /// the port does not have the VL.
    #[must_use]
    pub fn vl(&self, arrival: u8, leaving: PortId, level: ServiceLevel) -> Option<u8> {
        let port = self.fabric().port(leaving);
        Some(port.vl(arrival, level)).filter(|&vl| vl < port.data_vls())
    }

    /// Returns the port at the other end of a port's cable; `None` if the port has no cable.
    #[must_use]
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.fabric().port(port).cable
    }

    /// Returns the log lines since the last call. They are empty unless
    /// [`Options::log`](crate::Options::log) is set.
    pub fn take_log(&mut self) -> String {
        self.net.log.take()
    }

    /// Sets the log level.
    pub const fn set_log(&mut self, level: LogLevel) {
        self.net.log.level = level;
    }

    /// Returns the packet, request and step counters of the whole fabric.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.net.stats
    }

    /// Returns the packets that were captured since the last call. There are none unless
    /// [`Options::tap`](crate::Options::tap) is set.
    pub fn take_packets(&mut self) -> Vec<CapturedPacket> {
        self.net.tap.take()
    }

    /// Stops capturing packets.
    pub fn stop_tap(&mut self) {
        self.net.tap.stop();
    }

    /// Returns the active faults of a node as commands: power off, and deviations of a switch from
    /// its LFT.
    #[must_use]
    pub fn active_faults_of_node(&self, node: NodeId) -> Vec<Command> {
        active_faults::at_node(self.fabric().node(node))
    }

    /// Returns the active faults of a port and its cable as commands: a pulled cable, faults for
    /// sent packets, loss of requests, and flaps with the number of repetitions that remain.
    ///
    /// M_Keys are not included, because a subnet manager may have set them. [`Sim::port_info`]
    /// contains the M_Key of a port.
    #[must_use]
    pub fn active_faults_of_port(&self, port: PortId) -> Vec<Command> {
        active_faults::at_port(self.fabric(), &self.script, port)
    }
}

#[cfg(test)]
mod tests;
