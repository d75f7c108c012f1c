//! The state machine of one request.
//!
//! | state | meaning | ends at |
//! |---|---|---|
//! | Backlog | waits for the window | admission to the window |
//! | Queued | the MAD will be sent or retransmitted | transmission |
//! | Sending | segments are sent and acknowledged | the last segment's ACK, the response, or the last retry's timeout |
//! | Waiting | the request was sent | the response, its first segment, or a timeout |
//! | Receiving | segments of the response are received | the last segment, or a timeout |
//!
//! After a timeout in state Waiting, an RMPP request remains in this state if a retry is left.

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

/// A request and its state.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) request: Request,
    /// The time of the first attempt.
    pub(super) started: Option<Instant>,
    /// The number of attempts so far.
    pub(super) attempts: u32,
    /// True if the request is in the requester's `ready` queue.
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

/// The actions that the requester must execute after an event of a request.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// A MAD to send to the peer.
    pub(super) reply: Option<Mad>,
    /// The timer to start. It replaces the running timer.
    pub(super) timer: Option<Timer>,
    /// True if [`Transaction::transmit`] has something to send.
    pub(super) wake: bool,
    /// The result of the request, if it has ended.
    pub(super) end: Option<Result<Message, Failure>>,
    /// The receiver's state after a complete RMPP response, which the ACKs of duplicate segments report; otherwise
    /// `None`.
    pub(super) linger: Option<Acknowledgement>,
    /// True if the current state ignores the event.
    pub(super) ignored: bool,
}

impl Transaction {
    /// Creates a request in state Backlog. `sender` is `None` for a request of one MAD.
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

    /// Admits the request to the window.
    pub(super) fn admit(&mut self) {
        self.state = self.first_state();
    }

    /// Returns true if the request is in the window.
    pub(super) const fn is_admitted(&self) -> bool {
        !matches!(self.state, State::Backlog)
    }

    /// Returns how many bytes the incomplete RMPP response takes; 0 if none is being received. A response of one
    /// segment with status busy does not count.
    pub(super) fn held(&self) -> usize {
        match &self.state {
            State::Receiving(receiver) => receiver.held(),
            _ => 0,
        }
    }

    /// Returns the next MAD to send and the timer to start with it.
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

    /// Returns true if [`Transaction::transmit`] has more to send.
    pub(super) fn has_more(&self) -> bool {
        match (&self.state, &self.sender) {
            (State::Queued, _) => true,
            (State::Sending, Some(sender)) => sender.can_send(),
            _ => false,
        }
    }

    /// Returns the duration of a timer for the current attempt.
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

    /// Returns true if a datagram is a valid response or RMPP control MAD for this request. The caller has compared the
    /// transaction IDs.
    pub(super) fn matches(&self, datagram: &Datagram, kind: Kind) -> bool {
        let (request, mad) = (&self.request.mad, &datagram.mad);
        let (response, turned) = (request.method().response(), turned_method(request.method()));
        let method = mad.method();
        let method_fits = match kind {
            Kind::Plain | Kind::Data => Some(method) == response,
            Kind::Acknowledgement => method == turned,
            Kind::End(_) | Kind::Bad(_) => method == turned || Some(method) == response,
        };
        self.attempts > 0
            && method_fits
            && mad.class() == request.class()
            && (mad.attribute_id() == request.attribute_id() || response_attribute_differs(request))
            && self.is_from_responder(datagram)
    }

    /// Handles a received datagram for which `matches` has returned true.
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

    /// Handles the loss of a sent MAD.
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

    /// Handles an expired timer.
    pub(super) fn handle_timer(&mut self, now: Instant, timer: Timer) -> Step {
        match (timer, &self.state) {
            (Timer::Answer, State::Waiting) | (Timer::Acknowledgement, State::Sending) => {
                self.retry(now)
            }
            (Timer::Message, State::Receiving(_)) => {
                let first = self.first_segment.expect("state Receiving has a first segment");
                Step::aborted(&first.mad, RmppStatus::TIME_TOO_LONG)
            }
            _ => Step::ignored(),
        }
    }

    fn first_state(&self) -> State {
        if self.sender.is_some() { State::Sending } else { State::Queued }
    }

    /// Returns true if the source of a response is accepted; see [`AnswerFrom`].
    fn is_from_responder(&self, datagram: &Datagram) -> bool {
        let remote = &self.request.remote;
        let any_port = self.request.answer_from == AnswerFrom::Anyone
            || self.request.mad.class() == MgmtClass::SUBN_DIRECTED_ROUTE
            || remote.lid == PERMISSIVE_LID;
        match (&remote.grh, &datagram.remote.grh) {
            _ if any_port => true,
            (Some(sent), Some(received)) => sent.destination == received.source,
            _ => remote.lid == datagram.remote.lid,
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
            // Segments after segment 1 are ignored: the peer may send them only after the ACK of segment 1.
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

    /// Handles a response of one segment with status busy, which OpenSM sends if the kernel implements RMPP. The
    /// response is acknowledged, and the request keeps waiting for another response.
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
            // The peer repeats the ACK of the last segment if `reply` was lost. So `reply`, the ACK that opens the
            // window for the response, is sent again.
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

    /// Starts a retry, or ends the request if none is left.
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
    /// Returns how many bytes the reassembled response takes; 0 if this step does not end the request with a response.
    pub(super) fn held(&self) -> usize {
        self.end.as_ref().and_then(|end| end.as_ref().ok()).map_or(0, Message::held)
    }

    fn ignored() -> Self {
        Self { ignored: true, ..Self::default() }
    }

    fn failed(failure: Failure) -> Self {
        Self { end: Some(Err(failure)), ..Self::default() }
    }

    /// Returns a step that ends the request with [`Failure::Aborted`] and sends STOP or ABORT with `status` to the
    /// peer.
    pub(super) fn aborted(received: &Mad, status: RmppStatus) -> Self {
        let reply = Some(control::refuse(received, status));
        Self { reply, ..Self::failed(Failure::Aborted { status }) }
    }
}

/// Returns true if the response's attribute may differ from the request's. A MultiPathRecord request is answered with
/// PathRecords or `TraceRecord`s; see IBTA volume 1, chapter 15.4.
fn response_attribute_differs(request: &Mad) -> bool {
    matches!(request.method(), Method::GET_MULTI | Method::GET_TRACE_TABLE)
}

#[cfg(test)]
mod tests;
