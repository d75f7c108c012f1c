//! Nodes, their ports, and the cables between them.

use std::collections::{BTreeMap, HashMap};

use ib_topology::{Fabric, LinkRate, NodeId, PortId};
use ib_types::{Gid, Instant, LinkSpeed, LinkWidth, Mtu, NodeKind};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::{CapabilityMask, NodeInfo, PhysState, PortState};
use ib_wire::mad::smp::HopNode;

use crate::counters::{Counters, ticks};
use crate::loss::Loss;
use crate::node::Node;
use crate::options::Options;
use crate::port::{Port, Tables};

/// The state of all nodes and ports.
///
/// A cable joins two ports, each of which refers to the other. `pulled` contains an entry for each
/// port of a pulled cable.
#[derive(Debug)]
pub(crate) struct FabricState {
    nodes: Vec<Node>,
    /// Constant attributes of nodes. Forwarding reads them for every packet, so they are stored
    /// close together.
    layouts: Vec<NodeLayout>,
    ports: Vec<Port>,
    names: HashMap<String, NodeId>,
    /// The ports of pulled cables, each with the port at the other end.
    pulled: BTreeMap<PortId, PortId>,
    mtu_cap: Mtu,
    guid_changes: u64,
    route_changes: u64,
}

/// Constant attributes of a node.
#[derive(Clone, Copy, Debug)]
struct NodeLayout {
    /// Index of the node's port 0 among all ports.
    first_port: u32,
    hop: HopNode,
}

impl FabricState {
    /// Returns the state of an unconfigured fabric: all links are up, and no port has a LID.
    pub(crate) fn new(fabric: &Fabric, options: &Options) -> Self {
        let mut this = Self {
            nodes: Vec::with_capacity(fabric.node_count()),
            layouts: Vec::with_capacity(fabric.node_count()),
            ports: Vec::new(),
            names: fabric.nodes().map(|(id, node)| (node.name.clone(), id)).collect(),
            pulled: BTreeMap::new(),
            mtu_cap: options.mtu_cap,
            guid_changes: 0,
            route_changes: 0,
        };
        for (id, node) in fabric.nodes() {
            let fastest = fabric
                .ports_of(id)
                .filter(|(_, port)| port.peer.is_some())
                .map(|(_, port)| port.rate)
                .max_by_key(|rate| rate.megabits_per_second())
                .unwrap_or(LinkRate::DEFAULT);
            let mut made = Node::new(node);
            made.set_table_capacities(options.linear_fdb_cap, options.multicast_fdb_cap);
            let hop = HopNode { kind: node.kind, ports: made.ports };
            this.layouts.push(NodeLayout { first_port: this.ports.len() as u32, hop });
            this.nodes.push(made);
            for (_, port) in fabric.ports_of(id) {
                let rate = match (port.peer, port.number) {
                    (Some(_), _) => port.rate,
                    (None, 0) => LinkRate::DEFAULT,
                    (None, _) => fastest,
                };
                let mut made = Port::new(id, node.kind, port.number, port.guid, rate);
                if port.peer.is_none() {
                    made.set_active(LinkRate::DEFAULT);
                }
                if let Some(mask) = port.enabled_widths {
                    made.enable_widths(mask);
                }
                made.cable = port.peer;
                made.set_mtu_cap(node.kind, options.mtu_cap);
                this.ports.push(made);
            }
        }
        for (one, other) in fabric.links() {
            for port in [one, other] {
                let info = &mut this.port_mut(port).info;
                info.port_state = PortState::INIT;
                info.phys_state = PhysState::LINK_UP;
            }
        }
        this
    }

    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    #[inline]
    pub(crate) fn port(&self, id: PortId) -> &Port {
        &self.ports[id.index()]
    }

    #[inline]
    pub(crate) fn port_mut(&mut self, id: PortId) -> &mut Port {
        &mut self.ports[id.index()]
    }

    /// Returns the port of a node with this number. The caller guarantees that the port exists.
    #[inline]
    pub(crate) fn port_id(&self, node: NodeId, number: u8) -> PortId {
        PortId(self.layouts[node.index()].first_port + u32::from(number))
    }

