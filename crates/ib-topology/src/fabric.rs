//! The graph of a fabric: its nodes, their ports, and the links between ports.

use std::collections::HashMap;

use ib_types::{Guid, Lid, LinkSpeed, LinkWidth, Lmc, NodeKind};

use crate::error::FabricError;

/// Index of a node in a [`Fabric`]. Nodes are numbered in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Returns the index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a port in a [`Fabric`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

impl PortId {
    /// Returns the index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Attributes of a node: the values of NodeInfo, NodeDescription and SwitchInfo that fabric files contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    /// The kind of node: channel adapter, switch or router.
    pub kind: NodeKind,
    /// The name by which port lines of a fabric file refer to the node. It is unique in the fabric.
    pub name: String,
    /// The node GUID, `NodeGUID` in NodeInfo. It is unique in the fabric.
    pub guid: Guid,
    /// The system image GUID, SystemImageGUID in NodeInfo; the node GUID if the file has none.
    pub system_guid: Guid,
    /// The description, as in NodeDescription.
    pub description: String,
    /// The number of external ports, 1 to 254.
    pub ports: u8,
    /// The vendor ID of 24 bits, `VendorID` in NodeInfo; zero if the file has none.
    pub vendor_id: u32,
    /// The device ID, `DeviceID` in NodeInfo; zero if the file has none.
    pub device_id: u16,
    /// The revision, `Revision` in NodeInfo; zero if the file has none.
    pub revision: u32,
    /// True if `EnhancedPort0` is set in SwitchInfo; false for nodes that are not switches.
    pub enhanced_port0: bool,
}

impl NodeSpec {
    /// Returns attributes with the given kind, name, node GUID and number of external ports.
    ///
    /// The description equals the name, and the system image GUID equals the node GUID. All other attributes are zero
    /// or false.
    #[must_use]
    pub fn new(kind: NodeKind, name: impl Into<String>, guid: Guid, ports: u8) -> Self {
        let name = name.into();
        Self {
            kind,
            description: name.clone(),
            name,
            guid,
            system_guid: guid,
            ports,
            vendor_id: 0,
            device_id: 0,
            revision: 0,
            enhanced_port0: false,
        }
    }
}

/// A node of a [`Fabric`]: its attributes, and the index of its port 0. It dereferences to [`NodeSpec`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    spec: NodeSpec,
    first_port: u32,
}

impl std::ops::Deref for Node {
    type Target = NodeSpec;

    fn deref(&self) -> &NodeSpec {
        &self.spec
    }
}

/// The width and speed of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkRate {
    /// The number of lanes of the link.
    pub width: LinkWidth,
    /// The signalling rate of each lane.
    pub speed: LinkSpeed,
}

impl LinkRate {
    /// The rate of a link if an ibsim net file does not state one: 4x SDR.
    pub const DEFAULT: Self = Self { width: LinkWidth::X4, speed: LinkSpeed::Sdr };

    /// Returns the signalling rate of all lanes together, in Mbit/s.
    #[must_use]
    pub const fn megabits_per_second(self) -> u32 {
        self.speed.megabits_per_second(self.width)
    }
}

/// A port.
///
/// Every node has the ports 0 to [`NodeSpec::ports`]. Port 0 of a switch is its management port. On other nodes, port 0
/// is a placeholder without link and GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// The node to which the port belongs.
    pub node: NodeId,
    /// The port number, 0 to 254.
    pub number: u8,
    /// The port GUID. All ports of a switch have the GUID of port 0. Zero if the port has no GUID.
    pub guid: Guid,
    /// The base LID that the file records for the port. Among the ports of a switch, only port 0 can have one.
    pub lid: Option<Lid>,
    /// The LMC that the file records for the port.
    pub lmc: Lmc,
    /// The port at the other end of the link; the port itself if it has a loopback plug. `None` if it is not linked.
    pub peer: Option<PortId>,
    /// The rate of the link. It has no meaning if the port is not linked.
    pub rate: LinkRate,
    /// The mask in LinkWidthEnabled of PortInfo, as stated by an ibsim net file; `None` for files of other formats.
    pub enabled_widths: Option<u8>,
}

/// A fabric, which is a multigraph: its nodes have numbered ports, and its edges are links between ports.
///
/// Nodes and links are added one at a time. Each addition is checked: node names and node GUIDs are unique, and so are
/// port GUIDs except within a switch. A link always joins existing ports.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    nodes: Vec<Node>,
    ports: Vec<Port>,
    links: usize,
    by_name: HashMap<String, NodeId>,
    by_guid: HashMap<Guid, NodeId>,
    by_port_guid: HashMap<Guid, PortId>,
}

impl PartialEq for Fabric {
    /// Compares the nodes and ports of two fabrics, in the order in which they were added.
    ///
    /// The comparison ignores enabled widths, and the rates of unlinked ports.
    fn eq(&self, other: &Self) -> bool {
        let seen = |port: &Port| Port {
            rate: port.peer.map_or(LinkRate::DEFAULT, |_| port.rate),
            enabled_widths: None,
            ..*port
        };
        self.nodes == other.nodes && self.ports.iter().map(seen).eq(other.ports.iter().map(seen))
    }
}

