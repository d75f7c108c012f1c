//! The index of every switch, by which the switches of a rank are ordered.
//!
//! The first byte of an index is the rank of the switch. The other bytes are digits, counted from 1. Digit r belongs to
//! the links between the ranks r - 1 and r.
//!
//! A search starts at the first leaf. When it finds a switch over a link, it copies the index of the switch from which
//! it came. In the copy, it replaces the rank, and sets the digit of this link to the lowest value that makes the index
//! unique.
//!
//! Indices are compared byte by byte. They order the leaves, and break ties between equally loaded neighbours.

use std::collections::BTreeSet;

use super::super::EngineError;
use super::adapters::{AdapterPort, Role};
use super::groups::{ADAPTER, Groups};
use super::ranking::Ranks;
use super::{switch_name, unsuitable};
use crate::subnet::{Subnet, SwitchId};

/// The index of a switch: its rank, followed by the digits.
type Index = [u8; 8];

/// Value of missing digits, and of all bytes if a switch has no index. It sorts after all other values.
const NONE: u8 = 0xff;

/// Value of `Group::place` for channel adapters: after all switches that have an index.
///
/// Channel adapters have no index. OpenSM compares unrelated bytes instead, which nearly always sort channel adapters
/// after these switches.
const ADAPTER_PLACE: u32 = u32::MAX - 1;

/// Value of `Group::place` for switches that have no index: after all other neighbours.
const NO_PLACE: u32 = u32::MAX;

/// The leaves of a tree.
#[derive(Debug)]
pub(super) struct Leaves {
    /// The switches whose hosts are routed first, in this order: the switches of the leaf rank, from the first to the
    /// last that has a compute node. Some switches in between may have no compute node.
    pub(super) order: Vec<SwitchId>,
    /// By switch: true if a compute node is attached to the switch.
    pub(super) has_compute_node: Vec<bool>,
}

/// Assigns indices to the switches, orders the groups by index, and returns the leaves in order.
///
/// If `from_roots` is true, a search starts at each root in turn and does not go up from leaves with compute nodes.
///
/// # Errors
/// Fails if fewer than two leaves have compute nodes.
pub(super) fn index(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    ports: &[AdapterPort],
    groups: &mut Groups,
    from_roots: bool,
) -> Result<Leaves, EngineError> {
    let mut has_compute_node = vec![false; subnet.switches().len()];
    for port in ports.iter().filter(|port| port.role == Role::Compute) {
        has_compute_node[port.switch.index()] = true;
    }
    let mut search = Search {
        ranks,
        groups,
        has_compute_node: &has_compute_node,
        from_roots,
        indices: vec![[NONE; 8]; subnet.switches().len()],
        used: BTreeSet::new(),
        queue: Vec::new(),
    };
    if from_roots {
        search.start_at_roots(subnet);
    } else if let Some(leaf) = subnet.switch_ids().find(|&id| has_compute_node[id.index()]) {
        search.give(leaf, search.zero(ranks.leaf));
        search.run(leaf);
    }
    let indices = search.indices;
    let places = places(&indices);
    for group in &mut groups.groups {
        let place = places.get(usize::from(group.far));
        group.place = if group.far == ADAPTER { Some(&ADAPTER_PLACE) } else { place }
            .copied()
            .unwrap_or(NO_PLACE);
    }
    for id in subnet.switch_ids() {
        let found = places[id.index()] != NO_PLACE;
        if found && ranks.of(id) < ranks.leaf {
            groups.sort_down(id);
        }
        if found || (from_roots && has_compute_node[id.index()]) {
            groups.sort_up(id);
        }
    }
    let order = leaves(subnet, ranks, &places, &has_compute_node)?;
    Ok(Leaves { order, has_compute_node })
}

struct Search<'a> {
    ranks: &'a Ranks,
    groups: &'a Groups,
    has_compute_node: &'a [bool],
    from_roots: bool,
    indices: Vec<Index>,
    used: BTreeSet<Index>,
    queue: Vec<SwitchId>,
}