    /// Returns the attributes of a node that directed-route processing needs.
    #[inline]
    pub(crate) fn hop_node(&self, node: NodeId) -> HopNode {
        self.layouts[node.index()].hop
    }

    /// Returns true if a node is a switch.
    #[inline]
    pub(crate) fn is_switch(&self, node: NodeId) -> bool {
        self.node(node).kind.is_switch()
    }

    /// Returns the node of a port.
    #[inline]
    pub(crate) fn node_of(&self, port: PortId) -> &Node {
        self.node(self.port(port).node)
    }

    /// Returns all nodes in the order of the fabric file.
    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(|index| NodeId(index as u32))
    }

    /// Returns all ports in the order of the fabric file.
    pub(crate) fn port_ids(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len()).map(|index| PortId(index as u32))
    }

    /// Returns the external ports of a node.
    pub(crate) fn external_ports(&self, node: NodeId) -> impl Iterator<Item = PortId> + use<> {
        let first = self.port_id(node, 0).0;
        (1..=u32::from(self.node(node).ports)).map(move |number| PortId(first + number))
    }

    /// Returns the ports of all nodes other than switches.
    pub(crate) fn adapter_ports(&self) -> impl Iterator<Item = PortId> {
        self.port_ids().filter(|&port| {
            let state = self.port(port);
            state.number > 0 && self.node(state.node).kind != NodeKind::Switch
        })
    }

    pub(crate) fn has_port(&self, port: PortId) -> bool {
        port.index() < self.ports.len()
    }

    /// Returns the node with this name. If there is none, returns the node with this description.
    pub(crate) fn find_node(&self, name: &str) -> Option<NodeId> {
        self.names
            .get(name)
            .copied()
            .or_else(|| self.node_ids().find(|&node| self.node(node).description.as_text() == name))
    }

    /// Returns the port of a node with this number; `None` if the node has no such port.
    pub(crate) fn find_port(&self, node: NodeId, number: u8) -> Option<PortId> {
        (number <= self.nodes.get(node.index())?.ports).then(|| self.port_id(node, number))
    }

    /// Returns the port of a node that a request selects by number. `arrival` is the port at which
    /// the request has arrived. On nodes that are not switches, number 0 selects `arrival`.
    pub(crate) fn selected_port(&self, arrival: PortId, number: u32) -> Result<PortId, MadStatus> {
        let node = self.port(arrival).node;
        let hop = self.hop_node(node);
        if number == 0 && !hop.kind.is_switch() {
            return Ok(arrival);
        }
        let number = u8::try_from(number).ok().filter(|&number| number <= hop.ports);
        number.map(|number| self.port_id(node, number)).ok_or(MadStatus::BAD_FIELD)
    }

    /// Returns the end port of a node: port 0 of a switch, otherwise the first linked port, or port
    /// 1.
    pub(crate) fn end_port(&self, node: NodeId) -> Option<PortId> {
        let state = self.nodes.get(node.index())?;
        if state.kind.is_switch() {
            return self.find_port(node, 0);
        }
        self.external_ports(node)
            .find(|&port| self.port(port).cable.is_some())
            .or_else(|| self.find_port(node, 1))
    }

    /// Returns the end port from which a node responds to a request that has arrived at the given
    /// port.
    #[inline]
    pub(crate) fn end_port_of(&self, port: PortId) -> PortId {
        let node = self.port(port).node;
        if self.is_switch(node) { self.port_id(node, 0) } else { port }
    }

    /// Returns the end port of the first node that is not a switch. If all nodes are switches,
    /// returns that of the first switch. Returns `None` if the fabric is empty.
    pub(crate) fn first_end_port(&self) -> Option<PortId> {
        self.node_ids()
            .find(|&node| !self.is_switch(node))
            .or_else(|| self.node_ids().next())
            .and_then(|node| self.end_port(node))
    }

    pub(crate) fn gid(&self, port: PortId) -> Gid {
        let state = self.port(port);
        Gid::new(state.info.gid_prefix, state.guid)
    }

    /// Returns the NodeInfo in the response to a request that arrives at a port.
    pub(crate) fn node_info(&self, port: PortId) -> NodeInfo {
        let guid = self.port(self.end_port_of(port)).guid;
        self.node_of(port).info(self.port(port).number, guid)
    }

    /// Returns the counters of a port, including the time up to `now` that its packets have waited
    /// for credits.
    pub(crate) fn counters(&self, port: PortId, now: Instant) -> Counters {
        let port = self.port(port);
        let mut counters = port.counters;
        if let Some(since) = port.queues.as_ref().and_then(|queues| queues.starved_since()) {
            counters.xmit_wait += ticks(now.since(since));
        }
        counters
    }

    /// Returns the counters that PortCounters shows. After a Set of PortCounters or
    /// PortCountersExtended, they can differ from those of [`Self::counters`].
    pub(crate) fn short_counters(&self, port: PortId, now: Instant) -> Counters {
        let full = self.counters(port, now);
        self.port(port).short_base.as_ref().map_or(full, |base| full.minus(base))
    }

    /// Sets or clears a capability of a port. Returns true if this changed the capability.
    pub(crate) fn set_capability(
        &mut self,
        port: PortId,
        capability: CapabilityMask,
        set: bool,
    ) -> bool {
        let mask = &mut self.port_mut(port).info.capability_mask;
        let changed = mask.with(capability, set);
        std::mem::replace(mask, changed) != changed
    }

    /// Sets the state of a port. Returns the previous state; `None` if the state has not changed.
    pub(crate) fn set_state(
        &mut self,
        port: PortId,
        to: PortState,
        now: Instant,
    ) -> Option<PortState> {
        let state = self.port_mut(port);
        let from = std::mem::replace(&mut state.info.port_state, to);
        if from == to {
            return None;
        }
        if from == PortState::ACTIVE {
            state.inactive_since = now;
        }
        self.route_changes += 1;
        Some(from)
    }

    /// Returns the tables of a port for writing. Creates the initial tables if the port has no tables.
    pub(crate) fn tables_mut(&mut self, port: PortId) -> &mut Tables {
        let hop = self.hop_node(self.port(port).node);
        self.port_mut(port).tables_mut(hop.kind, hop.ports)
    }

    /// Returns the rate that two ports negotiate; `None` if they have no common rate.
    pub(crate) fn negotiate(&self, one: PortId, other: PortId) -> Option<LinkRate> {
        let ends = [one, other].map(|port| self.port(port));
        let enables = |width: &LinkWidth| {
            ends.iter().all(|port| port.info.link_width_enabled.contains((*width).into()))
        };
        let enables_speed = |speed: &LinkSpeed| {
            ends.iter().all(|port| port.info.enabled_speeds(Some(&port.mellanox)).contains(*speed))
        };
        let width = LinkWidth::ALL.into_iter().filter(enables).max_by_key(|w| w.lanes())?;
        let speed = LinkSpeed::ALL.into_iter().filter(enables_speed).max()?;
        Some(LinkRate { width, speed })
    }

    /// Returns true if both ends allow the link to come up: the nodes have power, and the ports are
    /// neither disabled nor held down.
    pub(crate) fn may_link(&self, one: PortId, other: PortId) -> bool {
        [one, other].into_iter().all(|end| {
            let state = self.port(end);
            let enabled = state.info.phys_state != PhysState::DISABLED;
            self.node(state.node).powered && enabled && state.held_down == 0
        })
    }

    /// Records that the cable between two ports was pulled.
    pub(crate) fn remember_pulled(&mut self, one: PortId, other: PortId) {
        self.pulled.insert(one, other);
        self.pulled.insert(other, one);
    }

    /// If a cable was pulled from a port, returns the port at its other end.
    pub(crate) fn pulled(&self, port: PortId) -> Option<PortId> {
        self.pulled.get(&port).copied()
    }

    /// Removes the record of the cable that was pulled from a port. Returns the port at the other
    /// end of the cable.
    pub(crate) fn forget_pulled(&mut self, port: PortId) -> Option<PortId> {
        let peer = self.pulled.remove(&port)?;
        self.pulled.remove(&peer);
        Some(peer)
    }

    /// Resets a node to its unconfigured state with zero counters.
    pub(crate) fn reset_node(&mut self, node: NodeId) {
        for number in 0..=self.node(node).ports {
            self.reset_port(self.port_id(node, number));
        }
        let state = self.node_mut(node);
        state.traps.clear();
        state.reset();
        self.route_changes += 1;
    }

    /// Resets a port to its unconfigured state with zero counters. The caller guarantees that the
    /// link of the port is down.
    pub(crate) fn reset_port(&mut self, port: PortId) {
        let (kind, mtu_cap) = (self.node_of(port).kind, self.mtu_cap);
        let state = self.port_mut(port);
        state.reset(kind);
        state.set_mtu_cap(kind, mtu_cap);
        state.counters = Counters::default();
        state.short_base = None;
        if state.info.phys_state == PhysState::DISABLED {
            state.info.phys_state = PhysState::POLLING;
        }
    }

    /// Returns the number of GUID changes since the fabric was created.
    pub(crate) const fn guid_changes(&self) -> u64 {
        self.guid_changes
    }

    /// Counts a GUID change.
    pub(crate) const fn count_guid_change(&mut self) {
        self.guid_changes += 1;
    }

    /// Returns how often a port state, an LFT or `LinearFDBTop` has changed.
    pub(crate) const fn route_changes(&self) -> u64 {
        self.route_changes
    }

    /// Counts a change of an LFT or of `LinearFDBTop`.
    pub(crate) const fn count_route_change(&mut self) {
        self.route_changes += 1;
    }

    /// Returns the path of a packet from one LID to another according to the LFTs: the egress and
    /// ingress ports. If the packet does not arrive, also returns the reason.
    ///
    /// # Errors
    /// Returns the source LID if no end port has it.
    pub(crate) fn route(&self, from: u16, to: u16) -> Result<(Vec<PortId>, Option<Loss>), u16> {
        let has = |port: PortId, lid| {
            let state = self.port(port);
            (state.number == 0) == self.is_switch(state.node) && state.has_lid(lid)
        };
        let mut at = self.port_ids().find(|&port| has(port, from)).ok_or(from)?;
        let mut steps = vec![at];
        if has(at, to) {
            return Ok((steps, None));
        }
        let mut node = self.port(at).node;
        let mut out = if self.is_switch(node) { None } else { Some(at) };
        for _ in 0..=Loss::MAX_HOPS {
            let leaves = match out.take() {
                Some(port) => port,
                None => match self.next_port(node, at, to) {
                    Ok(port) => {
                        steps.push(port);
                        port
                    }
                    Err(why) => return Ok((steps, Some(why))),
                },
            };
            let Some(peer) = self.port(leaves).cable.filter(|_| self.port(leaves).is_up()) else {
                return Ok((steps, Some(Loss::LinkDown)));
            };
            at = peer;
            node = self.port(at).node;
            steps.push(at);
            if has(self.end_port_of(at), to) {
                return Ok((steps, None));
            }
        }
        Ok((steps, Some(Loss::TooManyHops(to))))
    }

    /// Returns the port out of which a node forwards a packet to a LID, according to the LFT.
    /// `arrival` is the ingress port of the packet.
    fn next_port(&self, node: NodeId, arrival: PortId, to: u16) -> Result<PortId, Loss> {
        let switch = self.node(node).switch.as_ref().ok_or(Loss::Misrouted(to))?;
        let number = switch.port_of(to);
        if number == 0xff {
            return Err(Loss::NoRoute(to));
        }
        let port = self.find_port(node, number).filter(|_| number > 0);
        let port = port.ok_or(Loss::NoSuchPort { lid: to, port: number })?;
        if port == arrival { Err(Loss::TurnsBack(to)) } else { Ok(port) }
    }
}

#[cfg(test)]
mod tests;
