//! Discovery of a subnet by directed routes.
//!
//! A discovery starts at the SM's port and follows every link that is up, through switches only. A failed probe is not
//! repeated. A node that does not respond is left out and reported as a fault.
//!
//! If the SM knows which nodes have changed, a partial discovery suffices. It first queries all ports of these nodes.
//! Then it queries the nodes at the other end of links that have come up, over routes without links that went down. If
//! a response contradicts the known subnet, or if a node does not respond, a full discovery is needed.

use std::collections::{BTreeSet, VecDeque};

use ib_mad::{Failure, Message};
use ib_types::{Guid, Lid, NodeKind, PKey};
use ib_wire::mad::sm::{
    CapabilityMask, LinearForwardingBlock, NodeInfo, PKeyTable, PortInfo, PortState, SmInfo,
    SwitchInfo,
};
use ib_wire::mad::smp::{self, MAX_HOPS};
use ib_wire::mad::{Attribute, AttributeId, Mad, Method, TransactionId};

use crate::discovered_subnet::{DiscoveredSubnet, NodeIndex, PortIndex, Route};
use crate::fault::{Fault, PortName, Reason};
use crate::tables::{SwitchTable, Tables};

/// Maximum number of discovered nodes, because each node has at least one of the 49,151 unicast LIDs.
const MAX_NODES: usize = 49_151;

/// Number of P_Keys in a block of a P_Key table.
const KEYS_PER_BLOCK: u16 = 32;

/// A query of a discovery. Each variant reads the named attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// NodeInfo of the node at the end of `route`. `from` is the egress port of the last hop; `None` at the SM's own
    /// node.
    Node { from: Option<PortIndex>, route: Route },
    /// NodeDescription.
    Description(NodeIndex),
    /// SwitchInfo.
    Switch(NodeIndex),
    /// PortInfo.
    Port(PortIndex),
    /// SMInfo of the SM at a port.
    Manager(PortIndex),
    /// A block of the port's P_Key table.
    PKeys { port_index: PortIndex, block: u16 },
    /// A block of the linear forwarding table of a switch.
    Lft { node: NodeIndex, block: u16 },
}

/// A running discovery.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    found: DiscoveredSubnet,
    queue: VecDeque<Probe>,
    /// Number of outstanding probes.
    waiting: usize,
    faults: Vec<Fault>,
    crowded: bool,
    /// Ports whose links went down or came up. The first step of a partial discovery queries the changed nodes, and
    /// adds these ports. `None` in later steps and in a full discovery.
    changed_ports: Option<ChangedPorts>,
    /// True for a partial discovery.
    partial: bool,
    /// True if a partial discovery has found links that went down or came up.
    reshaped: bool,
    /// GUIDs of nodes whose tables may differ from those that the SM wrote: `LinearFDBTop` differs from the recorded
    /// one, or a partial discovery removed the node.
    reset: BTreeSet<Guid>,
}

/// The ports with a changed link, found at the nodes that have reported changes.
#[derive(Debug, Default)]
struct ChangedPorts {
    /// The ports whose links went down.
    lost: Vec<PortIndex>,
    /// The ports whose links came up.
    risen: Vec<PortIndex>,
}

/// Result of a discovery.
#[derive(Debug)]
pub(crate) struct DiscoveryResult {
    pub(crate) found: DiscoveredSubnet,
    pub(crate) faults: Vec<Fault>,
    /// True after a partial discovery in which no link went down or came up. Settings of ports may still have changed.
    pub(crate) same_shape: bool,
    /// True if a partial discovery has failed, and a full discovery is needed.
    pub(crate) failed: bool,
    /// GUIDs of nodes whose tables may differ from those that the SM wrote: `LinearFDBTop` differs from the recorded
    /// one, or a partial discovery removed the node.
    pub(crate) reset: BTreeSet<Guid>,
}

/// Returns true if some switch port has a link that is up, but the other end of the link was not found.
fn has_open_end(found: &DiscoveredSubnet) -> bool {
    let switches = found.nodes().filter(|(_, node)| node.kind.is_switch());
    switches
        .into_iter()
        .any(|(_, node)| node.ports.iter().skip(1).any(|port| port.is_up() && port.peer.is_none()))
}

