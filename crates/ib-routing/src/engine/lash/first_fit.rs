//! Assigns given routes to layers. Every pair of switches gets the first layer in which its routes close no cycle.

use rayon::prelude::*;

use super::graph::{DependencyGraph, State};
use super::network::{NONE, Network};
use super::routes::{Layout, Routes};
use crate::hops::NO_HOPS;

/// Returns a route for each pair of switches: among the shortest paths, the path over the lowest ports.
///
/// The lash engine of OpenSM uses the same routes, because its breadth-first searches reach every switch first on the
/// path with the lowest ports.
pub(super) fn lowest_ports(network: &Network<'_>) -> Routes {
    let switches = network.switches();
    let mut routes = Routes::none(switches);
    routes.rows_mut().par_chunks_exact_mut(switches.max(1)).enumerate().for_each(|(to, slots)| {
        let distances = network.distances(to);
        for (switch, slot) in slots.iter_mut().enumerate().filter(|&(switch, _)| switch != to) {
            let reached = distances[switch] != NO_HOPS;
            let nearer =
                |&next: &u16| reached && distances[usize::from(next)] + 1 == distances[switch];
            if let Some(lowest) = network.neighbours(switch).iter().position(nearer) {
                *slot = lowest as u8;
            }
        }
    });
    routes
}

/// Puts each pair, in the given order, into the first layer in which its paths close no cycle. Returns `None` if more
/// than `limit` layers are needed.
pub(super) fn first_fit(
    network: &Network<'_>,
    routes: Routes,
    pairs: &[(u16, u16)],
    limit: usize,
) -> Option<Layout> {
    let switches = network.switches();
    let mut layers = vec![NONE; switches * switches];
    let mut graphs: Vec<DependencyGraph<'_>> = Vec::new();
    let mut turns = Vec::new();
    let mut added = Vec::new();
    for &(a, b) in pairs {
        let (a, b) = (usize::from(a), usize::from(b));
        collect_turns(network, &routes, a, b, &mut turns);
        let fits = graphs.iter_mut().position(|graph| insert_all(graph, &turns, &mut added));
        let layer = match fits {
            Some(layer) => layer,
            None if graphs.len() == limit => return None,
            None => {
                let mut graph = DependencyGraph::new(network, usize::MAX);
                let fits = insert_all(&mut graph, &turns, &mut added);
                assert!(fits, "the two paths of a single pair close no cycle");
                graphs.push(graph);
                graphs.len() - 1
            }
        };
        layers[a * switches + b] = layer as u8;
        layers[b * switches + a] = layer as u8;
    }
    let orders = graphs.into_iter().map(DependencyGraph::into_places).collect();
    Some(Layout { routes, layers, orders })
}

/// A turn, with the channel before it and the channel after it.
pub(super) type Turn = (usize, usize, usize);

/// Collects the turns of the paths between two switches, in both directions.
pub(super) fn collect_turns(
    network: &Network<'_>,
    routes: &Routes,
    a: usize,
    b: usize,
    turns: &mut Vec<Turn>,
) {
    turns.clear();
    for (from, to) in [(a, b), (b, a)] {
        let passed = routes.turns(network, from, to);
        turns.extend(passed.map(|(channel, onward)| {
            (network.turn(channel, network.slot(onward) as u8), channel, onward)
        }));
    }
}

/// Adds all of the turns to the graph of a layer. Returns false and adds none of them if they would close a cycle.
/// `added` gets the turns that were not in the graph before.
pub(super) fn insert_all(
    graph: &mut DependencyGraph<'_>,
    turns: &[Turn],
    added: &mut Vec<Turn>,
) -> bool {
    added.clear();
    if turns.iter().any(|&(turn, ..)| graph.state(turn) == State::Refused) {
        return false;
    }
    for &(turn, from, to) in turns {
        if graph.state(turn) == State::Present {
            continue;
        }
        if graph.insert(turn, from, to) {
            added.push((turn, from, to));
            continue;
        }
        let alone = added.is_empty();
        for (turn, ..) in added.drain(..) {
            graph.remove(turn);
        }
        // The turn is refused permanently only if it also closes a cycle without the turns that were just removed.
        if alone || !graph.insert(turn, from, to) {
            graph.refuse(turn);
        } else {
            graph.remove(turn);
        }
        return false;
    }
    true
}
