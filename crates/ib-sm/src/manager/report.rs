//! What a manager says.

use std::sync::Arc;
use std::time::Duration;

use ib_mad::RequesterCounters;
use ib_types::Instant;
use ib_wire::mad::sm::{Notice, SmState};

use crate::configuration::Written;
use crate::fault::Fault;
use crate::plan::Plan;

/// What a manager has to say.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SmEvent {
    /// Something is wrong.
    Fault(Fault),
    /// There is no plan, or none that may be written; nothing was.
    NoPlan(String),
    /// The plan is written, but something about it is dangerous.
    Warning(String),
    /// The subnet is up.
    SubnetUp(Box<SweepReport>),
    /// The manager has another state.
    State(SmState),
    /// A port has told of something.
    Trap(Box<Notice>),
}

/// How often a manager has done what since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmCounters {
    /// Heavy sweeps that have brought the subnet up.
    pub sweeps: u64,
    /// Explorations that only asked nodes which had told of changes.
    pub followed: u64,
    /// Looks for changes: light sweeps.
    pub looks: u64,
    /// How often routes were computed.
    pub routings: u64,
    /// How often the cached routes served instead.
    pub cached: u64,
    /// Traps that were taken.
    pub traps: u64,
}

/// What came of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The plan that was written.
    pub plan: Arc<Plan>,
    /// How much was written.
    pub written: Written,
    /// The number of nodes that were found.
    pub nodes: usize,
    /// How long the exploration took.
    pub discover: Duration,
    /// How long the plan took, with its check.
    pub plan_time: Duration,
    /// How long the writing took.
    pub program: Duration,
    /// SMPs that were sent.
    pub smps: u64,
    /// How many of these were repeated.
    pub retries: u64,
    /// The number of faults that were met.
    pub faults: usize,
    /// Whether the plan is one that was cached.
    pub cached: bool,
}

/// The times and counts of the sweep under way.
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
        }
    }
}