impl Discovery {
    /// Starts a full discovery at the SM's port.
    pub(crate) fn new() -> Self {
        let queue = VecDeque::from([Probe::Node { from: None, route: Route::default() }]);
        Self { queue, ..Self::default() }
    }

    /// Starts a partial discovery of the nodes that have changed since the last discovery.
    pub(crate) fn partial(
        found: DiscoveredSubnet,
        changed: impl IntoIterator<Item = NodeIndex>,
    ) -> Self {
        let mut queue = VecDeque::new();
        for node in changed {
            queue.push_back(Probe::Description(node));
            let known = found.node(node);
            if known.kind.is_switch() {
                queue.push_back(Probe::Switch(node));
            }
            let first = u8::from(!known.kind.is_switch());
            let ports = (first..=known.info.num_ports).map(|port| node.at(port));
            let reached =
                |port_index: &PortIndex| known.kind.is_switch() || found.is_end_port(*port_index);
            queue.extend(ports.filter(reached).map(Probe::Port));
        }
        Self {
            found,
            queue,
            changed_ports: Some(ChangedPorts::default()),
            partial: true,
            ..Self::default()
        }
    }

    /// Returns the next probe to send, with its request.
    pub(crate) fn next(&mut self) -> Option<(Probe, Mad)> {
        if self.queue.is_empty()
            && self.waiting == 0
            && let Some(changed_ports) = self.changed_ports.take()
        {
            self.follow(&changed_ports);
        }
        let probe = self.queue.pop_front()?;
        self.waiting += 1;
        let (id, modifier, route) = match &probe {
            Probe::Node { route, .. } => (AttributeId::NODE_INFO, 0, &**route),
            Probe::Description(node) => {
                (AttributeId::NODE_DESCRIPTION, 0, &*self.found.node(*node).route)
            }
            Probe::Switch(node) => (AttributeId::SWITCH_INFO, 0, &*self.found.node(*node).route),
            Probe::Port(port_index) => {
                (AttributeId::PORT_INFO, port_index.port.into(), self.found.route(*port_index))
            }
            Probe::Manager(port_index) => (AttributeId::SM_INFO, 0, self.found.route(*port_index)),
            Probe::PKeys { port_index, block } => {
                let modifier = self.found.p_key_modifier(*port_index, *block);
                (AttributeId::P_KEY_TABLE, modifier, self.found.route(*port_index))
            }
            Probe::Lft { node, block } => {
                let route = &*self.found.node(*node).route;
                (AttributeId::LINEAR_FORWARDING, u32::from(*block), route)
            }
        };
        let mad = smp::directed_request(Method::GET, TransactionId(0), (id, modifier), route);
        Some((probe, mad))
    }

