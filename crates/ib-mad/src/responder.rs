//! The side that is asked.
//!
//! | module | holds |
//! |---|---|
//! | `responder` | what comes in and goes out |
//! | `inbound` | requests in segments, coming in and lingering |
//! | `outbound` | responses in segments, going out |

use std::collections::VecDeque;

use ib_link::{Datagram, Incoming, Remote};
use ib_types::Instant;
use ib_wire::mad::rmpp::RmppStatus;
use ib_wire::mad::{Mad, TransactionId};

use crate::replies::{Replies, outgoing};
use crate::rmpp::{Kind, MAX_HELD, ReceiveLimits, classify, control};
use crate::{Failure, Message, RespondError, Timing};

mod inbound;
mod key;
mod outbound;

use inbound::Inbound;
use key::TransferKey;
use outbound::Outbound;

/// How a responder works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponderConfig {
    /// How long segments wait for an acknowledgement, at most 2 s, and how often they are sent again
    /// without one. Any progress gives all retries back.
    pub timing: Timing,
    /// How many responses in segments may be under way, and as many requests.
    pub max_transfers: usize,
    /// How many requests may wait for [`Responder::poll_event`]; more are dropped, as by a full
    /// receive queue.
    pub max_waiting: usize,
    /// What requests in several segments may use, each.
    pub receive: ReceiveLimits,
    /// How many bytes all messages of several segments may hold together: requests that come in or
    /// wait for [`Responder::poll_event`], and responses that go out. Requests beyond that are
    /// stopped for want of resources.
    pub max_bytes: usize,
}

impl Default for ResponderConfig {
    /// One second, three retries, 1024 transfers, 4096 requests, 256 MiB.
    fn default() -> Self {
        Self {
            timing: Timing::default(),
            max_transfers: 1024,
            max_waiting: 4096,
            receive: ReceiveLimits::default(),
            max_bytes: MAX_HELD,
        }
    }
}

/// What a responder has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are requests of one datagram")]
pub enum ResponderEvent {
    /// A request has arrived whole. The same one may come again when its response is slow or lost.
    Request(Message),
    /// A response in segments has arrived whole.
    Delivered {
        /// Who got it.
        remote: Remote,
        /// Its transaction.
        transaction_id: TransactionId,
    },
    /// A response in segments has not arrived.
    Failed {
        /// Who was to get it.
        remote: Remote,
        /// Its transaction.
        transaction_id: TransactionId,
        /// Why not.
        failure: Failure,
    },
}

/// What a responder has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounters {
    /// Datagrams handed out, acknowledgements included.
    pub sent: u64,
    /// Requests handed to the owner.
    pub requests: u64,
    /// Requests dropped because too many wait.
    pub dropped: u64,
    /// Requests in segments that this end gave up: rules broken, too long, too slow, too many.
    pub aborted: u64,
    /// Segments that were sent again, counted by rounds.
    pub retries: u64,
    /// Segments that the link said are lost.
    pub lost: u64,
}

/// Receives requests and sends responses of any length.
///
/// Owned like a [`Requester`](crate::Requester): [`Responder::handle`],
/// [`Responder::handle_timeout`], [`Responder::poll_transmit`], [`Responder::poll_event`],
/// [`Responder::poll_timeout`]. Memory stays bounded whatever arrives, by [`ResponderConfig`].
#[derive(Debug)]
pub struct Responder {
    config: ResponderConfig,
    inbound: Inbound,
    outbound: Outbound,
    replies: Replies,
    answers: VecDeque<Datagram>,
    requests: VecDeque<Message>,
    /// How many bytes the requests hold that wait.
    waiting: usize,
    ends: VecDeque<ResponderEvent>,
    counters: ResponderCounters,
}

impl Responder {
    /// Returns a responder that has heard nothing.
    #[must_use]
    pub fn new(config: ResponderConfig) -> Self {
        Self {
            config,
            inbound: Inbound::new(config.receive, config.max_transfers),
            outbound: Outbound::new(config.timing, config.max_transfers),
            replies: Replies::default(),
            answers: VecDeque::new(),
            requests: VecDeque::new(),
            waiting: 0,
            ends: VecDeque::new(),
            counters: ResponderCounters::default(),
        }
    }

