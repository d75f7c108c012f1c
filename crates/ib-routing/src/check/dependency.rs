//! The channel dependency graph: for each link, the links for which its packets may wait.
//!
//! Routes cannot deadlock if the channel dependency graph has no cycle: Dally and Seitz, "Deadlock-Free Message Routing
//! in Multiprocessor Interconnection Networks", IEEE Transactions on Computers C-36, 1987. A node of the graph is a VL
//! of a directed link between two switches, because each VL has its own buffers. Links to and from hosts are not
//! included: no packet waits before the first link, and hosts always receive.

#[cfg(test)]
use std::collections::BTreeSet;

use super::vls::{MAX_VLS, bits};
use super::wiring::{Channel, Hop, Wiring};

/// Collects the turns of packets, i.e. the steps from one link to the next.
pub(super) trait TurnSink: Send {
    fn new(wiring: &Wiring) -> Self;

    /// Adds a turn from the link `channel` to the output port `out` of the switch at its end. `before` and `after` are
    /// the VLs of the packet on the two links.
    fn add(&mut self, before: u8, after: u8, channel: Channel, out: u8);

    /// Adds all turns that `other` has collected.
    fn merge(&mut self, other: Self);
}

/// The turns of packets: for each pair of VLs (before and after the turn) and each incoming link, the set of output
/// ports.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    channels: usize,
    /// Size of a set of output ports in 64-bit words.
    words: usize,
    /// Indexed by the VLs before and after the turn: `before * MAX_VLS + after`. Contains a set of output ports for
    /// each incoming channel, with `words` words per set. `None` if no turn has these VLs.
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
    /// Returns the VLs in use, ascending.
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

/// For each turn, the number of destination LIDs whose packets take this turn. Used only for tables whose packets all
/// have the same VL.
#[derive(Clone, Debug)]
pub(super) struct TurnCounts {
    /// Number of counts for each channel: one per output port of the largest switch.
    width: usize,
    /// Indexed by channel and output port. Each LID adds at most 1 to a count, and there are fewer than 2^16 LIDs, so
    /// 16 bits suffice.
    counts: Vec<u16>,
}

impl TurnCounts {
    /// Returns the number of counts for a subnet: one for each pair of a channel and an output port.
    pub(super) fn size(wiring: &Wiring) -> usize {
        wiring.channels() * wiring.widest()
    }

    /// Subtracts the counts `out`, which were added earlier, and adds the counts `into`.
    pub(super) fn exchange(&mut self, out: &Self, into: &Self) {
        for (count, (out, into)) in self.counts.iter_mut().zip(out.counts.iter().zip(&into.counts))
        {
            *count = *count - out + into;
        }
    }

    /// Returns the turns whose count is not zero. `vl` is the VL of all packets.
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

/// A node of the graph: the index of a pair of channel and VL.
pub(super) type Node = u32;

/// The channel dependency graph in compressed sparse row format.
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

    /// Returns a graph with the given number of nodes, all on one VL.
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

    /// Returns the successors of a node: packets in the buffers of the node may wait for the buffers of these nodes.
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
