//! Rate limits of requests and of new GIDs, by port.
//!
//! Ports without a request in the last minute are removed, so that the table is limited to ports with recent requests.

use std::collections::HashMap;
use std::time::Duration;

use ib_types::{Gid, Instant};

use crate::cache::Stamp;

/// Maximum number of requests of a port per second, and maximum burst.
const QUESTIONS: u32 = 1024;
const BURST: u32 = 4096;

/// Maximum number of new GIDs of a port per minute: ports with several GIDs are common.
const GIDS: u8 = 16;
const GIDS_TIME: Duration = Duration::from_mins(1);

/// Interval of reports of a port over the limit.
const TELL_FLOOD: Duration = Duration::from_secs(60);

/// Rate limiter of requests by port.
#[derive(Debug, Default)]
pub(super) struct Meter {
    ports: HashMap<u16, Rate>,
    /// Number of ports at which idle ones are removed next.
    prune_at: usize,
}

/// Number of ports up to which no port is removed.
const FEW: usize = 64;

#[derive(Debug)]
struct Rate {
    left: u16,
    /// Number of new GIDs, the time since when they are counted, and the port of the last one.
    gids: u8,
    since: Stamp,
    last: u64,
    filled: Instant,
    told: Option<Stamp>,
}

impl Rate {
    const fn new(now: Instant) -> Self {
        let since = Stamp::of(now);
        Self { left: BURST as u16, gids: 0, since, last: 0, filled: now, told: None }
    }

    /// Returns whether all of it would be the same for a port that is not known.
    fn is_as_new(&self, now: Instant) -> bool {
        let earned = now.since(self.filled).as_secs_f64() * f64::from(QUESTIONS);
        let is_full = f64::from(self.left) + earned >= f64::from(BURST);
        let has_told = self.told.is_some_and(|told| told.age(now) < TELL_FLOOD);
        is_full && !has_told && (self.gids == 0 || self.since.age(now) >= GIDS_TIME)
    }
}

/// Decision on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Metered {
    Taken,
    /// Over the limit, and not reported recently.
    First,
    Dropped,
}

impl Meter {
    /// Counts a request of the port with a LID.
    pub(super) fn count(&mut self, now: Instant, lid: u16) -> Metered {
        let rate = self.rate(now, lid);
        let earned = now.since(rate.filled).as_secs_f64() * f64::from(QUESTIONS);
        if earned >= 1.0 {
            let earned = earned.min(f64::from(BURST)) as u16;
            rate.left = rate.left.saturating_add(earned).min(BURST as u16);
            rate.filled = now;
        }
        if let Some(left) = rate.left.checked_sub(1) {
            rate.left = left;
            return Metered::Taken;
        }
        if rate.told.is_some_and(|told| told.age(now) < TELL_FLOOD) {
            return Metered::Dropped;
        }
        rate.told = Some(Stamp::of(now));
        Metered::First
    }

    fn rate(&mut self, now: Instant, lid: u16) -> &mut Rate {
        if self.ports.len() >= self.prune_at.max(FEW) {
            self.ports.retain(|_, rate| !rate.is_as_new(now));
            self.ports.shrink_to(2 * self.ports.len());
            // The next removal is due at twice the number, so that each port is checked only a few times.
            self.prune_at = 2 * self.ports.len();
        }
        self.ports.entry(lid).or_insert_with(|| Rate::new(now))
    }

    /// Returns true if the port with a LID may have another new GID.
    pub(super) fn may_have(&mut self, now: Instant, lid: u16, gid: Gid) -> bool {
        let rate = self.rate(now, lid);
        let guid = gid.guid().0;
        if rate.gids > 0 && rate.last == guid {
            return true;
        }
        if rate.since.age(now) >= GIDS_TIME {
            rate.gids = 0;
        }
        if rate.gids >= GIDS {
            return false;
        }
        if rate.gids == 0 {
            rate.since = Stamp::of(now);
        }
        (rate.gids, rate.last) = (rate.gids + 1, guid);
        true
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

    #[test]
    fn ports_without_requests_for_a_minute_are_removed() {
        let mut meter = Meter::default();
        let mut now = Instant::ZERO;
        while meter.count(now, 1) == Metered::Taken {}
        for lid in 2..=48_000 {
            now += Duration::from_millis(5);
            assert!(meter.count(now, lid) == Metered::Taken);
            assert!(meter.may_have(now, lid, Gid(lid.into())));
            // A minute has 12,000 ports.
            assert!(meter.ports.len() <= 2 * 12_001 + FEW, "{}", meter.ports.len());
        }
        // Ports of the last minute are kept.
        assert!((48_000 - 11_000..=48_000).all(|lid| meter.ports.contains_key(&lid)));
    }

    #[test]
    fn a_port_may_have_so_many_gids_in_a_minute_and_the_last_one_again() {
        let mut meter = Meter::default();
        let now = Instant::ZERO;
        let mut may_have = |now, number| meter.may_have(now, 7, Gid(number));
        assert_eq!((0..1000).filter(|&number| may_have(now, number)).count(), 16);
        assert!(may_have(now, 15) && !may_have(now, 16));
        assert!((16..32).all(|number| may_have(now + GIDS_TIME, number)));
        assert!(!may_have(now + GIDS_TIME, 0));
        assert!(meter.may_have(now, 8, Gid(0)));
        // What is noted of a port takes no more room.
        assert_eq!(size_of::<Rate>(), 32);
    }
}
