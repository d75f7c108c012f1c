//! How fast ports ask: what is too much is dropped.

use std::collections::HashMap;
use std::time::Duration;

use ib_types::Instant;

/// How many questions of a port are taken in a second, and how many at once.
const QUESTIONS: u32 = 1024;
const BURST: u32 = 4096;

/// How often it is told that a port asks too fast.
const TELL_FLOOD: Duration = Duration::from_secs(60);

/// Measures how fast ports ask.
#[derive(Debug, Default)]
pub(super) struct Meter {
    ports: HashMap<u16, Rate>,
}

#[derive(Debug)]
struct Rate {
    left: u32,
    filled: Instant,
    told: Option<Instant>,
}

/// What a meter says of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metered {
    Taken,
    /// It is too much, for the first time in a while.
    First,
    Dropped,
}

impl Meter {
    /// Counts a question of the port with a LID.
    pub(super) fn count(&mut self, now: Instant, lid: u16) -> Metered {
        let fresh = Rate { left: BURST, filled: now, told: None };
        let rate = self.ports.entry(lid).or_insert(fresh);
        let earned = now.since(rate.filled).as_secs_f64() * f64::from(QUESTIONS);
        if earned >= 1.0 {
            rate.left = rate.left.saturating_add(earned.min(f64::from(BURST)) as u32).min(BURST);
            rate.filled = now;
        }
        if let Some(left) = rate.left.checked_sub(1) {
            rate.left = left;
            return Metered::Taken;
        }
        if rate.told.is_some_and(|told| now.since(told) < TELL_FLOOD) {
            return Metered::Dropped;
        }
        rate.told = Some(now);
        Metered::First
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_asks_too_fast_is_slowed_down_and_others_are_not() {
        let mut meter = Meter::default();
        let now = Instant::ZERO;
        let mut taken = 0;
        while meter.count(now, 7) == Metered::Taken {
            taken += 1;
        }
        assert_eq!(taken, BURST);
        assert_eq!(meter.count(now, 7), Metered::Dropped);
        assert_eq!(meter.count(now, 8), Metered::Taken);
        let later = now + Duration::from_secs(1);
        let taken = (0..BURST).filter(|_| meter.count(later, 7) == Metered::Taken).count();
        assert_eq!(taken, QUESTIONS as usize);
    }
}
