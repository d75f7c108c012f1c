//! Circular layout for fabrics that are neither trees nor grids. Neighbours are close together.
//!
//! Switches with many common neighbours form a group, as in a dragonfly. The switches of a group are adjacent on the
//! circle, and groups are separated by gaps.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::f64::consts::TAU;

use super::PITCH;
use crate::graph::Graph;

/// Maximum number of switches for which groups are computed. In larger fabrics, the switches are placed in the order of
/// their names.
const MAX_SORTED: usize = 4096;

/// Maximum number of rounds of [`groups`], in each of which switches may move to other groups.
const ROUNDS: usize = 20;

/// Width of the gap between groups, as a multiple of the distance between switches.
const GAP: f64 = 1.5;

/// Places switches on a circle in the given order, clockwise from the top.
pub(super) fn in_order(order: &[usize]) -> Vec<(f64, f64)> {
    around(order, &vec![0; order.len()])
}

/// Places the switches of a graph on a circle, with neighbours close together.
pub(super) fn places(graph: &Graph) -> Vec<(f64, f64)> {
    let mut by_name: Vec<usize> = (0..graph.len()).collect();
    by_name.sort_by_key(|&switch| graph.place[switch]);
    if graph.len() > MAX_SORTED {
        return in_order(&by_name);
    }
    let bonds = bonds(graph);
    let groups = groups(&bonds);
    around(&order(&bonds, &groups, &by_name), &groups)
}

/// By switch: its neighbours, each with the strength of the bond, which is 1 plus the number of common neighbours.
type Bonds = Vec<Vec<(usize, u32)>>;

fn bonds(graph: &Graph) -> Bonds {
    let mut near = vec![usize::MAX; graph.len()];
    (0..graph.len())
        .map(|switch| {
            for &(peer, _) in &graph.neighbours[switch] {
                near[peer] = switch;
            }
            let strength = |peer: usize| {
                let shared = graph.neighbours[peer].iter().filter(|&&(at, _)| near[at] == switch);
                1 + shared.count() as u32
            };
            graph.neighbours[switch].iter().map(|&(peer, _)| (peer, strength(peer))).collect()
        })
        .collect()
}

/// Moves each switch to the group to which it has the strongest bonds, until no switch moves. A group is identified by
/// one of its switches.
fn groups(bonds: &Bonds) -> Vec<usize> {
    let mut group: Vec<usize> = (0..bonds.len()).collect();
    for _ in 0..ROUNDS {
        let mut changed = false;
        for (switch, bonds) in bonds.iter().enumerate() {
            let mut pull = BTreeMap::new();
            for &(peer, strength) in bonds {
                *pull.entry(group[peer]).or_insert(0) += strength;
            }
            let own = pull.get(&group[switch]).copied().unwrap_or(0);
            let strongest = pull.iter().max_by_key(|&(&group, &pull)| (pull, Reverse(group)));
            if let Some((&other, &pull)) = strongest
                && pull > own
            {
                group[switch] = other;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    group
}

/// Orders the groups, and the switches of each group. The next group is that of the switch with the strongest bonds to
/// the preceding groups. Within a group, the next switch has the most neighbours among the preceding switches of the
/// group. Ties go to the switch with the most recently placed neighbour, and then to the first switch by name.
fn order(bonds: &Bonds, group: &[usize], by_name: &[usize]) -> Vec<usize> {
    let mut row = Vec::with_capacity(by_name.len());
    let mut pull = vec![0; by_name.len()];
    let mut pull_within = vec![(0, 0); by_name.len()];
    let mut open = by_name.to_vec();
    while let Some(next) = strongest(&open, |switch| pull[switch]) {
        let (mut members, others): (Vec<usize>, Vec<usize>) =
            open.iter().partition(|&&switch| group[switch] == group[next]);
        open = others;
        while let Some(switch) = strongest(&members, |switch| pull_within[switch]) {
            members.retain(|&member| member != switch);
            row.push(switch);
            for &(peer, strength) in &bonds[switch] {
                pull[peer] += strength;
                if group[peer] == group[switch] {
                    pull_within[peer] = (pull_within[peer].0 + 1, row.len());
                }
            }
        }
    }
    row
}

/// Returns the first switch with the greatest value of `key`.
fn strongest<K: Ord>(switches: &[usize], key: impl Fn(usize) -> K) -> Option<usize> {
    let greatest = switches.iter().map(|&switch| key(switch)).max()?;
    switches.iter().copied().find(|&switch| key(switch) == greatest)
}

fn around(order: &[usize], group: &[usize]) -> Vec<(f64, f64)> {
    let mut length = 0.0;
    let mut along = Vec::with_capacity(order.len());
    for (position, &switch) in order.iter().enumerate() {
        along.push(length);
        let next = order[(position + 1) % order.len()];
        length += if group[next] == group[switch] { 1.0 } else { 1.0 + GAP };
    }
    let radius = if order.len() > 1 { length * PITCH / TAU } else { 0.0 };
    let mut places = vec![(0.0, 0.0); order.len()];
    for (&switch, at) in order.iter().zip(along) {
        let (sine, cosine) = (at / length * TAU).sin_cos();
        places[switch] = (radius * sine, -radius * cosine);
    }
    places
}
