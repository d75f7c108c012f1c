//! What the walks know of a switch, and the order of its groups by load.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::groups::{ADAPTER, Group, Groups};
use super::super::indexing::Leaves;
use super::super::ranking::Ranks;
use super::Router;
use crate::subnet::Subnet;

/// A switch as the walks see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    down: u32,
    siblings: u32,
    up: u32,
    end: u32,
    /// Switches of one family have the same switches below them.
    pub(super) family: u32,
    pub(super) has_adapter: bool,
    pub(super) has_compute_node: bool,
    pub(super) is_root: bool,
    /// Whether a walk that descends ends here.
    pub(super) is_last: bool,
    /// Whether groups that lead down were loaded since they were last put in order.
    pub(super) down_changed: bool,
    /// The same of groups that lead up.
    pub(super) up_changed: bool,
    /// A root's next turn upwards begins behind this group, counted among those that lead down.
    pub(super) turn: u8,
}

impl Local {
    /// Returns the positions of the groups that lead down.
    pub(super) fn down(&self) -> Range<usize> {
        self.down as usize..self.siblings as usize
    }

    /// Returns the positions of the groups that lead to switches of the same rank.
    pub(super) fn siblings(&self) -> Range<usize> {
        self.siblings as usize..self.up as usize
    }

    /// Returns the positions of the groups that lead up.
    pub(super) fn up(&self) -> Range<usize> {
        self.up as usize..self.end as usize
    }

    /// Moves a root's next turn on by a group.
    pub(super) fn advance_turn(&mut self) {
        let groups = self.down().len().max(1);
        self.turn = ((usize::from(self.turn) + 1) % groups) as u8;
    }
}

/// Returns what there is to know of every switch, and the number of families.
pub(super) fn locals(
    subnet: &Subnet<'_>,
    ranks: &Ranks,
    leaves: &Leaves,
    groups: &Groups,
) -> (Vec<Local>, usize) {
    let mut families = BTreeMap::new();
    let locals = subnet
        .switch_ids()
        .map(|id| {
            let (down, siblings, up) = (groups.down(id), groups.siblings(id), groups.up(id));
            let below = groups.groups[down.clone()].iter().map(|group| group.far);
            let has_adapter = below.clone().any(|far| far == ADAPTER);
            let mut below: Vec<u16> = below.filter(|&far| far != ADAPTER).collect();
            below.sort_unstable();
            let is_root = ranks.of(id) == 0;
            let is_last = below.is_empty() && siblings.is_empty() && !is_root;
            let next = families.len() as u32;
            Local {
                down: down.start as u32,
                siblings: siblings.start as u32,
                up: up.start as u32,
                end: up.end as u32,
                family: *families.entry(below).or_insert(next),
                has_adapter,
                has_compute_node: leaves.has_compute_node[id.index()],
                is_root,
                is_last,
                down_changed: false,
                up_changed: false,
                turn: 0,
            }
        })
        .collect();
    (locals, families.len())
}

impl Router<'_> {
    /// Orders the groups that lead down from a switch by the routes up over them.
    pub(super) fn order_down(&mut self, at: usize) {
        if std::mem::take(&mut self.locals[at].down_changed) {
            let positions = self.locals[at].down();
            order_by(&mut self.order[positions], &self.groups, |group| group.up_load);
        }
    }

    /// Orders the groups that lead up from a switch by the routes down over them.
    pub(super) fn order_up(&mut self, at: usize) {
        if std::mem::take(&mut self.locals[at].up_changed) {
            let positions = self.locals[at].up();
            order_by(&mut self.order[positions], &self.groups, |group| group.down_load);
        }
    }

    /// Orders the groups that lead aside by the routes over them away from this switch.
    pub(super) fn order_siblings_to_descend(&mut self, at: usize) {
        let positions = self.locals[at].siblings();
        order_by(&mut self.order[positions], &self.groups, |group| group.up_load);
    }

    /// Orders the groups that lead aside for a walk that climbs.
    pub(super) fn order_siblings_to_climb(&mut self, at: usize) {
        let positions = self.locals[at].siblings();
        order_by(&mut self.order[positions], &self.groups, |group| group.down_load);
    }
}

/// Puts groups in the order of a load, then of their far switches' places; equals keep theirs.
///
/// Insertion is the right way: at most a few groups were loaded since the last time.
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
