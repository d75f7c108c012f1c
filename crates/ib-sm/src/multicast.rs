//! Which ports multicast packets leave by: a tree of least hops for each group.
//!
//! The tree grows from the switch that has the fewest hops to all members together. Every switch on
//! it sends a packet out of all ports of the tree but the one it came by, so each member gets it
//! once.

use std::collections::{BTreeMap, VecDeque};

use ib_types::Guid;
use ib_wire::mad::sm::MulticastForwardingBlock;

use crate::found::{Found, NodeIndex, Place};

/// The ports of a multicast LID at a switch: bit n of word n / 16 stands for port n.
pub(crate) type Ports = [u16; 16];

/// The multicast LIDs that a switch forwards, with their ports.
pub(crate) type Entries = BTreeMap<u16, Ports>;

const LIDS: u16 = MulticastForwardingBlock::LIDS;

/// The multicast forwarding tables of all switches, by node GUID, as far as they were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct MulticastTables {
    known: BTreeMap<Guid, BTreeMap<(u16, u8), [u16; LIDS as usize]>>,
}

impl MulticastTables {
    /// Returns a block as it was written; `None` when nobody knows.
    pub(crate) fn block(&self, switch: Guid, at: (u16, u8)) -> Option<&[u16; LIDS as usize]> {
        self.known.get(&switch)?.get(&at)
    }

    pub(crate) fn set(&mut self, switch: Guid, at: (u16, u8), masks: [u16; LIDS as usize]) {
        self.known.entry(switch).or_default().insert(at, masks);
    }

    pub(crate) fn forget(&mut self, switch: Guid, at: (u16, u8)) {
        if let Some(blocks) = self.known.get_mut(&switch) {
            blocks.remove(&at);
        }
    }

    /// Forgets the tables of switches that are not kept.
    pub(crate) fn retain(&mut self, keep: impl Fn(Guid) -> bool) {
        self.known.retain(|&switch, _| keep(switch));
    }

    /// Returns the blocks that were written to a switch: block and position.
    pub(crate) fn blocks(&self, switch: Guid) -> impl Iterator<Item = (u16, u8)> {
        self.known.get(&switch).into_iter().flat_map(|blocks| blocks.keys().copied())
    }
}

/// Returns a block of 32 multicast LIDs and 16 ports of a switch's entries.
pub(crate) fn block(
    entries: Option<&Entries>,
    (block, position): (u16, u8),
) -> [u16; LIDS as usize] {
    let first = MulticastForwardingBlock::FIRST_LID + block * LIDS;
    std::array::from_fn(|at| {
        let ports = entries.and_then(|entries| entries.get(&(first + at as u16)));
        ports.map_or(0, |ports| ports[usize::from(position)])
    })
}

/// Returns the blocks and positions that a switch's entries stand in.
pub(crate) fn places(entries: &Entries) -> impl Iterator<Item = (u16, u8)> {
    entries.iter().flat_map(|(&mlid, ports)| {
        let block = (mlid - MulticastForwardingBlock::FIRST_LID) / LIDS;
        (0..16u8).filter(|&at| ports[usize::from(at)] != 0).map(move |at| (block, at))
    })
}

/// Adds the tree of a group to the entries of the switches. Members that are not linked to a switch
/// are left out.
pub(crate) fn add_tree(
    found: &Found,
    mlid: u16,
    members: &[Place],
    entries: &mut BTreeMap<NodeIndex, Entries>,
) {
    let mut attached: BTreeMap<NodeIndex, Vec<u8>> = BTreeMap::new();
    for &member in members {
        if found.node(member.node).kind.is_switch() {
            attached.entry(member.node).or_default().push(0);
        } else if let Some(peer) = found.port(member).peer
            && found.node(peer.node).kind.is_switch()
        {
            attached.entry(peer.node).or_default().push(peer.port);
        }
    }
    let mut add = |node: NodeIndex, port: u8| {
        let ports = entries.entry(node).or_default().entry(mlid).or_default();
        ports[usize::from(port / 16)] |= 1 << (port % 16);
    };
    let mut left: BTreeMap<NodeIndex, Vec<u8>> = attached;
    let mut search = Search::new(found);
    // In a subnet in one piece one tree takes all members; else each piece has its own.
    while let Some(&first) = left.keys().next() {
        let root = root(found, first, &left, &mut search);
        search.run(found, root);
        let reached: Vec<NodeIndex> =
            left.keys().copied().filter(|&node| search.get(node).is_some()).collect();
        for node in reached {
            for port in left.remove(&node).unwrap_or_default() {
                add(node, port);
            }
            let mut at = node;
            while let Some(up) = search.get(at).and_then(|met| met.up) {
                let parent = found.port(at.at(up)).peer.expect("the tree goes over links");
                add(at, up);
                add(parent.node, parent.port);
                at = parent.node;
            }
        }
    }
}

/// A switch as a search from another one has met it.
#[derive(Clone, Copy, Debug)]
struct Met {
    hops: u32,
    /// The port that leads back; `None` where the search began.
    up: Option<u8>,
}

/// The switches that a search met, by node.
struct Search {
    met: Vec<Option<Met>>,
    queue: VecDeque<NodeIndex>,
}

impl Search {
    fn new(found: &Found) -> Self {
        Self { met: vec![None; found.nodes().len()], queue: VecDeque::new() }
    }

    /// Goes over all links between switches, breadth first.
    fn run(&mut self, found: &Found, root: NodeIndex) {
        self.met.fill(None);
        self.met[root.0 as usize] = Some(Met { hops: 0, up: None });
        self.queue.push_back(root);
        while let Some(node) = self.queue.pop_front() {
            let hops = self.get(node).map_or(0, |met| met.hops) + 1;
            for peer in found.node(node).ports.iter().filter_map(|port| port.peer) {
                let known = &mut self.met[peer.node.0 as usize];
                if known.is_none() && found.node(peer.node).kind.is_switch() {
                    *known = Some(Met { hops, up: Some(peer.port) });
                    self.queue.push_back(peer.node);
                }
            }
        }
    }

    fn get(&self, node: NodeIndex) -> Option<Met> {
        self.met[node.0 as usize]
    }
}

/// Returns the switch with the fewest hops to the members' switches together, among those that a
/// member's switch reaches; of several the one that was found first.
fn root(
    found: &Found,
    from: NodeIndex,
    members: &BTreeMap<NodeIndex, Vec<u8>>,
    search: &mut Search,
) -> NodeIndex {
    search.run(found, from);
    let reached: Vec<NodeIndex> =
        members.keys().copied().filter(|&node| search.get(node).is_some()).collect();
    let mut sums: Vec<Option<u64>> = search.met.iter().map(|met| met.map(|_| 0)).collect();
    for member in reached {
        search.run(found, member);
        for (sum, met) in sums.iter_mut().zip(&search.met) {
            if let (Some(sum), Some(met)) = (sum, met) {
                *sum += u64::from(met.hops) * members[&member].len() as u64;
            }
        }
    }
    let sums = sums.iter().enumerate().filter_map(|(at, sum)| Some(((*sum)?, at as u32)));
    sums.min().map_or(from, |(_, at)| NodeIndex(at))
}
