//! LFT entries that the SM clears before it writes new ones, so that no transient forwarding loop occurs.
//!
//! Neither the old nor the new tables have loops. But while tables are written, some switches still use the old entry
//! for a LID and others the new entry. Such a mixture can form a cycle. The SM therefore changes the entries of such a
//! cycle in two steps. First, it sets every entry that changes to "no path". Only then does it write the new entries.
//! Thus the cycle never has old and new entries at the same time.
//!
//! If the content of an LFT block in a switch is unknown, the SM first clears all entries of the block.

use std::collections::BTreeMap;

use ib_routing::{NO_PATH, SwitchId};

use ib_wire::mad::sm::LinearForwardingBlock;

use crate::discovered_subnet::{DiscoveredSubnet, NodeIndex};
use crate::plan::Plan;
use crate::tables::Tables;

const BLOCK: u16 = LinearForwardingBlock::LIDS;

/// Number of consecutive LFT entries in a run. A run is compared with one slice comparison.
const RUN: usize = 256;

/// Marks a port that leads to no switch.
const NO_SWITCH: u32 = u32::MAX;

/// For each switch, returns the LIDs of the entries to clear, in ascending order.
pub(super) fn find(
    plan: &Plan,
    rows: &BTreeMap<NodeIndex, SwitchId>,
    found: &DiscoveredSubnet,
    tables: &Tables,
) -> BTreeMap<NodeIndex, Vec<u16>> {
    let switches = Switches::new(rows, found, tables);
    let mut result: BTreeMap<NodeIndex, Vec<u16>> = BTreeMap::new();
    let mut cycles = CycleFinder::new(switches.nodes.len());
    for lid in switches.changed_lids(plan) {
        let new = |at: usize| plan.routing.lfts.port(switches.rows[at], lid);
        let changed = |at: usize| {
            let old = switches.old_port(at, lid);
            old != NO_PATH && old != new(at)
        };
        cycles
            .find(|at| [switches.next(at, switches.old_port(at, lid)), switches.next(at, new(at))]);
        for (at, node) in switches.nodes.iter().enumerate() {
            if cycles.on_cycle[at] && changed(at) {
                result.entry(*node).or_default().push(lid);
            }
        }
    }
    for &node in rows.keys() {
        let Some(table) = tables.get(&found.node(node).info.node_guid) else { continue };
        let unknown: Vec<u16> = table.unknown().collect();
        if !unknown.is_empty() {
            let lids = result.entry(node).or_default();
            lids.extend(unknown.into_iter().flat_map(|block| block * BLOCK..(block + 1) * BLOCK));
            lids.sort_unstable();
            lids.dedup();
        }
    }
    result
}

/// The switches of a plan, numbered in the order of node indices.
struct Switches<'a> {
    nodes: Vec<NodeIndex>,
    rows: Vec<SwitchId>,
    /// For each switch, the LFT before the write: the egress port of each LID.
    old: Vec<&'a [u8]>,
    /// Switch at the other end of each port, for all ports of all switches. `first[n]` is the index of port 0 of switch
    /// n.
    peers: Vec<u32>,
    first: Vec<u32>,
}

impl<'a> Switches<'a> {
    fn new(
        rows: &BTreeMap<NodeIndex, SwitchId>,
        found: &'a DiscoveredSubnet,
        tables: &'a Tables,
    ) -> Self {
        let mut number = BTreeMap::new();
        for (at, &node) in rows.keys().enumerate() {
            number.insert(node, at as u32);
        }
        let mut this = Self {
            nodes: rows.keys().copied().collect(),
            rows: rows.values().copied().collect(),
            old: Vec::new(),
            peers: Vec::new(),
            first: vec![0],
        };
        for &node in rows.keys() {
            let known = found.node(node);
            this.old.push(tables.get(&known.info.node_guid).map_or(&[], |table| table.ports()));
            this.peers.extend(known.ports.iter().map(|port| {
                port.peer.and_then(|peer| number.get(&peer.node)).copied().unwrap_or(NO_SWITCH)
            }));
            this.first.push(this.peers.len() as u32);
        }
        this
    }

