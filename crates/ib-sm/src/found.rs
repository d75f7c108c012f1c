//! What a sweep has found: nodes, their ports and the links between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ib_types::{Guid, NodeKind, PKey};
use ib_wire::mad::sm::{
    NodeDescription, NodeInfo, PhysState, PortInfo, PortState, SmInfo, SwitchInfo,
};

use crate::fault::PortName;

/// A node that was found: an index in the order in which nodes answered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeIndex(pub(crate) u32);

/// A port of a node that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) node: NodeIndex,
    /// The number of the port on its node.
    pub(crate) port: u8,
}

impl NodeIndex {
    /// Returns a port of the node.
    pub(crate) const fn at(self, port: u8) -> Place {
        Place { node: self, port }
    }
}

/// The ports that a directed route leaves by, one per hop, the manager's own first.
pub(crate) type Route = Box<[u8]>;

/// All that was found. Clones share the nodes that are the same in both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    nodes: Vec<Arc<FoundNode>>,
    by_guid: Arc<BTreeMap<Guid, NodeIndex>>,
    /// The manager's own port.
    pub(crate) own: Option<Place>,
    /// Other managers, by the place of their port.
    pub(crate) managers: BTreeMap<Place, SmInfo>,
    /// The end ports whose GUID another one has that was found before: they get no LID.
    doubles: BTreeSet<Place>,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct FoundNode {
    pub(crate) kind: NodeKind,
    pub(crate) info: NodeInfo,
    pub(crate) description: NodeDescription,
    /// Of a switch that has answered for it.
    pub(crate) switch: Option<SwitchInfo>,
    /// The way to the port by which the node was found first.
    pub(crate) route: Route,
    /// By number, from 0 on.
    pub(crate) ports: Vec<FoundPort>,
}

/// A port.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundPort {
    /// The port's GUID; of a switch that of port 0, of another node zero until it was reached.
    pub(crate) guid: Guid,
    /// What it says of itself.
    pub(crate) info: Option<Box<PortInfo>>,
    /// The port at the other end of its link.
    pub(crate) peer: Option<Place>,
    /// The way to it, of an adapter's or router's port that was reached.
    pub(crate) route: Option<Route>,
    /// Its P_Keys by block, of a port with LIDs; of another port of a switch those that it lets pass.
    pub(crate) p_keys: Vec<[PKey; 32]>,
}

impl FoundPort {
    /// Returns true when SMPs pass over its link.
    pub(crate) fn is_up(&self) -> bool {
        self.info.as_ref().is_some_and(|info| {
            info.port_state.0 >= PortState::INIT.0 && info.phys_state == PhysState::LINK_UP
        })
    }
}

