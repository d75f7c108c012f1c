//! The exploration of a subnet by directed routes.
//!
//! It starts at the manager's own port and goes over every link that is up, through switches only.
//! Every probe is asked once; what does not answer is left out and named.
//!
//! When it is known which nodes have changed, only these are asked again: first all that they say of
//! their ports, then, over ways that avoid the links that have gone, what is behind those that have
//! come up. Where that does not fit what was known, or something does not answer, everything has to
//! be explored.

use std::collections::{BTreeSet, VecDeque};

use ib_mad::{Failure, Message};
use ib_types::{Guid, Lid, NodeKind, PKey};
use ib_wire::mad::sm::{
    CapabilityMask, LinearForwardingBlock, NodeInfo, PKeyTable, PortInfo, PortState, SmInfo,
    SwitchInfo,
};
use ib_wire::mad::smp::{self, MAX_HOPS};
use ib_wire::mad::{Attribute, AttributeId, Mad, Method, TransactionId};

use crate::fault::{Fault, PortName, Reason};
use crate::found::{Found, NodeIndex, Place, Route};
use crate::tables::{SwitchTable, Tables};

/// The most nodes that are explored: each has at least one of the 49,151 unicast LIDs.
const MAX_NODES: usize = 49_151;

/// The P_Keys that a block of a table holds.
const KEYS_PER_BLOCK: u16 = 32;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Who is there, at the end of a route that leaves by the last port at last?
    Node { from: Option<Place>, route: Route },
    /// What is the node called?
    Description(NodeIndex),
    /// What can the switch do?
    Switch(NodeIndex),
    /// What state is the port in?
    Port(Place),
    /// Who manages from that port?
    Manager(Place),
    /// Which P_Keys stand in a block of the port's table?
    PKeys { place: Place, block: u16 },
    /// Which ports do the LIDs of a block leave by?
    Lft { node: NodeIndex, block: u16 },
}

/// An exploration in flight.
#[derive(Debug, Default)]
pub(crate) struct Discovery {
    found: Found,
    queue: VecDeque<Probe>,
    /// Probes that were handed out and have not ended.
    waiting: usize,
    faults: Vec<Fault>,
    crowded: bool,
    /// What the ports of changed nodes have told, until all of them have.
    again: Option<Again>,
    /// Whether only a part of the subnet is explored.
    partial: bool,
    /// Whether nodes or links have come or gone, as far as a partial exploration can tell.
    reshaped: bool,
    /// The switches whose tables are not those that were written, by node GUID.
    reset: BTreeSet<Guid>,
}

/// Ports of changed nodes.
#[derive(Debug, Default)]
struct Again {
    /// The ports whose links have gone.
    lost: Vec<Place>,
    /// The ports whose links have come up.
    risen: Vec<Place>,
}

/// What came of an exploration.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) found: Found,
    pub(crate) faults: Vec<Fault>,
    /// Whether nothing but settings has changed since the exploration before.
    pub(crate) same_shape: bool,
    /// Whether it was partial and has to be repeated in full.
    pub(crate) failed: bool,
    /// The switches whose tables are not those that were written, by node GUID.
    pub(crate) reset: BTreeSet<Guid>,
}

/// Returns true if a port of a switch has a link that is up and whose other end was not found.
fn has_open_end(found: &Found) -> bool {
    let switches = found.nodes().filter(|(_, node)| node.kind.is_switch());
    switches
        .into_iter()
        .any(|(_, node)| node.ports.iter().skip(1).any(|port| port.is_up() && port.peer.is_none()))
}

impl Discovery {
    /// Starts at the own port.
    pub(crate) fn new() -> Self {
        let queue = VecDeque::from([Probe::Node { from: None, route: Route::default() }]);
        Self { queue, ..Self::default() }
    }

    /// Asks nodes again that have changed since a subnet was explored.
    pub(crate) fn again(found: Found, changed: impl IntoIterator<Item = NodeIndex>) -> Self {
        let mut queue = VecDeque::new();
        for node in changed {
            queue.push_back(Probe::Description(node));
            let known = found.node(node);
            if known.kind.is_switch() {
                queue.push_back(Probe::Switch(node));
            }
            let first = u8::from(!known.kind.is_switch());
            let ports = (first..=known.info.num_ports).map(|port| node.at(port));
            let reached = |place: &Place| known.kind.is_switch() || found.is_end_port(*place);
            queue.extend(ports.filter(reached).map(Probe::Port));
        }
        Self { found, queue, again: Some(Again::default()), partial: true, ..Self::default() }
    }

