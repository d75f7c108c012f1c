//! The requester: sends requests and receives their responses.
//!
//! | module | contents |
//! |---|---|
//! | `requester` | [`Requester`]: the table of requests, the window, timers |
//! | `transaction` | the state machine of one request |

use std::collections::{BTreeMap, VecDeque};

use ib_link::{Datagram, Incoming, Remote};
use ib_types::Instant;
use ib_wire::mad::rmpp::{RmppStatus, RmppType};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use crate::replies::{Replies, outgoing};
use crate::rmpp::{Acknowledgement, Kind, MAX_HELD, ReceiveLimits, Sender, classify, control};
use crate::timers::{Deadlines, Timer};
use crate::{Completion, Failure, Message, Request, StartError};

mod transaction;

use transaction::{Step, Transaction};

/// The configuration of a requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequesterConfig {
    /// Bits 32 to 47 of all transaction IDs, which distinguish the requesters of a port.
    ///
    /// Bits 48 to 63 of all transaction IDs are zero, because ibsim and the kernel write numbers of their own into
    /// these bits.
    pub tag: u16,
    /// The maximum number of outstanding requests, at least 1.
    pub window: usize,
    /// The lower 32 bits of the first transaction ID. Each later transaction ID is one higher.
    ///
    /// A program that restarts within seconds should use a different value after the restart. Otherwise a peer may
    /// treat a new RMPP message as a duplicate of an old message with the same transaction ID.
    pub first: u32,
    /// The limits of each RMPP response.
    pub receive: ReceiveLimits,
    /// The maximum memory of all RMPP responses in bytes, including complete responses that [`Requester::poll_event`]
    /// has not returned yet. The requester stops a response that would exceed this maximum.
    pub max_bytes: usize,
}

impl Default for RequesterConfig {
    /// Returns tag 1, a window of 16 requests, and a limit of 256 MiB for the memory of RMPP responses.
    fn default() -> Self {
        let receive = ReceiveLimits::default();
        Self { tag: 1, window: 16, first: 1, receive, max_bytes: MAX_HELD }
    }
}

/// The counters of a requester.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequesterCounters {
    /// MADs sent, including ACKs.
    pub sent: u64,
    /// Retries: attempts after the first one.
    pub retries: u64,
    /// Responses without an outstanding request: late or duplicate ones.
    pub late: u64,
    /// Responses that have the transaction ID of a request but do not match the request. The class, method, attribute
    /// or source differs, or the request does not expect the response in its state.
    pub foreign: u64,
    /// MADs of requests that the link has reported as lost.
    pub lost: u64,
}

/// Sends requests of any class, within a window, and assigns responses to them.
///
/// The program that owns a requester passes received MADs to [`Requester::handle`]. It calls
/// [`Requester::handle_timeout`] at the deadline that [`Requester::poll_timeout`] returns. After each of these calls,
/// the program calls [`Requester::poll_transmit`] and [`Requester::poll_event`] until they return `None`. Every started
/// request ends with exactly one [`Completion`], unless it is cancelled.
#[derive(Debug)]
pub struct Requester {
    config: RequesterConfig,
    next: u32,
    transactions: BTreeMap<u32, Box<Transaction>>,
    /// Requests that wait for a place in the window, by urgency. May contain cancelled requests.
    backlog: [VecDeque<u32>; 3],
    /// Requests that have a MAD to send. May contain requests that have ended.
    ready: VecDeque<u32>,
    on_wire: usize,
    replies: Replies,
    lingering: BTreeMap<u32, Lingering>,
    deadlines: Deadlines<u32>,
    events: VecDeque<Completion>,
    /// How many bytes the RMPP responses take, including the complete responses in `events`.
    held: usize,
    counters: RequesterCounters,
}

/// A complete RMPP response whose duplicates are still acknowledged.
#[derive(Clone, Copy, Debug)]
struct Lingering {
    class: MgmtClass,
    method: Method,
    state: Acknowledgement,
}

/// The maximum number of complete RMPP responses whose duplicates are acknowledged. The oldest one is removed first.
const MAX_LINGERING: usize = 1024;

impl Requester {
    /// Creates a requester.
    #[must_use]
    pub fn new(config: RequesterConfig) -> Self {
        Self {
            config,
            next: config.first,
            transactions: BTreeMap::new(),
            backlog: Default::default(),
            ready: VecDeque::new(),
            on_wire: 0,
            replies: Replies::default(),
            lingering: BTreeMap::new(),
            deadlines: Deadlines::new(),
            events: VecDeque::new(),
            counters: RequesterCounters::default(),
            held: 0,
        }
    }

