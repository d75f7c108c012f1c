//! Which timers exist, and the table of their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Instant;

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The answer to a request.
    Answer,
    /// The acknowledgement of segments.
    Acknowledgement,
    /// The rest of a message whose first segment has come.
    Message,
    /// Late duplicates of a message that is complete.
    Linger,
}

/// The deadlines of many transfers, at most one each.
#[derive(Debug)]
pub(crate) struct Deadlines<K> {
    by_key: BTreeMap<K, (Instant, Timer)>,
    by_moment: BTreeSet<(Instant, K)>,
}

impl<K: Copy + Ord> Deadlines<K> {
    pub(crate) const fn new() -> Self {
        Self { by_key: BTreeMap::new(), by_moment: BTreeSet::new() }
    }

    /// Starts a timer in place of the one that runs for the transfer.
    pub(crate) fn set(&mut self, key: K, timer: Timer, at: Instant) {
        if let Some((before, _)) = self.by_key.insert(key, (at, timer)) {
            self.by_moment.remove(&(before, key));
        }
        self.by_moment.insert((at, key));
    }

    /// Stops the timer of a transfer.
    pub(crate) fn stop(&mut self, key: K) {
        if let Some((at, _)) = self.by_key.remove(&key) {
            self.by_moment.remove(&(at, key));
        }
    }

    /// Returns the next deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.by_moment.first().map(|&(at, _)| at)
    }

    /// Takes the earliest timer that has run out by now; of equal ones that of the lowest key.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(K, Timer)> {
        let &(at, key) = self.by_moment.first().filter(|(at, _)| *at <= now)?;
        self.by_moment.remove(&(at, key));
        let (_, timer) = self.by_key.remove(&key).expect("both tables hold the same deadlines");
        Some((key, timer))
    }
}

#[cfg(test)]
mod tests;
