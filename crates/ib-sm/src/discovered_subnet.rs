//! The discovered subnet: nodes, their ports and the links between them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ib_types::{Guid, NodeKind, PKey};
use ib_wire::mad::sm::{
    NodeDescription, NodeInfo, PhysState, PortInfo, PortState, SmInfo, SwitchInfo,
};

use crate::fault::PortName;

/// Index of a discovered node. Nodes are in the order of their first responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeIndex(pub(crate) u32);

/// A port of a discovered node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PortIndex {
    pub(crate) node: NodeIndex,
    /// Port number on the node.
    pub(crate) port: u8,
}

impl NodeIndex {
    /// Returns the port of this node that has the port number `port`.
    pub(crate) const fn at(self, port: u8) -> PortIndex {
        PortIndex { node: self, port }
    }
}

/// Directed route: the egress port of each hop, beginning with the SM's port.
pub(crate) type Route = Box<[u8]>;

/// The discovered subnet. Clones of it share unchanged nodes.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiscoveredSubnet {
    nodes: Vec<Arc<DiscoveredNode>>,
    by_guid: Arc<BTreeMap<Guid, NodeIndex>>,
    /// The port at which the SM is attached.
    pub(crate) own: Option<PortIndex>,
    /// Other SMs, by the port at which they are attached.
    pub(crate) managers: BTreeMap<PortIndex, SmInfo>,
    /// End ports with the same GUID as an end port that was discovered before them. They get no LID.
    duplicates: BTreeSet<PortIndex>,
}

/// A discovered node.
#[derive(Clone, Debug)]
pub(crate) struct DiscoveredNode {
    pub(crate) kind: NodeKind,
    pub(crate) info: NodeInfo,
    pub(crate) description: NodeDescription,
    /// SwitchInfo, if the node is a switch that responded to the query.
    pub(crate) switch: Option<SwitchInfo>,
    /// Directed route to the node. It ends at the port at which the node was discovered.
    pub(crate) route: Route,
    /// Ports by port number, including port 0.
    pub(crate) ports: Vec<DiscoveredPort>,
}

/// A discovered port.
#[derive(Clone, Debug, Default)]
pub(crate) struct DiscoveredPort {
    /// Port GUID. At a switch it is that of port 0. It is zero for a CA or router port that was not reached yet.
    pub(crate) guid: Guid,
    /// PortInfo, if the port responded to the query.
    pub(crate) info: Option<Box<PortInfo>>,
    /// The port at the other end of the link.
    pub(crate) peer: Option<PortIndex>,
    /// Directed route to the port, if it is a CA or router port and was reached.
    pub(crate) route: Option<Route>,
    /// Blocks of the P_Key table. An end port has its own keys, and an external switch port has the keys that it
    /// enforces.
    pub(crate) p_keys: Vec<[PKey; 32]>,
}

impl DiscoveredPort {
    /// Returns true if the port's link carries SMPs.
    pub(crate) fn is_up(&self) -> bool {
        self.info.as_ref().is_some_and(|info| {
            info.port_state.0 >= PortState::INIT.0 && info.phys_state == PhysState::LINK_UP
        })
    }
}

