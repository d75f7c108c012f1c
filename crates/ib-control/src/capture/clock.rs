//! The clock from which captured HCAs take packet timestamps.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ib_types::Instant;

use ib_os::clock;

/// The clock of packet timestamps: the clock of the system, or that of a simulated fabric.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Instant + Send + Sync>);

impl Clock {
    /// Returns a clock that reads the system's monotonic clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(clock::now)
    }

    /// Returns a clock that any thread can read. Its time is what `now` returns.
    #[must_use]
    pub fn new(now: impl Fn() -> Instant + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the present time of the clock.
    pub(super) fn now(&self) -> Instant {
        (self.0)()
    }

    /// Returns the system time at which this clock was zero, in nanoseconds since 1970.
    pub(super) fn epoch(&self) -> u64 {
        // Reads this clock and the system time together several times, and uses the readings with the smallest
        // uncertainty. This makes the timestamps of captures by several programs comparable.
        let looks = (0..8).map(|_| {
            let before = self.now().as_nanos();
            let today = SystemTime::now().duration_since(UNIX_EPOCH);
            let today = today.map_or(0, |time| time.as_nanos() as u64);
            let took = self.now().as_nanos().saturating_sub(before);
            (took, today.saturating_sub(before + took / 2))
        });
        looks.min().map_or(0, |(_, epoch)| epoch)
    }
}
