//! The state that the walks keep for each switch, and the order of the switch's groups by load.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::groups::{ADAPTER, Group, Groups};
use super::super::indexing::Leaves;
use super::super::ranking::Ranks;
use super::Router;
use crate::subnet::Subnet;

/// The state that the walks keep for a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    /// The position of the first group of the switch. Groups that lead down come first, then groups to siblings, then
    /// groups that lead up.
    first: u32,
    down: u8,
    siblings: u8,
    up: u8,
    /// At a root: index of a downward group. Each series of upward turns first advances it to the next group, and then
    /// starts at that group. Each descent that reaches a channel adapter also advances it.
    pub(super) turn: u8,
    /// The family of the switch. Switches of a family have the same switches below them.
    pub(super) family: u16,
    pub(super) has_adapter: bool,
    pub(super) has_compute_node: bool,
    pub(super) is_root: bool,
    /// True if a descending walk can skip this switch once all switches below it have routes.
    pub(super) is_plain: bool,
    /// True if every downward group is a single link to a switch that has only channel adapters below it.
    pub(super) is_above_ends: bool,
    /// True if the loads of downward groups have changed since the groups were ordered.
    pub(super) down_changed: bool,
    /// True if the loads of upward groups have changed since the groups were ordered.
    pub(super) up_changed: bool,
}

impl Local {
    /// Returns the positions of the groups of links that lead down from this switch.
    pub(super) fn down(&self) -> Range<usize> {
        let start = self.first as usize;
        start..start + usize::from(self.down)
    }

    /// Returns the positions of the groups of links that lead from this switch to switches of the same rank.
    pub(super) fn siblings(&self) -> Range<usize> {
        let start = self.down().end;
        start..start + usize::from(self.siblings)
    }

    /// Returns the positions of the groups of links that lead up from this switch.
    pub(super) fn up(&self) -> Range<usize> {
        let start = self.siblings().end;
        start..start + usize::from(self.up)
    }

    /// Returns true if a descending walk ends at the switch: it is not a root, and has neither siblings nor switches
    /// below it.
    fn is_end(&self, below: &[u16]) -> bool {
        below.is_empty() && self.siblings == 0 && !self.is_root
    }

    /// At a root: proceeds to the next downward group; after the last one, to the first.
    pub(super) fn advance_turn(&mut self) {
        self.turn = if self.turn + 1 < self.down { self.turn + 1 } else { 0 };
    }
}

/// The kind of node that a descending walk finds at the far end of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// A channel adapter. The walk does not visit it, because only switches have LFTs.
    Adapter,
    /// A switch with channel adapters, at which the walk ends.
    Served,
    /// A switch without channel adapters, at which the walk ends.
    Unserved,
    /// A switch from which the walk continues down or to siblings.
    Further,
}

/// The initial state of all switches and groups, before the first walk.
pub(super) struct State {
    pub(super) locals: Vec<Local>,
    /// By group: the kind of node at its far end.
    pub(super) below: Vec<Below>,
    /// Number of families of switches.
    pub(super) families: usize,
}

impl State {
    pub(super) fn new(
        subnet: &Subnet<'_>,
        ranks: &Ranks,
        leaves: &Leaves,
        groups: &Groups,
    ) -> Self {
        let mut families = BTreeMap::new();
        let mut ends = Vec::with_capacity(subnet.switches().len());
        let mut locals = Vec::with_capacity(subnet.switches().len());
        for id in subnet.switch_ids() {
            let (down, siblings, up) = (groups.down(id), groups.siblings(id), groups.up(id));
            let far = groups.groups[down.clone()].iter().map(|group| group.far);
            let has_adapter = far.clone().any(|far| far == ADAPTER);
            let mut below: Vec<u16> = far.filter(|&far| far != ADAPTER).collect();
            below.sort_unstable();
            let is_root = ranks.of(id) == 0;
            let mut local = Local {
                first: down.start as u32,
                down: down.len() as u8,
                siblings: siblings.len() as u8,
                up: up.len() as u8,
                turn: 0,
                family: 0,
                has_adapter,
                has_compute_node: leaves.has_compute_node[id.index()],
                is_root,
                is_plain: siblings.is_empty() && !(is_root && has_adapter),
                is_above_ends: false,
                down_changed: false,
                // The upward groups of some switches are not yet ordered by `Group::place`, so they are sorted at the
                // first use.
                up_changed: true,
            };
            ends.push(match (local.is_end(&below), has_adapter) {
                (false, _) => Below::Further,
                (true, true) => Below::Served,
                (true, false) => Below::Unserved,
            });
            let next = families.len() as u16;
            local.family = *families.entry(below).or_insert(next);
            locals.push(local);
        }
        let below = groups.groups.iter().map(|group| match group.far {
            ADAPTER => Below::Adapter,
            far => ends[usize::from(far)],
        });
        let below: Vec<Below> = below.collect();
        for local in &mut locals {
            let ends = below[local.down()].iter().all(|&below| below == Below::Served);
            let single = groups.groups[local.down()].iter().all(|group| group.links == 1);
            local.is_above_ends = ends && single;
        }
        Self { locals, below, families: families.len() }
    }
}

impl Router<'_> {
    /// Orders the downward groups of a switch by their `up_load`.
    pub(super) fn order_down(&mut self, at: usize) {
        if std::mem::take(&mut self.locals[at].down_changed) {
            let positions = self.locals[at].down();
            order_by(&mut self.order[positions], &self.groups, |group| group.up_load);
        }
    }

    /// Orders the upward groups of a switch by their `down_load`.
    pub(super) fn order_up(&mut self, at: usize) {
        if std::mem::take(&mut self.locals[at].up_changed) {
            let positions = self.locals[at].up();
            order_by(&mut self.order[positions], &self.groups, |group| group.down_load);
        }
    }

    /// Orders the groups to siblings by their `up_load`, for a descending walk.
    pub(super) fn order_siblings_to_descend(&mut self, at: usize) {
        let positions = self.locals[at].siblings();
        order_by(&mut self.order[positions], &self.groups, |group| group.up_load);
    }

    /// Orders the groups to siblings by their `down_load`, for a climbing walk.
    pub(super) fn order_siblings_to_climb(&mut self, at: usize) {
        let positions = self.locals[at].siblings();
        order_by(&mut self.order[positions], &self.groups, |group| group.down_load);
    }
}

/// Sorts indices of groups by the groups' load, and indices of equally loaded groups by [`Group::place`].
///
/// Insertion sort is the fastest method, because only a few groups have got more load since the last sort.
fn order_by(order: &mut [u32], groups: &[Group], load: impl Fn(&Group) -> u32) {
    let key = |position: u32| {
        let group = &groups[position as usize];
        (u64::from(load(group)) << 32) | u64::from(group.place)
    };
    for end in 1..order.len() {
        let group = order[end];
        let own = key(group);
        let mut slot = end;
        while slot > 0 && key(order[slot - 1]) > own {
            order[slot] = order[slot - 1];
            slot -= 1;
        }
        order[slot] = group;
    }
}

#[cfg(test)]
mod tests;