    /// Returns the LIDs for which some switch has an egress port that differs from the plan, in ascending order.
    fn changed_lids(&self, plan: &Plan) -> Vec<u16> {
        let longest = self.old.iter().map(|old| old.len()).max().unwrap_or(0).min(0xc000);
        let mut changed = vec![false; longest];
        for (&row, &old) in self.rows.iter().zip(&self.old) {
            let new = plan.routing.lfts.table(row);
            // Whole runs of entries are compared first, because most runs are unchanged.
            for (first, olds) in (0..).step_by(RUN).zip(old[..old.len().min(longest)].chunks(RUN)) {
                let end = new.len().min(first + olds.len());
                if new.get(first..end) == Some(olds) {
                    continue;
                }
                for (lid, &old) in (first..).zip(olds) {
                    let same = new.get(lid).copied().unwrap_or(NO_PATH) == old;
                    changed[lid] |= old != NO_PATH && !same;
                }
            }
        }
        let changed = (0..).zip(changed).filter(|&(_, changed)| changed);
        changed.map(|(lid, _)| lid).collect()
    }

    fn old_port(&self, at: usize, lid: u16) -> u8 {
        self.old[at].get(usize::from(lid)).copied().unwrap_or(NO_PATH)
    }

    /// Returns the switch at the other end of a port; [`NO_SWITCH`] if no switch is there.
    fn next(&self, at: usize, port: u8) -> u32 {
        let peers = &self.peers[self.first[at] as usize..self.first[at + 1] as usize];
        // Port 0 is the switch itself: packets end there, so there is no next switch.
        if port == 0 {
            NO_SWITCH
        } else {
            peers.get(usize::from(port)).copied().unwrap_or(NO_SWITCH)
        }
    }
}

/// Finds the nodes on cycles of a graph with at most two edges per node. The algorithm is Tarjan's for strongly
/// connected components, without recursion.
struct CycleFinder {
    on_cycle: Vec<bool>,
    index: Vec<u32>,
    low: Vec<u32>,
    stacked: Vec<bool>,
    stack: Vec<u32>,
    walk: Vec<(u32, u8)>,
}

impl CycleFinder {
    fn new(nodes: usize) -> Self {
        Self {
            on_cycle: vec![false; nodes],
            index: vec![0; nodes],
            low: vec![0; nodes],
            stacked: vec![false; nodes],
            stack: Vec::new(),
            walk: Vec::new(),
        }
    }

    fn find(&mut self, edges: impl Fn(usize) -> [u32; 2]) {
        self.on_cycle.fill(false);
        self.index.fill(0);
        let mut count = 0;
        for start in 0..self.index.len() {
            if self.index[start] == 0 {
                self.visit(start as u32, &mut count, &edges);
            }
        }
    }

    fn visit(&mut self, start: u32, count: &mut u32, edges: &impl Fn(usize) -> [u32; 2]) {
        self.enter(start, count);
        while let Some((node, edge)) = self.walk.last_mut() {
            let at = *node as usize;
            if let Some(&next) = edges(at).get(usize::from(*edge)) {
                *edge += 1;
                if next == NO_SWITCH {
                    continue;
                }
                let to = next as usize;
                if self.index[to] == 0 {
                    self.enter(next, count);
                } else if self.stacked[to] {
                    self.low[at] = self.low[at].min(self.index[to]);
                    self.on_cycle[at] |= to == at;
                }
            } else {
                self.walk.pop();
                if let Some(&(parent, _)) = self.walk.last() {
                    let parent = parent as usize;
                    self.low[parent] = self.low[parent].min(self.low[at]);
                }
                if self.low[at] == self.index[at] {
                    self.leave(at as u32);
                }
            }
        }
    }

    fn enter(&mut self, node: u32, count: &mut u32) {
        *count += 1;
        let at = node as usize;
        (self.index[at], self.low[at], self.stacked[at]) = (*count, *count, true);
        self.stack.push(node);
        self.walk.push((node, 0));
    }

    /// Pops a strongly connected component from the stack: all nodes from `root` on. If it has several nodes, they are
    /// on a cycle.
    fn leave(&mut self, root: u32) {
        let first =
            self.stack.iter().rposition(|&node| node == root).expect("`root` was pushed before");
        let ring = self.stack.len() - first > 1;
        for node in self.stack.drain(first..) {
            self.stacked[node as usize] = false;
            self.on_cycle[node as usize] |= ring;
        }
    }
}
