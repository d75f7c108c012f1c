//! The states of one request.
//!
//! | state | what happens | ends with |
//! |---|---|---|
//! | Backlog | nothing is sent yet: the window is full | its turn |
//! | Queued | the datagram is to be sent, or sent again | it is sent |
//! | Sending | segments go out and are acknowledged | the last acknowledgement, the answer |
//! | Waiting | the request is at the other end | the answer, its first segment, the last timeout |
//! | Receiving | segments of the answer come in | the last one, 40 s |

use std::time::Duration;

use ib_link::Datagram;
use ib_types::Instant;
use ib_wire::mad::rmpp::RmppStatus;
use ib_wire::mad::smp::PERMISSIVE_LID;
use ib_wire::mad::{Mad, Method, MgmtClass};

use crate::request::AnswerFrom;
use crate::rmpp::control::{self, turned_method};
use crate::rmpp::{
    Acknowledged, Acknowledgement, Kind, MAX_ACKNOWLEDGEMENT_TIME, Progress, ReceiveLimits,
    Receiver, Sender,
};
use crate::timers::Timer;
use crate::{Failure, Message, OnLoss, Request};

/// A request under way.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) request: Request,
    /// When it was first sent.
    pub(super) started: Option<Instant>,
    /// How often it was sent.
    pub(super) attempts: u32,
    /// Whether the requester has it in its list of those with something to send.
    pub(super) listed: bool,
    state: State,
    retries_left: u32,
    sender: Option<Sender>,
    first_segment: Option<Datagram>,
    busy: Option<Message>,
}

#[derive(Debug)]
enum State {
    Backlog,
    Queued,
    Sending,
    Waiting,
    Receiving(Box<Receiver>),
}

/// What a request wants done after an event.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// This is to be sent.
    pub(super) reply: Option<Mad>,
    /// This timer starts, in place of the one that runs.
    pub(super) timer: Option<Timer>,
    /// There is something for [`Transaction::transmit`].
    pub(super) wake: bool,
    /// The request is over.
    pub(super) end: Option<Result<Message, Failure>>,
    /// Duplicates of the answer are to be acknowledged with this.
    pub(super) linger: Option<Acknowledgement>,
    /// The event meant nothing to it.
    pub(super) ignored: bool,
}

impl Transaction {
    /// Returns a request that waits for its turn; `sender` is that of a message in segments.
    pub(super) fn new(request: Request, sender: Option<Sender>) -> Self {
        let retries_left = request.timing.retries;
        Self {
            request,
            started: None,
            attempts: 0,
            listed: false,
            state: State::Backlog,
            retries_left,
            sender,
            first_segment: None,
            busy: None,
        }
    }

    /// Lets it be sent.
    pub(super) fn admit(&mut self) {
        self.state = self.first_state();
    }

    /// Returns true when it takes room in the window.
    pub(super) const fn is_admitted(&self) -> bool {
        !matches!(self.state, State::Backlog)
    }

    /// Returns how many bytes of an answer in segments it holds; one that says "busy" is short and
    /// does not count.
    pub(super) fn held(&self) -> usize {
        match &self.state {
            State::Receiving(receiver) => receiver.held(),
            _ => 0,
        }
    }

    /// Returns what is to be sent now, if anything is, and the timer that starts with it.
    pub(super) fn transmit(&mut self, now: Instant) -> Option<(Mad, Timer)> {
        let sent = match (&self.state, &mut self.sender) {
            (State::Queued, _) => {
                self.attempts += 1;
                self.state = State::Waiting;
                Some((self.request.mad, Timer::Answer))
            }
            (State::Sending, Some(sender)) => {
                let mad = sender.next_segment()?;
                if mad.rmpp().segment == 1 {
                    self.attempts += 1;
                }
                Some((mad, Timer::Acknowledgement))
            }
            _ => None,
        };
        if sent.is_some() && self.started.is_none() {
            self.started = Some(now);
        }
        sent
    }

    /// Returns true when [`Transaction::transmit`] has more.
    pub(super) fn has_more(&self) -> bool {
        match (&self.state, &self.sender) {
            (State::Queued, _) => true,
            (State::Sending, Some(sender)) => sender.can_send(),
            _ => false,
        }
    }

    /// Returns how long a timer runs now.
    pub(super) fn duration(&self, timer: Timer, limits: &ReceiveLimits) -> Duration {
        let timing = &self.request.timing;
        let wait = timing.wait(timing.retries - self.retries_left);
        match timer {
            Timer::Answer => wait,
            Timer::Acknowledgement => wait.min(MAX_ACKNOWLEDGEMENT_TIME),
            Timer::Message => limits.message_time,
            Timer::Linger => limits.linger_time,
        }
    }

