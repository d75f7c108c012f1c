//! The running timers of a state machine, ordered by deadline.

use std::collections::{BTreeMap, BTreeSet};

use crate::Instant;

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
