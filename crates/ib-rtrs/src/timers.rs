//! The table of deadlines.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Instant;

/// Deadlines, at most one of each key.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    by_key: BTreeMap<K, Instant>,
    by_moment: BTreeSet<(Instant, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), by_moment: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    /// Sets a deadline in place of the one of the same key.
    pub(crate) fn set(&mut self, key: K, at: Instant) {
        if let Some(before) = self.by_key.insert(key, at) {
            self.by_moment.remove(&(before, key));
        }
        self.by_moment.insert((at, key));
    }

    /// Forgets a deadline.
    pub(crate) fn stop(&mut self, key: K) {
        if let Some(at) = self.by_key.remove(&key) {
            self.by_moment.remove(&(at, key));
        }
    }

    /// Returns the next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_moment.first().map(|&(at, _)| at)
    }

    /// Takes the earliest deadline that has come; of equal ones the lowest key.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<K> {
        let &(at, key) = self.by_moment.first().filter(|(at, _)| *at <= now)?;
        self.by_moment.remove(&(at, key));
        self.by_key.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests;
