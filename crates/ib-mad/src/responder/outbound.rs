//! RMPP responses being sent.

use std::collections::{BTreeMap, VecDeque};

use ib_link::{Datagram, Remote};
use ib_types::{Instant, Qpn};
use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::RmppStatus;

use super::inbound::TransferKey;
use crate::replies::outgoing;
use crate::rmpp::{Acknowledged, MAX_ACKNOWLEDGEMENT_TIME, Sender, control};
use crate::timers::{Deadlines, Timer};
use crate::{Failure, RespondError, Timing};

/// The RMPP responses being sent, one segment of each in turn.
#[derive(Debug)]
pub(super) struct Outbound {
    timing: Timing,
    capacity: usize,
    transfers: BTreeMap<TransferKey, Transfer>,
    ready: VecDeque<TransferKey>,
    deadlines: Deadlines<TransferKey>,
    /// How many bytes of data the responses contain.
    held: usize,
}

#[derive(Debug)]
struct Transfer {
    remote: Remote,
    local_qpn: Qpn,
    sender: Sender,
    retries_left: u32,
    listed: bool,
    /// True if the link has lost a segment since the last retransmission.
    lost: bool,
    started: Option<Instant>,
}

/// The result of a received ACK.
#[derive(Debug)]
pub(super) enum AckResult {
    /// Some segments of the response are not acknowledged yet, or there is no such response.
    Pending,
    /// All segments of the response are acknowledged.
    Delivered(Remote),
    /// The ACK violates the protocol.
    Violation(Remote, RmppStatus),
}

/// The result of an expired timer.
#[derive(Debug)]
pub(super) enum Expired {
    /// Unacknowledged segments are retransmitted.
    Retransmit,
    /// No retry is left, so the response has failed.
    Failed {
        /// The key of the failed response. The caller must remove this response.
        key: TransferKey,
        /// The reason why the response has failed.
        failure: Failure,
        /// The ABORT to send to the requester.
        abort: Box<Datagram>,
    },
}

impl Outbound {
    pub(super) const fn new(timing: Timing, capacity: usize) -> Self {
        let transfers = BTreeMap::new();
        let ready = VecDeque::new();
        Self { timing, capacity, transfers, ready, deadlines: Deadlines::new(), held: 0 }
    }

    /// Returns how many bytes of data the responses contain.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Starts sending a response. Fails if its data takes more than `free` bytes.
    pub(super) fn start(
        &mut self,
        key: TransferKey,
        request: &Datagram,
        header: &Mad,
        data: Vec<u8>,
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

    /// Returns the next segment to send. The responses that have a segment to send take turns.
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

    /// Handles a requester's ACK of segments of a response.
    pub(super) fn handle(&mut self, now: Instant, key: TransferKey, mad: &Mad) -> AckResult {
        let Some(transfer) = self.transfers.get_mut(&key) else { return AckResult::Pending };
        match transfer.sender.handle(&mad.rmpp()) {
            Acknowledged::Nothing => {
                self.list(key);
                AckResult::Pending
            }
            Acknowledged::Progress => {
                transfer.retries_left = self.timing.retries;
                if !transfer.lost {
                    let at = now + self.timing.wait(0).min(MAX_ACKNOWLEDGEMENT_TIME);
                    self.deadlines.set(key, Timer::Acknowledgement, at);
                }
                self.list(key);
                AckResult::Pending
            }
            Acknowledged::Complete => {
                let remote = transfer.remote;
                self.remove(key);
                AckResult::Delivered(remote)
            }
            Acknowledged::Failed(status) => AckResult::Violation(transfer.remote, status),
        }
    }

    /// Handles the loss of a segment: sets the ACK timer of the response to `now`, so that the timer expires. Returns
    /// false if the segment is not outstanding.
    pub(super) fn handle_lost(&mut self, now: Instant, key: TransferKey, segment: u32) -> bool {
        let Some(transfer) = self.transfers.get_mut(&key) else { return false };
        let waits = transfer.sender.waits_for(segment);
        if waits {
            transfer.lost = true;
            self.deadlines.set(key, Timer::Acknowledgement, now);
        }
        waits
    }

    /// Handles the next expired timer.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Expired> {
        while let Some((key, _)) = self.deadlines.take_due(now) {
            let Some(transfer) = self.transfers.get_mut(&key) else { continue };
            let lost = std::mem::take(&mut transfer.lost);
            if transfer.retries_left > 0 {
                transfer.retries_left -= 1;
                transfer.sender.rewind();
                self.list(key);
                return Some(Expired::Retransmit);
            }
            let attempts = self.timing.retries.saturating_add(1);
            let waited = now.since(transfer.started.unwrap_or(now));
            let mad = control::end(transfer.sender.header(), RmppStatus::TOO_MANY_RETRIES);
            let failure = if lost {
                Failure::Lost { attempts }
            } else {
                Failure::TimedOut { attempts, waited }
            };
            return Some(Expired::Failed { key, failure, abort: Box::new(transfer.datagram(mad)) });
        }
        None
    }

    /// Removes a response, and returns the address of its requester.
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

    /// Adds a response to the queue `ready` if one of its segments can be sent now.
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
