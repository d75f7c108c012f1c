//! Layout of trees: one row per rank, with the switches of a pod together.
//!
//! A pod is a connected component of the switches below a rank. Pods are placed side by side in the order of their
//! names. The switches of the rank above are spread over the width of all pods, in the order of the mean positions of
//! their neighbours below. So the links of an intact tree have few crossings. A cable between two pods is easy to see,
//! because it extends beyond the width of a pod.

use std::collections::BTreeMap;

use ib_routing::SwitchId;

use super::{PITCH, ROW};
use crate::graph::Graph;

/// Maximum number of ranks of a tree.
const MAX_RANKS: usize = 8;

/// Maximum number of rounds of [`Rows::untangle`], which sorts leaves to shorten links.
const ROUNDS: usize = 12;

/// [`Rows::untangle`] stops at the first round that does not shorten the links to this fraction of their previous
/// total length.
const ENOUGH: f64 = 0.9;

/// Returns the rank of each switch of a tree whose hosts are at the bottom; `None` if the fabric is not a tree.
///
/// A first ranking uses the distances from all switches with hosts. A second ranking uses only the distances from
/// switches with at least a quarter of the median number of hosts. A spine to which only a management node is connected
/// is thus not ranked as a leaf. If both rankings fit a tree, the function returns the one with fewer links within a
/// rank. If neither fits, the distances from `roots`, the root switches of the routing engine, determine the ranks.
pub(super) fn ranks_by_hosts(graph: &Graph, roots: &[SwitchId]) -> Option<Vec<usize>> {
    let with_hosts = |least: u32| {
        let leaves = (0..graph.len()).filter(move |&switch| graph.hosts[switch] >= least);
        suitable(graph, graph.distances(leaves))
    };
    let mut hosts: Vec<u32> = graph.hosts.iter().copied().filter(|&hosts| hosts > 0).collect();
    hosts.sort_unstable();
    let few = hosts.get(hosts.len() / 2).map_or(1, |median| median.div_ceil(4));
    let by_hosts: Vec<_> = with_hosts(1).into_iter().chain(with_hosts(few)).collect();
    let by_roots = if by_hosts.is_empty() { None } else { ranks_by_roots(graph, roots) };
    by_hosts.into_iter().chain(by_roots).min_by_key(|ranks| inside(graph, ranks))
}

/// Returns the rank of each switch of a tree with the given roots; `None` if there are no roots or the fabric is not a
/// tree.
pub(super) fn ranks_by_roots(graph: &Graph, roots: &[SwitchId]) -> Option<Vec<usize>> {
    let mut ranks = graph.distances(roots.iter().map(|root| root.index()));
    let lowest = ranks.iter().copied().max()?;
    for rank in &mut ranks {
        *rank = lowest - *rank;
    }
    suitable(graph, ranks)
}

/// Returns the given ranks if they fit a tree: two to eight ranks, and at most 10 % of the links within a rank.
fn suitable(graph: &Graph, ranks: Vec<usize>) -> Option<Vec<usize>> {
    let top = ranks.iter().copied().max()?;
    let links: u32 = graph.links().map(|(.., links)| links).sum();
    let tree = (1..MAX_RANKS).contains(&top) && 10 * inside(graph, &ranks) <= links;
    (tree && ranks.contains(&0)).then_some(ranks)
}

/// Returns the number of links between switches of the same rank.
fn inside(graph: &Graph, ranks: &[usize]) -> u32 {
    graph.links().filter(|&(a, b, _)| ranks[a] == ranks[b]).map(|(.., links)| links).sum()
}

/// Returns the vertical position of a rank; `top` is the highest rank.
pub(super) fn height(top: usize, rank: usize) -> f64 {
    (top - rank) as f64 * ROW
}

/// Returns the positions of the switches of a tree.
pub(super) fn places(graph: &Graph, ranks: &[usize]) -> Vec<(f64, f64)> {
    let mut rows = Rows { graph, ranks, across: vec![0.0; graph.len()] };
    let mut members: Vec<usize> = (0..graph.len()).collect();
    members.sort_by_key(|&switch| graph.place[switch]);
    rows.place(&members, 0.0);
    let top = ranks.iter().copied().max().unwrap_or(0);
    ranks.iter().zip(rows.across).map(|(&rank, across)| (across, height(top, rank))).collect()
}

struct Rows<'a> {
    graph: &'a Graph,
    ranks: &'a [usize],
    /// By switch: its horizontal position.
    across: Vec<f64>,
}