impl Eq for Fabric {}

impl Fabric {
    /// Returns a fabric without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node whose ports are not linked.
    ///
    /// The ports of a switch get the node GUID. The ports of a channel adapter or router have no GUID until
    /// [`Self::set_port_guid`] is called.
    ///
    /// # Errors
    /// Fails if the node GUID is zero or not unique, if the name is not unique, or if the number of ports is not 1 to
    /// 254.
    pub fn add_node(&mut self, spec: NodeSpec) -> Result<NodeId, FabricError> {
        if spec.guid.is_zero() {
            return Err(FabricError::ZeroGuid { node: spec.name });
        }
        if !(1..=254).contains(&spec.ports) {
            return Err(FabricError::PortCount { node: spec.name, ports: u32::from(spec.ports) });
        }
        if self.by_name.contains_key(&spec.name) {
            return Err(FabricError::DuplicateName { node: spec.name });
        }
        if let Some(&other) = self.by_guid.get(&spec.guid) {
            let other = self.node(other).name.clone();
            return Err(FabricError::DuplicateGuid { guid: spec.guid, node: spec.name, other });
        }
        let id = NodeId(u32::try_from(self.nodes.len()).expect("there are fewer than 2^32 nodes"));
        let first_port = u32::try_from(self.ports.len()).expect("there are fewer than 2^32 ports");
        if spec.kind.is_switch() {
            self.claim_port_guid(spec.guid, PortId(first_port), |_| spec.name.clone())?;
        }
        let guid = if spec.kind.is_switch() { spec.guid } else { Guid::ZERO };
        self.ports.extend((0..=spec.ports).map(|number| Port {
            node: id,
            number,
            guid,
            lid: None,
            lmc: Lmc::ZERO,
            peer: None,
            rate: LinkRate::DEFAULT,
            enabled_widths: None,
        }));
        self.by_name.insert(spec.name.clone(), id);
        self.by_guid.insert(spec.guid, id);
        self.nodes.push(Node { spec, first_port });
        Ok(id)
    }

    /// Sets the GUID of a port.
    ///
    /// If the node is a switch, sets the GUID of all its ports, because the ports of a switch share one GUID. A port
    /// GUID may differ from the node GUID.
    ///
    /// # Errors
    /// Fails if the port does not exist, if the GUID is zero, or if another port already has this GUID.
    pub fn set_port_guid(
        &mut self,
        node: NodeId,
        number: u8,
        guid: Guid,
    ) -> Result<(), FabricError> {
        let id = self.checked_port(node, number)?;
        if guid.is_zero() {
            return Err(FabricError::ZeroGuid { node: self.node(node).name.clone() });
        }
        if self.port(id).guid == guid {
            return Ok(());
        }
        self.claim_port_guid(guid, id, |fabric| fabric.node(node).name.clone())?;
        let old = std::mem::replace(&mut self.ports[id.index()].guid, guid);
        if !old.is_zero() {
            self.by_port_guid.remove(&old);
        }
        if self.node(node).kind.is_switch() {
            let first = self.node(node).first_port as usize;
            let ports = usize::from(self.node(node).ports);
            for port in &mut self.ports[first..=first + ports] {
                port.guid = guid;
            }
        }
        Ok(())
    }

    /// Sets the base LID and LMC that the fabric file records for a port.
    ///
    /// # Errors
    /// Fails if the node has no such port.
    pub fn set_lid(
        &mut self,
        node: NodeId,
        number: u8,
        lid: Option<Lid>,
        lmc: Lmc,
    ) -> Result<(), FabricError> {
        let id = self.checked_port(node, number)?;
        let port = &mut self.ports[id.index()];
        port.lid = lid;
        port.lmc = lmc;
        Ok(())
    }

    /// Sets the link widths that are enabled at a port. `mask` is encoded like LinkWidthEnabled of PortInfo.
    ///
    /// # Panics
    /// Panics if this fabric has no port with the id.
    pub fn set_enabled_widths(&mut self, port: PortId, mask: u8) {
        self.ports[port.index()].enabled_widths = Some(mask);
    }

