//! The channel dependency graph: which link a packet may hold while it waits for which other.
//!
//! Dally and Seitz, "Deadlock-Free Message Routing in Multiprocessor Interconnection Networks",
//! IEEE Transactions on Computers C-36, 1987: routes whose graph has no cycle cannot deadlock. A
//! node is a directed link between two switches together with a VL, which has buffers
//! of its own. Links from and to hosts have no place in it: nothing waits before the first, and
//! a host always takes in what arrives.

#[cfg(test)]
use std::collections::BTreeSet;

use super::vls::{MAX_VLS, bits};
use super::wiring::{Channel, Hop, Wiring};

/// Takes note of the turns that packets make.
pub(super) trait TurnSink: Send {
    fn new(wiring: &Wiring) -> Self;

    /// Adds the turn from a link to an output port of the switch that it leads to, by the VLs before
    /// and after it.
    fn add(&mut self, before: u8, after: u8, channel: Channel, out: u8);

    /// Adds all turns of another part of the same subnet's routes.
    fn merge(&mut self, other: Self);
}

/// The turns that packets make: per pair of VLs (before, after) and per link that they come by a
/// set of output ports of the switch that it leads to.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    channels: usize,
    /// The 64-bit words of a set.
    words: usize,
    /// `[VL before][VL after]`, each `[channel][word]`.
    planes: Vec<Option<Box<[u64]>>>,
}

impl TurnSink for Turns {
    fn new(wiring: &Wiring) -> Self {
        Self {
            channels: wiring.channels(),
            words: wiring.widest().div_ceil(64),
            planes: vec![None; MAX_VLS * MAX_VLS],
        }
    }

    fn add(&mut self, before: u8, after: u8, channel: Channel, out: u8) {
        let size = self.channels * self.words;
        let plane = self.planes[usize::from(before) * MAX_VLS + usize::from(after)]
            .get_or_insert_with(|| vec![0; size].into_boxed_slice());
        plane[channel as usize * self.words + usize::from(out) / 64] |= 1 << (out % 64);
    }

    fn merge(&mut self, other: Self) {
        for (ours, theirs) in self.planes.iter_mut().zip(other.planes) {
            match (ours, theirs) {
                (_, None) => {}
                (ours @ None, theirs) => *ours = theirs,
                (Some(ours), Some(theirs)) => {
                    for (word, more) in ours.iter_mut().zip(theirs) {
                        *word |= more;
                    }
                }
            }
        }
    }
}

impl Turns {
    /// Returns the VLs that occur, ascending.
    fn vls(&self) -> Vec<u8> {
        let used = |vl: usize| {
            (0..MAX_VLS).any(|other| {
                self.planes[vl * MAX_VLS + other].is_some()
                    || self.planes[other * MAX_VLS + vl].is_some()
            })
        };
        (0..MAX_VLS).filter(|&vl| used(vl)).map(|vl| vl as u8).collect()
    }

    fn outputs(&self, before: u8, after: u8, channel: Channel) -> impl Iterator<Item = u8> + '_ {
        let plane = self.planes[usize::from(before) * MAX_VLS + usize::from(after)].as_deref();
        let start = channel as usize * self.words;
        let set = plane.map_or(&[][..], |plane| &plane[start..start + self.words]);
        (0..).zip(set).flat_map(|(word, &set)| bits(set).map(move |bit| word * 64 + bit))
    }
}

/// How many LIDs' packets make each turn, where all packets keep to one VL.
#[derive(Clone, Debug)]
pub(super) struct TurnCounts {
    /// Output ports per channel.
    width: usize,
    /// `[channel][output port]`. Packets to a LID make a turn once, and there are fewer than 2^16 LIDs.
    counts: Vec<u16>,
}

impl TurnCounts {
    /// Returns how many counts a subnet has.
    pub(super) fn size(wiring: &Wiring) -> usize {
        wiring.channels() * wiring.widest()
    }

    /// Takes turns out and adds others. What is taken out was added before.
    pub(super) fn exchange(&mut self, out: &Self, into: &Self) {
        for (count, (out, into)) in self.counts.iter_mut().zip(out.counts.iter().zip(&into.counts))
        {
            *count = *count - out + into;
        }
    }

    /// Returns the turns that are made.
    pub(super) fn turns(&self, wiring: &Wiring, vl: u8) -> Turns {
        let mut turns = Turns::new(wiring);
        for (channel, counts) in (0..).zip(self.counts.chunks_exact(self.width.max(1))) {
            for (out, _) in (0..).zip(counts).filter(|&(_, &count)| count > 0) {
                turns.add(vl, vl, channel, out);
            }
        }
        turns
    }
}

impl TurnSink for TurnCounts {
    fn new(wiring: &Wiring) -> Self {
        Self { width: wiring.widest(), counts: vec![0; Self::size(wiring)] }
    }

    fn add(&mut self, before: u8, after: u8, channel: Channel, out: u8) {
        debug_assert_eq!(before, after, "all packets keep to one VL");
        self.counts[channel as usize * self.width + usize::from(out)] += 1;
    }

    fn merge(&mut self, other: Self) {
        for (ours, more) in self.counts.iter_mut().zip(other.counts) {
            *ours += more;
        }
    }
}

/// A node of the graph: the index of a (channel, VL) pair.
pub(super) type Node = u32;

/// The graph in compressed rows.
#[derive(Debug)]
pub(super) struct Graph {
    vls: Vec<u8>,
    first: Vec<u32>,
    targets: Vec<Node>,
}

impl Graph {
    pub(super) fn new(wiring: &Wiring, turns: &Turns) -> Self {
        let mut graph = Self { vls: turns.vls(), first: vec![0], targets: Vec::new() };
        for channel in 0..wiring.channels() as Channel {
            for &before in &graph.vls {
                if let Hop::Switch(switch, _) = wiring.hop(channel) {
                    let switch = usize::from(switch);
                    for (index, &after) in (0..).zip(&graph.vls) {
                        let outputs = turns.outputs(before, after, channel);
                        graph.targets.extend(outputs.map(|out| {
                            wiring.channel(switch, out) * graph.vls.len() as Node + index
                        }));
                    }
                }
                graph.first.push(graph.targets.len() as u32);
            }
        }
        graph
    }

    /// Returns a graph of so many nodes on one VL.
    #[cfg(test)]
    pub(super) fn of_edges(nodes: usize, edges: &BTreeSet<(Node, Node)>) -> Self {
        let mut first = vec![0; nodes + 1];
        for &(from, _) in edges {
            first[from as usize + 1] += 1;
        }
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let targets = edges.iter().map(|&(_, target)| target).collect();
        Self { vls: vec![0], first, targets }
    }

    pub(super) fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    /// Returns the nodes that a packet in one may wait for.
    pub(super) fn targets(&self, node: Node) -> &[Node] {
        let (from, to) = (self.first[node as usize], self.first[node as usize + 1]);
        &self.targets[from as usize..to as usize]
    }

    /// Returns the channel and the VL of a node.
    pub(super) fn channel_and_vl(&self, node: Node) -> (Channel, u8) {
        let vls = self.vls.len() as Node;
        (node / vls, self.vls[(node % vls) as usize])
    }
}
