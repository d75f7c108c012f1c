//! Timestamps of a real or a virtual clock, and the timers of a state machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// A timestamp in nanoseconds since the start of the clock. It can represent up to 584 years.
///
/// Protocol engines take the time as a parameter and read no clock. The same engine can therefore run with a monotonic
/// clock, and in a simulation with virtual time.
///
/// ```
/// use std::time::Duration;
///
/// use ib_types::Instant;
///
/// let later = Instant::ZERO + Duration::from_micros(3);
/// assert_eq!(later - Instant::ZERO, Duration::from_nanos(3_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The start of the clock.
    pub const ZERO: Self = Self(0);
    /// A time that is never reached. It is the deadline of a stopped timer.
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the timestamp that is this many nanoseconds after the start of the clock.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the start of the clock.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time elapsed since `earlier`; zero if `earlier` is later than `self`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Adds a duration. If the sum is too large, the result is [`Instant::NEVER`].
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Instant {
    /// Writes the timestamp in seconds with nine decimal places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// A table of running timers, ordered by deadline. Each key has at most one timer.
///
/// The key `K` is the owner of a timer, such as a transaction ID; `T` is the kind of the timer.
#[derive(Clone, Debug)]
pub struct Deadlines<K, T = ()> {
    by_key: BTreeMap<K, (Instant, T)>,
    by_time: BTreeSet<(Instant, K)>,
}

impl<K, T> Default for Deadlines<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, T> Deadlines<K, T> {
    /// Creates an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, T> Deadlines<K, T> {
    /// Starts a timer. If the key has a running timer already, replaces it.
    pub fn set(&mut self, key: K, timer: T, at: Instant) {
        if let Some((before, _)) = self.by_key.insert(key, (at, timer)) {
            self.by_time.remove(&(before, key));
        }
        self.by_time.insert((at, key));
    }

    /// Stops the timer of a key. If the key has no running timer, does nothing.
    pub fn stop(&mut self, key: K) {
        if let Some((at, _)) = self.by_key.remove(&key) {
            self.by_time.remove(&(at, key));
        }
    }

    /// Returns the deadline of a key's timer; `None` if the key has no running timer.
    #[must_use]
    pub fn get(&self, key: K) -> Option<Instant> {
        self.by_key.get(&key).map(|&(at, _)| at)
    }

    /// Returns the earliest deadline; `None` if no timer is running.
    #[must_use]
    pub fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Removes and returns the timer with the earliest deadline, if this is at or before `now`.
    ///
    /// If several timers have the same deadline, the one with the lowest key is returned.
    pub fn take_due(&mut self, now: Instant) -> Option<(K, T)> {
        let &(at, key) = self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.by_time.remove(&(at, key));
        let (_, timer) = self.by_key.remove(&key).expect("both tables hold the same deadlines");
        Some((key, timer))
    }
}

#[cfg(test)]
mod tests;
