//! What a sweep has found: nodes, their ports and the links between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// All that was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    nodes: Vec<FoundNode>,
    by_guid: BTreeMap<Guid, NodeIndex>,
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
        self.nodes.iter().enumerate().map(|(index, node)| (NodeIndex(index as u32), node))
    }

    pub(crate) fn node(&self, index: NodeIndex) -> &FoundNode {
        &self.nodes[index.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, index: NodeIndex) -> &mut FoundNode {
        &mut self.nodes[index.0 as usize]
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
        self.by_guid.insert(info.node_guid, index);
        self.nodes.push(FoundNode {
            kind,
            description: NodeDescription::new(""),
            switch: None,
            route,
            ports,
            info,
        });
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

    /// Removes what cannot be reached any more from the own port, and finds the shortest ways to the
    /// rest.
    pub(crate) fn prune(&mut self) {
        let Some(own) = self.own else { return };
        for node in &mut self.nodes {
            for port in &mut node.ports {
                port.route = None;
            }
        }
        let mut reached = vec![false; self.nodes.len()];
        let mut queue = VecDeque::new();
        self.reach(own, Route::default(), &mut reached, &mut queue);
        while let Some(node) = queue.pop_front() {
            for port in 0..=self.node(node).info.num_ports {
                let place = node.at(port);
                // Nothing passes through adapters and routers but what starts there.
                let leads = self.node(node).kind.is_switch() || place == own;
                let Some(peer) = self.port(place).peer.filter(|_| leads) else { continue };
                let route = self.node(node).route.iter().copied().chain([port]).collect();
                self.reach(peer, route, &mut reached, &mut queue);
            }
        }
        self.retain(&reached);
    }

    /// Takes note that a way leads to a port.
    fn reach(
        &mut self,
        place: Place,
        route: Route,
        reached: &mut [bool],
        queue: &mut VecDeque<NodeIndex>,
    ) {
        let is_switch = self.node(place.node).kind.is_switch();
        if !std::mem::replace(&mut reached[place.node.0 as usize], true) {
            self.node_mut(place.node).route = route.clone();
            queue.push_back(place.node);
        }
        if !is_switch {
            self.port_mut(place).route.get_or_insert(route);
        }
    }

    /// Removes all other nodes than those that are kept.
    fn retain(&mut self, kept: &[bool]) {
        let mut number = 0;
        let new: Vec<Option<NodeIndex>> = kept
            .iter()
            .map(|&kept| {
                kept.then(|| {
                    number += 1;
                    NodeIndex(number - 1)
                })
            })
            .collect();
        let moved = |place: Place| Some(new[place.node.0 as usize]?.at(place.port));
        let mut keep = kept.iter();
        self.nodes.retain(|_| *keep.next().expect("one for each node"));
        for port in self.nodes.iter_mut().flat_map(|node| &mut node.ports) {
            port.peer = port.peer.and_then(moved);
        }
        self.by_guid.retain(|_, node| {
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
