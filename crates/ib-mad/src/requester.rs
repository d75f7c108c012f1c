//! The side that asks.
//!
//! | module | holds |
//! |---|---|
//! | `requester` | the table of requests, the window, timers, what goes out |
//! | `transaction` | the states of one request |

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

/// How a requester works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequesterConfig {
    /// Bits 32 to 47 of every transaction: what tells the requesters of one port apart. Bits 48 to 63
    /// stay zero, for simulators and kernels write their own numbers there.
    pub tag: u16,
    /// How many requests may be on the wire; at least one is.
    pub window: usize,
    /// The lower half of the first transaction; later ones count up. A program that is run again within
    /// seconds does well to start elsewhere: peers remember messages of several segments for a while.
    pub first: u32,
    /// What answers in several segments may use, each.
    pub receive: ReceiveLimits,
    /// How many bytes all answers in several segments may hold together that come in or wait for
    /// [`Requester::poll_event`]. Answers beyond that are stopped for want of resources.
    pub max_bytes: usize,
}

impl Default for RequesterConfig {
    /// Tag 1, a window of 16 requests, 256 MiB of answers.
    fn default() -> Self {
        let receive = ReceiveLimits::default();
        Self { tag: 1, window: 16, first: 1, receive, max_bytes: MAX_HELD }
    }
}

/// What a requester has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequesterCounters {
    /// Datagrams handed out, acknowledgements included.
    pub sent: u64,
    /// Attempts that followed a first one.
    pub retries: u64,
    /// Responses to no request under way: late ones and duplicates.
    pub late: u64,
    /// Responses with the number of a request that are not its answer: another class, method,
    /// attribute or source, or out of turn.
    pub foreign: u64,
    /// Requests that the link said are lost.
    pub lost: u64,
}

/// Sends requests of any class, at most a window of them at a time, and finds the answer to each.
///
/// The owner passes on what arrives ([`Requester::handle`]), calls [`Requester::handle_timeout`] when
/// [`Requester::poll_timeout`] says, and after either asks [`Requester::poll_transmit`] and
/// [`Requester::poll_event`] until they return nothing. Every request that [`Requester::start`] takes
/// ends with exactly one [`Completion`], unless it is cancelled.
#[derive(Debug)]
pub struct Requester {
    config: RequesterConfig,
    next: u32,
    transactions: BTreeMap<u32, Box<Transaction>>,
    /// Those that wait for room in the window, by their urgency, and perhaps cancelled ones.
    backlog: [VecDeque<u32>; 3],
    /// Those with something to send, and perhaps ended ones.
    ready: VecDeque<u32>,
    on_wire: usize,
    replies: Replies,
    lingering: BTreeMap<u32, Lingering>,
    deadlines: Deadlines<u32>,
    events: VecDeque<Completion>,
    /// How many bytes answers in segments hold, those among the events included.
    held: usize,
    counters: RequesterCounters,
}

/// An answer in segments that is complete, while duplicates of its segments may come.
#[derive(Clone, Copy, Debug)]
struct Lingering {
    class: MgmtClass,
    method: Method,
    state: Acknowledgement,
}

/// How many complete answers linger; the one that has lingered longest goes first.
const MAX_LINGERING: usize = 1024;

impl Requester {
    /// Returns a requester without requests.
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

    /// Takes a request, which goes out when the window has room for it, for all earlier ones of its
    /// [`Urgency`](crate::Urgency) and for all that are more urgent.
    ///
    /// Returns its number, which [`Completion::transaction_id`] repeats.
    ///
    /// # Errors
    /// Fails when nothing answers the method, or when a message of several segments is asked of a
    /// class that has none or is longer than 4 GB.
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

    /// Forgets a request; no completion follows, and an answer counts as late. Returns false when it
    /// is not under way.
    pub fn cancel(&mut self, transaction_id: TransactionId) -> bool {
        let Some(low) = self.number(transaction_id) else { return false };
        self.remove(low).is_some()
    }

    /// Takes what came out of the link. Returns true when it was for this requester: a response with
    /// its tag, or the loss of what it sent. Anything else is left to others.
    pub fn handle(&mut self, now: Instant, incoming: &Incoming) -> bool {
        match incoming {
            Incoming::Received(datagram) => self.handle_received(now, datagram),
            Incoming::Lost(datagram) => self.handle_lost(now, &datagram.mad),
        }
    }

    /// Does what is due by now.
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

    /// Returns the next datagram to be sent; its time starts now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let datagram = self.replies.pop().or_else(|| self.poll_ready(now))?;
        self.counters.sent += 1;
        Some(datagram)
    }

    /// Returns the next end of a request.
    pub fn poll_event(&mut self) -> Option<Completion> {
        let completion = self.events.pop_front()?;
        self.held -= completion.held();
        Some(completion)
    }

    /// Returns when [`Requester::handle_timeout`] has something to do; `None` while nothing is on the
    /// wire.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Has so many requests on their way at a time from now on; those that are out stay out.
    pub const fn set_window(&mut self, window: usize) {
        self.config.window = window;
    }

    /// Returns the number of requests that have not ended, those in the backlog included.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.transactions.len()
    }

    /// Returns how many bytes answers in segments hold, at most [`RequesterConfig::max_bytes`].
    #[must_use]
    pub const fn held(&self) -> usize {
        self.held
    }

    /// Returns what it has seen.
    #[must_use]
    pub const fn counters(&self) -> RequesterCounters {
        self.counters
    }

    /// Returns the next number that neither a request nor a lingering answer has; never 0.
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

    /// Returns the lower half of a transaction of this requester.
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

    /// Tells the sender of an answer in segments once more that it is complete.
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
        let asked = &transaction.request.mad;
        // A lost ACK is sent again when the segment comes again.
        let control = mad.is_rmpp() && mad.rmpp().rmpp_type != RmppType::DATA;
        if mad.class() != asked.class() || mad.method() != asked.method() || control {
            return false;
        }
        self.counters.lost += 1;
        let remote = transaction.request.remote;
        let step = transaction.handle_lost(now);
        self.apply(now, low, step, remote);
        true
    }

    /// Does what a request wants done; `remote` is who a reply goes to.
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

    /// Forgets the answer with the lowest number, which is the oldest one until numbers start over.
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

    /// Returns the next datagram of a request: first of those on the wire, in turns, then of those
    /// that the window has room for.
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