    /// Starts a request. It is sent when the window permits it, in the order of
    /// [`Urgency`](crate::Urgency).
    ///
    /// Returns the transaction ID, which identifies the [`Completion`].
    ///
    /// # Errors
    /// Fails if the method has no response. A request that has to be sent by RMPP also fails if its class does not use
    /// RMPP, or if its data is longer than 4 GiB.
    pub fn start(&mut self, mut request: Request) -> Result<TransactionId, StartError> {
        let (class, method) = (request.mad.class(), request.mad.method());
        if method.response().is_none() {
            return Err(StartError::NoAnswer { class, method });
        }
        let low = self.free_number();
        let transaction_id = self.transaction_id(low);
        request.mad.set_transaction_id(transaction_id);
        let sender = match request.message.take() {
            None => None,
            Some(data) => {
                let length = data.len();
                let sender = Sender::new(&request.mad, data, 1);
                Some(sender.ok_or(StartError::NoMessage { class, length })?)
            }
        };
        self.backlog[request.urgency as usize].push_back(low);
        self.transactions.insert(low, Box::new(Transaction::new(request, sender)));
        Ok(transaction_id)
    }

    /// Cancels a request: no completion follows, and a response counts as late. Returns false if
    /// the request has already ended.
    pub fn cancel(&mut self, transaction_id: TransactionId) -> bool {
        let Some(low) = self.number(transaction_id) else { return false };
        self.remove(low).is_some()
    }

