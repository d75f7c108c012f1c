//! Incremental checks of forwarding tables, for tables that differ little from the previous ones.
//!
//! All results are sums over LIDs. For the LIDs that have changed, the checker subtracts their results with the old
//! tables and links, and adds their results with the new ones. A LID has changed if one of these is true:
//!
//! * An LFT entry for the LID has changed on any switch.
//! * An LFT entry for the LID uses a port whose far end has changed.
//! * The least hops to the LID's switch have changed.
//! * A switch did not reach the LID, or packets to the LID entered a loop. Such LIDs are always checked, because these
//!   results are listed, not only counted.

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

/// Number of adjacent LFT entries of a switch that are compared with the entries of the last check at a time.
const RUN: usize = 256;

/// Maximum number of counts in [`TurnCounts`] that the checker keeps between checks. If a subnet needs more counts,
/// every check covers all LIDs.
const MAX_COUNTS: usize = 1 << 25;

/// Checks a sequence of forwarding tables incrementally.
///
/// Each report equals the report of [`check()`]. A check is faster if the tables are similar to the previous tables, as
/// after a link failure: then only LIDs that have changed are checked. All LIDs are checked if the tables have several
/// service levels, or if the subnet has other switches or LIDs than before.
#[derive(Default)]
pub struct Checker {
    last: Option<Last>,
    checked_lids: usize,
}

/// The data of the last check: ports, links, tables and findings.
struct Last {
    ports: Vec<Port>,
    wiring: Wiring,
    graph: Graph,
    lfts: Lfts,
    level: ServiceLevel,
    found: Findings<TurnCounts>,
}

/// A port with LIDs: its base LID, the number of LIDs, and its attachment.
type Port = (u16, u16, Attachment);

impl Checker {
    /// Checks tables with the default [`CheckOptions`].
    ///
    /// Panics if the tables or the layers belong to another subnet.
    #[must_use]
    pub fn check(&mut self, subnet: &Subnet<'_>, lfts: &Lfts, layers: &Layers) -> CheckReport {
        let last = self.last.take();
        let (wiring, graph) = (Wiring::new(subnet), Graph::new(subnet));
        let level = layers.is_uniform().then(|| layers.level(SwitchId(0), SwitchId(0)));
        let level = level.filter(|_| TurnCounts::size(&wiring) <= MAX_COUNTS);
        let Some(level) = level else {
            self.checked_lids = lids(subnet);
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
                let lids = changed_lids(subnet, &old, &pass, &last.found.failing);
                self.checked_lids = lids.len();
                let (out, into) = rayon::join(|| old.run_some(&lids), || pass.run_some(&lids));
                last.found.exchange(&out, into)
            }
            None => {
                self.checked_lids = lids(subnet);
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

    /// Returns the number of LIDs that the last check had to check.
    #[must_use]
    pub const fn checked_lids(&self) -> usize {
        self.checked_lids
    }
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { last, checked_lids } = self;
        let mut shown = f.debug_struct("Checker");
        shown.field("switches", &last.as_ref().map(|last| last.wiring.switches()));
        shown.field("checked_lids", checked_lids).finish()
    }
}

impl Findings<TurnCounts> {
    /// Replaces the findings `out` of some LIDs by their new findings `into`.
    fn exchange(mut self, out: &Self, into: Self) -> Self {
        // All LIDs in `failing` were checked again. So `into` has all unreachable pairs and loops, and the old ones are
        // dropped.
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

/// Returns the LIDs to check again, in ascending order. Their LFT entries, links or distances differ between the two
/// passes, or they are in `failing`, the [`Findings::failing`] of the old pass.
fn changed_lids(
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
    let changed_distances = changed_distances(old, new);
    for port in subnet.end_ports().iter().filter(|port| !port.is_switch()) {
        let at = port.attachment.switch();
        if at.is_some_and(|at| changed_distances.binary_search(&at.0).is_ok()) {
            again[usize::from(port.base_lid.get())..][..usize::from(port.lids)].fill(true);
        }
    }
    let lids = (0..).zip(again).filter(|&(_, again)| again);
    lids.map(|(lid, _)| lid).collect()
}

/// Returns the switches with hosts whose distances to other switches with hosts have changed, in ascending order.
fn changed_distances(old: &Pass<'_, SameNumber>, new: &Pass<'_, SameNumber>) -> Vec<u16> {
    if old.tables().graph == new.tables().graph {
        return Vec::new();
    }
    let batches = new.leaves().par_chunks(super::distance::MAX_DESTINATIONS);
    let changed_distances = batches.map_init(
        || (old.distances(), new.distances()),
        |(before, after), targets| {
            old.measure(before, targets);
            new.measure(after, targets);
            let rows = (0..).zip(targets);
            let changed_distances = rows.filter(|&(row, _)| before.row(row) != after.row(row));
            changed_distances.map(|(_, &target)| target).collect::<Vec<u16>>()
        },
    );
    changed_distances.flatten().collect()
}

#[cfg(test)]
mod tests;
