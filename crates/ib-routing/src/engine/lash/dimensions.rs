//! Detects the dimensions of a grid, i.e. of a torus, mesh, hypercube or any other product of smaller graphs.
//!
//! Links are sorted into classes, and each final class is a dimension:
//!
//! 1. Opposite links of a square belong to the same dimension, and so do the links of a triangle. They get the same
//!    class.
//! 2. The links of a cycle of five or more switches are then still in different classes. Two links of one dimension
//!    that start at the same switch are not sides of a common square. Two links of different dimensions nearly always
//!    are. So two classes are joined if most such pairs of their links have no common square. A few missing links do
//!    not change the majority.
//!
//! The two steps join links by the two relations with which Feder, "Product Graph Representations", Journal of Graph
//! Theory 16, 1992, factors products of graphs.

use std::collections::BTreeMap;

use super::network::Network;

/// Maximum number of dimensions. If a network has more, its dimensions are ignored, because they would not improve the
/// routes.
const MOST: usize = 64;

/// The dimensions of a grid, and the coordinates of its switches.
pub(super) struct Dimensions {
    /// The dimension of each channel.
    of_channel: Vec<u8>,
    /// By dimension: the coordinate of each switch. Two switches have the same coordinate if links of other dimensions
    /// connect them.
    coordinates: Vec<Vec<u32>>,
}

impl Dimensions {
    /// Detects the dimensions; `None` if the network has fewer than two.
    pub(super) fn find(network: &Network<'_>) -> Option<Self> {
        let adjacency = Adjacency::new(network);
        let mut classes = facing_links(network, &adjacency);
        join_steps(network, &adjacency, &mut classes);
        let mut numbers = BTreeMap::new();
        let mut of_channel = Vec::with_capacity(network.channels());
        for channel in 0..network.channels() {
            let next = numbers.len();
            let number = *numbers.entry(classes.find(channel)).or_insert(next);
            if number >= MOST {
                return None;
            }
            of_channel.push(number as u8);
        }
        let coordinates = (0..numbers.len())
            .map(|dimension| coordinates(network, &of_channel, dimension as u8))
            .collect();
        (numbers.len() >= 2).then_some(Self { of_channel, coordinates })
    }

    /// Returns the number of dimensions.
    pub(super) fn count(&self) -> usize {
        self.coordinates.len()
    }

    /// Returns the dimension of a channel.
    pub(super) fn of_channel(&self, channel: usize) -> usize {
        usize::from(self.of_channel[channel])
    }

    /// Returns the coordinate of each switch in a dimension.
    pub(super) fn coordinates(&self, dimension: usize) -> &[u32] {
        &self.coordinates[dimension]
    }
}

/// The neighbours of all switches, with one bit for each pair of switches.
struct Adjacency {
    words: usize,
    bits: Vec<u64>,
}

impl Adjacency {
    fn new(network: &Network<'_>) -> Self {
        let words = network.switches().div_ceil(64);
        let mut bits = vec![0; words * network.switches()];
        for switch in 0..network.switches() {
            for &other in network.neighbours(switch) {
                bits[switch * words + usize::from(other) / 64] |= 1 << (other % 64);
            }
        }
        Self { words, bits }
    }

    fn row(&self, switch: usize) -> &[u64] {
        &self.bits[switch * self.words..][..self.words]
    }

    fn has(&self, a: usize, b: usize) -> bool {
        self.row(a)[b / 64] >> (b % 64) & 1 == 1
    }

    /// Returns the switches that complete a square with `a`, `corner` and `b`: common neighbours of `a` and `b` that
    /// are not neighbours of `corner`.
    fn opposite(&self, corner: usize, a: usize, b: usize) -> impl Iterator<Item = usize> + '_ {
        let rows = self.row(a).iter().zip(self.row(b)).zip(self.row(corner)).enumerate();
        rows.flat_map(move |(word, ((a, b), corner_row))| {
            let mut bits = a & b & !corner_row;
            if corner / 64 == word {
                bits &= !(1 << (corner % 64));
            }
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros();
                bits &= bits.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit as usize)
            })
        })
    }
}

