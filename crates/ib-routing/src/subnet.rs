//! The part of a fabric that a subnet manager discovers, in OpenSM's order.
//!
//! OpenSM uses GUIDs in network byte order as the keys of its tables, but compares the keys as integers of the host. On
//! a little-endian machine, it therefore iterates by byte-swapped GUID. This order breaks all ties between routes, so a
//! [`Subnet`] numbers switches and end ports in the same order.

use std::collections::{BTreeMap, VecDeque};

use ib_topology::{Fabric, Node, NodeId, PortId};
use ib_types::{Guid, Lid, Lmc};

use crate::lids::{self, LidError, LidOptions};

/// Index of a switch in a [`Subnet`], in the order of byte-swapped node GUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u16);

impl SwitchId {
    /// Returns the index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index of a port with a LID in a [`Subnet`], in the order of byte-swapped port GUIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndPortId(pub u16);

impl EndPortId {
    /// Returns the index as a `usize`.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The far end of a switch port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The port has no link, a loopback cable, or a link to a host without a LID.
    None,
    /// The port is linked to another switch: the switch, and its port.
    Switch(SwitchId, u8),
    /// The port is linked to a port of a channel adapter or router: the end port.
    EndPort(EndPortId),
}

/// A switch of a subnet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The index of the switch among the nodes of the fabric.
    pub node: NodeId,
    /// The node GUID.
    pub guid: Guid,
    /// The highest port number.
    pub ports: u8,
    /// The end port that is port 0 of the switch.
    pub end_port: EndPortId,
    first_peer: u32,
}

/// The node at an end port. For port 0 of a switch, this is the switch itself. For any other end port, it is the node
/// at the far end of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// The end port is port 0 of this switch.
    Management(SwitchId),
    /// The end port is linked to a switch: the switch, and its port.
    Port(SwitchId, u8),
    /// The end port is linked to another channel adapter or router.
    Direct,
}

impl Attachment {
    /// Returns the switch to which the end port belongs or is linked; `None` if it is linked to another host.
    #[must_use]
    pub const fn switch(self) -> Option<SwitchId> {
        match self {
            Self::Management(switch) | Self::Port(switch, _) => Some(switch),
            Self::Direct => None,
        }
    }
}

/// A port with LIDs: a port of a channel adapter or router, or port 0 of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndPort {
    /// The index of the port in the fabric.
    pub port: PortId,
    /// The port GUID.
    pub guid: Guid,
    /// The lowest LID of the port.
    pub base_lid: Lid,
    /// The number of LIDs of the port, which is a power of two.
    pub lids: u16,
    /// The switch or host to which the port is attached.
    pub attachment: Attachment,
}

impl EndPort {
    /// Returns true if the port is port 0 of a switch.
    #[must_use]
    pub const fn is_switch(&self) -> bool {
        matches!(self.attachment, Attachment::Management(_))
    }

    /// Returns the LIDs of the port, in ascending order.
    #[must_use]
    pub fn lid_range(&self) -> std::ops::Range<u16> {
        self.base_lid.get()..self.base_lid.get() + self.lids
    }
}

/// Options of [`Subnet::discover`].
#[derive(Clone, Debug, Default)]
pub struct SubnetOptions {
    /// The port GUID of the subnet manager. If `None`, the subnet manager is on the first linked port of a channel
    /// adapter or router, in the order of the fabric file. If no such port is linked, it is on port 0 of the first
    /// switch with a link.
    pub sm_port: Option<Guid>,
    /// Options of LID assignment.
    pub lids: LidOptions,
}

/// Error of discovering a subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubnetError {
    /// No port of the fabric has the configured GUID.
    #[error("no port of the fabric has GUID {0}: expected the port GUID of the subnet manager")]
    NoSuchSmPort(Guid),
    /// The port of the subnet manager has no link.
    #[error("the subnet manager's port, GUID {0}, is not linked: expected a port with a link")]
    SmPortUnlinked(Guid),
    /// The fabric has no linked port on which the subnet manager could run.
    #[error("the fabric has no linked port for the subnet manager: expected at least one link")]
    NoLinkedPort,
    /// The subnet has more end ports than LIDs.
    #[error("the fabric has {ports} end ports: expected at most 49151, the number of LIDs")]
    TooManyPorts {
        /// The number of end ports.
        ports: usize,
    },
    /// The LIDs could not be assigned.
    #[error(transparent)]
    Lids(#[from] LidError),
}

