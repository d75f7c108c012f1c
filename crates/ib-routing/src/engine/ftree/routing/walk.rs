//! The steps of a walk: down, up, and to siblings, i.e. to switches of the same rank.

use std::ops::Range;

use super::super::groups::{ADAPTER, Group};
use super::super::matrix::Deviation;
use super::state::Below;
use super::{Router, TURN_LIMIT, Target};
use crate::hops::NO_HOPS;
use crate::lft::NO_PATH;
use crate::subnet::SwitchId;

/// Maximum number of hops of a route. It also limits the depth of the recursion.
const FARTHEST: u8 = NO_HOPS - 1;

/// Parameters of a climb, the part of a walk that goes up (see [`super`]).
#[derive(Clone, Copy, Debug)]
pub(super) struct Climb {
    /// True on the main path, where the climb adds to the loads of links.
    pub(super) main: bool,
    /// Number of upward turns that are still permitted.
    pub(super) turns: u8,
    /// Number of hops from the switch that the climb has reached to the target.
    pub(super) hops: u8,
}

/// Selects the load by which a link of a group is chosen. If several links have the least load, the first one is
/// chosen.
#[derive(Clone, Copy)]
enum By {
    UpLoad,
    DownLoad,
}

impl Router<'_> {
    /// Walks from a switch: first down, then up, then to siblings. Finally turns upwards if this is permitted.
    ///
    /// Returns true if some channel adapter below a visited switch now has a route to the target.
    pub(super) fn climb(&mut self, at: usize, how: Climb) -> bool {
        let mut served = self.descend(at, how.hops);
        if how.hops == FARTHEST {
            return served;
        }
        let local = self.locals[at];
        if local.is_root {
            if how.turns > 0 {
                served |= self.turn_at_root(at, how);
            }
            return served;
        }
        self.order_up(at);
        let Some(first) = local.up().next() else { return served };
        // An upward turn may return to this switch and reorder its groups, so the group of the main path is stored as
        // an index, not as a position.
        let main_group = self.order[first] as usize;
        if how.main {
            served |= self.climb_main(at, main_group, how);
        }
        let further = Climb { main: false, hops: how.hops + 1, ..how };
        for position in local.up().skip(usize::from(how.main)) {
            let group = self.order[position] as usize;
            let Some((far, _)) = self.offer(at, group, how.hops) else { continue };
            served |= if self.locals[far].is_root && self.is_done(far, further.hops) {
                self.locals[far].has_adapter
            } else {
                self.climb(far, further)
            };
        }
        if !local.siblings().is_empty() {
            self.order_siblings_to_climb(at);
            for position in local.siblings() {
                let group = self.order[position] as usize;
                let Some((far, link)) = self.offer(at, group, how.hops) else { continue };
                if self.climb(far, further) {
                    served = true;
                    // As in OpenSM, routes over siblings are added to the load of the main path's group.
                    self.load_down(at, main_group, link);
                }
            }
        }
        if how.turns > 0 && !local.has_compute_node {
            for position in local.down() {
                let group = self.order[position] as usize;
                served |= self.turn(group, Climb { main: true, ..how });
            }
        }
        served
    }

    /// Climbs one rank on the main path, and continues there even if the far switch already has a shorter route.
    fn climb_main(&mut self, at: usize, group: usize, how: Climb) -> bool {
        let link = self.least_loaded(group, By::DownLoad);
        self.load_down(at, group, link);
        let far = usize::from(self.groups[group].far);
        if self.needs_route(far, how.hops) {
            self.reach(at, group, link, how.hops);
        }
        self.climb(far, Climb { hops: how.hops + 1, ..how })
    }

    /// If the far switch of a group needs a route to the target, assigns it a route over the group's least loaded link.
    /// Then returns the far switch, and the link (`None` if the group has only one link). If the switch needs no route,
    /// returns `None`.
    fn offer(&mut self, at: usize, group: usize, hops: u8) -> Option<(usize, Option<usize>)> {
        let far = usize::from(self.groups[group].far);
        self.needs_route(far, hops).then(|| {
            let link = self.least_loaded(group, By::DownLoad);
            self.reach(at, group, link, hops);
            (far, link)
        })
    }

    fn load_down(&mut self, at: usize, group: usize, link: Option<usize>) {
        self.groups[group].down_load += 1;
        if let Some(link) = link {
            self.links[link].down_load += 1;
        }
        self.locals[at].up_changed = true;
    }

    /// Returns true if the switch `far` has no route to the target, or if its route has more than `hops` + 1 hops.
    fn needs_route(&self, far: usize, hops: u8) -> bool {
        // In a walk from a dummy, the leaf has a hop count but no port, so the walk may reach the leaf again.
        self.walk.ports[far] == NO_PATH || hops + 1 < self.walk.hops[far]
    }

    /// Turns upwards at a root: climbs from each switch below the root. First advances the root's `Local::turn`. Then
    /// starts with the downward group that has the index `Local::turn`.
    fn turn_at_root(&mut self, at: usize, how: Climb) -> bool {
        let mut served = false;
        self.locals[at].advance_turn();
        let local = self.locals[at];
        let (positions, begin) = (local.down(), usize::from(local.turn));
        let split = positions.start + begin.min(positions.len());
        for position in (split..positions.end).chain(positions.start..split) {
            let group = self.order[position] as usize;
            served |= self.turn(group, how);
        }
        served
    }

    /// Turns upwards: climbs from the far switch of a downward group.
    fn turn(&mut self, group: usize, how: Climb) -> bool {
        let far = self.groups[group].far;
        if far == ADAPTER || self.turns > TURN_LIMIT {
            return false;
        }
        self.turns += 1;
        self.climb(usize::from(far), Climb { turns: how.turns - 1, hops: how.hops + 1, ..how })
    }

    /// Descends from a switch to all of its siblings and all switches below it that need a route.
    ///
    /// Returns true if some channel adapter below a visited switch now has a route to the target.
    fn descend(&mut self, at: usize, hops: u8) -> bool {
        let local = &self.locals[at];
        let (down, siblings) = (local.down(), local.siblings());
        let (family, is_root) = (usize::from(local.family), local.is_root);
        let above_ends = local.is_above_ends;
        let mut served = local.has_adapter;
        if down.is_empty() {
            return false;
        }
        let settled = hops == FARTHEST || self.walk.settled[family] <= hops;
        if !settled || self.walk.turns {
            self.order_down(at);
        }
        if !settled {
            let loaded = if above_ends && !matches!(self.walk.target, Target::Switch(_)) {
                self.descend_to_ends(down.clone(), hops)
            } else {
                let groups = down.clone().filter(|&position| {
                    self.descend_group(self.order[position] as usize, at, hops)
                });
                groups.count()
            };
            // If the loads of all groups grow by the same amount, their order does not change.
            self.locals[at].down_changed |= (1..down.len()).contains(&loaded);
            self.walk.settled[family] = hops;
            served |= loaded > 0;
        }
        if hops < FARTHEST && !siblings.is_empty() {
            self.order_siblings_to_descend(at);
            if self.walk.target != Target::Dummy {
                for position in siblings {
                    served |= self.descend_group(self.order[position] as usize, at, hops);
                }
            }
        }
        if served && is_root {
            self.locals[at].advance_turn();
        }
        served
    }

    /// Descends to the switches below a switch whose `Local::is_above_ends` is true. No order is needed, because the
    /// walk ends at each of them. Returns the number of switches that needed a route.
    fn descend_to_ends(&mut self, positions: Range<usize>, hops: u8) -> usize {
        let mut reached = 0;
        for group in &mut self.groups[positions] {
            let far = usize::from(group.far);
            if hops + 1 < self.walk.hops[far] {
                self.walk.hops[far] = hops + 1;
                self.walk.ports[far] = group.far_port;
                group.up_load += 1;
                reached += 1;
            }
        }
        reached
    }

    /// Descends over a group if its far switch needs a route. Returns true if some channel adapter below a visited
    /// switch now has a route to the target.
    fn descend_group(&mut self, group: usize, at: usize, hops: u8) -> bool {
        let below = self.below[group];
        let far = usize::from(self.groups[group].far);
        if below == Below::Adapter || hops + 1 >= self.walk.hops[far] {
            return false;
        }
        let link = self.least_loaded(group, By::UpLoad);
        self.reach(at, group, link, hops);
        let served = match below {
            Below::Further if self.is_done(far, hops + 1) => self.locals[far].has_adapter,
            Below::Further => self.descend(far, hops + 1),
            Below::Adapter | Below::Served | Below::Unserved => below == Below::Served,
        };
        // The load of a link does not grow if no channel adapter sends packets to the target over it.
        if served {
            self.groups[group].up_load += 1;
            if let Some(link) = link {
                self.links[link].up_load += 1;
            }
        }
        served
    }

    /// Assigns the far switch of a group a route over `link`, or over the group's only link if `link` is `None`.
    #[inline(always)]
    fn reach(&mut self, at: usize, group: usize, link: Option<usize>, hops: u8) {
        let Group { far, far_port, .. } = self.groups[group];
        let far = usize::from(far);
        self.walk.ports[far] = link.map_or(far_port, |link| self.links[link].far_port);
        self.walk.hops[far] = hops + 1;
        if let Target::Switch(to) = self.walk.target {
            self.note_hops(SwitchId(at as u16), group, to, hops);
        }
    }

    /// Records the hops over all links of a group, if they may differ from the base matrix (see [`super::Base`]).
    #[cold]
    fn note_hops(&mut self, at: SwitchId, group: usize, to: SwitchId, hops: u8) {
        self.walk.deviates |= self.base.is_some_and(|base| base.hops.least(to, at) != hops);
        if self.walk.deviates {
            let Group { far, links, first_link, .. } = self.groups[group];
            let links = &self.links[first_link as usize..][..usize::from(links)];
            self.deviations.extend(links.iter().map(|link| Deviation {
                at: SwitchId(far),
                to,
                port: link.far_port,
                hops: hops + 1,
            }));
        }
    }

    /// Returns true if a walk can skip a switch, because all switches below it have routes.
    #[inline]
    fn is_done(&self, at: usize, hops: u8) -> bool {
        let local = &self.locals[at];
        let settled = self.walk.settled[usize::from(local.family)] <= hops;
        settled && local.is_plain && !self.walk.turns
    }

    /// Returns the least loaded link of a group; `None` if the group has only one link.
    #[inline(always)]
    fn least_loaded(&self, group: usize, by: By) -> Option<usize> {
        let group = &self.groups[group];
        if group.links == 1 {
            return None;
        }
        let load = |link: &usize| match by {
            By::UpLoad => self.links[*link].up_load,
            By::DownLoad => self.links[*link].down_load,
        };
        let first = group.first_link as usize;
        (first..first + usize::from(group.links)).min_by_key(load)
    }
}
