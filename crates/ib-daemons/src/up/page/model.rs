//! The data of the fabric that does not change: its nodes and links, with the numbers that the API uses.

use std::collections::VecDeque;

use ib_topology::{Fabric, LinkRate, NodeId, PortId};
use ib_types::{LinkWidth, NodeKind};
use ib_wire::mad::sa::RateCode;
use serde::Serialize;

use crate::up::web::{Json, Refusal};

/// The nodes and the links of the fabric. The number of a node is its [`NodeId`]; the number of a link is its index in
/// `links`.
pub(in crate::up) struct Model {
    pub(in crate::up) fabric: Fabric,
    pub(super) links: Vec<(PortId, PortId)>,
    /// The number of each port's link; `None` for ports without a link.
    link_of: Vec<Option<u32>>,
    /// The distance of each node from the nearest host or router, in links.
    ranks: Vec<u32>,
    /// The response with the nodes and links.
    json: Json,
}

/// The response with the nodes and links. The field names are JSON keys.
#[derive(Serialize)]
struct FabricResponse<'a> {
    name: &'a str,
    engine: &'a str,
    socket: &'a str,
    nodes: Vec<Node<'a>>,
    links: Vec<Link>,
}

/// A node.
#[derive(Serialize)]
struct Node<'a> {
    id: u32,
    name: &'a str,
    description: &'a str,
    guid: String,
    kind: &'static str,
    ports: u8,
    rank: u32,
}

/// A link. The ends `a` and `b` are pairs of a node number and a port number.
#[derive(Serialize)]
struct Link {
    a: (u32, u8),
    b: (u32, u8),
    #[serde(flatten)]
    rate: Rate,
}

/// Rate of a link.
#[derive(Serialize)]
pub(super) struct Rate {
    /// Width of the link, such as `4X`.
    width: String,
    /// Data rate of one physical lane, in Gbit/s.
    speed: String,
    /// Name of the speed, such as `NDR`.
    generation: String,
    /// Data rate of the link, in Gbit/s.
    gbit: f64,
}

impl Rate {
    pub(super) fn of(LinkRate { width, speed }: LinkRate) -> Self {
        // At some speeds, the rate of one lane is not a whole number of Mbit/s, such as 10,312.5 with FDR10. The rate
        // of four lanes is always a whole number, so a quarter of it is exact.
        let lane = f64::from(speed.megabits_per_second(LinkWidth::X4)) / 4000.0;
        let named = RateCode::of_link(speed, width).and_then(RateCode::megabits_per_second);
        let megabits = named.unwrap_or_else(|| speed.megabits_per_second(width));
        Self {
            width: format!("{}X", width.lanes()),
            speed: lane.to_string(),
            generation: speed.to_string(),
            gbit: f64::from(megabits) / 1000.0,
        }
    }
}

impl Model {
    /// Creates the page's model of a fabric. The page shows `name`, `engine` and `socket`.
    pub(in crate::up) fn new(fabric: Fabric, name: &str, engine: &str, socket: &str) -> Self {
        let links: Vec<(PortId, PortId)> = fabric.links().collect();
        let ports = fabric.nodes().map(|(id, _)| fabric.ports_of(id).len()).sum();
        let mut link_of = vec![None; ports];
        for (number, (one, other)) in (0..).zip(&links) {
            link_of[one.index()] = Some(number);
            link_of[other.index()] = Some(number);
        }
        let ranks = ranks(&fabric);
        let end = |port: PortId| (fabric.port(port).node.0, fabric.port(port).number);
        let link = |&(one, other): &(PortId, PortId)| Link {
            a: end(one),
            b: end(other),
            rate: Rate::of(fabric.port(one).rate),
        };
        let nodes = fabric.nodes().map(|(id, node)| Node {
            id: id.0,
            name: &node.name,
            description: &node.description,
            guid: node.guid.to_string(),
            kind: kind_word(node.kind),
            ports: node.ports,
            rank: ranks[id.index()],
        });
        let nodes = nodes.collect();
        let response =
            FabricResponse { name, engine, socket, nodes, links: links.iter().map(link).collect() };
        let json = json(&response);
        Self { fabric, links, link_of, ranks, json }
    }

    /// Returns the response with the nodes and links.
    pub(super) fn json(&self) -> Json {
        self.json.clone()
    }

    /// Returns the node with the given number.
    pub(super) fn node(&self, number: u32) -> Result<NodeId, Refusal> {
        let count = self.fabric.node_count();
        let is_there = (number as usize) < count;
        is_there.then_some(NodeId(number)).ok_or_else(|| {
            Refusal::not_found(format!("node {number} does not exist: expected 0 to {}", count - 1))
        })
    }

    /// Returns the two ports of the link with the given number.
    pub(super) fn link(&self, number: u32) -> Result<(PortId, PortId), Refusal> {
        let count = self.links.len();
        let link = self.links.get(number as usize).copied();
        link.ok_or_else(|| {
            Refusal::not_found(format!(
                "link {number} does not exist: the fabric has {count} links"
            ))
        })
    }

    /// Returns the number of a port's link.
    pub(super) fn link_of(&self, port: PortId) -> Option<u32> {
        self.link_of[port.index()]
    }

    /// Returns the distance of a node from the nearest host or router, in links.
    pub(super) fn rank(&self, node: NodeId) -> u32 {
        self.ranks[node.index()]
    }

    /// Returns the end port of a node: port 0 of a switch; for other nodes, the first port that has a link.
    pub(super) fn end_port(&self, node: NodeId) -> Option<PortId> {
        if self.fabric.node(node).kind.is_switch() {
            return self.fabric.port_id(node, 0);
        }
        let mut ports = self.fabric.ports_of(node);
        let linked = ports.find(|(_, port)| port.peer.is_some());
        linked.map(|(id, _)| id).or_else(|| self.fabric.port_id(node, 1))
    }
}

/// Serialises a value.
pub(super) fn json(value: &impl Serialize) -> Json {
    serde_json::to_vec(value).expect("the value can be serialised").into()
}

/// Returns the word for a node type in JSON.
pub(super) const fn kind_word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Switch => "switch",
        NodeKind::Router => "router",
        _ => "host",
    }
}

/// Returns the distance of each node from the nearest host or router, in links. Switches that are connected with
/// neither have distance 1.
fn ranks(fabric: &Fabric) -> Vec<u32> {
    let mut ranks = vec![u32::MAX; fabric.node_count()];
    let mut queue = VecDeque::new();
    for (id, node) in fabric.nodes() {
        if !node.kind.is_switch() {
            ranks[id.index()] = 0;
            queue.push_back(id);
        }
    }
    while let Some(node) = queue.pop_front() {
        for (_, port) in fabric.ports_of(node) {
            let Some(peer) = port.peer.map(|peer| fabric.port(peer).node) else { continue };
            if ranks[peer.index()] == u32::MAX {
                ranks[peer.index()] = ranks[node.index()] + 1;
                queue.push_back(peer);
            }
        }
    }
    ranks.into_iter().map(|rank| if rank == u32::MAX { 1 } else { rank }).collect()
}

#[cfg(test)]
mod tests;