/// The subnet that a subnet manager discovers from its port, with LIDs.
#[derive(Clone, Debug)]
pub struct Subnet<'f> {
    fabric: &'f Fabric,
    sm_port: EndPortId,
    lmc: Lmc,
    switches: Vec<Switch>,
    peers: Vec<Peer>,
    end_ports: Vec<EndPort>,
    end_port_of_port: Vec<u32>,
    switch_of_node: Vec<u32>,
    lid_owner: Vec<u32>,
    cut_off: Vec<NodeId>,
    absent_lids: BTreeMap<Guid, (u16, u16)>,
    lid_notes: Vec<String>,
    without_lid: Vec<PortId>,
}

/// Element of an index table for a node, port or LID that has no index in this subnet.
const NONE: u32 = u32::MAX;

impl<'f> Subnet<'f> {
    /// Discovers the subnet from the port of the subnet manager, and assigns LIDs to its ports as OpenSM does.
    ///
    /// Discovery proceeds through switches, but not through channel adapters and routers. So two planes that are joined
    /// only by hosts with two ports are two subnets.
    ///
    /// # Errors
    /// See [`SubnetError`].
    pub fn discover(fabric: &'f Fabric, options: &SubnetOptions) -> Result<Self, SubnetError> {
        let sm_port = sm_port(fabric, options.sm_port)?;
        let found = reachable(fabric, sm_port);
        let mut switch_nodes: Vec<NodeId> = fabric
            .nodes()
            .filter(|(id, node)| node.kind.is_switch() && found.nodes[id.index()])
            .map(|(id, _)| id)
            .collect();
        switch_nodes.sort_by_key(|&id| fabric.node(id).guid.wire_order());
        let mut ports = found.end_ports;
        ports.sort_by_key(|&id| fabric.port(id).guid.wire_order());
        if ports.len() > usize::from(Lid::MAX_UNICAST) {
            return Err(SubnetError::TooManyPorts { ports: ports.len() });
        }

        let mut switch_of_node = vec![NONE; fabric.node_count()];
        for (index, id) in switch_nodes.iter().enumerate() {
            switch_of_node[id.index()] = index as u32;
        }
        let (assigned, without_lid) =
            lids::assign_to_most(fabric, &mut ports, sm_port, &options.lids)?;
        let sm_index = ports.iter().position(|&id| id == sm_port).expect("the SM finds itself");
        let end_ports: Vec<EndPort> = ports
            .iter()
            .zip(&assigned.ranges)
            .map(|(&port, &(base_lid, lids))| EndPort {
                port,
                guid: fabric.port(port).guid,
                base_lid,
                lids,
                attachment: attachment(fabric, port, &switch_of_node),
            })
            .collect();
        let mut subnet = Self {
            fabric,
            sm_port: EndPortId(sm_index as u16),
            lmc: options.lids.lmc,
            switches: Vec::new(),
            peers: Vec::new(),
            end_port_of_port: end_port_index(fabric, &ports),
            end_ports,
            switch_of_node,
            lid_owner: assigned.owner,
            cut_off: fabric
                .nodes()
                .filter(|(id, _)| !found.nodes[id.index()])
                .map(|(id, _)| id)
                .collect(),
            absent_lids: assigned.absent,
            lid_notes: assigned.notes,
            without_lid,
        };
        for node in switch_nodes {
            subnet.add_switch(node);
        }
        Ok(subnet)
    }

    fn add_switch(&mut self, node: NodeId) {
        let first_peer = self.peers.len() as u32;
        for (id, port) in self.fabric.ports_of(node) {
            let peer = match port.peer {
                None => Peer::None,
                Some(peer) => {
                    let other = self.fabric.port(peer);
                    match self.switch_of_node[other.node.index()] {
                        _ if other.node == self.fabric.port(id).node => Peer::None,
                        NONE => match self.end_port_of_port[peer.index()] {
                            // The peer is a host without a LID.
                            NONE => Peer::None,
                            end_port => Peer::EndPort(EndPortId(end_port as u16)),
                        },
                        switch => Peer::Switch(SwitchId(switch as u16), other.number),
                    }
                }
            };
            self.peers.push(peer);
        }
        let spec = self.fabric.node(node);
        let port0 = self.fabric.port_id(node, 0).expect("every switch has a port 0");
        self.switches.push(Switch {
            node,
            guid: spec.guid,
            ports: spec.ports,
            end_port: EndPortId(self.end_port_of_port[port0.index()] as u16),
            first_peer,
        });
    }

