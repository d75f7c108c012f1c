//! How much of its time a manager gives to administration.
//!
//! While there is no sweep, all of it, a little at a time so that what comes in is looked at. While
//! there is one, less than a tenth: every third SMP that has ended allows a microsecond of work for
//! those who ask. When SMPs do not end for a while, time itself allows more and more.

use std::time::Duration;

use ib_types::Instant;

/// How many SMPs have to end before one more microsecond is allowed. An SMP costs four and more.
const SMPS: u32 = 3;

/// What a datagram that is sent costs.
const PER_DATAGRAM: u32 = 2;

/// What may be saved up, and how long a turn is while there is no sweep.
const MOST: u32 = 2_000;

/// How long requests wait for SMPs to end before time alone allows something.
const PATIENCE: Duration = Duration::from_millis(1);

/// What the first such time allows; each further one twice as much.
const FIRST_GRANT: u32 = 20;

/// The share of administration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    saved: u32,
    /// The SMPs that have ended since something was allowed for them.
    smps: u32,
    /// What there is while there is no sweep.
    turn: u32,
    /// When time alone allows something, and what.
    next: Option<Instant>,
    grant: u32,
}

impl Pace {
    /// Takes note that an SMP has ended.
    pub(super) fn smp_ended(&mut self) {
        self.smps += 1;
        if self.smps == SMPS {
            self.smps = 0;
            self.saved = (self.saved + 1).min(MOST);
        }
        self.grant = 0;
    }

    /// Returns what may be done now, in microseconds.
    pub(super) const fn credit(&mut self, busy: bool) -> &mut u32 {
        if busy {
            &mut self.saved
        } else {
            self.turn = MOST;
            self.grant = 0;
            self.next = None;
            &mut self.turn
        }
    }

    /// Returns true when a datagram may be sent while there is a sweep.
    pub(super) const fn may_send(&self) -> bool {
        self.saved >= PER_DATAGRAM
    }

    /// Takes note that one was sent.
    pub(super) const fn sent(&mut self) {
        self.saved = self.saved.saturating_sub(PER_DATAGRAM);
    }

    /// Takes note that requests wait while there is a sweep.
    pub(super) fn ask(&mut self, now: Instant) {
        self.next.get_or_insert(now + PATIENCE);
    }

    /// Lets time allow something.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_some_and(|at| at <= now) {
            self.grant = (self.grant * 2).clamp(FIRST_GRANT, MOST);
            self.saved = (self.saved + self.grant).min(MOST);
            self.next = Some(now + PATIENCE);
        }
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}

#[cfg(test)]
mod tests;
