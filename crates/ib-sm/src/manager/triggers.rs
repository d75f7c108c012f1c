//! The reasons and the time of the next sweep.

use std::collections::BTreeSet;
use std::time::Duration;

use ib_types::{Guid, Instant};

/// Minimum time between full discoveries that traps of unknown ports cause.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// Maximum number of doublings of the sweep interval if nodes keep not responding.
const MAX_DOUBLINGS: u32 = 8;

/// Reason of a discovery that nodes have caused by traps or change flags.
const CHANGES: &str = "nodes reported changes";

/// The reasons for the next sweep.
#[derive(Debug)]
pub(super) struct Triggers {
    /// True if a full discovery is needed; `why` holds the reason.
    is_stale: bool,
    why: Option<String>,
    /// GUIDs of nodes that have reported changes; if these are few, a partial discovery suffices.
    changed: BTreeSet<Guid>,
    /// True if the next sweep is due soon: a sweep was incomplete, or an SM of higher priority is starting.
    pub(super) is_unsettled: bool,
    /// True if a discovery with faults was repeated before its result was used.
    has_repeated: bool,
    /// Time from which a trap of an unknown port starts a full discovery at once.
    search_from: Instant,
    /// Number of consecutive sweeps with incomplete writes.
    incomplete_sweeps: u32,
}

impl Triggers {
    /// Returns the state at the start, with the reason of the first discovery.
    pub(super) fn new(why: &str) -> Self {
        Self {
            is_stale: false,
            why: Some(why.to_owned()),
            changed: BTreeSet::new(),
            is_unsettled: false,
            has_repeated: false,
            search_from: Instant::ZERO,
            incomplete_sweeps: 0,
        }
    }

    /// Requests a full discovery. The first reason is kept.
    pub(super) fn require_full_discovery(&mut self, why: impl Into<String>) {
        self.is_stale = true;
        self.why.get_or_insert_with(|| why.into());
    }

    /// Sets the reason of a discovery that starts at once.
    pub(super) fn set_reason(&mut self, why: &str) {
        self.why = Some(why.to_owned());
    }

    pub(super) const fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Records that a node has reported changes.
    pub(super) fn add_changed(&mut self, guid: Guid) {
        self.changed.insert(guid);
    }

    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Returns the nodes that have reported changes since this was last called.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Guid> {
        std::mem::take(&mut self.changed)
    }

    /// Records that a full discovery starts. Returns its reason.
    pub(super) fn start_discovery(&mut self, now: Instant) -> String {
        self.is_stale = false;
        self.search_from = now + SEARCH_PAUSE;
        let changed = self.take_changed();
        self.why.take().unwrap_or_else(|| {
            let why =
                if changed.is_empty() { "the discovered subnet may be outdated" } else { CHANGES };
            why.to_owned()
        })
    }

    /// Requests a full discovery because of an unknown port. If one started shortly before, returns
    /// the time at which the next may start.
    pub(super) fn search_soon(&mut self, now: Instant, why: String) -> Option<Instant> {
        if now >= self.search_from {
            self.require_full_discovery(why);
            return None;
        }
        self.is_unsettled = true;
        Some(self.search_from)
    }

    /// Returns true once if a discovery that may have missed the master has to be repeated.
    pub(super) const fn take_repeat(&mut self) -> bool {
        !std::mem::replace(&mut self.has_repeated, true)
    }

    /// Records that the result of a discovery is used.
    pub(super) const fn accept_discovery(&mut self) {
        self.has_repeated = false;
    }

    /// Records the end of a sweep. A sweep is `incomplete` if a node did not respond to a write: it
    /// may be disconnected, so that the discovered subnet is outdated.
    pub(super) const fn end_sweep(&mut self, incomplete: bool) {
        self.is_unsettled |= incomplete;
        self.incomplete_sweeps =
            if incomplete { self.incomplete_sweeps.saturating_add(1) } else { 0 };
    }

    /// Returns when the next sweep is due. Nodes that never respond are queried at growing intervals, which
    /// start with `patience`.
    pub(super) fn next_sweep(
        &self,
        now: Instant,
        interval: Option<Duration>,
        patience: Duration,
    ) -> Option<Instant> {
        let next = interval.map(|wait| now + wait);
        if !self.is_unsettled {
            return next;
        }
        let soon = now + patience * 2_u32.pow(self.incomplete_sweeps.min(MAX_DOUBLINGS));
        Some(next.map_or(soon, |at| at.min(soon)))
    }
}

#[cfg(test)]
mod tests;
