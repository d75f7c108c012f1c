//! Responses in segments.

use std::collections::{BTreeMap, VecDeque};

use ib_link::{Datagram, Remote};
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::RmppStatus;

use super::key::TransferKey;
use crate::replies::outgoing;
use crate::rmpp::{Acknowledged, MAX_ACKNOWLEDGEMENT_TIME, Sender, control};
use crate::timers::{Deadlines, Timer};
use crate::{Failure, RespondError, Timing};

/// The responses in segments that are going out, served in turns.
#[derive(Debug)]
pub(super) struct Outbound {
    timing: Timing,
    capacity: usize,
    transfers: BTreeMap<TransferKey, Transfer>,
    ready: VecDeque<TransferKey>,
    deadlines: Deadlines<TransferKey>,
    /// How many bytes the responses hold.
    held: usize,
}

#[derive(Debug)]
struct Transfer {
    remote: Remote,
    local_qpn: Qpn,
    sender: Sender,
    retries_left: u32,
    listed: bool,
    /// Whether the link has lost some of what was sent last.
    lost: bool,
    started: Option<Instant>,
}

/// What an acknowledgement does.
#[derive(Debug)]
pub(super) enum Heard {
    /// Nothing to tell.
    Nothing,
    /// All has arrived there.
    Delivered(Remote),
    /// It breaks the rules in this way.
    Broken(Remote, RmppStatus),
}

/// What a timer that has run out does.
#[derive(Debug)]
pub(super) enum Due {
    /// Segments are sent again.
    Again,
    /// No retries are left.
    GaveUp {
        /// Which response; it is still there.
        key: TransferKey,
        /// Why.
        failure: Failure,
        /// What to tell the other end.
        abort: Box<Datagram>,
    },
}

impl Outbound {
    pub(super) const fn new(timing: Timing, capacity: usize) -> Self {
        let transfers = BTreeMap::new();
        let ready = VecDeque::new();
        Self { timing, capacity, transfers, ready, deadlines: Deadlines::new(), held: 0 }
    }

    /// Returns how many bytes the responses hold.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Takes a response for which so many bytes are free.
    pub(super) fn start(
        &mut self,
        key: TransferKey,
        request: &Datagram,
        (header, data): (&Mad, Vec<u8>),
        window_last: u32,
        free: usize,
    ) -> Result<(), RespondError> {
        let transfers = self.transfers.len();
        if self.transfers.contains_key(&key) {
            return Err(RespondError::UnderWay);
        }
        if transfers >= self.capacity {
            return Err(RespondError::TooMany { transfers });
        }
        let (class, length) = (header.class(), data.len());
        let sender = Sender::new(header, data, window_last)
            .ok_or(RespondError::NoMessage { class, length })?;
        if length > free {
            return Err(RespondError::NoRoom { length, free });
        }
        self.held += length;
        let transfer = Transfer {
            remote: request.remote,
            local_qpn: request.local_qpn,
            sender,
            retries_left: self.timing.retries,
            listed: true,
            lost: false,
            started: None,
        };
        self.transfers.insert(key, transfer);
        self.ready.push_back(key);
        Ok(())
    }

    /// Returns the next segment; those of several responses take turns.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<Datagram> {
        while let Some(key) = self.ready.pop_front() {
            let Some(transfer) = self.transfers.get_mut(&key) else { continue };
            transfer.listed = false;
            let Some(mad) = transfer.sender.next_segment() else { continue };
            transfer.started.get_or_insert(now);
            if !transfer.lost {
                let wait = self.timing.wait(self.timing.retries - transfer.retries_left);
                let at = now + wait.min(MAX_ACKNOWLEDGEMENT_TIME);
                self.deadlines.set(key, Timer::Acknowledgement, at);
            }
            let datagram = transfer.datagram(mad);
            self.list(key);
            return Some(datagram);
        }
        None
    }

    /// Takes an acknowledgement.
    pub(super) fn handle(&mut self, now: Instant, key: TransferKey, mad: &Mad) -> Heard {
        let Some(transfer) = self.transfers.get_mut(&key) else { return Heard::Nothing };
        match transfer.sender.handle(&mad.rmpp()) {
            Acknowledged::Nothing => {
                self.list(key);
                Heard::Nothing
            }
            Acknowledged::Progress => {
                transfer.retries_left = self.timing.retries;
                if !transfer.lost {
                    let at = now + self.timing.wait(0).min(MAX_ACKNOWLEDGEMENT_TIME);
                    self.deadlines.set(key, Timer::Acknowledgement, at);
                }
                self.list(key);
                Heard::Nothing
            }
            Acknowledged::Complete => {
                let remote = transfer.remote;
                self.remove(key);
                Heard::Delivered(remote)
            }
            Acknowledged::Failed(status) => Heard::Broken(transfer.remote, status),
        }
    }

    /// Takes the news that a segment is lost; returns false when none such waits for its
    /// acknowledgement. Nobody will acknowledge it, so its time is over now.
    pub(super) fn handle_lost(&mut self, now: Instant, key: TransferKey, segment: u32) -> bool {
        let Some(transfer) = self.transfers.get_mut(&key) else { return false };
        let waits = transfer.sender.waits_for(segment);
        if waits {
            transfer.lost = true;
            self.deadlines.set(key, Timer::Acknowledgement, now);
        }
        waits
    }

    /// Takes the next timer that has run out.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Due> {
        while let Some((key, _)) = self.deadlines.take_due(now) {
            let Some(transfer) = self.transfers.get_mut(&key) else { continue };
            let lost = std::mem::take(&mut transfer.lost);
            if transfer.retries_left > 0 {
                transfer.retries_left -= 1;
                transfer.sender.rewind();
                self.list(key);
                return Some(Due::Again);
            }
            let attempts = self.timing.retries.saturating_add(1);
            let waited = now.since(transfer.started.unwrap_or(now));
            let mad = control::end(transfer.sender.header(), RmppStatus::TOO_MANY_RETRIES);
            let failure = if lost {
                Failure::Lost { attempts }
            } else {
                Failure::TimedOut { attempts, waited }
            };
            return Some(Due::GaveUp { key, failure, abort: Box::new(transfer.datagram(mad)) });
        }
        None
    }

    /// Forgets a response and returns who was to get it.
    pub(super) fn remove(&mut self, key: TransferKey) -> Option<Remote> {
        self.deadlines.stop(key);
        self.transfers.remove(&key).map(|transfer| {
            self.held -= transfer.sender.length();
            transfer.remote
        })
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    pub(super) fn len(&self) -> usize {
        self.transfers.len()
    }

    /// Gives a response its turn when it has something to send.
    fn list(&mut self, key: TransferKey) {
        let Some(transfer) = self.transfers.get_mut(&key) else { return };
        if !transfer.listed && transfer.sender.can_send() {
            transfer.listed = true;
            self.ready.push_back(key);
        }
    }
}

impl Transfer {
    fn datagram(&self, mad: Mad) -> Datagram {
        Datagram { local_qpn: self.local_qpn, ..outgoing(self.remote, mad) }
    }
}
