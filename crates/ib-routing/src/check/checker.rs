//! The check of tables that differ little from the last ones.
//!
//! What is counted is a sum over LIDs. So the counts of the LIDs for which something has changed are
//! taken out, by a pass over the old tables and links, and those of a pass over the new ones put in.
//! For a LID something has changed when
//!
//! * an entry of any switch has,
//! * an entry names a port that leads somewhere else,
//! * the least hops to the switch that it is at have,
//! * there was something to say of it: faults are named, not only counted.

use rayon::prelude::*;

use super::dependency::{TurnCounts, Turns};
use super::pass::{Findings, Pass, Tables};
use super::vls::SameNumber;
use super::wiring::Wiring;
use super::{CheckOptions, CheckReport, CreditLoops, LinkLoad, Scope, check};
use crate::hops::Graph;
use crate::layers::Layers;
use crate::lft::Lfts;
use crate::subnet::{Attachment, EndPort, Subnet, SwitchId};
use ib_types::ServiceLevel;

/// How many entries are compared at a time.
const RUN: usize = 256;

/// The most counts that are kept.
const MOST_COUNTS: usize = 1 << 25;

/// Checks one set of tables after the other.
///
/// Each report is what [`check()`] says of the tables by themselves. It takes less time when they are
/// like the last ones, as they are when a link has failed: only the LIDs for which something has
/// changed are looked at. Tables on more than one service level, and those of a subnet with other
/// switches or LIDs than the last one, are checked as a whole.
#[derive(Default)]
pub struct Checker {
    last: Option<Last>,
    looked_at: usize,
}

/// What was checked last.
struct Last {
    ports: Vec<Port>,
    wiring: Wiring,
    graph: Graph,
    lfts: Lfts,
    level: ServiceLevel,
    found: Findings<TurnCounts>,
}

/// A port with LIDs: the first one, how many, and where it is.
type Port = (u16, u16, Attachment);

impl Checker {
    /// Checks tables, with the default of [`CheckOptions`].
    ///
    /// # Panics
    /// Panics when the tables or the layers are those of another subnet.
    #[must_use]
    pub fn check(&mut self, subnet: &Subnet<'_>, lfts: &Lfts, layers: &Layers) -> CheckReport {
        let last = self.last.take();
        let (wiring, graph) = (Wiring::new(subnet), Graph::new(subnet));
        let level = layers.is_uniform().then(|| layers.level(SwitchId(0), SwitchId(0)));
        let level = level.filter(|_| TurnCounts::size(&wiring) <= MOST_COUNTS);
        let Some(level) = level else {
            self.looked_at = lids(subnet);
            return check(subnet, lfts, layers);
        };
        let options = CheckOptions::default();
        let (scope, samples): (Scope, usize) = (options.scope, options.samples);
        let tables = Tables { lfts, layers, wiring: &wiring, graph: &graph, unknown: None };
        let pass = Pass::new(subnet, tables, SameNumber, scope, samples);
        let ports: Vec<Port> = subnet.end_ports().iter().map(port).collect();
        let last = last.filter(|last| {
            last.level == level
                && last.ports == ports
                && last.wiring.offsets() == wiring.offsets()
                && last.lfts.max_lid() == lfts.max_lid()
        });
        let found = match last {
            Some(last) => {
                let old = Tables {
                    lfts: &last.lfts,
                    wiring: &last.wiring,
                    graph: &last.graph,
                    layers,
                    unknown: None,
                };
                let old = Pass::new(subnet, old, SameNumber, scope, samples);
                let lids = changed(subnet, &old, &pass, &last.found.failing);
                self.looked_at = lids.len();
                let (out, into) = rayon::join(|| old.run_some(&lids), || pass.run_some(&lids));
                last.found.exchange(&out, into)
            }
            None => {
                self.looked_at = lids(subnet);
                pass.run()
            }
        };
        let turns: Turns = found.turns.turns(&wiring, level.get());
        let report = CheckReport {
            credit: CreditLoops::find(&wiring, &turns, samples),
            load: LinkLoad::new(&wiring, found.routes.clone(), samples),
            reach: found.reach.clone(),
            hops: found.hops.clone().stats(),
        };
        self.last = Some(Last { ports, wiring, graph, lfts: lfts.clone(), level, found });
        report
    }

