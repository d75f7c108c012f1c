//! What a sweep has found: nodes, their ports and the links between them.

use std::collections::BTreeMap;

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
    /// Its P_Keys by block, of a port with LIDs.
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
        (place.port == 0) == node.kind.is_switch() && self.port(place).info.is_some()
    }

    /// Returns the way to a port: a switch answers for all its ports at one place.
    pub(crate) fn route(&self, place: Place) -> &[u8] {
        self.port(place).route.as_deref().unwrap_or(&self.node(place.node).route)
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
}