    /// Returns the next probe and the request that asks it.
    pub(crate) fn next(&mut self) -> Option<(Probe, Mad)> {
        if self.queue.is_empty()
            && self.waiting == 0
            && let Some(again) = self.again.take()
        {
            self.follow(&again);
        }
        let probe = self.queue.pop_front()?;
        self.waiting += 1;
        let (id, modifier, route) = match &probe {
            Probe::Node { route, .. } => (AttributeId::NODE_INFO, 0, &**route),
            Probe::Description(node) => {
                (AttributeId::NODE_DESCRIPTION, 0, &*self.found.node(*node).route)
            }
            Probe::Switch(node) => (AttributeId::SWITCH_INFO, 0, &*self.found.node(*node).route),
            Probe::Port(place) => {
                (AttributeId::PORT_INFO, place.port.into(), self.found.route(*place))
            }
            Probe::Manager(place) => (AttributeId::SM_INFO, 0, self.found.route(*place)),
            Probe::PKeys { place, block } => {
                let modifier = self.found.p_key_modifier(*place, *block);
                (AttributeId::P_KEY_TABLE, modifier, self.found.route(*place))
            }
            Probe::Lft { node, block } => {
                let route = &*self.found.node(*node).route;
                (AttributeId::LINEAR_FORWARDING, u32::from(*block), route)
            }
        };
        let mad = smp::directed_request(Method::GET, TransactionId(0), (id, modifier), route);
        Some((probe, mad))
    }