    /// Takes what came out of the link. Returns true when it was for a responder: a request, what a
    /// requester says of a response in segments, or the loss of a segment that waits for its
    /// acknowledgement. Anything else is left to others.
    ///
    /// A lost segment is sent again as if its time had run out, which it has when
    /// [`Responder::handle_timeout`] is called next; a response without retries fails then. However
    /// many segments of a response are lost by then, that takes one of its retries. The loss of a
    /// response of one datagram is left to who asked: nothing is kept that could be sent again.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        let datagram = match incoming {
            Incoming::Received(datagram) => datagram,
            Incoming::Lost(datagram) => return self.handle_lost(now, datagram),
        };
        let mad = &datagram.mad;
        if mad.base_version() != 1 || mad.method().is_response() {
            return false;
        }
        let key = TransferKey::of(&datagram.remote, mad);
        match classify(mad) {
            Kind::Plain => self.request(Message::plain(*datagram)),
            Kind::Data => self.handle_segment(now, key, datagram),
            Kind::Acknowledgement => self.handle_acknowledgement(now, key, mad),
            Kind::End(status) => {
                self.inbound.abort(key);
                self.end_response(key, Failure::Refused { status });
            }
            Kind::Bad(status) => {
                self.refuse(datagram, status);
                self.inbound.abort(key);
                self.end_response(key, Failure::Aborted { status });
            }
        }
        true
    }

    /// Sends a response of one datagram. `length` is how many of its bytes count: 256, or less where
    /// the link can tell the other end.
    pub fn respond(&mut self, request: &Datagram, mad: Mad, length: u16) {
        let answer = outgoing(request.remote, mad);
        self.answers.push_back(Datagram { length, local_qpn: request.local_qpn, ..answer });
    }

    /// Sends a response of any length in segments under the headers of a datagram, to whom a request
    /// came from. A [`ResponderEvent::Delivered`] or [`ResponderEvent::Failed`] follows; the latter also
    /// for one that is sent anew to who has it already and acknowledges more than was sent.
    ///
    /// # Errors
    /// Fails when the class has no such messages or the data is longer than 4 GB, when the response
    /// to the same request is under way, and when too many responses are or there is no room for the
    /// data.
    pub fn respond_message(
        &mut self,
        request: &Datagram,
        header: Mad,
        data: Vec<u8>,
    ) -> Result<(), RespondError> {
        let key = TransferKey::of(&request.remote, &header);
        let window_last = self.inbound.reply_window(TransferKey::of(&request.remote, &request.mad));
        let free = self.config.max_bytes.saturating_sub(self.held());
        self.outbound.start(key, request, (&header, data), window_last, free)
    }

    /// Does what is due by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(first) = self.inbound.take_late(now) {
            self.refuse(&first, RmppStatus::TIME_TOO_LONG);
        }
        while let Some(due) = self.outbound.take_due(now) {
            match due {
                outbound::Due::Again => self.counters.retries += 1,
                outbound::Due::GaveUp { key, failure, abort } => {
                    self.replies.push(*abort);
                    self.end_response(key, failure);
                }
            }
        }
    }

    /// Returns the next datagram to be sent; its time starts now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let control = self.replies.pop().or_else(|| self.answers.pop_front());
        let datagram = control.or_else(|| self.outbound.transmit(now))?;
        self.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next thing to say: ends of responses first, then requests as they came.
    pub fn poll_event(&mut self) -> Option<ResponderEvent> {
        self.ends.pop_front().or_else(|| {
            let message = self.requests.pop_front()?;
            self.waiting -= message.held();
            Some(ResponderEvent::Request(message))
        })
    }

    /// Returns when [`Responder::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.inbound.next_deadline(), self.outbound.next_deadline()].into_iter().flatten().min()
    }

    /// Returns the number of requests that wait for [`Responder::poll_event`].
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of responses in segments that are under way.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outbound.len()
    }

    /// Returns how many bytes messages of several segments hold, at most
    /// [`ResponderConfig::max_bytes`].
    #[must_use]
    pub const fn held(&self) -> usize {
        self.inbound.held() + self.outbound.held() + self.waiting
    }

    /// Returns what it has seen.
    #[must_use]
    pub const fn counters(&self) -> ResponderCounters {
        self.counters
    }

    fn request(&mut self, message: Message) {
        if self.requests.len() < self.config.max_waiting {
            self.counters.requests += 1;
            self.waiting += message.held();
            self.requests.push_back(message);
        } else {
            self.counters.dropped += 1;
        }
    }

    fn handle_lost(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let mad = &datagram.mad;
        let segment = mad.method().is_response() && classify(mad) == Kind::Data;
        let lost = segment && {
            let key = TransferKey::of(&datagram.remote, mad);
            self.outbound.handle_lost(now, key, mad.rmpp().segment)
        };
        self.counters.lost += u64::from(lost);
        lost
    }

    fn handle_segment(&mut self, now: Instant, key: TransferKey, datagram: &Datagram) {
        let room = self.config.max_bytes.saturating_sub(self.outbound.held() + self.waiting);
        match self.inbound.handle(now, key, datagram, room) {
            inbound::Taken::Silent => {}
            inbound::Taken::Reply(mad) => self.reply(datagram, mad),
            inbound::Taken::Complete(mad, message) => {
                self.reply(datagram, mad);
                self.request(*message);
            }
            inbound::Taken::Refused(status) => self.refuse(datagram, status),
        }
    }

    fn handle_acknowledgement(&mut self, now: Instant, key: TransferKey, mad: &Mad) {
        let header = mad.rmpp();
        if header.segment == 0 {
            self.inbound.open(key, header.length_or_window);
        }
        match self.outbound.handle(now, key, mad) {
            outbound::Heard::Nothing => {}
            outbound::Heard::Delivered(remote) => {
                let transaction_id = key.transaction_id;
                self.ends.push_back(ResponderEvent::Delivered { remote, transaction_id });
            }
            outbound::Heard::Broken(remote, status) => {
                self.replies.push(outgoing(remote, control::refuse(mad, status)));
                self.end_response(key, Failure::Aborted { status });
            }
        }
    }

    fn end_response(&mut self, key: TransferKey, failure: Failure) {
        if let Some(remote) = self.outbound.remove(key) {
            let transaction_id = key.transaction_id;
            self.ends.push_back(ResponderEvent::Failed { remote, transaction_id, failure });
        }
    }

    fn refuse(&mut self, received: &Datagram, status: RmppStatus) {
        self.counters.aborted += 1;
        self.reply(received, control::refuse(&received.mad, status));
    }

    fn reply(&mut self, received: &Datagram, mad: Mad) {
        self.replies.push(received.reply(mad));
    }
}

#[cfg(test)]
mod tests;