    /// Returns the fabric to which the subnet belongs.
    #[must_use]
    pub fn fabric(&self) -> &'f Fabric {
        self.fabric
    }

    /// Returns the port of the subnet manager.
    #[must_use]
    pub fn sm_port(&self) -> EndPortId {
        self.sm_port
    }

    /// Returns the LMC of the subnet.
    #[must_use]
    pub fn lmc(&self) -> Lmc {
        self.lmc
    }

    /// Returns the highest LID of the forwarding tables. LIDs above it are not in use.
    #[must_use]
    pub fn max_lid(&self) -> u16 {
        (self.lid_owner.len() - 1) as u16
    }

    /// Returns the nodes that the subnet manager cannot reach, in the order of the fabric file.
    #[must_use]
    pub fn cut_off(&self) -> &[NodeId] {
        &self.cut_off
    }

    /// Returns the LID ranges that the guid2lid file reserves for missing ports, by port GUID.
    #[must_use]
    pub const fn absent_lids(&self) -> &BTreeMap<Guid, (u16, u16)> {
        &self.absent_lids
    }

    /// Returns the warnings of the LID assignment, one sentence each.
    #[must_use]
    pub fn lid_notes(&self) -> &[String] {
        &self.lid_notes
    }

    /// Returns the host ports that got no LID, because LIDs ran out. There are no routes to these ports.
    #[must_use]
    pub fn without_lid(&self) -> &[PortId] {
        &self.without_lid
    }

    /// Returns the switches in the order of their ids.
    #[must_use]
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// Returns the ids of all switches in ascending order.
    pub fn switch_ids(&self) -> impl ExactSizeIterator<Item = SwitchId> + Clone + use<> {
        (0..self.switches.len() as u16).map(SwitchId)
    }

    /// Returns a switch.
    ///
    /// # Panics
    /// Panics if the id belongs to another subnet.
    #[must_use]
    pub fn switch(&self, id: SwitchId) -> &Switch {
        &self.switches[id.index()]
    }

    /// Returns the node of a switch in the fabric.
    #[must_use]
    pub fn switch_node(&self, id: SwitchId) -> &'f Node {
        self.fabric.node(self.switch(id).node)
    }

    /// Returns the base LID of port 0 of a switch.
    #[must_use]
    pub fn switch_lid(&self, id: SwitchId) -> Lid {
        self.end_port(self.switch(id).end_port).base_lid
    }

    /// Returns the far end of each port of a switch, indexed by port number. The entry of port 0 is [`Peer::None`].
    #[must_use]
    pub fn peers(&self, id: SwitchId) -> &[Peer] {
        let switch = self.switch(id);
        let first = switch.first_peer as usize;
        &self.peers[first..=first + usize::from(switch.ports)]
    }

    /// Returns the links of a switch to other switches, each as (port, far switch, far port), in the order of the
    /// switch's ports.
    pub fn switch_links(
        &self,
        id: SwitchId,
    ) -> impl Iterator<Item = (u8, SwitchId, u8)> + Clone + '_ {
        self.peers(id).iter().enumerate().filter_map(|(port, peer)| match *peer {
            Peer::Switch(other, there) => Some((port as u8, other, there)),
            Peer::None | Peer::EndPort(_) => None,
        })
    }

    /// Returns the ports with LIDs, in the order of their ids.
    #[must_use]
    pub fn end_ports(&self) -> &[EndPort] {
        &self.end_ports
    }

    /// Returns the ids of all ports with LIDs, in ascending order.
    pub fn end_port_ids(&self) -> impl ExactSizeIterator<Item = EndPortId> + Clone + use<> {
        (0..self.end_ports.len() as u16).map(EndPortId)
    }

    /// Returns the port with the given id.
    ///
    /// # Panics
    /// Panics if the id belongs to another subnet.
    #[must_use]
    pub fn end_port(&self, id: EndPortId) -> &EndPort {
        &self.end_ports[id.index()]
    }

    /// Returns the node of an end port.
    #[must_use]
    pub fn end_port_node(&self, id: EndPortId) -> &'f Node {
        self.fabric.node(self.fabric.port(self.end_port(id).port).node)
    }

    /// Returns the port that has a LID, if any.
    #[must_use]
    pub fn lid_owner(&self, lid: u16) -> Option<EndPortId> {
        match self.lid_owner.get(usize::from(lid)) {
            None | Some(&NONE) => None,
            Some(&index) => Some(EndPortId(index as u16)),
        }
    }

    /// Finds a switch of the subnet by its node GUID.
    #[must_use]
    pub fn find_switch(&self, guid: Guid) -> Option<SwitchId> {
        self.fabric.find_guid(guid).and_then(|node| self.switch_of(node))
    }

    /// Returns the switch that is the given node, if it belongs to this subnet.
    #[must_use]
    pub fn switch_of(&self, node: NodeId) -> Option<SwitchId> {
        match self.switch_of_node[node.index()] {
            NONE => None,
            index => Some(SwitchId(index as u16)),
        }
    }

    /// Finds an end port of the subnet by its port GUID.
    #[must_use]
    pub fn find_end_port(&self, guid: Guid) -> Option<EndPortId> {
        let port = self.fabric.find_port_guid(guid)?;
        match self.end_port_of_port[port.index()] {
            NONE => None,
            index => Some(EndPortId(index as u16)),
        }
    }
}