impl Rows<'_> {
    /// Places the connected switches in `members`, which are sorted by name, to the right of `left`. Returns the width
    /// that they occupy.
    fn place(&mut self, members: &[usize], left: f64) -> f64 {
        let top = members.iter().map(|&switch| self.ranks[switch]).max().unwrap_or(0);
        let (tops, below): (Vec<usize>, Vec<usize>) =
            members.iter().partition(|&&switch| self.ranks[switch] == top);
        let mut pods = self.pods(&below);
        let single = pods.iter().all(|pod| pod.len() == 1);
        if single {
            self.untangle(&mut pods, &tops);
        }
        let gap = if single { 0.0 } else { top as f64 * PITCH };
        let mut width = 0.0;
        for pod in &pods {
            width += self.place(pod, left + width) + gap;
        }
        width = (width - gap).max(0.0);
        let wanted = tops.len() as f64 * PITCH;
        if width < wanted {
            for &switch in &below {
                let stretch = if width > 0.0 { wanted / width } else { 1.0 };
                self.across[switch] = left + (self.across[switch] - left) * stretch;
            }
            width = wanted;
        }
        self.spread(&tops, left, width);
        width
    }

    /// Spreads the switches of a rank over a width, in the order of the mean positions of their neighbours below.
    fn spread(&mut self, tops: &[usize], left: f64, width: f64) {
        let mut order: Vec<(i64, usize)> =
            tops.iter().map(|&switch| (self.middle_below(switch), switch)).collect();
        order.sort_by_key(|&(middle, _)| middle);
        let step = width / tops.len().max(1) as f64;
        for (position, &(_, switch)) in order.iter().enumerate() {
            self.across[switch] = left + (position as f64 + 0.5) * step;
        }
    }

    /// Returns the mean horizontal position of a switch's neighbours in lower ranks. The result is an integer in
    /// hundredths of a unit, so that rounding errors do not affect the order of switches.
    fn middle_below(&self, switch: usize) -> i64 {
        let rank = self.ranks[switch];
        self.middle(switch, &|peer| (self.ranks[peer] < rank).then_some(self.across[peer]))
    }

    fn middle(&self, switch: usize, place: &dyn Fn(usize) -> Option<f64>) -> i64 {
        let (sum, links) = self.graph.neighbours[switch]
            .iter()
            .filter_map(|&(peer, links)| Some((place(peer)?, links)))
            .fold((0.0, 0), |(sum, count), (at, links)| {
                (sum + at * f64::from(links), count + links)
            });
        (sum / f64::from(links.max(1)) * 100.0).round() as i64
    }

    /// Splits switches into connected components, and keeps their order.
    fn pods(&self, members: &[usize]) -> Vec<Vec<usize>> {
        let position: BTreeMap<usize, usize> =
            members.iter().enumerate().map(|(position, &switch)| (switch, position)).collect();
        let mut pod_of = vec![usize::MAX; members.len()];
        let mut pods: Vec<Vec<usize>> = Vec::new();
        for start in 0..members.len() {
            if pod_of[start] != usize::MAX {
                continue;
            }
            pod_of[start] = pods.len();
            let mut open = vec![start];
            while let Some(at) = open.pop() {
                for (peer, _) in &self.graph.neighbours[members[at]] {
                    if let Some(&next) = position.get(peer)
                        && pod_of[next] == usize::MAX
                    {
                        pod_of[next] = pods.len();
                        open.push(next);
                    }
                }
            }
            pods.push(Vec::new());
        }
        for (&switch, &pod) in members.iter().zip(&pod_of) {
            pods[pod].push(switch);
        }
        pods
    }

    /// Sorts `leaves`, pods of one switch each, to shorten their links to `tops`, the switches of the rank above. A
    /// round sorts `tops` by the positions of their neighbours in `leaves`, and then sorts `leaves` by the positions of
    /// their neighbours in `tops`. Stops at the first round that hardly shortens the links (see [`ENOUGH`]).
    fn untangle(&mut self, leaves: &mut Vec<Vec<usize>>, tops: &[usize]) {
        let width = leaves.len() as f64;
        let mut best = f64::MAX;
        let mut trial = leaves.clone();
        for _ in 0..ROUNDS {
            for (position, leaf) in trial.iter().enumerate() {
                self.across[leaf[0]] = position as f64 + 0.5;
            }
            self.spread(tops, 0.0, width);
            let length = self.length(tops);
            if length > ENOUGH * best {
                break;
            }
            best = length;
            leaves.clone_from(&trial);
            trial.sort_by_cached_key(|leaf| {
                let rank = self.ranks[leaf[0]];
                self.middle(leaf[0], &|peer| (self.ranks[peer] > rank).then_some(self.across[peer]))
            });
        }
    }

    /// Returns the total horizontal length of all links of the given switches.
    fn length(&self, switches: &[usize]) -> f64 {
        let of = |&switch: &usize| -> f64 {
            self.graph.neighbours[switch]
                .iter()
                .map(|&(peer, links)| {
                    (self.across[peer] - self.across[switch]).abs() * f64::from(links)
                })
                .sum()
        };
        switches.iter().map(of).sum()
    }
}
