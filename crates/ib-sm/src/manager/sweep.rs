//! Times and counts of the sweep in progress.

use std::sync::Arc;

use ib_mad::RequesterCounters;
use ib_types::Instant;

use super::event::SweepReport;
use crate::configuration::Written;
use crate::plan::Plan;

/// Times and counts of the sweep in progress, or of the last sweep.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    pub(super) started: Instant,
    pub(super) discovered: Instant,
    pub(super) planned: Instant,
    pub(super) faults: usize,
    pub(super) cached: bool,
    sent: u64,
    retries: u64,
}

impl Sweep {
    pub(super) fn start(now: Instant, counters: &RequesterCounters) -> Self {
        let RequesterCounters { sent, retries, .. } = *counters;
        Self { started: now, sent, retries, ..Self::default() }
    }

    pub(super) fn report(
        &self,
        now: Instant,
        plan: Arc<Plan>,
        written: Written,
        nodes: usize,
        counters: &RequesterCounters,
    ) -> SweepReport {
        SweepReport {
            plan,
            written,
            nodes,
            discover: self.discovered.since(self.started),
            plan_time: self.planned.since(self.discovered),
            program: now.since(self.planned),
            smps: counters.sent - self.sent,
            retries: counters.retries - self.retries,
            faults: self.faults,
            cached: self.cached,
            quality: None,
        }
    }
}