    /// Returns true if all probes have completed.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.waiting == 0 && self.changed_ports.is_none()
    }

    /// Returns the discovered subnet and its faults.
    pub(crate) fn finish(self) -> DiscoveryResult {
        let Self { mut found, mut faults, partial, reshaped, reset, .. } = self;
        for port_index in found.find_duplicates() {
            let why = "an earlier port has it; this port gets no LID";
            let (guid, at) = (found.port(port_index).guid, found.name(port_index));
            faults.push(Fault::DuplicateGuid { guid, at, why });
        }
        let failed = partial && (!faults.is_empty() || has_open_end(&found));
        DiscoveryResult { found, faults, same_shape: partial && !reshaped, failed, reset }
    }

    /// Continues a partial discovery, once the port states of all changed nodes are known.
    fn follow(&mut self, changed_ports: &ChangedPorts) {
        let ends = changed_ports.lost.iter().chain(&changed_ports.risen);
        let pairs: Vec<(PortIndex, Option<PortIndex>)> =
            ends.map(|&end| (end, self.found.port(end).peer)).collect();
        if pairs.is_empty() {
            return;
        }
        self.reshaped = true;
        let named = |found: &DiscoveredSubnet, port_index: PortIndex| {
            (found.node(port_index.node).info.node_guid, port_index.port)
        };
        let lost: Vec<_> =
            changed_ports.lost.iter().filter_map(|&it| self.found.port(it).peer).collect();
        let lost: Vec<_> = lost.into_iter().map(|it| named(&self.found, it)).collect();
        let risen: Vec<_> = changed_ports.risen.iter().map(|&it| named(&self.found, it)).collect();
        // Removes the links that went down. Also removes the links that came up again, because the node at the other
        // end may have been reset or replaced.
        for (end, peer) in pairs {
            self.found.disconnect(end, peer);
        }
        let known: Vec<Guid> = self.found.nodes().map(|(_, node)| node.info.node_guid).collect();
        self.found.prune();
        // If this discovery finds a removed node again, the node may have been reset.
        self.reset.extend(known.into_iter().filter(|&guid| self.found.find(guid).is_none()));
        for (guid, port) in lost {
            let Some(node) = self.found.find(guid) else { continue };
            if self.found.node(node).kind.is_switch() {
                self.queue.push_back(Probe::Switch(node));
            }
            self.queue.push_back(Probe::Port(node.at(port)));
        }
        for (guid, port) in risen {
            let Some(node) = self.found.find(guid) else { continue };
            self.reach_over(node.at(port));
        }
    }

    /// Processes the response to a probe, or its timeout. Records in `tables` each `LinearFDBTop` and LFT block that
    /// was read.
    pub(crate) fn handle(
        &mut self,
        probe: Probe,
        result: Result<Message, Failure>,
        tables: &mut Tables,
    ) {
        self.waiting -= 1;
        let mad = match result {
            Ok(message) if message.status().is_ok() => *message.mad(),
            Ok(message) => return self.unanswered(&probe, Reason::Status(message.status())),
            Err(failure) => return self.unanswered(&probe, Reason::Failure(failure)),
        };
        match probe {
            Probe::Node { from, route } => self.handle_node(from, route, attribute(&mad)),
            Probe::Description(node) => {
                self.found.node_mut(node).description = attribute(&mad);
            }
            Probe::Switch(node) => self.handle_switch(node, attribute(&mad), tables),
            Probe::Port(port_index) => self.handle_port(port_index, attribute(&mad)),
            Probe::Manager(port_index) => {
                self.found.managers.insert(port_index, attribute::<SmInfo>(&mad));
            }
            Probe::PKeys { port_index, block } => {
                let read: PKeyTable = attribute(&mad);
                let blocks = &mut self.found.port_mut(port_index).p_keys;
                if let Some(known) = blocks.get_mut(usize::from(block)) {
                    *known = read.keys;
                }
            }
            Probe::Lft { node, block } => {
                let read: LinearForwardingBlock = attribute(&mad);
                let guid = self.found.node(node).info.node_guid;
                tables.entry(guid).or_default().set(block.into(), &read.ports);
            }
        }
    }

    fn handle_node(&mut self, from: Option<PortIndex>, route: Route, info: NodeInfo) {
        let reached = |kind: &dyn std::fmt::Display| PortName {
            description: kind.to_string(),
            node_guid: info.node_guid,
            port: Some(info.local_port),
            route: route.to_vec(),
        };
        let Some(kind) = info.node_type.kind() else {
            let what = format!("is of type {}, expected CA, switch or router", info.node_type.0);
            return self.faults.push(Fault::Inconsistent { at: reached(&"unknown kind"), what });
        };
        if let Some(what) = inconsistency(kind, &info) {
            return self.faults.push(Fault::Inconsistent { at: reached(&kind), what });
        }
        let known = self.found.find(info.node_guid);
        let node = match known {
            Some(node) => {
                let known = self.found.node(node);
                let same = known.kind == kind
                    && known.info.num_ports == info.num_ports
                    && (!kind.is_switch() || known.info.port_guid == info.port_guid);
                if !same {
                    let why = "kind, number of ports or GUID of port 0 differ from the first one";
                    let at = reached(&kind);
                    let guid = info.node_guid;
                    return self.faults.push(Fault::DuplicateGuid { guid, at, why });
                }
                node
            }
            None if self.found.nodes().len() == MAX_NODES => {
                if !std::mem::replace(&mut self.crowded, true) {
                    let what = format!("more than {MAX_NODES} nodes; further nodes are ignored");
                    self.faults.push(Fault::TooLarge { what });
                }
                return;
            }
            None => self.add(kind, info, route.clone()),
        };
        let port_index = PortIndex { node, port: info.local_port };
        if from.is_none() {
            self.found.own = Some(port_index);
        }
        if let Some(from) = from
            && !self.found.connect(from, port_index)
        {
            let why = "two links end at the same port";
            let at = reached(&kind);
            return self.faults.push(Fault::DuplicateGuid { guid: info.node_guid, at, why });
        }
        if !kind.is_switch() {
            self.reach_port(port_index, &info, route);
        } else if self.partial && known.is_some() {
            // A node that was known before the partial discovery may have been reset, so its attributes are queried
            // again.
            self.queue.push_back(Probe::Switch(node));
            self.queue.extend((0..=info.num_ports).map(|port| Probe::Port(node.at(port))));
        }
    }

    /// Adds a node and queries its attributes.
    fn add(&mut self, kind: NodeKind, info: NodeInfo, route: Route) -> NodeIndex {
        let node = self.found.add(kind, info, route);
        self.queue.push_back(Probe::Description(node));
        if kind.is_switch() {
            self.queue.push_back(Probe::Switch(node));
            let ports = 0..=info.num_ports;
            self.queue.extend(ports.map(|port| Probe::Port(PortIndex { node, port })));
        }
        node
    }

    /// Adds the port of an HCA or router that a route has reached.
    fn reach_port(&mut self, port_index: PortIndex, info: &NodeInfo, route: Route) {
        let port = self.found.port_mut(port_index);
        if port.route.is_some() {
            if port.guid != info.port_guid {
                let at = self.name(port_index);
                let why = "the port has another GUID than before";
                self.faults.push(Fault::DuplicateGuid { guid: info.node_guid, at, why });
            }
            return;
        }
        port.guid = info.port_guid;
        port.route = Some(route);
        self.queue.push_back(Probe::Port(port_index));
    }

    /// Records SwitchInfo, and queries the LFT blocks whose content the SM does not know. If `LinearFDBTop` has
    /// changed, all blocks are unknown, because the switch was reset or another SM wrote to it.
    fn handle_switch(&mut self, node: NodeIndex, info: SwitchInfo, tables: &mut Tables) {
        let first = self.found.node_mut(node).switch.replace(info).is_none();
        for port in 1..=self.found.node(node).info.num_ports {
            // SwitchInfo gives the size of P_Key tables. Therefore the table of a port whose PortInfo arrived before
            // SwitchInfo is queried only now.
            if first && self.found.port(node.at(port)).is_up() {
                self.query_p_keys(node.at(port), info.partition_enforcement_cap);
            }
        }
        let guid = self.found.node(node).info.node_guid;
        let top = info.linear_fdb_top.min(Lid::MAX_UNICAST);
        let table = tables.entry(guid).or_default();
        if table.top != top {
            *table = SwitchTable::default();
            self.reset.insert(guid);
        }
        table.top = top;
        if top > 0 {
            for block in 0..=top / LinearForwardingBlock::LIDS {
                if table.block(block.into()).is_none() {
                    self.queue.push_back(Probe::Lft { node, block });
                }
            }
        }
    }

    fn handle_port(&mut self, port_index: PortIndex, info: PortInfo) {
        self.found.port_mut(port_index).info = Some(Box::new(info));
        let own = self.found.own == Some(port_index);
        let kind = self.found.node(port_index.node).kind;
        let is_end_port = (port_index.port == 0) == kind.is_switch();
        if is_end_port {
            self.query_p_keys(port_index, self.found.node(port_index.node).info.partition_cap);
        } else if let Some(switch) = self.found.node(port_index.node).switch
            && self.found.port(port_index).is_up()
        {
            self.query_p_keys(port_index, switch.partition_enforcement_cap);
        }
        self.found.managers.remove(&port_index);
        if is_end_port && !own && info.capability_mask.contains(CapabilityMask::SM) {
            self.queue.push_back(Probe::Manager(port_index));
        }
        if let Some(changed_ports) = &mut self.changed_ports {
            return changed_ports.take(port_index, &self.found);
        }
        // Only links of switches and of the SM's port are followed, because HCAs and routers forward no packets.
        if port_index.port == 0
            || !self.found.port(port_index).is_up()
            || !(kind.is_switch() || own)
        {
            return;
        }
        if self.partial
            && let Some(peer) = self.found.port(port_index).peer
        {
            let init = |port_index| {
                let info = self.found.port(port_index).info.as_ref();
                info.is_none_or(|info| info.port_state == PortState::INIT)
            };
            // If this port is in Init, but its peer was not in Init when queried, the link was down in
            // between. Then the peer is queried again.
            if !init(port_index) || init(peer) {
                return;
            }
            self.queue.push_back(Probe::Port(peer));
        }
        self.reach_over(port_index);
    }

    /// Queries the P_Key table of a port. `room` is the number of P_Keys that the table can hold.
    fn query_p_keys(&mut self, port_index: PortIndex, room: u16) {
        let blocks = room.div_ceil(KEYS_PER_BLOCK);
        let empty = [PKey(0); KEYS_PER_BLOCK as usize];
        self.found.port_mut(port_index).p_keys = vec![empty; blocks.into()];
        self.queue.extend((0..blocks).map(|block| Probe::PKeys { port_index, block }));
    }

    /// Queries the node at the other end of a port's link.
    fn reach_over(&mut self, port_index: PortIndex) {
        let route = self.found.route(port_index);
        if route.len() == usize::from(MAX_HOPS) {
            let what = format!("leads further than {MAX_HOPS} hops; nodes beyond are ignored");
            let at = self.name(port_index);
            return self.faults.push(Fault::Inconsistent { at, what });
        }
        let route = route.iter().copied().chain([port_index.port]).collect();
        self.queue.push_back(Probe::Node { from: Some(port_index), route });
    }

    fn unanswered(&mut self, probe: &Probe, reason: Reason) {
        let node_at = |node: NodeIndex| PortName { port: None, ..self.found.name(node.at(0)) };
        let (at, attribute) = match probe {
            Probe::Node { from, route } => {
                let behind = from.map(|from| self.found.name(from)).unwrap_or_default();
                (PortName { route: route.to_vec(), ..behind }, AttributeId::NODE_INFO)
            }
            Probe::Description(node) => (node_at(*node), AttributeId::NODE_DESCRIPTION),
            Probe::Switch(node) => (node_at(*node), AttributeId::SWITCH_INFO),
            Probe::Port(port_index) => (self.name(*port_index), AttributeId::PORT_INFO),
            Probe::Manager(port_index) => (self.name(*port_index), AttributeId::SM_INFO),
            Probe::PKeys { port_index, .. } => (self.name(*port_index), AttributeId::P_KEY_TABLE),
            Probe::Lft { node, .. } => (node_at(*node), AttributeId::LINEAR_FORWARDING),
        };
        self.faults.push(Fault::NoAnswer { at, attribute, set: false, reason });
    }

    fn name(&self, port_index: PortIndex) -> PortName {
        self.found.name(port_index)
    }
}

