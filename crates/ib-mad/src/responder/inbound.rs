//! Reassembly of RMPP requests.

use std::collections::BTreeMap;

use ib_link::{Datagram, Remote};
use ib_types::Instant;
use ib_wire::mad::rmpp::RmppStatus;
use ib_wire::mad::{Mad, Method, TransactionId};

use crate::Message;
use crate::rmpp::{Acknowledgement, Progress, ReceiveLimits, Receiver, control};
use crate::timers::{Deadlines, Timer};

/// RMPP requests that are being received, and complete ones whose duplicates are still
/// acknowledged.
#[derive(Debug)]
pub(super) struct Inbound {
    limits: ReceiveLimits,
    capacity: usize,
    transfers: BTreeMap<TransferKey, Transfer>,
    deadlines: Deadlines<TransferKey>,
    /// How many bytes the incomplete requests take.
    held: usize,
}

#[derive(Debug)]
enum Transfer {
    Receiving { receiver: Box<Receiver>, first: Box<Datagram> },
    Complete { state: Acknowledgement, reply_window: u32 },
}

/// The result of a received segment.
#[derive(Debug)]
pub(super) enum SegmentResult {
    /// The responder sends nothing.
    Silent,
    /// The responder sends this ACK.
    Reply(Mad),
    /// The responder sends this ACK; the request is complete.
    Complete(Mad, Box<Message>),
    /// The transfer has ended, and the responder sends STOP or ABORT with this status.
    Refused(RmppStatus),
}

impl Inbound {
    pub(super) const fn new(limits: ReceiveLimits, capacity: usize) -> Self {
        let transfers = BTreeMap::new();
        Self { limits, capacity, transfers, deadlines: Deadlines::new(), held: 0 }
    }

    /// Returns how many bytes the incomplete requests take.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Handles a segment. All incomplete requests together may take `room` bytes.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        key: TransferKey,
        datagram: &Datagram,
        room: usize,
    ) -> SegmentResult {
        let mad = &datagram.mad;
        match self.transfers.get_mut(&key) {
            Some(Transfer::Receiving { receiver, .. }) => {
                let before = receiver.held();
                let mut progress = receiver.handle(mad);
                let after = receiver.held();
                self.held = self.held - before + after;
                if after > before && self.held > room {
                    progress = Progress::Failed(RmppStatus::RESOURCES_EXHAUSTED);
                }
                self.advance(now, key, mad, progress)
            }
            Some(&mut Transfer::Complete { state, .. }) => {
                SegmentResult::Reply(control::acknowledge(mad, state))
            }
            // Segments after segment 1 are ignored: the requester may send them only after the ACK of segment 1.
            None if mad.rmpp().segment != 1 => SegmentResult::Silent,
            None => self.begin(now, key, datagram, room),
        }
    }

    /// Handles the ACK with which a requester opens the window for the response.
    pub(super) fn open(&mut self, key: TransferKey, window_last: u32) {
        if let Some(Transfer::Complete { reply_window, .. }) = self.transfers.get_mut(&key) {
            *reply_window = window_last.max(1);
        }
    }

    /// Returns the initial window of the response in segments.
    pub(super) fn reply_window(&self, key: TransferKey) -> u32 {
        match self.transfers.get(&key) {
            Some(Transfer::Complete { reply_window, .. }) => *reply_window,
            _ => 1,
        }
    }

    /// Removes an incomplete request.
    pub(super) fn abort(&mut self, key: TransferKey) {
        if let Some(Transfer::Receiving { .. }) = self.transfers.get(&key) {
            self.remove(key);
        }
    }

    /// Removes an incomplete request that has exceeded its time limit, and returns its first
    /// segment.
    pub(super) fn take_late(&mut self, now: Instant) -> Option<Datagram> {
        while let Some((key, _)) = self.deadlines.take_due(now) {
            if let Some(Transfer::Receiving { first, receiver }) = self.transfers.remove(&key) {
                self.held -= receiver.held();
                return Some(*first);
            }
        }
        None
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn begin(
        &mut self,
        now: Instant,
        key: TransferKey,
        datagram: &Datagram,
        room: usize,
    ) -> SegmentResult {
        let Some(mut receiver) = Receiver::new(&datagram.mad, self.limits) else {
            return SegmentResult::Silent;
        };
        if self.transfers.len() >= self.capacity && !self.forget_one() {
            return SegmentResult::Refused(RmppStatus::RESOURCES_EXHAUSTED);
        }
        let mut progress = receiver.handle(&datagram.mad);
        self.held += receiver.held();
        if self.held > room {
            progress = Progress::Failed(RmppStatus::RESOURCES_EXHAUSTED);
        }
        let (receiver, first) = (Box::new(receiver), Box::new(*datagram));
        self.transfers.insert(key, Transfer::Receiving { receiver, first });
        self.deadlines.set(key, Timer::Message, now + self.limits.message_time);
        self.advance(now, key, &datagram.mad, progress)
    }

    /// Converts the [`Progress`] of a request to a [`SegmentResult`] for the responder. Removes a failed request.
    fn advance(
        &mut self,
        now: Instant,
        key: TransferKey,
        mad: &Mad,
        progress: Progress,
    ) -> SegmentResult {
        match progress {
            Progress::Nothing => SegmentResult::Silent,
            Progress::Acknowledge(state) => SegmentResult::Reply(control::acknowledge(mad, state)),
            Progress::Failed(status) => {
                self.remove(key);
                SegmentResult::Refused(status)
            }
            Progress::Complete(state) => {
                let complete = Transfer::Complete { state, reply_window: 1 };
                self.deadlines.set(key, Timer::Linger, now + self.limits.linger_time);
                match self.transfers.insert(key, complete) {
                    Some(Transfer::Receiving { mut receiver, first }) => {
                        self.held -= receiver.held();
                        SegmentResult::Complete(
                            control::acknowledge(mad, state),
                            Box::new(Message::reassembled(*first, receiver.take_data())),
                        )
                    }
                    _ => SegmentResult::Silent,
                }
            }
        }
    }

    /// Removes one complete request, whose duplicates are then no longer acknowledged. Returns false if no request is
    /// complete.
    fn forget_one(&mut self) -> bool {
        let mut complete = self.transfers.iter();
        let found = complete.find(|(_, transfer)| matches!(transfer, Transfer::Complete { .. }));
        let Some((&key, _)) = found else { return false };
        self.remove(key);
        true
    }

    fn remove(&mut self, key: TransferKey) {
        if let Some(Transfer::Receiving { receiver, .. }) = self.transfers.remove(&key) {
            self.held -= receiver.held();
        }
        self.deadlines.stop(key);
    }
}

/// Identifies an RMPP transfer between the responder and a requester.
///
/// `method` lacks the response bit, so that segments and their ACKs have the same key. A request and its response have
/// the same key, except for Set, whose response has method GetResp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TransferKey {
    pub(super) transaction_id: TransactionId,
    lid: u16,
    qpn: u32,
    class: u8,
    class_version: u8,
    method: u8,
}

impl TransferKey {
    pub(super) fn of(remote: &Remote, mad: &Mad) -> Self {
        Self {
            transaction_id: mad.transaction_id(),
            lid: remote.lid,
            qpn: remote.qpn.get(),
            class: mad.class().0,
            class_version: mad.class_version(),
            method: mad.method().0 & !Method::RESPONSE_BIT,
        }
    }
}