    /// Returns true when a datagram with its transaction does belong to it.
    pub(super) fn matches(&self, datagram: &Datagram, kind: Kind) -> bool {
        let (asked, mad) = (&self.request.mad, &datagram.mad);
        let (response, turned) = (asked.method().response(), turned_method(asked.method()));
        let method = mad.method();
        let method_fits = match kind {
            Kind::Plain | Kind::Data => Some(method) == response,
            Kind::Acknowledgement => method == turned,
            Kind::End(_) | Kind::Bad(_) => method == turned || Some(method) == response,
        };
        self.attempts > 0
            && method_fits
            && mad.class() == asked.class()
            && (mad.attribute_id() == asked.attribute_id() || answers_with_another(asked))
            && self.comes_from_asked(datagram)
    }

    /// Takes a datagram that belongs to it.
    pub(super) fn handle(
        &mut self,
        datagram: &Datagram,
        kind: Kind,
        limits: ReceiveLimits,
    ) -> Step {
        match kind {
            Kind::Plain => self.handle_plain(datagram),
            Kind::Data => self.handle_segment(datagram, limits),
            Kind::Acknowledgement => self.handle_acknowledgement(&datagram.mad),
            Kind::End(status) => Step::failed(Failure::Refused { status }),
            Kind::Bad(status) => Step::aborted(&datagram.mad, status),
        }
    }

    /// Takes the news that what it sent is lost.
    pub(super) fn handle_lost(&mut self, now: Instant) -> Step {
        let on_wire = match self.state {
            State::Waiting => self.sender.is_none(),
            State::Sending => true,
            State::Backlog | State::Queued | State::Receiving(_) => false,
        };
        match self.request.on_loss {
            _ if !on_wire => Step::ignored(),
            OnLoss::Retry if self.retries_left > 0 => self.retry(now),
            _ => Step::failed(Failure::Lost { attempts: self.attempts }),
        }
    }

    /// Does what is due when a timer has run out.
    pub(super) fn handle_timer(&mut self, now: Instant, timer: Timer) -> Step {
        match (timer, &self.state) {
            (Timer::Answer, State::Waiting) | (Timer::Acknowledgement, State::Sending) => {
                self.retry(now)
            }
            (Timer::Message, State::Receiving(_)) => {
                let first = self.first_segment.expect("an answer that comes in has begun");
                Step::aborted(&first.mad, RmppStatus::TIME_TOO_LONG)
            }
            _ => Step::ignored(),
        }
    }

    fn first_state(&self) -> State {
        if self.sender.is_some() { State::Sending } else { State::Queued }
    }

    /// A directed route is answered from anywhere, and so is a LID that stands for any.
    fn comes_from_asked(&self, datagram: &Datagram) -> bool {
        let asked = &self.request.remote;
        let anyone = self.request.answer_from == AnswerFrom::Anyone
            || self.request.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE
            || asked.lid == PERMISSIVE_LID;
        match (&asked.grh, &datagram.remote.grh) {
            _ if anyone => true,
            (Some(sent), Some(received)) => sent.destination == received.source,
            _ => asked.lid == datagram.remote.lid,
        }
    }

    fn handle_plain(&mut self, datagram: &Datagram) -> Step {
        if matches!(self.state, State::Receiving(_)) {
            return Step::ignored();
        }
        let message = Message::plain(*datagram);
        if datagram.mad.status().is_busy() {
            self.busy = Some(message);
            return Step::default();
        }
        Step { end: Some(Ok(message)), ..Step::default() }
    }

    fn handle_segment(&mut self, datagram: &Datagram, limits: ReceiveLimits) -> Step {
        let mad = &datagram.mad;
        let mut timer = None;
        if let Some(step) = self.handle_busy_segment(datagram, limits) {
            return step;
        }
        if !matches!(self.state, State::Receiving(_)) {
            // Later segments of an answer whose first one is unknown cannot have been let out.
            let Some(receiver) = Receiver::new(mad, limits).filter(|_| mad.rmpp().segment == 1)
            else {
                return Step::ignored();
            };
            self.state = State::Receiving(Box::new(receiver));
            self.first_segment = Some(*datagram);
            timer = Some(Timer::Message);
        }
        let (State::Receiving(receiver), Some(first)) = (&mut self.state, self.first_segment)
        else {
            return Step::ignored();
        };
        match receiver.handle(mad) {
            Progress::Nothing => Step { timer, ..Step::default() },
            Progress::Acknowledge(state) => {
                let reply = Some(control::acknowledge(mad, state));
                Step { reply, timer, ..Step::default() }
            }
            Progress::Complete(state) => Step {
                reply: Some(control::acknowledge(mad, state)),
                end: Some(Ok(Message::reassembled(first, receiver.take_data()))),
                linger: Some(state),
                ..Step::default()
            },
            Progress::Failed(status) => Step::aborted(mad, status),
        }
    }

