//! The graph of switches, from which layouts are computed.

use std::cmp::Ordering;

use ib_routing::{Attachment, Subnet};

/// An undirected graph of switches. Parallel links are one edge.
pub(crate) struct Graph {
    /// By switch: its neighbours in ascending order, with the number of links to each.
    pub(crate) neighbours: Vec<Vec<(usize, u32)>>,
    /// By switch: its number of host ports.
    pub(crate) hosts: Vec<u32>,
    /// By switch: its position when names are sorted in natural order, in which `leaf 2` precedes `leaf 10`.
    pub(crate) place: Vec<usize>,
}

impl Graph {
    pub(crate) fn new(subnet: &Subnet<'_>) -> Self {
        let neighbours = subnet
            .switch_ids()
            .map(|switch| {
                let mut peers: Vec<usize> =
                    subnet.switch_links(switch).map(|(_, peer, _)| peer.index()).collect();
                peers.sort_unstable();
                peers.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)).collect()
            })
            .collect();
        let mut hosts = vec![0; subnet.switches().len()];
        for end in subnet.end_ports() {
            if let Attachment::Port(switch, _) = end.attachment {
                hosts[switch.index()] += 1;
            }
        }
        Self { neighbours, hosts, place: places(subnet) }
    }

    pub(crate) fn len(&self) -> usize {
        self.neighbours.len()
    }

    /// Returns each pair of linked switches once, with the number of links between them.
    pub(crate) fn links(&self) -> impl Iterator<Item = (usize, usize, u32)> + '_ {
        self.neighbours.iter().enumerate().flat_map(|(switch, peers)| {
            peers
                .iter()
                .filter(move |&&(peer, _)| switch < peer)
                .map(move |&(peer, links)| (switch, peer, links))
        })
    }

    /// Returns the distance of each switch from the nearest switch in `from`, in links; `usize::MAX` if not connected.
    pub(crate) fn distances(&self, from: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut distance = vec![usize::MAX; self.len()];
        let mut queue = std::collections::VecDeque::new();
        for switch in from {
            distance[switch] = 0;
            queue.push_back(switch);
        }
        while let Some(switch) = queue.pop_front() {
            for &(peer, _) in &self.neighbours[switch] {
                if distance[peer] == usize::MAX {
                    distance[peer] = distance[switch] + 1;
                    queue.push_back(peer);
                }
            }
        }
        distance
    }
}

fn places(subnet: &Subnet<'_>) -> Vec<usize> {
    let mut by_name: Vec<_> = subnet.switch_ids().collect();
    by_name.sort_by(|&a, &b| {
        natural(&subnet.switch_node(a).description, &subnet.switch_node(b).description)
    });
    let mut place = vec![0; by_name.len()];
    for (position, switch) in by_name.iter().enumerate() {
        place[switch.index()] = position;
    }
    place
}

/// Compares two names in natural order, i.e. digits by their numeric value.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let (head_a, rest_a) = split_run(a);
        let (head_b, rest_b) = split_run(b);
        let order = match (head_a.parse::<u64>(), head_b.parse::<u64>()) {
            (Ok(number_a), Ok(number_b)) => number_a.cmp(&number_b),
            _ => head_a.cmp(head_b),
        };
        if order != Ordering::Equal || head_a.is_empty() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// Splits a name after its leading digits or, if it begins with another character, before its first digit.
fn split_run(name: &str) -> (&str, &str) {
    let digits = name.starts_with(|first: char| first.is_ascii_digit());
    let end = name.find(|next: char| next.is_ascii_digit() != digits).unwrap_or(name.len());
    name.split_at(end)
}