    /// Handles a received MAD, or the loss of a sent MAD.
    ///
    /// Returns true if the input concerns this requester: a response that has its tag, or the loss of one of its
    /// requests. Ignores all other input, and returns false.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        match incoming {
            Incoming::Received(datagram) => self.handle_received(now, datagram),
            Incoming::Lost(datagram) => self.handle_lost(now, &datagram.mad),
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((low, timer)) = self.deadlines.take_due(now) {
            if timer == Timer::Linger {
                self.lingering.remove(&low);
            } else if let Some(transaction) = self.transactions.get_mut(&low) {
                let remote = transaction.request.remote;
                let step = transaction.handle_timer(now, timer);
                self.apply(now, low, step, remote);
            }
        }
    }

    /// Returns the next datagram to send, and starts its timer.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let datagram = self.replies.pop().or_else(|| self.poll_ready(now))?;
        self.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next completion.
    pub fn poll_event(&mut self) -> Option<Completion> {
        let completion = self.events.pop_front()?;
        self.held -= completion.held();
        Some(completion)
    }

    /// Returns the next deadline, at which [`Requester::handle_timeout`] must be called; `None` if
    /// no timer is running.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Sets the maximum number of outstanding requests. Requests that are already outstanding are not affected.
    pub const fn set_window(&mut self, window: usize) {
        self.config.window = window;
    }

    /// Returns the number of requests that have not ended, including those that wait for the
    /// window.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.transactions.len()
    }

    /// Returns how many bytes the RMPP responses take, at most [`RequesterConfig::max_bytes`].
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Returns the counters of this requester.
    #[must_use]
    pub const fn counters(&self) -> RequesterCounters {
        self.counters
    }

    /// Returns the number of a new request: the lower 32 bits of its transaction ID. Skips 0, the numbers of existing
    /// requests, and the numbers of complete responses whose duplicates are still acknowledged.
    fn free_number(&mut self) -> u32 {
        loop {
            let low = self.next;
            self.next = low.wrapping_add(1);
            let taken = self.transactions.contains_key(&low) || self.lingering.contains_key(&low);
            if low != 0 && !taken {
                return low;
            }
        }
    }

    const fn transaction_id(&self, low: u32) -> TransactionId {
        TransactionId((self.config.tag as u64) << 32 | low as u64)
    }

    /// Returns the lower 32 bits of a transaction ID; `None` if the ID does not have this requester's tag.
    fn number(&self, transaction_id: TransactionId) -> Option<u32> {
        let own = transaction_id.0 >> 32 == u64::from(self.config.tag);
        own.then_some(transaction_id.0 as u32)
    }

    fn handle_received(&mut self, now: Instant, datagram: &Datagram) -> bool {
        let mad = &datagram.mad;
        let Some(low) = self.number(mad.transaction_id()) else { return false };
        if mad.base_version() != 1 || !mad.method().is_response() {
            return false;
        }
        let kind = classify(mad);
        let Some(transaction) = self.transactions.get_mut(&low) else {
            self.handle_late(low, datagram, kind);
            return true;
        };
        if transaction.matches(datagram, kind) {
            let before = transaction.held();
            let mut step = transaction.handle(datagram, kind, self.config.receive);
            let others = self.held - before;
            let after = transaction.held() + step.held();
            if after > before && others + after > self.config.max_bytes {
                step = Step::aborted(mad, RmppStatus::RESOURCES_EXHAUSTED);
            }
            self.held = others + transaction.held();
            self.apply(now, low, step, datagram.remote);
        } else {
            self.counters.foreign += 1;
        }
        true
    }

    /// Counts a late response. If the datagram is a duplicate segment of a completely received response, acknowledges
    /// the segment.
    fn handle_late(&mut self, low: u32, datagram: &Datagram, kind: Kind) {
        self.counters.late += 1;
        let mad = &datagram.mad;
        let known = self.lingering.get(&low).filter(|known| {
            kind == Kind::Data && known.class == mad.class() && known.method == mad.method()
        });
        if let Some(known) = known {
            let reply = control::acknowledge(mad, known.state);
            self.replies.push(outgoing(datagram.remote, reply));
        }
    }

    fn handle_lost(&mut self, now: Instant, mad: &Mad) -> bool {
        let Some(low) = self.number(mad.transaction_id()) else { return false };
        let Some(transaction) = self.transactions.get_mut(&low) else { return false };
        let request = &transaction.request.mad;
        // The loss of an ACK is ignored: when the peer retransmits the segment, the requester sends the ACK again.
        let control = mad.is_rmpp() && mad.rmpp().rmpp_type != RmppType::DATA;
        if mad.class() != request.class() || mad.method() != request.method() || control {
            return false;
        }
        self.counters.lost += 1;
        let remote = transaction.request.remote;
        let step = transaction.handle_lost(now);
        self.apply(now, low, step, remote);
        true
    }

    /// Executes the actions of a [`Step`]. `remote` is the destination of the step's reply.
    fn apply(&mut self, now: Instant, low: u32, step: Step, remote: Remote) {
        if let Some(mad) = step.reply {
            self.replies.push(outgoing(remote, mad));
        }
        if step.ignored {
            self.counters.foreign += 1;
        }
        if let Some(result) = step.end {
            self.end(now, low, result, step.linger);
            return;
        }
        let Some(transaction) = self.transactions.get_mut(&low) else { return };
        if let Some(timer) = step.timer {
            let duration = transaction.duration(timer, &self.config.receive);
            self.deadlines.set(low, timer, now + duration);
        }
        if step.wake && !transaction.listed {
            transaction.listed = true;
            self.ready.push_back(low);
        }
    }

    fn end(
        &mut self,
        now: Instant,
        low: u32,
        result: Result<Message, Failure>,
        linger: Option<Acknowledgement>,
    ) {
        let Some(transaction) = self.remove(low) else { return };
        if let (Some(state), Some(method)) = (linger, transaction.request.mad.method().response()) {
            let class = transaction.request.mad.class();
            if self.lingering.len() >= MAX_LINGERING {
                self.forget_oldest();
            }
            self.lingering.insert(low, Lingering { class, method, state });
            self.deadlines.set(low, Timer::Linger, now + self.config.receive.linger_time);
        }
        let completion = Completion {
            transaction_id: self.transaction_id(low),
            attempts: transaction.attempts,
            elapsed: now.since(transaction.started.unwrap_or(now)),
            result,
        };
        self.held += completion.held();
        self.events.push_back(completion);
    }

    /// Removes the response with the lowest request number from `lingering`. This is the oldest response unless the
    /// numbers have wrapped. Its duplicates are then no longer acknowledged.
    fn forget_oldest(&mut self) {
        if let Some((low, _)) = self.lingering.pop_first() {
            self.deadlines.stop(low);
        }
    }

    fn remove(&mut self, low: u32) -> Option<Box<Transaction>> {
        let transaction = self.transactions.remove(&low)?;
        self.deadlines.stop(low);
        self.held -= transaction.held();
        if transaction.is_admitted() {
            self.on_wire -= 1;
        }
        Some(transaction)
    }

    /// Returns the next datagram to send. Outstanding requests that have a MAD to send take turns. If no such request exists,
    /// the next request of `backlog` is admitted to the window.
    fn poll_ready(&mut self, now: Instant) -> Option<Datagram> {
        while let Some(low) = self.ready.pop_front() {
            if let Some(transaction) = self.transactions.get_mut(&low) {
                transaction.listed = false;
                if let Some(datagram) = self.transmit(now, low) {
                    return Some(datagram);
                }
            }
        }
        while self.on_wire < self.config.window.max(1) {
            let low = self.backlog.iter_mut().find_map(VecDeque::pop_front)?;
            if let Some(transaction) = self.transactions.get_mut(&low) {
                transaction.admit();
                self.on_wire += 1;
                return self.transmit(now, low);
            }
        }
        None
    }

    fn transmit(&mut self, now: Instant, low: u32) -> Option<Datagram> {
        let transaction = self.transactions.get_mut(&low)?;
        let attempts = transaction.attempts;
        let (mad, timer) = transaction.transmit(now)?;
        if attempts > 0 && transaction.attempts > attempts {
            self.counters.retries += 1;
        }
        let duration = transaction.duration(timer, &self.config.receive);
        self.deadlines.set(low, timer, now + duration);
        if transaction.has_more() {
            transaction.listed = true;
            self.ready.push_back(low);
        }
        Some(outgoing(transaction.request.remote, mad))
    }
}

#[cfg(test)]
mod tests;
