//! Helpers of random runs: random client configurations and link faults, violated invariants, and counts of events.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use ib_rtrs::{ClientConfig, Policy};

use crate::wire::{Link, Rng};

/// Returns a client configuration with a random policy, number of connections, key invalidation, reconnect delay and
/// request timeout.
pub(crate) fn random_client(rng: &mut Rng, rest: ClientConfig) -> ClientConfig {
    ClientConfig {
        connections: 1 + rng.below(3) as u16,
        policy: [Policy::RoundRobin, Policy::MinInflight, Policy::MinLatency]
            [rng.below(3) as usize],
        need_invalidation: rng.chance(0.3),
        reconnect_delay: Duration::from_millis(200 + rng.below(2_000)),
        io_timeout: Some(Duration::from_secs(2 + rng.below(10))),
        ..rest
    }
}

/// Sets random probabilities of loss, duplication and delay on a link.
pub(crate) fn disturb(link: &mut Link, rng: &mut Rng) {
    link.loss = [0.0, 0.001, 0.03][rng.below(3) as usize];
    link.double = [0.0, 0.01][rng.below(2) as usize];
    link.late = [0.0, 0.02][rng.below(2) as usize];
}

/// Returns the number in an environment variable, or the default if there is none.
pub(crate) fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A violated invariant.
#[derive(Debug)]
pub(crate) enum Violation {
    /// A block contains data older than the last confirmed write, or parts of several writes.
    Stale(String),
    /// Another violation.
    Other(String),
}

impl Violation {
    pub(crate) const fn is_stale(&self) -> bool {
        matches!(self, Self::Stale(_))
    }

    /// Adds the location of the violation in front of the message.
    pub(crate) fn of(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Stale(why) => Self::Stale(format!("{place} {why}")),
            Self::Other(why) => Self::Other(format!("{place} {why}")),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Stale(why) | Self::Other(why)) = self;
        f.write_str(why)
    }
}

impl From<String> for Violation {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// Counts of events in one or more runs. They show that the injected faults have had effects.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) failed_over: u64,
    pub(crate) lost: u64,
    pub(crate) fenced: u64,
    pub(crate) unknown: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, run: Self) {
        self.failed_over += run.failed_over;
        self.lost += run.lost;
        self.fenced += run.fenced;
        self.unknown += run.unknown;
    }
}
