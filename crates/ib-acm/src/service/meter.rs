//! How fast ports ask, and how many GIDs they have: what is too much is dropped.

use std::collections::HashMap;
use std::time::Duration;

use ib_types::{Gid, Instant};

use crate::cache::Stamp;

/// How many questions of a port are taken in a second, and how many at once.
const QUESTIONS: u32 = 1024;
const BURST: u32 = 4096;

/// How many GIDs a port may turn out to have in a minute: one that has several of them is no rarity.
const GIDS: u8 = 16;
const GIDS_TIME: Duration = Duration::from_mins(1);

/// How often it is told that a port asks too fast.
const TELL_FLOOD: Duration = Duration::from_secs(60);

/// Measures how fast ports ask.
#[derive(Debug, Default)]
pub(super) struct Meter {
    ports: HashMap<u16, Rate>,
}

#[derive(Debug)]
struct Rate {
    left: u16,
    /// How many GIDs were new since when, and the last one's port.
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
        let rate = self.ports.entry(lid).or_insert_with(|| Rate::new(now));
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

    /// Returns whether the port with a LID may have a GID that is not known.
    pub(super) fn may_have(&mut self, now: Instant, lid: u16, gid: Gid) -> bool {
        let rate = self.ports.entry(lid).or_insert_with(|| Rate::new(now));
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
