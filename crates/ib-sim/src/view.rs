//! What can be seen of a fabric without asking its agents: names, places, routes, counters.

use ib_link::Incoming;
use ib_topology::{NodeId, PortId};
use ib_types::{Instant, NodeKind, PKey, ServiceLevel};
use ib_wire::mad::sm::{NodeInfo, PortInfo, PortState};

use crate::counters::Counters;
use crate::log::LogLevel;
use crate::loss::Loss;
use crate::sim::{ClientId, Sim};
use crate::stats::Stats;

impl Sim {
    /// Returns how often GUIDs were changed: what is made of them is out of date once this has moved.
    #[must_use]
    pub const fn guid_changes(&self) -> u64 {
        self.guid_changes
    }

    /// Returns how often links have changed their state and forwarding tables their entries: where packets go is out of date
    /// once this has moved.
    #[must_use]
    pub const fn route_changes(&self) -> u64 {
        self.route_changes
    }

    /// Returns the node of a name: the name in its file, or else its description.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied().or_else(|| {
            let index = self.nodes.iter().position(|node| node.description.as_text() == name)?;
            Some(NodeId(index as u32))
        })
    }

    /// Returns a port by its number on a node.
    #[must_use]
    pub fn find_port(&self, node: NodeId, number: u8) -> Option<PortId> {
        (number <= self.nodes.get(node.index())?.ports).then(|| self.port_id(node, number))
    }

    /// Returns the end port by which a node is reached: the management port of a switch, the first
    /// port with a link of anything else, or its port 1.
    #[must_use]
    pub fn end_port(&self, node: NodeId) -> Option<PortId> {
        let state = self.nodes.get(node.index())?;
        if state.kind.is_switch() {
            return self.find_port(node, 0);
        }
        (1..=state.ports)
            .map(|number| self.port_id(node, number))
            .find(|&port| self.port(port).cable.is_some())
            .or_else(|| self.find_port(node, 1))
    }

    /// Returns the first end port of the fabric: that of the first node that is no switch, or else
    /// of the first switch; `None` in an empty fabric.
    #[must_use]
    pub fn first_end_port(&self) -> Option<PortId> {
        let nodes = || (0..self.nodes.len()).map(|index| NodeId(index as u32));
        nodes()
            .find(|&node| self.node(node).kind != NodeKind::Switch)
            .or_else(|| nodes().next())
            .and_then(|node| self.end_port(node))
    }

    /// Returns true when there is a port of this number.
    #[must_use]
    pub fn has_port(&self, port: PortId) -> bool {
        port.index() < self.ports.len()
    }

    /// Returns the node and the number of a port.
    #[must_use]
    pub fn place(&self, port: PortId) -> (NodeId, u8) {
        (self.port(port).node, self.port(port).number)
    }

    /// Returns the name of a node in its file.
    #[must_use]
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.node(node).name
    }

    /// Returns all nodes in the order of the fabric's file.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(|index| NodeId(index as u32))
    }

    /// Returns whether a node is a switch, whose ports start with the management port 0.
    #[must_use]
    pub fn is_switch(&self, node: NodeId) -> bool {
        self.node(node).kind.is_switch()
    }

    /// Returns the linear forwarding table of a switch by LID, as far as it is in use and was written;
    /// empty for another node.
    #[must_use]
    pub fn forwarding_table(&self, node: NodeId) -> &[u8] {
        let Some(switch) = &self.node(node).switch else { return &[] };
        let used = usize::from(switch.info.linear_fdb_top) + 1;
        &switch.linear[..switch.linear.len().min(used)]
    }

    /// Returns the ports that a packet from one LID to another leaves and enters by, as far as the
    /// tables lead it, and why it does not arrive if it does not.
    ///
    /// # Errors
    /// Returns the LID that no end port has when the packet could not even start.
    pub fn route(&self, from: u16, to: u16) -> Result<(Vec<PortId>, Option<Loss>), u16> {
        let has = |port: PortId, lid| {
            let state = self.port(port);
            (state.number == 0) == self.is_switch(state.node) && state.has_lid(lid)
        };
        let ports = || (0..self.ports.len()).map(|index| PortId(index as u32));
        let mut at = ports().find(|&port| has(port, from)).ok_or(from)?;
        let mut steps = vec![at];
        if has(at, to) {
            return Ok((steps, None));
        }
        let mut node = self.port(at).node;
        let mut out = if self.is_switch(node) { None } else { Some(at) };
        for _ in 0..=Loss::MOST_HOPS {
            let leaves = match out.take() {
                Some(port) => port,
                None => {
                    let switch = self.node(node).switch.as_ref();
                    let Some(switch) = switch else {
                        return Ok((steps, Some(Loss::Misrouted(to))));
                    };
                    let number = switch.port_of(to);
                    if number == 0xff {
                        return Ok((steps, Some(Loss::NoRoute(to))));
                    }
                    let Some(port) = self.find_port(node, number).filter(|_| number > 0) else {
                        let why = Loss::NoSuchPort { lid: to, port: number };
                        return Ok((steps, Some(why)));
                    };
                    if port == at {
                        return Ok((steps, Some(Loss::TurnsBack(to))));
                    }
                    steps.push(port);
                    port
                }
            };
            let Some(peer) = self.port(leaves).cable.filter(|_| self.port(leaves).is_up()) else {
                return Ok((steps, Some(Loss::LinkDown)));
            };
            at = peer;
            node = self.port(at).node;
            steps.push(at);
            let end = if self.is_switch(node) { self.port_id(node, 0) } else { at };
            if has(end, to) {
                return Ok((steps, None));
            }
        }
        Ok((steps, Some(Loss::TooManyHops(to))))
    }

    /// Returns true when something has come for a client.
    #[must_use]
    pub fn has_incoming(&self, client: ClientId) -> bool {
        self.client(client).is_some_and(|client| !client.inbox.is_empty())
    }

    /// Returns what a port says of itself.
    #[must_use]
    pub fn port_info(&self, port: PortId) -> PortInfo {
        self.port(port).info
    }

    /// Returns what a node says of itself to a request that arrives by a port.
    #[must_use]
    pub fn node_info(&self, port: PortId) -> NodeInfo {
        let state = self.port(port);
        let guid = self.port(self.end_port_of(port)).guid;
        self.node(state.node).info(state.number, guid)
    }

    /// Returns the first 32 P_Keys of a port.
    #[must_use]
    pub fn p_keys(&self, port: PortId) -> [PKey; 32] {
        std::array::from_fn(|index| self.port(port).p_key(index))
    }

    /// Returns how often a subnet manager has wanted everybody at a port to register again (`ClientReregister`).
    #[must_use]
    pub fn registrations(&self, port: PortId) -> u32 {
        self.port(port).registrations
    }

    /// Tells whether a LID is one of a port's.
    #[must_use]
    pub fn has_lid(&self, port: PortId, lid: u16) -> bool {
        self.port(port).has_lid(lid)
    }

    /// Returns what a port has counted.
    #[must_use]
    pub fn counters(&self, port: PortId) -> Counters {
        let port = self.port(port);
        let mut counters = port.counters;
        if let Some(since) = port.queues.as_ref().and_then(|queues| queues.starved_since) {
            counters.xmit_wait += crate::counters::ticks(self.now().since(since));
        }
        counters
    }

    /// Returns how many bytes a port has sent, as its counter has it: without the CRCs of the link.
    #[must_use]
    pub fn sent_bytes(&self, port: PortId) -> u64 {
        self.port(port).counters.xmit_data * 4
    }

    /// Returns whether a cable is between two ports and both are in use.
    #[must_use]
    pub fn is_active(&self, one: PortId, other: PortId) -> bool {
        let is_active = |port: PortId| self.port(port).info.port_state == PortState::ACTIVE;
        self.port(one).cable == Some(other) && is_active(one) && is_active(other)
    }

    /// Returns since when a link is not in use: since one of its ports left the state ACTIVE, or since the start if one has
    /// never been active. `None` if [`Sim::is_active`].
    #[must_use]
    pub fn inactive_since(&self, one: PortId, other: PortId) -> Option<Instant> {
        if self.is_active(one, other) {
            return None;
        }
        let ends = [one, other].map(|port| self.port(port));
        let inactive = ends.iter().filter(|port| port.info.port_state != PortState::ACTIVE);
        // Both are active if their cable leads elsewhere.
        Some(inactive.map(|port| port.inactive_since).min().unwrap_or_default())
    }

    /// Returns the VL by which a packet of a service level leaves by a port that has come in by another one of the same
    /// node, 0 where it starts; `None` where the port has no such VL.
    #[must_use]
    pub fn lane(&self, arrival: u8, leaving: PortId, level: ServiceLevel) -> Option<u8> {
        let port = self.port(leaving);
        Some(port.lane(arrival, level)).filter(|&lane| lane < port.lanes())
    }

    /// Returns the other end of a port's cable.
    #[must_use]
    pub fn peer(&self, port: PortId) -> Option<PortId> {
        self.port(port).cable
    }

    /// Returns what happened since this was last asked, one line each; empty unless
    /// [`Options::log`](crate::Options::log) asks for it.
    pub fn take_log(&mut self) -> String {
        self.log.take()
    }

    /// Has so much logged from now on.
    pub const fn set_log(&mut self, level: LogLevel) {
        self.log.level = level;
    }

    /// Returns the totals of the whole fabric.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns how many datagrams of clients are on their way or wait for their answer.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.requests.len()
    }

    /// Returns the next thing that came for a client.
    pub fn receive(&mut self, client: ClientId) -> Option<Incoming> {
        self.client_mut(client)?.inbox.pop_front()
    }
}

#[cfg(test)]
mod tests;
