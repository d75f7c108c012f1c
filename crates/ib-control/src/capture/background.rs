//! Threads with background scheduling priority.

use std::time::Duration;

use ib_os::cpu::usage;

/// Limits the processor time of a background thread. While no other thread needs the processor, the background thread
/// may use all of it. Otherwise it may use only a small part.
///
/// Even a `SCHED_IDLE` thread slows other threads on busy processors. When another thread wakes up, it waits for a
/// context switch and finds cold caches. Processors also share caches and memory bandwidth.
///
/// A preemption of the background thread shows that another thread needs the processor. Each preemption therefore
/// reduces the fraction of a processor that the background thread may use.
pub(super) struct DutyLimit {
    /// Fraction of a processor that the thread may use.
    duty: f64,
    spent: Duration,
    switched_off: i64,
}

/// Minimum and maximum of the fraction of a processor that the thread may use.
const LEAST: f64 = 0.01;
const MOST: f64 = 1.0;

/// Maximum duration of one pause of the thread.
const MAX_PAUSE: Duration = Duration::from_millis(100);

impl DutyLimit {
    pub(super) fn new() -> Self {
        let (spent, switched_off) = usage();
        Self { duty: MOST, spent, switched_off }
    }

    /// Returns how long the thread must pause after the work that it has done since the last call.
    pub(super) fn pause(&mut self) -> Duration {
        let (spent, switched_off) = usage();
        let took = spent.saturating_sub(self.spent);
        let is_disturbed = switched_off != self.switched_off;
        (self.spent, self.switched_off) = (spent, switched_off);
        self.pause_after(took, is_disturbed)
    }

    fn pause_after(&mut self, took: Duration, is_disturbed: bool) -> Duration {
        self.duty = match is_disturbed {
            true => (self.duty / 4.0).max(LEAST),
            false => (self.duty * 1.25).min(MOST),
        };
        took.mul_f64(1.0 / self.duty - 1.0).min(MAX_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbance_reduces_the_fraction_which_recovers_slowly() {
        let (mut duty_limit, some) = (DutyLimit::new(), Duration::from_micros(100));
        assert_eq!(duty_limit.pause_after(some, false), Duration::ZERO);
        // If the thread may use a quarter of a processor, the pause is three times as long as the work.
        assert_eq!(duty_limit.pause_after(some, true), some * 3);
        for _ in 0..5 {
            duty_limit.pause_after(some, true);
        }
        assert!((duty_limit.duty - LEAST).abs() < 1e-9);
        assert_eq!(duty_limit.pause_after(Duration::from_millis(500), true), MAX_PAUSE);
        for _ in 0..200 {
            duty_limit.pause_after(some, false);
        }
        assert_eq!(duty_limit.pause_after(some, false), Duration::ZERO);
        duty_limit.pause();
    }
}
