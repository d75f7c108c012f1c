//! The part of the SM's time that the SA may use.
//!
//! While no sweep runs, the SA may use all of the SM's time. It works in slices of [`MAX_BUDGET`], so that the SM can
//! process received packets in between. During a sweep, the SA gets less than a tenth of the time: every third
//! completed SMP grants it one microsecond. While no SMP completes, a timer grants growing amounts of time.

use std::time::Duration;

use ib_types::Instant;

/// Number of completed SMPs that grant the SA one microsecond. The SM needs 4 µs or more for an SMP.
const SMPS_PER_MICROSECOND: u32 = 3;

/// Time in microseconds that is charged for each sent MAD.
const MAD_COST: u32 = 2;

/// Maximum granted time in microseconds that can accumulate unused during a sweep. While no sweep runs, it is the
/// length of a time slice.
const MAX_BUDGET: u32 = 2_000;

/// Interval at which the timer grants time during a sweep.
const GRANT_INTERVAL: Duration = Duration::from_millis(1);

/// First grant of the timer in microseconds. The grants double until an SMP completes.
const FIRST_GRANT: u32 = 20;

/// The time budget of the SA.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SaBudget {
    saved: u32,
    /// Number of completed SMPs for which the SA has not received time yet. Each [`SMPS_PER_MICROSECOND`] of them give
    /// the SA one microsecond.
    smps: u32,
    /// Time in microseconds that the SA may still use in the current slice, while no sweep runs.
    turn: u32,
    /// The time at which the timer next adds processing time to the budget.
    next: Option<Instant>,
    /// Last grant of the timer in microseconds. It is reset to 0 when an SMP completes, and when the sweep ends.
    grant: u32,
}

impl SaBudget {
    /// Records that an SMP has completed.
    pub(super) fn smp_completed(&mut self) {
        self.smps += 1;
        if self.smps == SMPS_PER_MICROSECOND {
            self.smps = 0;
            self.saved = (self.saved + 1).min(MAX_BUDGET);
        }
        self.grant = 0;
    }

    /// Returns the available time in microseconds. The caller subtracts the time that it uses.
    pub(super) const fn credit(&mut self, busy: bool) -> &mut u32 {
        if busy {
            &mut self.saved
        } else {
            self.turn = MAX_BUDGET;
            self.grant = 0;
            self.next = None;
            &mut self.turn
        }
    }

    /// Returns true if the time that is granted to the SA during a sweep suffices to send a MAD.
    pub(super) const fn can_send(&self) -> bool {
        self.saved >= MAD_COST
    }

    /// Charges a sent MAD to the budget.
    pub(super) const fn charge_mad(&mut self) {
        self.saved = self.saved.saturating_sub(MAD_COST);
    }

    /// Starts the grant timer, unless it is running. The timer runs while SA requests wait during a sweep.
    pub(super) fn start_timer(&mut self, now: Instant) {
        self.next.get_or_insert(now + GRANT_INTERVAL);
    }

    /// Grants processing time to the SA if the grant timer has expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_some_and(|at| at <= now) {
            self.grant = (self.grant * 2).clamp(FIRST_GRANT, MAX_BUDGET);
            self.saved = (self.saved + self.grant).min(MAX_BUDGET);
            self.next = Some(now + GRANT_INTERVAL);
        }
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}

#[cfg(test)]
mod tests;
