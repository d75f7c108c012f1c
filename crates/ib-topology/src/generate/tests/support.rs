//! Helpers of the generator tests: they parse command lines, count nodes and links, and measure distances.

use std::collections::{BTreeMap, VecDeque};

use ib_types::NodeKind;

use crate::fabric::{Fabric, NodeId};
use crate::generate::{GenerateError, Kind, Options, generate};

/// Generates a fabric from the words of a command line.
pub(in crate::generate) fn make(words: &str) -> Result<Fabric, GenerateError> {
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    generate(&Kind::parse(words[0], &words[1..])?, &Options::default())
}

/// Returns the error message for the words of a command line.
pub(in crate::generate) fn error(words: &str) -> String {
    make(words).map(|_| words).expect_err("invalid parameters").to_string()
}

/// Returns the numbers of switches, hosts and links.
pub(in crate::generate) fn counts(fabric: &Fabric) -> (usize, usize, usize) {
    let (switches, hosts) = (NodeKind::Switch, NodeKind::ChannelAdapter);
    (fabric.count(switches), fabric.count(hosts), fabric.link_count())
}

/// Returns the number of links of a node to switches, and the number of its links to hosts.
pub(in crate::generate) fn degrees(fabric: &Fabric, node: NodeId) -> (usize, usize) {
    let peers: Vec<bool> = fabric
        .ports_of(node)
        .filter_map(|(id, _)| fabric.peer(id))
        .map(|peer| fabric.node(peer.node).kind.is_switch())
        .collect();
    let switches = peers.iter().filter(|&&switch| switch).count();
    (switches, peers.len() - switches)
}

/// Returns the IDs of all switches.
pub(in crate::generate) fn switches(fabric: &Fabric) -> Vec<NodeId> {
    fabric.nodes().filter(|(_, node)| node.kind.is_switch()).map(|(id, _)| id).collect()
}

/// Returns the number of hops from a node to every node that it can reach.
pub(in crate::generate) fn distances(fabric: &Fabric, from: NodeId) -> BTreeMap<NodeId, usize> {
    let mut found = BTreeMap::from([(from, 0)]);
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        let hops = found[&node] + 1;
        for peer in fabric.ports_of(node).filter_map(|(id, _)| fabric.peer(id)) {
            found.entry(peer.node).or_insert_with(|| {
                queue.push_back(peer.node);
                hops
            });
        }
    }
    found
}

/// Returns true if all nodes are connected.
pub(in crate::generate) fn connected(fabric: &Fabric) -> bool {
    distances(fabric, NodeId(0)).len() == fabric.node_count()
}

/// Returns the maximum distance between two switches in hops. All switches must be connected.
pub(in crate::generate) fn diameter(fabric: &Fabric) -> usize {
    let all = switches(fabric);
    let reach = |&from| {
        let found = distances(fabric, from);
        all.iter().map(|to| found[to]).max().expect("the fabric has a switch")
    };
    all.iter().map(reach).max().expect("the fabric has a switch")
}

/// Returns the peer of a port: the description of the peer's node, and the peer's port number. `None` if it is
/// unlinked.
pub(in crate::generate) fn across(
    fabric: &Fabric,
    description: &str,
    port: u8,
) -> Option<(String, u8)> {
    let node = fabric.nodes().find(|(_, node)| node.description == description);
    let id = fabric.port_id(node.expect("the node exists").0, port).expect("the port exists");
    fabric.peer(id).map(|peer| (fabric.node(peer.node).description.clone(), peer.number))
}