    /// Links two ports, or a port of a switch to itself as a loopback plug does.
    ///
    /// # Errors
    /// Fails if a port does not exist, is port 0, or is already linked. Also fails if a port of a channel adapter or
    /// router would be linked to itself.
    pub fn connect(
        &mut self,
        (node_a, number_a): (NodeId, u8),
        (node_b, number_b): (NodeId, u8),
        rate: LinkRate,
    ) -> Result<(), FabricError> {
        let a = self.checked_port(node_a, number_a)?;
        let b = self.checked_port(node_b, number_b)?;
        for id in [a, b] {
            let port = self.port(id);
            let node = || self.node(port.node).name.clone();
            if port.number == 0 {
                return Err(FabricError::PortZeroLinked { node: node() });
            }
            if a == b && !self.node(port.node).kind.is_switch() {
                return Err(FabricError::SelfLink { node: node(), port: port.number });
            }
            if let Some(peer) = port.peer {
                let (peer, peer_port) = (self.port(peer).node, self.port(peer).number);
                return Err(FabricError::PortInUse {
                    node: node(),
                    port: port.number,
                    peer: self.node(peer).name.clone(),
                    peer_port,
                });
            }
        }
        for (id, peer) in [(a, b), (b, a)] {
            let port = &mut self.ports[id.index()];
            port.peer = Some(peer);
            port.rate = rate;
        }
        self.links += 1;
        Ok(())
    }

    /// Removes the link of a port, if there is one.
    pub fn disconnect(&mut self, port: PortId) {
        if let Some(peer) = self.ports[port.index()].peer.take() {
            self.ports[peer.index()].peer = None;
            self.links -= 1;
        }
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of nodes of the given kind.
    #[must_use]
    pub fn count(&self, kind: NodeKind) -> usize {
        self.nodes.iter().filter(|node| node.kind == kind).count()
    }

    /// Returns the number of links. A loopback plug counts as one link.
    #[must_use]
    pub fn link_count(&self) -> usize {
        self.links
    }

    /// Returns the nodes in the order in which they were added.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// Returns the node with the given id.
    ///
    /// # Panics
    /// Panics if this fabric has no node with the id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Returns the port with the given id.
    ///
    /// # Panics
    /// Panics if this fabric has no port with the id.
    #[must_use]
    pub fn port(&self, id: PortId) -> &Port {
        &self.ports[id.index()]
    }

    /// Returns the id of a node's port with the given number; `None` if the node has no such port.
    #[must_use]
    pub fn port_id(&self, node: NodeId, number: u8) -> Option<PortId> {
        let node = self.node(node);
        (number <= node.ports).then(|| PortId(node.first_port + u32::from(number)))
    }

    /// Returns the ports of a node, from port 0 on.
    pub fn ports_of(&self, node: NodeId) -> impl ExactSizeIterator<Item = (PortId, &Port)> {
        let node = self.node(node);
        let (first, count) = (node.first_port, usize::from(node.ports) + 1);
        self.ports[first as usize..first as usize + count]
            .iter()
            .enumerate()
            .map(move |(number, port)| (PortId(first + number as u32), port))
    }

    /// Returns the port at the other end of a port's link; `None` if the port is not linked.
    #[must_use]
    pub fn peer(&self, id: PortId) -> Option<&Port> {
        self.port(id).peer.map(|peer| self.port(peer))
    }

    /// Returns every link once, as the ids of its two ports, the lower id first. The ids of a loopback plug are equal.
    pub fn links(&self) -> impl Iterator<Item = (PortId, PortId)> {
        self.ports.iter().enumerate().filter_map(|(index, port)| {
            let (id, peer) = (PortId(index as u32), port.peer?);
            (id <= peer).then_some((id, peer))
        })
    }

    /// Finds a node by its name.
    #[must_use]
    pub fn find_name(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// Finds a node by its node GUID.
    #[must_use]
    pub fn find_guid(&self, guid: Guid) -> Option<NodeId> {
        self.by_guid.get(&guid).copied()
    }

    /// Finds a port by its port GUID. For the GUID of a switch, returns port 0, or the port of the latest
    /// [`Self::set_port_guid`] call that has changed the GUID.
    #[must_use]
    pub fn find_port_guid(&self, guid: Guid) -> Option<PortId> {
        self.by_port_guid.get(&guid).copied()
    }

    /// Replaces the descriptions of nodes. `names` maps node GUIDs to descriptions, as a node-name-map file does.
    ///
    /// Returns the number of nodes whose GUID is in `names`.
    pub fn rename(&mut self, names: &std::collections::BTreeMap<Guid, String>) -> usize {
        let mut renamed = 0;
        for node in &mut self.nodes {
            if let Some(name) = names.get(&node.spec.guid) {
                node.spec.description.clone_from(name);
                renamed += 1;
            }
        }
        renamed
    }

    fn checked_port(&self, node: NodeId, number: u8) -> Result<PortId, FabricError> {
        self.port_id(node, number).ok_or_else(|| FabricError::NoSuchPort {
            node: self.node(node).name.clone(),
            port: u32::from(number),
            ports: self.node(node).ports,
        })
    }

    fn claim_port_guid(
        &mut self,
        guid: Guid,
        port: PortId,
        node: impl FnOnce(&Self) -> String,
    ) -> Result<(), FabricError> {
        if let Some(&other) = self.by_port_guid.get(&guid) {
            let other = self.node(self.port(other).node).name.clone();
            return Err(FabricError::DuplicateGuid { guid, node: node(self), other });
        }
        self.by_port_guid.insert(guid, port);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
