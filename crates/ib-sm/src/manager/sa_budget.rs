//! The SA's share of the SM's time.
//!
//! Without a sweep the SA may use all of the time. It works in slices of [`MAX_BUDGET`], so that
//! received packets are processed in between. During a sweep it gets less than a tenth: every third
//! completed SMP grants one microsecond. If no SMP completes for a while, a timer grants growing
//! amounts.

use std::time::Duration;

use ib_types::Instant;

/// Number of completed SMPs that grant one microsecond. An SMP takes the SM 4 µs or more.
const SMPS_PER_MICROSECOND: u32 = 3;

/// Time charged for one sent MAD, in microseconds.
const MAD_COST: u32 = 2;

/// Maximum budget during a sweep, and the length of a slice without a sweep, in microseconds.
const MAX_BUDGET: u32 = 2_000;

/// Interval of the timer grants during a sweep.
const GRANT_INTERVAL: Duration = Duration::from_millis(1);

/// First timer grant in microseconds. Each further one is twice as large until an SMP completes.
const FIRST_GRANT: u32 = 20;

/// The time budget of the SA.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SaBudget {
    saved: u32,
    /// Number of completed SMPs since the last grant.
    smps: u32,
    /// Budget of a slice without a sweep, in microseconds.
    turn: u32,
    /// Time of the next timer grant, and the size of the last one in microseconds.
    next: Option<Instant>,
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

    /// Returns true if the budget allows sending a MAD during a sweep.
    pub(super) const fn can_send(&self) -> bool {
        self.saved >= MAD_COST
    }

    /// Charges the budget for a sent MAD.
    pub(super) const fn charge_mad(&mut self) {
        self.saved = self.saved.saturating_sub(MAD_COST);
    }

    /// Starts the timer of grants if it is not running: SA requests wait during a sweep.
    pub(super) fn start_timer(&mut self, now: Instant) {
        self.next.get_or_insert(now + GRANT_INTERVAL);
    }

    /// Grants time if the timer is due.
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
