//! Small fabrics for tests, generated or built link by link.

use ib_topology::generate::{Kind, Options, generate};
use ib_topology::{Fabric, LinkRate, NodeId, NodeSpec};
use ib_types::{Guid, NodeKind};

use crate::subnet::{Subnet, SubnetOptions};

/// Returns an extended generalized fat tree; `words` are the arguments of the generator `xgft`.
pub(in super::super) fn xgft(words: &[&str], options: &Options) -> Fabric {
    generate(&Kind::parse("xgft", words).unwrap(), options).unwrap()
}

/// Returns a generated fabric without dropped links.
pub(in super::super) fn whole(words: &[&str]) -> Fabric {
    xgft(words, &Options::default())
}

/// Returns the subnet of an SM on the first port of the first host.
pub(in super::super) fn subnet(fabric: &Fabric) -> Subnet<'_> {
    Subnet::discover(fabric, &SubnetOptions::default()).unwrap()
}

/// Returns the GUIDs of the switches whose descriptions start with a prefix.
pub(in super::super) fn switches(fabric: &Fabric, prefix: &str) -> Vec<Guid> {
    let named = fabric.nodes().filter(|(_, node)| node.description.starts_with(prefix));
    named.map(|(_, node)| node.guid).collect()
}

/// Returns the port GUIDs of all linked hosts.
pub(in super::super) fn host_ports(fabric: &Fabric) -> Vec<Guid> {
    let hosts = fabric.nodes().filter(|(_, node)| node.kind == NodeKind::ChannelAdapter);
    hosts
        .flat_map(|(id, _)| fabric.ports_of(id))
        .filter(|(_, port)| port.peer.is_some())
        .map(|(_, port)| port.guid)
        .collect()
}

/// Builder of a fabric. Each node uses its ports in the order in which its links are added.
#[derive(Default)]
pub(in super::super) struct Net {
    nodes: Vec<(&'static str, NodeKind)>,
    links: Vec<[&'static str; 2]>,
}

impl Net {
    /// Adds nodes. Switches get consecutive node GUIDs from 0x200 on. Other nodes get node GUIDs from 0x1000 on in
    /// steps of 0x10, and their port GUIDs follow the node GUID.
    pub(in super::super) fn add(&mut self, kind: NodeKind, names: &[&'static str]) -> &mut Self {
        self.nodes.extend(names.iter().map(|&name| (name, kind)));
        self
    }

    pub(in super::super) fn switches(&mut self, names: &[&'static str]) -> &mut Self {
        self.add(NodeKind::Switch, names)
    }

    pub(in super::super) fn hosts(&mut self, names: &[&'static str]) -> &mut Self {
        self.add(NodeKind::ChannelAdapter, names)
    }

    /// Links a node to each of several other nodes.
    pub(in super::super) fn link(
        &mut self,
        one: &'static str,
        others: &[&'static str],
    ) -> &mut Self {
        self.links.extend(others.iter().map(|&other| [one, other]));
        self
    }

    pub(in super::super) fn build(&self) -> Fabric {
        let mut fabric = Fabric::new();
        let (mut switches, mut others) = (0x200, 0x1000);
        for &(name, kind) in &self.nodes {
            let ports =
                self.links.iter().flatten().filter(|end| **end == name).count().max(1) as u8;
            let next = if kind.is_switch() { &mut switches } else { &mut others };
            let guid = Guid(*next);
            *next += if kind.is_switch() { 1 } else { 0x10 };
            let id = fabric.add_node(NodeSpec::new(kind, name, guid, ports)).unwrap();
            for port in 1..=ports {
                if !kind.is_switch() {
                    fabric.set_port_guid(id, port, Guid(guid.0 + u64::from(port))).unwrap();
                }
            }
        }
        for [one, other] in &self.links {
            let ends = [one, other].map(|name| free_port(&fabric, fabric.find_name(name).unwrap()));
            // A loopback cable needs two free ports of the same node.
            let other = if one == other { (ends[1].0, ends[1].1 + 1) } else { ends[1] };
            fabric.connect(ends[0], other, LinkRate::DEFAULT).unwrap();
        }
        fabric
    }
}

fn free_port(fabric: &Fabric, node: NodeId) -> (NodeId, u8) {
    let free = fabric.ports_of(node).find(|(_, port)| port.number > 0 && port.peer.is_none());
    (node, free.unwrap().1.number)
}

/// Returns a fabric of two roots over two leaves with two hosts each.
pub(in super::super) fn two_leaves() -> Net {
    let mut net = Net::default();
    net.switches(&["root0", "root1", "leaf0", "leaf1"]).hosts(&["h0", "h1", "h2", "h3"]);
    net.link("leaf0", &["h0", "h1", "root0", "root1"]);
    net.link("leaf1", &["h2", "h3", "root0", "root1"]);
    net
}