    /// Returns true when nothing is left to ask and every probe has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.waiting == 0 && self.again.is_none()
    }

    /// Returns what was found, and what is wrong with it.
    pub(crate) fn finish(self) -> Explored {
        let Self { mut found, mut faults, partial, reshaped, reset, .. } = self;
        for place in found.find_doubles() {
            let why = "a port that was found before has it; this one is left out";
            let (guid, at) = (found.port(place).guid, found.name(place));
            faults.push(Fault::DuplicateGuid { guid, at, why });
        }
        let failed = partial && (!faults.is_empty() || has_open_end(&found));
        Explored { found, faults, same_shape: partial && !reshaped, failed, reset }
    }

    /// Goes on from what the ports of changed nodes have told.
    fn follow(&mut self, again: &Again) {
        let ends = again.lost.iter().chain(&again.risen);
        let pairs: Vec<(Place, Option<Place>)> =
            ends.map(|&end| (end, self.found.port(end).peer)).collect();
        if pairs.is_empty() {
            return;
        }
        self.reshaped = true;
        let named =
            |found: &Found, place: Place| (found.node(place.node).info.node_guid, place.port);
        let lost: Vec<_> = again.lost.iter().filter_map(|&it| self.found.port(it).peer).collect();
        let lost: Vec<_> = lost.into_iter().map(|it| named(&self.found, it)).collect();
        let risen: Vec<_> = again.risen.iter().map(|&it| named(&self.found, it)).collect();
        // What hung on a link that has come up again may have been reset, or be something else.
        for (end, peer) in pairs {
            self.found.part(end, peer);
        }
        let known: Vec<Guid> = self.found.nodes().map(|(_, node)| node.info.node_guid).collect();
        self.found.prune();
        // What is found behind them again may have been reset.
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

    /// Takes the end of a probe. The tables of switches that are not known yet are read into `tables`.
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
            Probe::Port(place) => self.handle_port(place, attribute(&mad)),
            Probe::Manager(place) => {
                self.found.managers.insert(place, attribute::<SmInfo>(&mad));
            }
            Probe::PKeys { place, block } => {
                let read: PKeyTable = attribute(&mad);
                let blocks = &mut self.found.port_mut(place).p_keys;
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

    fn handle_node(&mut self, from: Option<Place>, route: Route, info: NodeInfo) {
        let reached = |kind: &dyn std::fmt::Display| PortName {
            description: kind.to_string(),
            node_guid: info.node_guid,
            port: Some(info.local_port),
            route: route.to_vec(),
        };
        let Some(kind) = info.node_type.kind() else {
            let what = format!("is of type {}, which means nothing", info.node_type.0);
            return self.faults.push(Fault::Absurd { at: reached(&"unknown kind"), what });
        };
        if let Some(what) = absurdity(kind, &info) {
            return self.faults.push(Fault::Absurd { at: reached(&kind), what });
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
                    let what = format!("more than {MAX_NODES} nodes: the rest is left out");
                    self.faults.push(Fault::TooLarge { what });
                }
                return;
            }
            None => self.add(kind, info, route.clone()),
        };
        let place = Place { node, port: info.local_port };
        if from.is_none() {
            self.found.own = Some(place);
        }
        if let Some(from) = from
            && !self.found.join(from, place)
        {
            let why = "two links end at the same port";
            let at = reached(&kind);
            return self.faults.push(Fault::DuplicateGuid { guid: info.node_guid, at, why });
        }
        if !kind.is_switch() {
            self.reach_port(place, &info, route);
        } else if self.partial && known.is_some() {
            // It may have been reset.
            self.queue.push_back(Probe::Switch(node));
            self.queue.extend((0..=info.num_ports).map(|port| Probe::Port(node.at(port))));
        }
    }

    /// Adds a node and asks what it is.
    fn add(&mut self, kind: NodeKind, info: NodeInfo, route: Route) -> NodeIndex {
        let node = self.found.add(kind, info, route);
        self.queue.push_back(Probe::Description(node));
        if kind.is_switch() {
            self.queue.push_back(Probe::Switch(node));
            let ports = 0..=info.num_ports;
            self.queue.extend(ports.map(|port| Probe::Port(Place { node, port })));
        }
        node
    }

    /// Takes note of a port of an HCA or router that a route ends at.
    fn reach_port(&mut self, place: Place, info: &NodeInfo, route: Route) {
        let port = self.found.port_mut(place);
        if port.route.is_some() {
            if port.guid != info.port_guid {
                let at = self.name(place);
                let why = "the port has another GUID than before";
                self.faults.push(Fault::DuplicateGuid { guid: info.node_guid, at, why });
            }
            return;
        }
        port.guid = info.port_guid;
        port.route = Some(route);
        self.queue.push_back(Probe::Port(place));
    }

    /// Asks for the table of a switch unless it is the one that was written: a switch that was reset
    /// or managed by others shows another highest LID.
    fn handle_switch(&mut self, node: NodeIndex, info: SwitchInfo, tables: &mut Tables) {
        let first = self.found.node_mut(node).switch.replace(info).is_none();
        for port in 1..=self.found.node(node).info.num_ports {
            // What its ports have told before it could not be followed up then.
            if first && self.found.port(node.at(port)).is_up() {
                self.ask_p_keys(node.at(port), info.partition_enforcement_cap);
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

    fn handle_port(&mut self, place: Place, info: PortInfo) {
        self.found.port_mut(place).info = Some(Box::new(info));
        let own = self.found.own == Some(place);
        let kind = self.found.node(place.node).kind;
        let is_end_port = (place.port == 0) == kind.is_switch();
        if is_end_port {
            self.ask_p_keys(place, self.found.node(place.node).info.partition_cap);
        } else if let Some(switch) = self.found.node(place.node).switch
            && self.found.port(place).is_up()
        {
            self.ask_p_keys(place, switch.partition_enforcement_cap);
        }
        self.found.managers.remove(&place);
        if is_end_port && !own && info.capability_mask.contains(CapabilityMask::SM) {
            self.queue.push_back(Probe::Manager(place));
        }
        if let Some(again) = &mut self.again {
            return again.take(place, &self.found);
        }
        // Nothing passes through HCAs and routers but what starts there.
        if place.port == 0 || !self.found.port(place).is_up() || !(kind.is_switch() || own) {
            return;
        }
        if self.partial
            && let Some(peer) = self.found.port(place).peer
        {
            let init = |place| {
                let info = self.found.port(place).info.as_ref();
                info.is_none_or(|info| info.port_state == PortState::INIT)
            };
            // Where a link has come up again, both ends are as new.
            if !init(place) || init(peer) {
                return;
            }
            self.queue.push_back(Probe::Port(peer));
        }
        self.reach_over(place);
    }

    /// Asks for the P_Keys of a port that has room for some.
    fn ask_p_keys(&mut self, place: Place, room: u16) {
        let blocks = room.div_ceil(KEYS_PER_BLOCK);
        let empty = [PKey(0); KEYS_PER_BLOCK as usize];
        self.found.port_mut(place).p_keys = vec![empty; blocks.into()];
        self.queue.extend((0..blocks).map(|block| Probe::PKeys { place, block }));
    }

    /// Asks who is at the other end of a port's link.
    fn reach_over(&mut self, place: Place) {
        let route = self.found.route(place);
        if route.len() == usize::from(MAX_HOPS) {
            let what = format!("leads further than {MAX_HOPS} hops; what is behind is left out");
            let at = self.name(place);
            return self.faults.push(Fault::Absurd { at, what });
        }
        let route = route.iter().copied().chain([place.port]).collect();
        self.queue.push_back(Probe::Node { from: Some(place), route });
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
            Probe::Port(place) => (self.name(*place), AttributeId::PORT_INFO),
            Probe::Manager(place) => (self.name(*place), AttributeId::SM_INFO),
            Probe::PKeys { place, .. } => (self.name(*place), AttributeId::P_KEY_TABLE),
            Probe::Lft { node, .. } => (node_at(*node), AttributeId::LINEAR_FORWARDING),
        };
        self.faults.push(Fault::NoAnswer { at, attribute, set: false, reason });
    }

    fn name(&self, place: Place) -> PortName {
        self.found.name(place)
    }
}

impl Again {
    /// Takes note of what a port says now, and whether its link has come or gone.
    fn take(&mut self, place: Place, found: &Found) {
        let (port, kind) = (found.port(place), found.node(place.node).kind);
        if place.port == 0 {
            return;
        }
        let linked = port.peer.is_some();
        let reset = port.info.as_ref().is_some_and(|info| info.port_state == PortState::INIT);
        if linked && !port.is_up() {
            self.lost.push(place);
        } else if port.is_up()
            && (!linked || reset)
            && (kind.is_switch() || found.own == Some(place))
        {
            self.risen.push(place);
        }
    }
}

/// Returns what cannot be true of a node.
fn absurdity(kind: NodeKind, info: &NodeInfo) -> Option<String> {
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

/// Returns the attribute of an answer: the requester has seen that it is the one which was asked for.
fn attribute<A: Attribute>(mad: &Mad) -> A {
    mad.attribute().expect("an answer holds what was asked for")
}
