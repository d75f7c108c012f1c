//! Rate limits for each source LID: number of requests, and number of new source GIDs.
//!
//! Idle ports are removed when the table grows: their state equals the state of a port that has sent no requests.

use std::collections::HashMap;
use std::time::Duration;

use ib_types::{Gid, Instant};

use crate::cache::Timestamp;

/// Maximum mean number of requests per second from a port.
const REQUESTS_PER_SECOND: u32 = 1024;
/// Maximum number of requests from a port in a burst.
const BURST: u32 = 4096;

/// Maximum number of new GIDs of a port per minute. It is above 1, because ports with several GIDs are common.
const GIDS: u8 = 16;
const GIDS_INTERVAL: Duration = Duration::from_mins(1);

/// Minimum time between two reports that the same port exceeds the limit.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Rate limiter of requests by port.
#[derive(Debug, Default)]
pub(super) struct RequestLimiter {
    ports: HashMap<u16, PortRate>,
    /// Size of the table, in ports, at which idle ports are removed. A value below [`FEW`] counts as [`FEW`].
    prune_at: usize,
}

/// Minimum number of ports in the table for the removal of idle ports.
const FEW: usize = 64;

/// State of the rate limits of a port.
#[derive(Debug)]
struct PortRate {
    /// Number of tokens in the token bucket at the time `filled`. Each admitted request takes one token.
    left: u16,
    /// Number of new GIDs since the time `since`.
    gids: u8,
    since: Timestamp,
    /// GUID part of the GID that was most recently counted as new.
    last: u64,
    filled: Instant,
    /// Time of the last report that the limit was exceeded.
    reported: Option<Timestamp>,
}

impl PortRate {
    const fn new(now: Instant) -> Self {
        let since = Timestamp::of(now);
        Self { left: BURST as u16, gids: 0, since, last: 0, filled: now, reported: None }
    }

    /// Returns true if the state equals the state of a port that has sent no requests.
    fn is_idle(&self, now: Instant) -> bool {
        let earned = now.since(self.filled).as_secs_f64() * f64::from(REQUESTS_PER_SECOND);
        let is_full = f64::from(self.left) + earned >= f64::from(BURST);
        let is_reported = self.reported.is_some_and(|reported| reported.age(now) < REPORT_INTERVAL);
        is_full && !is_reported && (self.gids == 0 || self.since.age(now) >= GIDS_INTERVAL)
    }
}

/// Decision whether a request is admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Admitted,
    /// The request exceeds the limit, and the port was not reported in the last minute: the caller has to report it.
    FirstOverLimit,
    OverLimit,
}

impl RequestLimiter {
    /// Counts a request of the port with this LID, and decides whether it is admitted.
    pub(super) fn admit(&mut self, now: Instant, lid: u16) -> Admission {
        let rate = self.rate(now, lid);
        let earned = now.since(rate.filled).as_secs_f64() * f64::from(REQUESTS_PER_SECOND);
        if earned >= 1.0 {
            let earned = earned.min(f64::from(BURST)) as u16;
            rate.left = rate.left.saturating_add(earned).min(BURST as u16);
            rate.filled = now;
        }
        if let Some(left) = rate.left.checked_sub(1) {
            rate.left = left;
            return Admission::Admitted;
        }
        if rate.reported.is_some_and(|reported| reported.age(now) < REPORT_INTERVAL) {
            return Admission::OverLimit;
        }
        rate.reported = Some(Timestamp::of(now));
        Admission::FirstOverLimit
    }

    fn rate(&mut self, now: Instant, lid: u16) -> &mut PortRate {
        if self.ports.len() >= self.prune_at.max(FEW) {
            self.ports.retain(|_, rate| !rate.is_idle(now));
            self.ports.shrink_to(2 * self.ports.len());
            // Idle ports are next removed when the number of ports has doubled. So the average cost per added port is
            // constant.
            self.prune_at = 2 * self.ports.len();
        }
        self.ports.entry(lid).or_insert_with(|| PortRate::new(now))
    }

    /// Counts a new GID of the port with this LID. Returns false if the port has too many new GIDs.
    pub(super) fn admit_gid(&mut self, now: Instant, lid: u16, gid: Gid) -> bool {
        let rate = self.rate(now, lid);
        let guid = gid.guid().0;
        if rate.gids > 0 && rate.last == guid {
            return true;
        }
        if rate.since.age(now) >= GIDS_INTERVAL {
            rate.gids = 0;
        }
        if rate.gids >= GIDS {
            return false;
        }
        if rate.gids == 0 {
            rate.since = Timestamp::of(now);
        }
        (rate.gids, rate.last) = (rate.gids + 1, guid);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_over_its_limit_does_not_affect_others() {
        let mut limiter = RequestLimiter::default();
        let now = Instant::ZERO;
        let mut taken = 0;
        while limiter.admit(now, 7) == Admission::Admitted {
            taken += 1;
        }
        assert_eq!(taken, BURST);
        assert_eq!(limiter.admit(now, 7), Admission::OverLimit);
        assert_eq!(limiter.admit(now, 8), Admission::Admitted);
        let later = now + Duration::from_secs(1);
        let taken = (0..BURST).filter(|_| limiter.admit(later, 7) == Admission::Admitted).count();
        assert_eq!(taken, REQUESTS_PER_SECOND as usize);
    }

    #[test]
    fn ports_without_requests_for_a_minute_are_removed() {
        let mut limiter = RequestLimiter::default();
        let mut now = Instant::ZERO;
        while limiter.admit(now, 1) == Admission::Admitted {}
        for lid in 2..=48_000 {
            now += Duration::from_millis(5);
            assert!(limiter.admit(now, lid) == Admission::Admitted);
            assert!(limiter.admit_gid(now, lid, Gid(lid.into())));
            // In this test, 12,000 ports send requests in a minute.
            assert!(limiter.ports.len() <= 2 * 12_001 + FEW, "{}", limiter.ports.len());
        }
        // Ports with a request in the last minute are still in the table.
        assert!((48_000 - 11_000..=48_000).all(|lid| limiter.ports.contains_key(&lid)));
    }

    #[test]
    fn new_gids_of_a_port_are_limited() {
        let mut limiter = RequestLimiter::default();
        let now = Instant::ZERO;
        let mut admit = |now, number| limiter.admit_gid(now, 7, Gid(number));
        assert_eq!((0..1000).filter(|&number| admit(now, number)).count(), 16);
        assert!(admit(now, 15) && !admit(now, 16));
        assert!((16..32).all(|number| admit(now + GIDS_INTERVAL, number)));
        assert!(!admit(now + GIDS_INTERVAL, 0));
        assert!(limiter.admit_gid(now, 8, Gid(0)));
        // The state of the rate limits takes 32 bytes per port.
        assert_eq!(size_of::<PortRate>(), 32);
    }
}