    /// Takes an answer of one segment that says "busy", as OpenSM does through a kernel: it is
    /// acknowledged, and the wait for a better one goes on.
    fn handle_busy_segment(&mut self, datagram: &Datagram, limits: ReceiveLimits) -> Option<Step> {
        let mad = &datagram.mad;
        if !mad.status().is_busy() || matches!(self.state, State::Receiving(_)) {
            return None;
        }
        let mut receiver = Receiver::new(mad, limits)?;
        let Progress::Complete(state) = receiver.handle(mad) else { return None };
        self.busy = Some(Message::reassembled(*datagram, receiver.take_data()));
        Some(Step { reply: Some(control::acknowledge(mad, state)), ..Step::default() })
    }

    fn handle_acknowledgement(&mut self, mad: &Mad) -> Step {
        let header = mad.rmpp();
        let Some(sender) = &mut self.sender else { return Step::ignored() };
        let double_sided = self.request.mad.method() == Method::GET_MULTI;
        let reply = double_sided.then(|| control::open(&self.request.mad));
        match self.state {
            State::Sending => {}
            // The other end has not seen that the way back is open.
            State::Waiting if double_sided && header.segment == sender.count() => {
                return Step { reply, ..Step::default() };
            }
            _ => return Step::ignored(),
        }
        match sender.handle(&header) {
            Acknowledged::Nothing => Step { wake: sender.can_send(), ..Step::default() },
            Acknowledged::Progress => {
                self.retries_left = self.request.timing.retries;
                let (timer, wake) = (Some(Timer::Acknowledgement), sender.can_send());
                Step { timer, wake, ..Step::default() }
            }
            Acknowledged::Complete => {
                self.retries_left = self.request.timing.retries;
                self.state = State::Waiting;
                Step { reply, timer: Some(Timer::Answer), ..Step::default() }
            }
            Acknowledged::Failed(status) => Step::aborted(mad, status),
        }
    }

    /// Takes one of the attempts that are left, or ends.
    fn retry(&mut self, now: Instant) -> Step {
        let busy = self.busy.take();
        if self.retries_left == 0 {
            let waited = now.since(self.started.unwrap_or(now));
            let failure = Failure::TimedOut { attempts: self.attempts, waited };
            let sending = self.sender.as_ref().filter(|_| matches!(self.state, State::Sending));
            return Step {
                reply: sending
                    .map(|sender| control::end(sender.header(), RmppStatus::TOO_MANY_RETRIES)),
                end: Some(busy.ok_or(failure)),
                ..Step::default()
            };
        }
        self.retries_left -= 1;
        match (&self.state, &mut self.sender) {
            (State::Waiting, Some(_)) => {
                let double_sided = self.request.mad.method() == Method::GET_MULTI;
                let reply = double_sided.then(|| control::open(&self.request.mad));
                Step { reply, timer: Some(Timer::Answer), ..Step::default() }
            }
            (_, Some(sender)) => {
                sender.rewind();
                Step { wake: true, ..Step::default() }
            }
            (_, None) => {
                self.state = State::Queued;
                Step { wake: true, ..Step::default() }
            }
        }
    }
}

impl Step {
    /// Returns how many bytes the answer holds that ends the request.
    pub(super) fn held(&self) -> usize {
        self.end.as_ref().and_then(|end| end.as_ref().ok()).map_or(0, Message::held)
    }

    fn ignored() -> Self {
        Self { ignored: true, ..Self::default() }
    }

    fn failed(failure: Failure) -> Self {
        Self { end: Some(Err(failure)), ..Self::default() }
    }

    /// The other end broke the rules and is told how.
    pub(super) fn aborted(received: &Mad, status: RmppStatus) -> Self {
        let reply = Some(control::refuse(received, status));
        Self { reply, ..Self::failed(Failure::Aborted { status }) }
    }
}

/// Returns true for requests that ask with one attribute and are answered with another:
/// MultiPathRecord with PathRecord or `TraceRecord`; IBTA volume 1, chapter 15.4.
fn answers_with_another(asked: &Mad) -> bool {
    matches!(asked.method(), Method::GET_MULTI | Method::GET_TRACE_TABLE)
}

#[cfg(test)]
mod tests;
