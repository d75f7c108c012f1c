//! What never changes of a fabric: its nodes and links, with the numbers that the page knows them by.

use std::collections::VecDeque;

use ib_topology::{Fabric, LinkRate, NodeId, PortId};
use ib_types::{LinkWidth, NodeKind};
use ib_wire::mad::sa::RateCode;
use serde::Serialize;

use crate::up::web::{Json, Refusal};

/// Nodes and links. A node has the number that it has in the fabric, a link its place in the fabric's list.
pub(in crate::up) struct Model {
    pub(in crate::up) fabric: Fabric,
    pub(super) links: Vec<(PortId, PortId)>,
    /// The link at each port.
    link_of: Vec<Option<u32>>,
    /// The links between a node and the nearest host, or a port of it.
    ranks: Vec<u32>,
    /// What the page is told.
    json: Json,
}

/// What the page is told of a fabric.
#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    engine: &'a str,
    socket: &'a str,
    nodes: Vec<Node<'a>>,
    links: Vec<Link>,
}

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

#[derive(Serialize)]
struct Link {
    a: (u32, u8),
    b: (u32, u8),
    #[serde(flatten)]
    rate: Rate,
}

/// How fast a link is.
#[derive(Serialize)]
pub(super) struct Rate {
    /// Its width, such as 4X.
    width: String,
    /// The signalling rate of a lane in Gbit/s.
    speed: String,
    /// What that is called.
    generation: String,
    /// What the link carries in Gbit/s.
    gbit: f64,
}

impl Rate {
    pub(super) fn of(LinkRate { width, speed }: LinkRate) -> Self {
        // That of four lanes is a whole number for all.
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
    /// Makes it of a fabric with a name, whose routes an engine is to compute, and whose sockets have a name.
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
        let told = Told { name, engine, socket, nodes, links: links.iter().map(link).collect() };
        let json = json(&told);
        Self { fabric, links, link_of, ranks, json }
    }

    /// Returns what the page is told.
    pub(super) fn json(&self) -> Json {
        self.json.clone()
    }

    /// Returns the node of a number.
    pub(super) fn node(&self, number: u32) -> Result<NodeId, Refusal> {
        let count = self.fabric.node_count();
        let is_there = (number as usize) < count;
        is_there
            .then_some(NodeId(number))
            .ok_or_else(|| Refusal::not_found(format!("no node {number}: there are {count}")))
    }

    /// Returns the link of a number.
    pub(super) fn link(&self, number: u32) -> Result<(PortId, PortId), Refusal> {
        let count = self.links.len();
        let link = self.links.get(number as usize).copied();
        link.ok_or_else(|| Refusal::not_found(format!("no link {number}: there are {count}")))
    }

    /// Returns the link at a port.
    pub(super) fn link_of(&self, port: PortId) -> Option<u32> {
        self.link_of[port.index()]
    }

    /// Returns how far a node is from the nearest host.
    pub(super) fn rank(&self, node: NodeId) -> u32 {
        self.ranks[node.index()]
    }

    /// Returns the port by which a node is reached: the management port of a switch, the first linked one of anything else.
    pub(super) fn end_port(&self, node: NodeId) -> Option<PortId> {
        if self.fabric.node(node).kind.is_switch() {
            return self.fabric.port_id(node, 0);
        }
        let mut ports = self.fabric.ports_of(node);
        let linked = ports.find(|(_, port)| port.peer.is_some());
        linked.map(|(id, _)| id).or_else(|| self.fabric.port_id(node, 1))
    }
}

/// Writes something as JSON.
pub(super) fn json(value: &impl Serialize) -> Json {
    serde_json::to_vec(value).expect("it has nothing that JSON has not").into()
}

/// Returns what a node is in a word.
pub(super) const fn kind_word(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::Switch => "switch",
        NodeKind::Router => "router",
        _ => "host",
    }
}

/// Returns how many links each node is away from the nearest one that is no switch; 1 where there is none.
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