impl Found {
    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeIndex, &FoundNode)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeIndex(index as u32), &**node))
    }

    pub(crate) fn node(&self, index: NodeIndex) -> &FoundNode {
        &self.nodes[index.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, index: NodeIndex) -> &mut FoundNode {
        Arc::make_mut(&mut self.nodes[index.0 as usize])
    }

    /// Returns the names of nodes, for a sentence.
    pub(crate) fn describe(&self, nodes: &[NodeIndex]) -> String {
        let name = |&node: &NodeIndex| {
            let node = self.node(node);
            format!("'{}' ({})", node.description.as_text(), node.info.node_guid)
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Returns true when a node is the same one as in a clone, at the same index, with nothing changed.
    pub(crate) fn shares(&self, other: &Self, index: NodeIndex) -> bool {
        let at = |found: &Self| found.nodes.get(index.0 as usize).map(Arc::as_ptr);
        at(self).is_some_and(|node| at(other) == Some(node))
    }

    pub(crate) fn port(&self, place: Place) -> &FoundPort {
        &self.node(place.node).ports[usize::from(place.port)]
    }

    pub(crate) fn port_mut(&mut self, place: Place) -> &mut FoundPort {
        &mut self.node_mut(place.node).ports[usize::from(place.port)]
    }

    pub(crate) fn find(&self, guid: Guid) -> Option<NodeIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// Returns the ports with LIDs: those of adapters and routers that were reached, and port 0 of
    /// switches.
    pub(crate) fn end_ports(&self) -> impl Iterator<Item = Place> {
        let all = self.nodes().flat_map(|(node, found)| {
            let last = if found.kind.is_switch() { 0 } else { found.info.num_ports };
            (0..=last).map(move |port| node.at(port))
        });
        all.filter(|&place| self.is_end_port(place))
    }

    /// Returns one end of each link between switches.
    pub(crate) fn trunks(&self) -> impl Iterator<Item = Place> {
        let switches = self.nodes().filter(|(_, found)| found.kind.is_switch());
        switches.flat_map(move |(node, found)| {
            let links = (0..).zip(&found.ports).filter_map(move |(number, port)| {
                let (here, there) = (node.at(number), port.peer?);
                (here < there).then_some((here, there))
            });
            let between = links.filter(|(_, there)| self.node(there.node).kind.is_switch());
            between.map(|(here, _)| here)
        })
    }

    /// Returns true for a port with LIDs that has told of itself.
    pub(crate) fn is_end_port(&self, place: Place) -> bool {
        let node = self.node(place.node);
        (place.port == 0) == node.kind.is_switch()
            && self.port(place).info.is_some()
            && !self.doubles.contains(&place)
    }

    /// Returns true for a port that is not managed, because it or its switch has the GUID of another one.
    pub(crate) fn is_left_out(&self, place: Place) -> bool {
        let port = if self.node(place.node).kind.is_switch() { 0 } else { place.port };
        self.doubles.contains(&place.node.at(port))
    }

    /// Looks for end ports with the GUID of another one, and returns them. The manager's own port is
    /// the first of all.
    pub(crate) fn find_doubles(&mut self) -> Vec<Place> {
        self.doubles.clear();
        let own = self.own.map(|own| match self.node(own.node).kind.is_switch() {
            true => own.node.at(0),
            false => own,
        });
        let mut owners: BTreeMap<Guid, Place> = BTreeMap::new();
        owners.extend(own.map(|own| (self.port(own).guid, own)));
        let all: Vec<Place> = self.end_ports().collect();
        let doubles = all
            .into_iter()
            .filter(|&place| *owners.entry(self.port(place).guid).or_insert(place) != place);
        let doubles: Vec<Place> = doubles.collect();
        self.doubles.extend(&doubles);
        doubles
    }

    /// Returns the way to a port: a switch answers for all its ports at one place.
    pub(crate) fn route(&self, place: Place) -> &[u8] {
        self.port(place).route.as_deref().unwrap_or(&self.node(place.node).route)
    }

    /// Returns what names a block of a port's P_Keys: of other nodes than switches the port is not named.
    pub(crate) fn p_key_modifier(&self, place: Place, block: u16) -> u32 {
        let port = if self.node(place.node).kind.is_switch() { place.port } else { 0 };
        u32::from(port) << 16 | u32::from(block)
    }

    /// Returns what a port is called.
    pub(crate) fn name(&self, place: Place) -> PortName {
        let node = self.node(place.node);
        PortName {
            description: node.description.as_text().into_owned(),
            node_guid: node.info.node_guid,
            port: Some(place.port),
            route: self.route(place).to_vec(),
        }
    }

    /// Adds a node, of which nothing else is known.
    pub(crate) fn add(&mut self, kind: NodeKind, info: NodeInfo, route: Route) -> NodeIndex {
        let index = NodeIndex(self.nodes.len() as u32);
        let mut ports = vec![FoundPort::default(); usize::from(info.num_ports) + 1];
        if kind.is_switch() {
            for port in &mut ports {
                port.guid = info.port_guid;
            }
        }
        Arc::make_mut(&mut self.by_guid).insert(info.node_guid, index);
        self.nodes.push(Arc::new(FoundNode {
            kind,
            description: NodeDescription::new(""),
            switch: None,
            route,
            ports,
            info,
        }));
        index
    }

    /// Joins two ports; false when one of them is joined to another already.
    pub(crate) fn join(&mut self, one: Place, other: Place) -> bool {
        let free = |found: &Self, place, peer| found.port(place).peer.is_none_or(|at| at == peer);
        if !free(self, one, other) || !free(self, other, one) {
            return false;
        }
        self.port_mut(one).peer = Some(other);
        self.port_mut(other).peer = Some(one);
        true
    }

    /// Parts a port from the one at the other end of its link.
    pub(crate) fn part(&mut self, end: Place, peer: Option<Place>) {
        self.port_mut(end).peer = None;
        if let Some(peer) = peer {
            self.port_mut(peer).peer = None;
        }
    }

    /// Removes what cannot be reached any more from the own port, and finds ways to the rest: shortest
    /// ones, the same as before where these still lead there.
    pub(crate) fn prune(&mut self) {
        let Some(own) = self.own else { return };
        let mut ways = Ways::new(self.nodes.len());
        ways.reach(own, Route::default(), self);
        while let Some((node, way)) = ways.queue.pop_front() {
            for port in 0..=self.node(node).info.num_ports {
                let place = node.at(port);
                // Nothing passes through adapters and routers but what starts there.
                let leads = self.node(node).kind.is_switch() || place == own;
                if let Some(peer) = self.port(place).peer.filter(|_| leads) {
                    ways.reach(peer, way.iter().copied().chain([port]).collect(), self);
                }
            }
        }
        self.take_ways(&ways);
        self.retain(&ways);
    }

    /// Returns the port that a way leads to.
    fn end_of(&self, route: &[u8]) -> Option<Place> {
        let mut at = self.own?;
        for &port in route {
            let leaves = at.node.at(port);
            if !self.node(at.node).kind.is_switch() && Some(leaves) != self.own {
                return None;
            }
            at = self.node(at.node).ports.get(usize::from(port))?.peer?;
        }
        Some(at)
    }

    /// Takes new ways to nodes and ports where the old ones are longer, or do not lead there any more.
    fn take_ways(&mut self, ways: &Ways) {
        for index in (0..self.nodes.len() as u32).map(NodeIndex) {
            let Some(way) = &ways.nodes[index.0 as usize] else { continue };
            let old = &self.node(index).route;
            let leads = self.end_of(old).is_some_and(|end| end.node == index);
            if old.len() != way.len() || !leads {
                self.node_mut(index).route = way.clone();
            }
            if self.node(index).kind.is_switch() {
                continue;
            }
            for place in (0..=self.node(index).info.num_ports).map(|port| index.at(port)) {
                let (old, way) = (self.port(place).route.as_deref(), ways.ports.get(&place));
                let stays = match (old, way) {
                    (Some(old), Some(way)) => {
                        old.len() == way.len() && self.end_of(old) == Some(place)
                    }
                    (old, way) => old.is_none() && way.is_none(),
                };
                if !stays {
                    self.port_mut(place).route = way.cloned();
                }
            }
        }
    }

    /// Removes all other nodes than those that ways lead to.
    fn retain(&mut self, ways: &Ways) {
        if ways.nodes.iter().all(Option::is_some) {
            return;
        }
        let mut number = 0;
        let new: Vec<Option<NodeIndex>> = ways
            .nodes
            .iter()
            .map(|way| {
                way.is_some().then(|| {
                    number += 1;
                    NodeIndex(number - 1)
                })
            })
            .collect();
        let moved = |place: Place| Some(new[place.node.0 as usize]?.at(place.port));
        let mut keep = ways.nodes.iter().map(Option::is_some);
        self.nodes.retain(|_| keep.next().expect("one for each node"));
        for node in &mut self.nodes {
            if node.ports.iter().any(|port| port.peer != port.peer.and_then(moved)) {
                for port in &mut Arc::make_mut(node).ports {
                    port.peer = port.peer.and_then(moved);
                }
            }
        }
        Arc::make_mut(&mut self.by_guid).retain(|_, node| {
            new[node.0 as usize].is_some_and(|index| {
                *node = index;
                true
            })
        });
        self.own = self.own.and_then(moved);
        let managers = std::mem::take(&mut self.managers).into_iter();
        self.managers = managers.filter_map(|(at, info)| Some((moved(at)?, info))).collect();
    }
}

/// Shortest ways from the own port, as they are found.
struct Ways {
    /// By node.
    nodes: Vec<Option<Route>>,
    /// To the ports of adapters and routers.
    ports: BTreeMap<Place, Route>,
    queue: VecDeque<(NodeIndex, Route)>,
}

impl Ways {
    fn new(nodes: usize) -> Self {
        Self { nodes: vec![None; nodes], ports: BTreeMap::new(), queue: VecDeque::new() }
    }

    /// Takes note that a way leads to a port.
    fn reach(&mut self, place: Place, route: Route, found: &Found) {
        let way = &mut self.nodes[place.node.0 as usize];
        if way.is_none() {
            *way = Some(route.clone());
            self.queue.push_back((place.node, route.clone()));
        }
        if !found.node(place.node).kind.is_switch() {
            self.ports.entry(place).or_insert(route);
        }
    }
}
