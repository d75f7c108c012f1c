//! Which timers exist, and the table of their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use ib_types::Instant;

use super::{ConnectionId, SidrId, SidrRequestId};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The peer's answer to a message.
    Response,
    /// The consumer's answer to an event.
    Consumer,
    /// The last packets of what has ended.
    TimeWait,
}

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Connection(ConnectionId),
    Asked(SidrId),
    Served(SidrRequestId),
}

/// The deadlines, at most one of each key.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_key: BTreeMap<Key, (Instant, Timer)>,
    by_moment: BTreeSet<(Instant, Key)>,
}

impl Deadlines {
    /// Starts a timer in place of the one that runs under the key.
    pub(super) fn set(&mut self, key: Key, timer: Timer, at: Instant) {
        if let Some((before, _)) = self.by_key.insert(key, (at, timer)) {
            self.by_moment.remove(&(before, key));
        }
        self.by_moment.insert((at, key));
    }

    /// Stops the timer of a key.
    pub(super) fn stop(&mut self, key: Key) {
        if let Some((at, _)) = self.by_key.remove(&key) {
            self.by_moment.remove(&(at, key));
        }
    }

    /// Returns the deadline of a key.
    pub(super) fn get(&self, key: Key) -> Option<Instant> {
        self.by_key.get(&key).map(|&(at, _)| at)
    }

    /// Returns the next deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_moment.first().map(|&(at, _)| at)
    }

    /// Takes the earliest timer that has run out by now; of equal ones that of the lowest key.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<(Key, Timer)> {
        let &(at, key) = self.by_moment.first().filter(|(at, _)| *at <= now)?;
        self.by_moment.remove(&(at, key));
        let (_, timer) = self.by_key.remove(&key).expect("both tables hold the same deadlines");
        Some((key, timer))
    }
}
