//! Threads that take what others leave of the processors.

use std::time::Duration;

use ib_os::scheduling::usage;

/// How much of a processor a background thread takes: all that is free, and next to nothing where others would have to
/// make room for it.
///
/// A thread of `SCHED_IDLE` still disturbs when all processors are busy: whoever has just slept for a moment finds his
/// caches cold and has to be switched to, and the processors share what is behind them. That somebody wanted
/// the processor meanwhile shows in how often the thread was switched off against its will.
pub(super) struct Modesty {
    /// The part of a processor that may be taken.
    duty: f64,
    spent: Duration,
    switched_off: i64,
}

/// What is taken at least, and at most.
const LEAST: f64 = 0.01;
const MOST: f64 = 1.0;

/// How long a pause is at most.
const LONGEST: Duration = Duration::from_millis(100);

impl Modesty {
    pub(super) fn new() -> Self {
        let (spent, switched_off) = usage();
        Self { duty: MOST, spent, switched_off }
    }

    /// Returns how long to sleep after what was done since the last call.
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
        took.mul_f64(1.0 / self.duty - 1.0).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_disturbed_takes_little_and_slowly_more_again() {
        let (mut modesty, some) = (Modesty::new(), Duration::from_micros(100));
        assert_eq!(modesty.pause_after(some, false), Duration::ZERO);
        // A quarter is left: three times as long is slept.
        assert_eq!(modesty.pause_after(some, true), some * 3);
        for _ in 0..5 {
            modesty.pause_after(some, true);
        }
        assert!((modesty.duty - LEAST).abs() < 1e-9);
        assert_eq!(modesty.pause_after(Duration::from_millis(500), true), LONGEST);
        for _ in 0..200 {
            modesty.pause_after(some, false);
        }
        assert_eq!(modesty.pause_after(some, false), Duration::ZERO);
        modesty.pause();
    }
}
