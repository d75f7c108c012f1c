//! The reasons for the next sweep, and its time.

use std::collections::BTreeSet;
use std::time::Duration;

use ib_types::{Guid, Instant};

/// Minimum time between two full discoveries that traps of unknown ports cause.
const SEARCH_PAUSE: Duration = Duration::from_secs(1);

/// After consecutive sweeps with failed writes, the wait for the next sweep doubles at most this many times.
const MAX_DOUBLINGS: u32 = 8;

/// Reason for a discovery, if nodes have caused it by traps or change flags.
const CHANGES: &str = "nodes reported changes";

/// The reasons for the next sweep.
#[derive(Debug)]
pub(super) struct Triggers {
    /// True if a full discovery is needed; `why` holds the reason.
    is_stale: bool,
    why: Option<String>,
    /// GUIDs of nodes that have reported changes. If there are only a few, a partial discovery suffices.
    changed: BTreeSet<Guid>,
    /// True if the next sweep has to start soon. The reasons are an incomplete sweep, a trap of an unknown port, or
    /// another SM that outranks this SM and is still in a discovery.
    pub(super) is_unsettled: bool,
    /// True if the SM has repeated a discovery because of faults, and has used no discovery since. It then uses the
    /// next discovery even if that discovery has faults.
    has_repeated: bool,
    /// Time from which a trap of an unknown port starts a full discovery at once.
    search_from: Instant,
    /// Number of consecutive sweeps in which a write failed.
    incomplete_sweeps: u32,
}

impl Triggers {
    /// Returns the triggers of an SM that has just started. `why` is the reason of its first discovery.
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

    /// Requests a full discovery. If one was already requested, its reason is kept.
    pub(super) fn require_full_discovery(&mut self, why: impl Into<String>) {
        self.is_stale = true;
        self.why.get_or_insert_with(|| why.into());
    }

    /// Sets the reason that is reported for a discovery which the caller starts at once.
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

    /// Returns the nodes that have reported changes since the last call.
    pub(super) fn take_changed(&mut self) -> BTreeSet<Guid> {
        std::mem::take(&mut self.changed)
    }

    /// Records that a full discovery starts, and returns its reason.
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

    /// Requests a full discovery because of an unknown port. If a full discovery started shortly before, returns the
    /// time at which the next one may start.
    pub(super) fn search_soon(&mut self, now: Instant, why: String) -> Option<Instant> {
        if now >= self.search_from {
            self.require_full_discovery(why);
            return None;
        }
        self.is_unsettled = true;
        Some(self.search_from)
    }

    /// Returns true if a discovery with faults may be repeated. This is the case once after each call of
    /// `accept_discovery`.
    pub(super) const fn take_repeat(&mut self) -> bool {
        !std::mem::replace(&mut self.has_repeated, true)
    }

    /// Records that the result of a discovery is used. From now on, a discovery with faults may again be repeated once.
    pub(super) const fn accept_discovery(&mut self) {
        self.has_repeated = false;
    }

    /// Records the end of a sweep. A sweep is `incomplete` if a node did not respond to a write. That node may be
    /// disconnected, and the discovered subnet is then outdated.
    pub(super) const fn end_sweep(&mut self, incomplete: bool) {
        self.is_unsettled |= incomplete;
        self.incomplete_sweeps =
            if incomplete { self.incomplete_sweeps.saturating_add(1) } else { 0 };
    }

    /// Returns the time at which the next sweep is due: `interval` after `now`. If `is_unsettled`, the sweep is due
    /// after `patience` at the latest. Each consecutive incomplete sweep doubles `patience`.
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