    /// Returns how many LIDs the last check looked at.
    #[must_use]
    pub const fn looked_at(&self) -> usize {
        self.looked_at
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { last, looked_at } = self;
        let mut shown = f.debug_struct("Checker");
        shown.field("switches", &last.as_ref().map(|last| last.wiring.switches()));
        shown.field("looked_at", looked_at).finish()
    }
}

impl Findings<TurnCounts> {
    /// Takes what was found for some LIDs out and puts something else in.
    fn exchange(mut self, out: &Self, into: Self) -> Self {
        // All LIDs of which there was something to say were looked at again.
        let lids = self.reach.lids;
        (self.reach, self.failing) = (into.reach, into.failing);
        self.reach.lids = lids;
        self.hops.exchange(&out.hops, &into.hops);
        self.turns.exchange(&out.turns, &into.turns);
        for (count, (out, into)) in self.routes.iter_mut().zip(out.routes.iter().zip(&into.routes))
        {
            *count = *count - out + into;
        }
        self
    }
}

fn port(port: &EndPort) -> Port {
    (port.base_lid.get(), port.lids, port.attachment)
}

/// Returns the number of LIDs of a subnet.
fn lids(subnet: &Subnet<'_>) -> usize {
    subnet.end_ports().iter().map(|port| usize::from(port.lids)).sum()
}

/// Returns the LIDs for which something has changed from one pass to another, or of which there was
/// something to say, ascending.
fn changed(
    subnet: &Subnet<'_>,
    old: &Pass<'_, SameNumber>,
    new: &Pass<'_, SameNumber>,
    failing: &[u16],
) -> Vec<u16> {
    let mut again = vec![false; usize::from(subnet.max_lid()) + 1];
    for &lid in failing {
        again[usize::from(lid)] = true;
    }
    let (olds, news) = (old.tables(), new.tables());
    for id in subnet.switch_ids() {
        let (old, new) = (olds.lfts.table(id), news.lfts.table(id));
        let runs = again.chunks_mut(RUN).zip(old.chunks(RUN).zip(new.chunks(RUN)));
        for (again, (old, new)) in runs.filter(|(_, (old, new))| old != new) {
            for (again, (old, new)) in again.iter_mut().zip(old.iter().zip(new)) {
                *again |= old != new;
            }
        }
        for port in news.wiring.differing(olds.wiring, id) {
            for (again, (&old, &new)) in again.iter_mut().zip(old.iter().zip(new)) {
                *again |= old == port || new == port;
            }
        }
    }
    let moved = moved(old, new);
    for port in subnet.end_ports().iter().filter(|port| !port.is_switch()) {
        let at = port.attachment.switch();
        if at.is_some_and(|at| moved.binary_search(&at.0).is_ok()) {
            again[usize::from(port.base_lid.get())..][..usize::from(port.lids)].fill(true);
        }
    }
    let lids = (0..).zip(again).filter(|&(_, again)| again);
    lids.map(|(lid, _)| lid).collect()
}

/// Returns the switches with hosts that are not as far from the others as before, ascending.
fn moved(old: &Pass<'_, SameNumber>, new: &Pass<'_, SameNumber>) -> Vec<u16> {
    if old.tables().graph == new.tables().graph {
        return Vec::new();
    }
    let batches = new.leaves().par_chunks(super::distance::MAX_DESTINATIONS);
    let moved = batches.map_init(
        || (old.distances(), new.distances()),
        |(before, after), targets| {
            old.measure(before, targets);
            new.measure(after, targets);
            let rows = (0..).zip(targets);
            let moved = rows.filter(|&(row, _)| before.row(row) != after.row(row));
            moved.map(|(_, &target)| target).collect::<Vec<u16>>()
        },
    );
    moved.flatten().collect()
}

#[cfg(test)]
mod tests;