/// Puts opposite links of a square into the same class, and also the links of a triangle.
fn facing_links(network: &Network<'_>, adjacency: &Adjacency) -> UnionFind {
    let mut classes = UnionFind::new(network.channels());
    for channel in 0..network.channels() {
        classes.join(channel, network.reverse(channel));
    }
    for_each_corner(network, |first, second| {
        // If `first` and `second` are already in the same class, this corner can be skipped. Every square or triangle
        // with this corner has other corners, and there the remaining links of the figure are joined to the class.
        if classes.find(first) == classes.find(second) {
            return;
        }
        let (corner, a, b) = (network.tail(first), network.head(first), network.head(second));
        if adjacency.has(a, b) {
            classes.join(first, second);
            return;
        }
        for opposite in adjacency.opposite(corner, a, b) {
            let facing = |from| {
                network
                    .channel_to(from, opposite)
                    .expect("`opposite` is a neighbour of `a` and `b`")
            };
            classes.join(first, facing(b));
            classes.join(second, facing(a));
        }
    });
    classes
}

/// Counts of the pairs of links that start at the same switch, one link of each of two classes. `squares` counts the
/// pairs that are sides of a common square, so their dimensions differ. `bends` counts the other pairs.
#[derive(Clone, Copy, Default)]
struct Evidence {
    squares: u32,
    bends: u32,
}

/// Joins two classes if [`Evidence`] counts more bends than squares for them. Pairs of classes with the largest
/// difference between bends and squares are joined first.
fn join_steps(network: &Network<'_>, adjacency: &Adjacency, classes: &mut UnionFind) {
    let mut evidence = vec![BTreeMap::<usize, Evidence>::new(); network.channels()];
    for_each_corner(network, |first, second| {
        let (a, b) = (classes.find(first), classes.find(second));
        if a == b {
            return;
        }
        let (from, to) = (network.head(first), network.head(second));
        let square = adjacency.opposite(network.tail(first), from, to).next().is_some();
        for (a, b) in [(a, b), (b, a)] {
            let seen = evidence[a].entry(b).or_default();
            seen.squares += u32::from(square);
            seen.bends += u32::from(!square);
        }
    });
    let mut meetings = Vec::new();
    for (a, seen) in evidence.iter().enumerate() {
        for (&b, seen) in seen.range(a + 1..).filter(|(_, seen)| seen.bends > seen.squares) {
            meetings.push((std::cmp::Reverse(seen.bends - seen.squares), a, b));
        }
    }
    meetings.sort_unstable();
    for (_, a, b) in meetings {
        let (a, b) = (classes.find(a), classes.find(b));
        let agree = |seen: &Evidence| seen.bends > seen.squares;
        if a == b || !evidence[a].get(&b).is_some_and(agree) {
            continue;
        }
        classes.join(a, b);
        let kept = classes.find(a);
        let gone = if kept == a { b } else { a };
        for (other, seen) in std::mem::take(&mut evidence[gone]) {
            evidence[other].remove(&gone);
            if other != kept {
                for (a, b) in [(kept, other), (other, kept)] {
                    let sum = evidence[a].entry(b).or_default();
                    sum.squares += seen.squares;
                    sum.bends += seen.bends;
                }
            }
        }
    }
}

/// Calls `found` for every two channels that leave the same switch.
fn for_each_corner(network: &Network<'_>, mut found: impl FnMut(usize, usize)) {
    for switch in 0..network.switches() {
        for first in network.channels_of(switch) {
            for second in first + 1..network.channels_of(switch).end {
                found(first, second);
            }
        }
    }
}

fn coordinates(network: &Network<'_>, of_channel: &[u8], dimension: u8) -> Vec<u32> {
    let mut planes = UnionFind::new(network.switches());
    for (channel, &own) in of_channel.iter().enumerate() {
        if own != dimension {
            planes.join(network.tail(channel), network.head(channel));
        }
    }
    let mut numbers = BTreeMap::new();
    (0..network.switches())
        .map(|switch| {
            let next = numbers.len() as u32;
            *numbers.entry(planes.find(switch)).or_insert(next)
        })
        .collect()
}

/// Disjoint sets. The lowest member of a set represents it.
struct UnionFind(Vec<u32>);

impl UnionFind {
    fn new(members: usize) -> Self {
        Self((0..members as u32).collect())
    }

    fn find(&mut self, member: usize) -> usize {
        let mut member = member;
        while self.0[member] as usize != member {
            self.0[member] = self.0[self.0[member] as usize];
            member = self.0[member] as usize;
        }
        member
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        self.0[a.max(b)] = a.min(b) as u32;
    }
}
