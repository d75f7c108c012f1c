//! The responder: receives requests and sends responses.
//!
//! | module | contents |
//! |---|---|
//! | `responder` | [`Responder`], its queues and events |
//! | `inbound` | reassembly of RMPP requests |
//! | `outbound` | RMPP responses being sent |

use std::collections::VecDeque;

use ib_link::{Datagram, Incoming, Remote};
use ib_types::Instant;
use ib_wire::mad::rmpp::RmppStatus;
use ib_wire::mad::{Mad, TransactionId};

use crate::replies::{Replies, outgoing};
use crate::rmpp::{Kind, MAX_HELD, ReceiveLimits, classify, control};
use crate::{Failure, Message, RespondError, Timing};

mod inbound;
mod outbound;

use inbound::Inbound;
use inbound::TransferKey;
use outbound::Outbound;

/// The configuration of a responder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponderConfig {
    /// The timeout of ACKs, at most 2 s, and the number of retries. Each newly acknowledged segment restores all
    /// retries.
    pub timing: Timing,
    /// The maximum number of RMPP responses being sent. The same maximum applies separately to the number of RMPP
    /// requests being received.
    pub max_transfers: usize,
    /// The maximum number of requests that wait for [`Responder::poll_event`]. Further requests are dropped, as if a
    /// receive queue were full.
    pub max_waiting: usize,
    /// The limits of each RMPP request.
    pub receive: ReceiveLimits,
    /// The maximum memory of all RMPP messages in bytes.
    ///
    /// This memory comprises requests that are being received or wait for [`Responder::poll_event`], and responses that
    /// are being sent. The responder stops requests that exceed the maximum.
    pub max_bytes: usize,
}

impl Default for ResponderConfig {
    /// Returns timeouts of 1 s with three retries, and limits of 1024 transfers, 4096 waiting requests, and 256 MiB for
    /// all RMPP messages.
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

/// An event of a responder.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are `Request`, the large variant")]
pub enum ResponderEvent {
    /// A request was received. If the response is late or lost, the same request is received again.
    Request(Message),
    /// All segments of a response were acknowledged.
    Delivered {
        /// The address of the requester.
        remote: Remote,
        /// The transaction ID.
        transaction_id: TransactionId,
    },
    /// An RMPP response has failed.
    Failed {
        /// The address of the requester.
        remote: Remote,
        /// The transaction ID.
        transaction_id: TransactionId,
        /// The reason why the response has failed.
        failure: Failure,
    },
}

/// The counters of a responder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponderCounters {
    /// MADs sent, including ACKs.
    pub sent: u64,
    /// Requests accepted for [`Responder::poll_event`].
    pub requests: u64,
    /// Requests dropped because too many requests waited for [`Responder::poll_event`].
    pub dropped: u64,
    /// RMPP requests that the responder has stopped or aborted because of a protocol violation, a memory limit or a
    /// timeout.
    pub aborted: u64,
    /// Retransmissions of unacknowledged segments; a retransmitted window counts once.
    pub retries: u64,
    /// Segments that the link has reported as lost.
    pub lost: u64,
}

/// Receives requests and sends responses of any length.
///
/// The program that owns a responder drives it like a [`Requester`](crate::Requester): [`Responder::handle`],
/// [`Responder::handle_timeout`], [`Responder::poll_transmit`], [`Responder::poll_event`], [`Responder::poll_timeout`].
/// The memory of a responder never exceeds the limits in [`ResponderConfig`].
#[derive(Debug)]
pub struct Responder {
    config: ResponderConfig,
    inbound: Inbound,
    outbound: Outbound,
    replies: Replies,
    answers: VecDeque<Datagram>,
    requests: VecDeque<Message>,
    /// How many bytes the RMPP requests in `requests` take.
    waiting: usize,
    ends: VecDeque<ResponderEvent>,
    counters: ResponderCounters,
}

impl Responder {
    /// Creates a responder.
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

    /// Handles a received MAD, or the loss of a sent MAD.
    ///
    /// Returns true if the MAD or loss concerns a responder: a request, an RMPP control MAD of a requester, or the loss
    /// of an unacknowledged segment. Other input is ignored.
    ///
    /// If a segment is lost, the ACK timer expires at once. The next [`Responder::handle_timeout`] retransmits the
    /// segment, or fails the response if no retry is left. Several losses before that call count as one retry. The loss
    /// of a response of one MAD is ignored, because the requester repeats its request.
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