impl ChangedPorts {
    /// Compares the new PortInfo of a port with its known link. Records the port if the link has come up or gone down.
    fn take(&mut self, port_index: PortIndex, found: &DiscoveredSubnet) {
        let (port, kind) = (found.port(port_index), found.node(port_index.node).kind);
        if port_index.port == 0 {
            return;
        }
        let linked = port.peer.is_some();
        let reset = port.info.as_ref().is_some_and(|info| info.port_state == PortState::INIT);
        if linked && !port.is_up() {
            self.lost.push(port_index);
        } else if port.is_up()
            && (!linked || reset)
            && (kind.is_switch() || found.own == Some(port_index))
        {
            self.risen.push(port_index);
        }
    }
}

/// Returns a description of an inconsistency in a NodeInfo, if any.
fn inconsistency(kind: NodeKind, info: &NodeInfo) -> Option<String> {
    if info.node_guid.is_zero() || info.port_guid.is_zero() {
        Some("has a GUID of zero".to_owned())
    } else if !(1..=254).contains(&info.num_ports) {
        Some(format!("has {} ports: expected 1 to 254", info.num_ports))
    } else if info.local_port > info.num_ports || info.local_port == 0 && !kind.is_switch() {
        Some(format!("answered by port {} of {}", info.local_port, info.num_ports))
    } else {
        None
    }
}

/// Returns the attribute of a response that the requester has matched with its request.
fn attribute<A: Attribute>(mad: &Mad) -> A {
    mad.attribute().expect("the requester checked the attribute of the response")
}