impl Search<'_> {
    /// Searches from every root in turn. A root that no earlier search has found starts a new subtree. In trees of more
    /// than two ranks, the number of the subtree becomes the last digit of the root's index. In trees of two ranks, the
    /// last digit already distinguishes the roots.
    fn start_at_roots(&mut self, subnet: &Subnet<'_>) {
        let mut subtree = 0u8;
        for root in subnet.switch_ids().filter(|&id| self.ranks.of(id) == 0) {
            if !self.has_index(root) {
                let mut index = self.zero(0);
                if self.ranks.leaf > 1 {
                    index[usize::from(self.ranks.leaf)] = subtree;
                }
                self.give_next(root, index, 1);
                subtree = subtree.wrapping_add(1);
            }
            self.run(root);
        }
    }

    /// From the switch `start`, searches over links up and down for switches without an index. Does not search below
    /// the leaves.
    fn run(&mut self, start: SwitchId) {
        self.queue.clear();
        self.queue.push(start);
        let mut head = 0;
        while let Some(&switch) = self.queue.get(head) {
            head += 1;
            let index = self.indices[switch.index()];
            let rank = self.ranks.of(switch);
            if !self.has_index(switch) {
                continue;
            }
            if rank < self.ranks.leaf {
                for position in self.groups.down(switch) {
                    self.find(position, index, rank + 1, rank + 1);
                }
            }
            if rank > 0 && !(self.from_roots && self.has_compute_node[switch.index()]) {
                for position in self.groups.up(switch) {
                    self.find(position, index, rank - 1, rank);
                }
            }
        }
    }

    /// If the far switch of a group has no index, assigns one to it. This index differs from `index`, the index of the
    /// near switch, only in the rank and the given digit.
    fn find(&mut self, position: usize, mut index: Index, rank: u16, digit: u16) {
        let far = self.groups.groups[position].far;
        if far == ADAPTER || self.has_index(SwitchId(far)) {
            return;
        }
        index[0] = rank as u8;
        if self.give_next(SwitchId(far), index, usize::from(digit)) {
            self.queue.push(SwitchId(far));
        }
    }

    /// Assigns `index` to a switch, but with the lowest unused value in place of the given digit. Returns false if all
    /// values of this digit are used.
    fn give_next(&mut self, switch: SwitchId, mut index: Index, digit: usize) -> bool {
        let unused = (0..NONE).find(|&value| {
            index[digit] = value;
            !self.used.contains(&index)
        });
        if unused.is_some() {
            self.give(switch, index);
        }
        unused.is_some()
    }

    fn give(&mut self, switch: SwitchId, index: Index) {
        self.indices[switch.index()] = index;
        self.used.insert(index);
    }

    fn has_index(&self, switch: SwitchId) -> bool {
        self.indices[switch.index()] != [NONE; 8]
    }

    /// Returns the first index of a rank, in which every digit that the tree has is zero.
    fn zero(&self, rank: u16) -> Index {
        let mut index = [NONE; 8];
        index[0] = rank as u8;
        index[1..=usize::from(self.ranks.leaf)].fill(0);
        index
    }
}

/// Returns the position of every switch if the switches are sorted by their index.
fn places(indices: &[Index]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..indices.len() as u32).collect();
    order.sort_unstable_by_key(|&switch| indices[switch as usize]);
    let mut places = vec![NO_PLACE; indices.len()];
    for (place, switch) in order.into_iter().enumerate() {
        if indices[switch as usize] != [NONE; 8] {
            places[switch as usize] = place as u32;
        }
    }
    places
}

fn leaves(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    places: &[u32],
    has_compute_node: &[bool],
) -> Result<Vec<SwitchId>, EngineError> {
    let mut order: Vec<SwitchId> =
        subnet.switch_ids().filter(|&id| ranks.of(id) == ranks.leaf).collect();
    order.sort_by_key(|id| places[id.index()]);
    let is_leaf = |id: &SwitchId| has_compute_node[id.index()];
    let (first, last) = (order.iter().position(is_leaf), order.iter().rposition(is_leaf));
    match (first, last) {
        (Some(first), Some(last)) if first < last => Ok(order[first..=last].to_vec()),
        (Some(only), _) => unsuitable(format_args!(
            "all compute nodes are on {}; expected at least 2 leaves",
            switch_name(subnet, order[only])
        )),
        (None, _) => {
            unsuitable(format_args!("no leaf has a compute node; expected at least 2 leaves"))
        }
    }
}

#[cfg(test)]
mod tests;