    /// Sends a response of one MAD. `length` is the number of valid bytes of `mad`: 256 unless the link transmits the
    /// length of MADs.
    pub fn respond(&mut self, request: &Datagram, mad: Mad, length: u16) {
        let answer = outgoing(request.remote, mad);
        self.answers.push_back(Datagram { length, local_qpn: request.local_qpn, ..answer });
    }

    /// Sends a response of any length by RMPP to the sender of a request. All segments have the given MAD headers.
    ///
    /// Later, [`Responder::poll_event`] returns [`ResponderEvent::Delivered`] or [`ResponderEvent::Failed`].
    ///
    /// If the caller responds to a repeated request, the requester may already have received the complete response. The
    /// requester then acknowledges all segments as soon as segment 1 arrives. This ACK fails the response if the window
    /// does not permit all segments yet.
    ///
    /// # Errors
    /// Fails if the class does not use RMPP, or if the data is longer than 4 GiB. Also fails if a response to the same
    /// request is already being sent. Also fails if the response would exceed [`ResponderConfig::max_transfers`] or
    /// [`ResponderConfig::max_bytes`].
    pub fn respond_message(
        &mut self,
        request: &Datagram,
        header: Mad,
        data: Vec<u8>,
    ) -> Result<(), RespondError> {
        let key = TransferKey::of(&request.remote, &header);
        let window_last = self.inbound.reply_window(TransferKey::of(&request.remote, &request.mad));
        let free = self.config.max_bytes.saturating_sub(self.held());
        self.outbound.start(key, request, &header, data, window_last, free)
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(first) = self.inbound.take_late(now) {
            self.refuse(&first, RmppStatus::TIME_TOO_LONG);
        }
        while let Some(due) = self.outbound.take_due(now) {
            match due {
                outbound::Expired::Retransmit => self.counters.retries += 1,
                outbound::Expired::Failed { key, failure, abort } => {
                    self.replies.push(*abort);
                    self.end_response(key, failure);
                }
            }
        }
    }

    /// Returns the next datagram to send, and starts its timer.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let control = self.replies.pop().or_else(|| self.answers.pop_front());
        let datagram = control.or_else(|| self.outbound.transmit(now))?;
        self.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next event: first the results of responses, then requests in order of arrival.
    pub fn poll_event(&mut self) -> Option<ResponderEvent> {
        self.ends.pop_front().or_else(|| {
            let message = self.requests.pop_front()?;
            self.waiting -= message.held();
            Some(ResponderEvent::Request(message))
        })
    }

    /// Returns the next deadline, at which [`Responder::handle_timeout`] must be called; `None` if no timer is running.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        [self.inbound.next_deadline(), self.outbound.next_deadline()].into_iter().flatten().min()
    }

    /// Returns the number of requests that wait for [`Responder::poll_event`].
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of RMPP responses being sent.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outbound.len()
    }

    /// Returns how many bytes all RMPP messages take, at most [`ResponderConfig::max_bytes`].
    #[must_use]
    pub const fn held(&self) -> usize {
        self.inbound.held() + self.outbound.held() + self.waiting
    }

    /// Returns the counters of this responder.
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
            inbound::SegmentResult::Silent => {}
            inbound::SegmentResult::Reply(mad) => self.reply(datagram, mad),
            inbound::SegmentResult::Complete(mad, message) => {
                self.reply(datagram, mad);
                self.request(*message);
            }
            inbound::SegmentResult::Refused(status) => self.refuse(datagram, status),
        }
    }

    fn handle_acknowledgement(&mut self, now: Instant, key: TransferKey, mad: &Mad) {
        let header = mad.rmpp();
        if header.segment == 0 {
            self.inbound.open(key, header.length_or_window);
        }
        match self.outbound.handle(now, key, mad) {
            outbound::AckResult::Pending => {}
            outbound::AckResult::Delivered(remote) => {
                let transaction_id = key.transaction_id;
                self.ends.push_back(ResponderEvent::Delivered { remote, transaction_id });
            }
            outbound::AckResult::Violation(remote, status) => {
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