fn sm_port(fabric: &Fabric, port_guid: Option<Guid>) -> Result<PortId, SubnetError> {
    if let Some(guid) = port_guid {
        let id = fabric.find_port_guid(guid).ok_or(SubnetError::NoSuchSmPort(guid))?;
        let port = fabric.port(id);
        let linked = if port.number == 0 {
            fabric.ports_of(port.node).any(|(_, port)| port.peer.is_some())
        } else {
            port.peer.is_some()
        };
        return if linked { Ok(id) } else { Err(SubnetError::SmPortUnlinked(guid)) };
    }
    let adapter = fabric.nodes().filter(|(_, node)| !node.kind.is_switch()).find_map(|(id, _)| {
        fabric.ports_of(id).find(|(_, port)| port.peer.is_some()).map(|(port, _)| port)
    });
    let switch = || {
        fabric.nodes().filter(|(_, node)| node.kind.is_switch()).find_map(|(id, _)| {
            let linked = fabric.ports_of(id).any(|(_, port)| port.peer.is_some());
            linked.then(|| fabric.port_id(id, 0)).flatten()
        })
    };
    adapter.or_else(switch).ok_or(SubnetError::NoLinkedPort)
}

struct Discovered {
    nodes: Vec<bool>,
    end_ports: Vec<PortId>,
}

/// Finds all nodes and ports that are reachable from the port of the subnet manager, through switches only.
fn reachable(fabric: &Fabric, sm_port: PortId) -> Discovered {
    let mut found = Discovered { nodes: vec![false; fabric.node_count()], end_ports: Vec::new() };
    let mut seen_port = std::collections::HashSet::new();
    let mut queue = VecDeque::from([sm_port]);
    while let Some(id) = queue.pop_front() {
        let port = fabric.port(id);
        let is_switch = fabric.node(port.node).kind.is_switch();
        let new_node = !std::mem::replace(&mut found.nodes[port.node.index()], true);
        if is_switch {
            if new_node {
                found.end_ports.extend(fabric.port_id(port.node, 0));
                queue.extend(fabric.ports_of(port.node).filter_map(|(_, port)| port.peer));
            }
        } else if seen_port.insert(id) {
            found.end_ports.push(id);
            if id == sm_port {
                queue.extend(port.peer);
            }
        }
    }
    found
}

fn end_port_index(fabric: &Fabric, ports: &[PortId]) -> Vec<u32> {
    let total = fabric.nodes().map(|(_, node)| usize::from(node.ports) + 1).sum();
    let mut index_of = vec![NONE; total];
    for (index, port) in ports.iter().enumerate() {
        index_of[port.index()] = index as u32;
    }
    index_of
}

fn attachment(fabric: &Fabric, id: PortId, switch_of_node: &[u32]) -> Attachment {
    let port = fabric.port(id);
    if port.number == 0 {
        return Attachment::Management(SwitchId(switch_of_node[port.node.index()] as u16));
    }
    match fabric.peer(id) {
        Some(peer) if switch_of_node[peer.node.index()] != NONE => {
            Attachment::Port(SwitchId(switch_of_node[peer.node.index()] as u16), peer.number)
        }
        _ => Attachment::Direct,
    }
}

#[cfg(test)]
mod tests;
