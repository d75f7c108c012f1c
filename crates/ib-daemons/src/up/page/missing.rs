//! The nodes that the SM cannot reach over active links, and since when.

use ib_sim::Sim;
use ib_topology::{NodeId, PortId};
use ib_types::Instant;

use super::model::Model;

/// Returns the nodes that cannot be reached from node `from`, each with the time at which it was cut off.
///
/// A node was cut off when the last link between its part of the fabric and the reachable part became inactive. If
/// there is no such link, the time is the start of the simulation.
///
/// Nodes without any cable are omitted, since they were never connected.
pub(super) fn missing(sim: &Sim, model: &Model, from: NodeId) -> Vec<(u32, Instant)> {
    let (fabric, mut parts) = (&model.fabric, vec![None; model.fabric.node_count()]);
    spread(sim, model, from, 0, &mut parts);
    // The time at which each part of the fabric was cut off. Part 0 contains `from` and is not cut off.
    let mut since = vec![Instant::ZERO];
    for (node, _) in fabric.nodes() {
        if parts[node.index()].is_none() && cables(model, node).next().is_some() {
            spread(sim, model, node, since.len(), &mut parts);
            since.push(Instant::ZERO);
        }
    }
    for &(one, other) in &model.links {
        let ends = [one, other].map(|port| parts[fabric.port(port).node.index()]);
        let (Some(0), Some(part)) = (ends[0].min(ends[1]), ends[0].max(ends[1])) else { continue };
        if let Some(at) = sim.inactive_since(one, other) {
            since[part] = since[part].max(at);
        }
    }
    let of_parts = (0..).zip(&parts).filter_map(|(node, part)| Some((node, (*part)?)));
    of_parts.filter(|&(_, part)| part > 0).map(|(node, part)| (node, since[part])).collect()
}

/// Assigns a part number to a node and to all nodes that are connected with it by active links.
fn spread(sim: &Sim, model: &Model, from: NodeId, number: usize, parts: &mut [Option<usize>]) {
    parts[from.index()] = Some(number);
    let mut queue = vec![from];
    while let Some(node) = queue.pop() {
        for (port, peer) in cables(model, node) {
            let next = model.fabric.port(peer).node;
            if parts[next.index()].is_none() && sim.is_active(port, peer) {
                parts[next.index()] = Some(number);
                queue.push(next);
            }
        }
    }
}

/// Returns the two ports of each cable that is connected to a node.
fn cables(model: &Model, node: NodeId) -> impl Iterator<Item = (PortId, PortId)> + '_ {
    model.fabric.ports_of(node).filter_map(|(port, known)| Some((port, known.peer?)))
}

#[cfg(test)]
mod tests;
