//! Directed routes to every node.

use std::collections::BTreeSet;

use ib_topology::{Fabric, NodeId};

/// Returns the directed route from the first host to each node. The nearest nodes are the first.
pub(crate) fn paths(fabric: &Fabric) -> Vec<(NodeId, Vec<u8>)> {
    let host =
        fabric.nodes().find(|(_, node)| !node.kind.is_switch()).expect("the fabric has a host").0;
    let mut paths = vec![(host, Vec::new())];
    let mut seen = BTreeSet::from([host]);
    let mut next = 0;
    while let Some((at, path)) = paths.get(next).cloned() {
        next += 1;
        if next > 1 && !fabric.node(at).kind.is_switch() {
            continue;
        }
        for (id, port) in fabric.ports_of(at) {
            let Some(peer) = fabric.peer(id) else { continue };
            if seen.insert(peer.node) {
                let path = path.iter().copied().chain([port.number]).collect();
                paths.push((peer.node, path));
            }
        }
    }
    paths
}
