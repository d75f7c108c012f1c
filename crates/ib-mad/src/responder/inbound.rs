//! Requests in segments.

use std::collections::BTreeMap;

use ib_link::Datagram;
use ib_types::Instant;
use ib_wire::mad::Mad;
use ib_wire::mad::rmpp::RmppStatus;

use super::key::TransferKey;
use crate::Message;
use crate::rmpp::{Acknowledgement, Progress, ReceiveLimits, Receiver, control};
use crate::timers::{Deadlines, Timer};

/// The requests in segments that are coming in, and those that are complete while late duplicates may
/// come.
#[derive(Debug)]
pub(super) struct Inbound {
    limits: ReceiveLimits,
    capacity: usize,
    transfers: BTreeMap<TransferKey, Transfer>,
    deadlines: Deadlines<TransferKey>,
    /// How many bytes the requests hold.
    held: usize,
}

#[derive(Debug)]
enum Transfer {
    Receiving { receiver: Box<Receiver>, first: Box<Datagram> },
    Complete { state: Acknowledgement, reply_window: u32 },
}

/// What a segment does.
#[derive(Debug)]
pub(super) enum Taken {
    /// Nothing.
    Silent,
    /// This is to be sent.
    Reply(Mad),
    /// This is to be sent; the request is complete.
    Complete(Mad, Box<Message>),
    /// The transfer is over, and the other end is to be told why.
    Refused(RmppStatus),
}

impl Inbound {
    pub(super) const fn new(limits: ReceiveLimits, capacity: usize) -> Self {
        let transfers = BTreeMap::new();
        Self { limits, capacity, transfers, deadlines: Deadlines::new(), held: 0 }
    }

    /// Returns how many bytes the requests hold that are not complete.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// Takes a segment; `room` is how many bytes all requests may hold.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        key: TransferKey,
        datagram: &Datagram,
        room: usize,
    ) -> Taken {
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
                Taken::Reply(control::acknowledge(mad, state))
            }
            // Later segments of a request whose first one is unknown cannot have been let out.
            None if mad.rmpp().segment != 1 => Taken::Silent,
            None => self.begin(now, key, datagram, room),
        }
    }

    /// Takes the word of a requester that its window for the answer is open.
    pub(super) fn open(&mut self, key: TransferKey, window_last: u32) {
        if let Some(Transfer::Complete { reply_window, .. }) = self.transfers.get_mut(&key) {
            *reply_window = window_last.max(1);
        }
    }

    /// Returns how many segments of the answer may go out at first.
    pub(super) fn reply_window(&self, key: TransferKey) -> u32 {
        match self.transfers.get(&key) {
            Some(Transfer::Complete { reply_window, .. }) => *reply_window,
            _ => 1,
        }
    }

    /// Forgets a request that is not complete.
    pub(super) fn abort(&mut self, key: TransferKey) {
        if let Some(Transfer::Receiving { .. }) = self.transfers.get(&key) {
            self.remove(key);
        }
    }

    /// Returns the first segment of a request whose time has run out, which is forgotten.
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

    fn begin(&mut self, now: Instant, key: TransferKey, datagram: &Datagram, room: usize) -> Taken {
        let Some(mut receiver) = Receiver::new(&datagram.mad, self.limits) else {
            return Taken::Silent;
        };
        if self.transfers.len() >= self.capacity && !self.forget_one() {
            return Taken::Refused(RmppStatus::RESOURCES_EXHAUSTED);
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

    /// Does what a segment of a request that is coming in brought about.
    fn advance(&mut self, now: Instant, key: TransferKey, mad: &Mad, progress: Progress) -> Taken {
        match progress {
            Progress::Nothing => Taken::Silent,
            Progress::Acknowledge(state) => Taken::Reply(control::acknowledge(mad, state)),
            Progress::Failed(status) => {
                self.remove(key);
                Taken::Refused(status)
            }
            Progress::Complete(state) => {
                let complete = Transfer::Complete { state, reply_window: 1 };
                self.deadlines.set(key, Timer::Linger, now + self.limits.linger_time);
                match self.transfers.insert(key, complete) {
                    Some(Transfer::Receiving { mut receiver, first }) => {
                        self.held -= receiver.held();
                        Taken::Complete(
                            control::acknowledge(mad, state),
                            Box::new(Message::reassembled(*first, receiver.take_data())),
                        )
                    }
                    _ => Taken::Silent,
                }
            }
        }
    }

    /// Forgets a complete request, if there is one.
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