impl DiscoveredSubnet {
    pub(crate) fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeIndex, &DiscoveredNode)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeIndex(index as u32), &**node))
    }

    pub(crate) fn node(&self, index: NodeIndex) -> &DiscoveredNode {
        &self.nodes[index.0 as usize]
    }

    pub(crate) fn node_mut(&mut self, index: NodeIndex) -> &mut DiscoveredNode {
        Arc::make_mut(&mut self.nodes[index.0 as usize])
    }

    /// Returns a list of node descriptions and GUIDs for messages.
    pub(crate) fn describe(&self, nodes: &[NodeIndex]) -> String {
        let name = |&node: &NodeIndex| {
            let node = self.node(node);
            format!("'{}' ({})", node.description.as_text(), node.info.node_guid)
        };
        nodes.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Returns true if both subnets share the memory of the node at `index`, so that the node is the same and
    /// unchanged.
    pub(crate) fn shares(&self, other: &Self, index: NodeIndex) -> bool {
        let at = |found: &Self| found.nodes.get(index.0 as usize).map(Arc::as_ptr);
        at(self).is_some_and(|node| at(other) == Some(node))
    }

    pub(crate) fn port(&self, port_index: PortIndex) -> &DiscoveredPort {
        &self.node(port_index.node).ports[usize::from(port_index.port)]
    }

    pub(crate) fn port_mut(&mut self, port_index: PortIndex) -> &mut DiscoveredPort {
        &mut self.node_mut(port_index.node).ports[usize::from(port_index.port)]
    }

    pub(crate) fn find(&self, guid: Guid) -> Option<NodeIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// Returns the ports that get LIDs: CA and router ports that were reached, and port 0 of
    /// switches.
    pub(crate) fn end_ports(&self) -> impl Iterator<Item = PortIndex> {
        let all = self.nodes().flat_map(|(node, found)| {
            let last = if found.kind.is_switch() { 0 } else { found.info.num_ports };
            (0..=last).map(move |port| node.at(port))
        });
        all.filter(|&port_index| self.is_end_port(port_index))
    }

    /// Returns one port of each link between two switches: the one at the switch with the lower node index.
    pub(crate) fn trunks(&self) -> impl Iterator<Item = PortIndex> {
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

    /// Returns true if the port gets a LID: it is an end port that has responded, and no end port discovered before it
    /// has its GUID.
    pub(crate) fn is_end_port(&self, port_index: PortIndex) -> bool {
        let node = self.node(port_index.node);
        (port_index.port == 0) == node.kind.is_switch()
            && self.port(port_index).info.is_some()
            && !self.duplicates.contains(&port_index)
    }

    /// Returns true if the SM does not manage the port, because the port or its switch has a duplicate GUID.
    pub(crate) fn is_excluded(&self, port_index: PortIndex) -> bool {
        let port = if self.node(port_index.node).kind.is_switch() { 0 } else { port_index.port };
        self.duplicates.contains(&port_index.node.at(port))
    }

    /// Finds the end ports with the same GUID as an end port that was discovered before them. Records and returns them.
    /// The SM's port counts as discovered first.
    pub(crate) fn find_duplicates(&mut self) -> Vec<PortIndex> {
        self.duplicates.clear();
        let own = self.own.map(|own| match self.node(own.node).kind.is_switch() {
            true => own.node.at(0),
            false => own,
        });
        let mut owners: BTreeMap<Guid, PortIndex> = BTreeMap::new();
        owners.extend(own.map(|own| (self.port(own).guid, own)));
        let all: Vec<PortIndex> = self.end_ports().collect();
        let duplicates = all.into_iter().filter(|&port_index| {
            *owners.entry(self.port(port_index).guid).or_insert(port_index) != port_index
        });
        let duplicates: Vec<PortIndex> = duplicates.collect();
        self.duplicates.extend(&duplicates);
        duplicates
    }

    /// Returns the directed route to a port. All ports of a switch have the same route.
    pub(crate) fn route(&self, port_index: PortIndex) -> &[u8] {
        self.port(port_index).route.as_deref().unwrap_or(&self.node(port_index.node).route)
    }

    /// Returns the attribute modifier for a block of a P_Key table. It includes the port number only for switches.
    pub(crate) fn p_key_modifier(&self, port_index: PortIndex, block: u16) -> u32 {
        let port = if self.node(port_index.node).kind.is_switch() { port_index.port } else { 0 };
        u32::from(port) << 16 | u32::from(block)
    }

    /// Returns the port's name for messages.
    pub(crate) fn name(&self, port_index: PortIndex) -> PortName {
        let node = self.node(port_index.node);
        PortName {
            description: node.description.as_text().into_owned(),
            node_guid: node.info.node_guid,
            port: Some(port_index.port),
            route: self.route(port_index).to_vec(),
        }
    }

    /// Adds a node. Its description, SwitchInfo and PortInfo are not known yet.
    pub(crate) fn add(&mut self, kind: NodeKind, info: NodeInfo, route: Route) -> NodeIndex {
        let index = NodeIndex(self.nodes.len() as u32);
        let mut ports = vec![DiscoveredPort::default(); usize::from(info.num_ports) + 1];
        if kind.is_switch() {
            for port in &mut ports {
                port.guid = info.port_guid;
            }
        }
        Arc::make_mut(&mut self.by_guid).insert(info.node_guid, index);
        self.nodes.push(Arc::new(DiscoveredNode {
            kind,
            description: NodeDescription::new(""),
            switch: None,
            route,
            ports,
            info,
        }));
        index
    }

    /// Records a link between two ports. Returns false if either of them is already linked to a third port.
    pub(crate) fn connect(&mut self, one: PortIndex, other: PortIndex) -> bool {
        let free = |found: &Self, port_index, peer| {
            found.port(port_index).peer.is_none_or(|at| at == peer)
        };
        if !free(self, one, other) || !free(self, other, one) {
            return false;
        }
        self.port_mut(one).peer = Some(other);
        self.port_mut(other).peer = Some(one);
        true
    }

    /// Removes the link of a port.
    pub(crate) fn disconnect(&mut self, end: PortIndex, peer: Option<PortIndex>) {
        self.port_mut(end).peer = None;
        if let Some(peer) = peer {
            self.port_mut(peer).peer = None;
        }
    }

    /// Removes the nodes that the SM's port can no longer reach. Replaces invalid routes, and routes that are not
    /// shortest.
    pub(crate) fn prune(&mut self) {
        let Some(own) = self.own else { return };
        let mut routes = ShortestRoutes::new(self.nodes.len());
        routes.reach(own, Route::default(), self);
        while let Some((node, route)) = routes.queue.pop_front() {
            for port in 0..=self.node(node).info.num_ports {
                let port_index = node.at(port);
                // Only switches forward packets, so a route continues only at switches. Every route starts at the SM's
                // port.
                let leads = self.node(node).kind.is_switch() || port_index == own;
                if let Some(peer) = self.port(port_index).peer.filter(|_| leads) {
                    routes.reach(peer, route.iter().copied().chain([port]).collect(), self);
                }
            }
        }
        self.replace_routes(&routes);
        self.retain(&routes);
    }

    /// Returns the port at the end of a directed route; `None` if the route leads out of the subnet.
    fn route_end(&self, route: &[u8]) -> Option<PortIndex> {
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

    /// Replaces the routes that are not shortest, or that no longer lead to their node or port.
    fn replace_routes(&mut self, routes: &ShortestRoutes) {
        for index in (0..self.nodes.len() as u32).map(NodeIndex) {
            let Some(route) = &routes.nodes[index.0 as usize] else { continue };
            let old = &self.node(index).route;
            let leads = self.route_end(old).is_some_and(|end| end.node == index);
            if old.len() != route.len() || !leads {
                self.node_mut(index).route = route.clone();
            }
            if self.node(index).kind.is_switch() {
                continue;
            }
            for port_index in (0..=self.node(index).info.num_ports).map(|port| index.at(port)) {
                let (old, route) =
                    (self.port(port_index).route.as_deref(), routes.ports.get(&port_index));
                let is_permanent = match (old, route) {
                    (Some(old), Some(route)) => {
                        old.len() == route.len() && self.route_end(old) == Some(port_index)
                    }
                    (old, route) => old.is_none() && route.is_none(),
                };
                if !is_permanent {
                    self.port_mut(port_index).route = route.cloned();
                }
            }
        }
    }

    /// Removes the nodes to which no route leads.
    fn retain(&mut self, routes: &ShortestRoutes) {
        if routes.nodes.iter().all(Option::is_some) {
            return;
        }
        let mut number = 0;
        let new: Vec<Option<NodeIndex>> = routes
            .nodes
            .iter()
            .map(|route| {
                route.is_some().then(|| {
                    number += 1;
                    NodeIndex(number - 1)
                })
            })
            .collect();
        let moved =
            |port_index: PortIndex| Some(new[port_index.node.0 as usize]?.at(port_index.port));
        let mut keep = routes.nodes.iter().map(Option::is_some);
        self.nodes.retain(|_| keep.next().expect("`routes` has an entry for each node"));
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

/// Shortest directed routes from the SM's port, found by a breadth-first search.
struct ShortestRoutes {
    /// Route to each node; `None` if the node was not reached.
    nodes: Vec<Option<Route>>,
    /// Shortest routes to the ports of CAs and routers.
    ports: BTreeMap<PortIndex, Route>,
    queue: VecDeque<(NodeIndex, Route)>,
}

impl ShortestRoutes {
    fn new(nodes: usize) -> Self {
        Self { nodes: vec![None; nodes], ports: BTreeMap::new(), queue: VecDeque::new() }
    }

    /// Records a route to a port and to its node, unless they already have one.
    fn reach(&mut self, port_index: PortIndex, route: Route, found: &DiscoveredSubnet) {
        let known = &mut self.nodes[port_index.node.0 as usize];
        if known.is_none() {
            *known = Some(route.clone());
            self.queue.push_back((port_index.node, route.clone()));
        }
        if !found.node(port_index.node).kind.is_switch() {
            self.ports.entry(port_index).or_insert(route);
        }
    }
}
