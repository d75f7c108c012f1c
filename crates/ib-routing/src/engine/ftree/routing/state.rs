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
    /// The position of the first group; those that lead down, aside and up follow each other.
    first: u32,
    down: u8,
    siblings: u8,
    up: u8,
    /// A root's next turn upwards begins with this one of the groups that lead down.
    pub(super) turn: u8,
    /// Switches of one family have the same switches below them.
    pub(super) family: u16,
    pub(super) has_adapter: bool,
    pub(super) has_compute_node: bool,
    pub(super) is_root: bool,
    /// Whether a walk that comes here has nothing to do once all below have routes.
    pub(super) is_plain: bool,
    /// Whether every group that leads down is one link to a switch with adapters alone below it.
    pub(super) is_above_ends: bool,
    /// Whether loads of groups that lead down changed since these were last put in order.
    pub(super) down_changed: bool,
    /// The same of groups that lead up.
    pub(super) up_changed: bool,
}

impl Local {
    /// Returns the positions of the groups that lead down.
    pub(super) fn down(&self) -> Range<usize> {
        let start = self.first as usize;
        start..start + usize::from(self.down)
    }

    /// Returns the positions of the groups that lead to switches of the same rank.
    pub(super) fn siblings(&self) -> Range<usize> {
        let start = self.down().end;
        start..start + usize::from(self.siblings)
    }

    /// Returns the positions of the groups that lead up.
    pub(super) fn up(&self) -> Range<usize> {
        let start = self.siblings().end;
        start..start + usize::from(self.up)
    }

    /// Returns true when nothing but channel adapters is below or beside the switch, so that a
    /// walk that descends ends there.
    fn is_end(&self, below: &[u16]) -> bool {
        below.is_empty() && self.siblings == 0 && !self.is_root
    }

    /// Moves a root's next turn on by a group.
    pub(super) fn advance_turn(&mut self) {
        self.turn = if self.turn + 1 < self.down { self.turn + 1 } else { 0 };
    }
}

/// Where a walk that descends over a group gets to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// To a channel adapter: there is nothing to do.
    Adapter,
    /// To a switch with channel adapters, and no further.
    Served,
    /// To a switch without, and no further.
    Unserved,
    /// To a switch with others below or beside it.
    Further,
}

/// What the walks know at the start.
pub(super) struct State {
    pub(super) locals: Vec<Local>,
    /// Per group.
    pub(super) below: Vec<Below>,
    /// The number of families.
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
                // Not all of these were put in the order of their places.
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
