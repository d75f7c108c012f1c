//! Queue pairs.
//!
//! A queue pair has a requester, which sends requests and processes their responses, and a responder, which executes
//! the requests of the peer. Both work with the QP context and with the shared resources of the HCA.
//!
//! | file | holds |
//! |---|---|
//! | `attr.rs` | states, attributes, and the attributes that each transition requires |
//! | `connection.rs` | [`QpConnection`]: the attributes that connect an RC queue pair |
//! | `context.rs` | the state that the requester and the responder share |
//! | `requester.rs` | the requester: packets of requests, responses, timers |
//! | `send_queue.rs` | work requests and the PSNs of their packets |
//! | `request.rs` | checks of posted requests, and the packets of requests |
//! | `recovery.rs` | retries, round-trip time, tail loss probe and congestion window |
//! | `responder.rs` | the responder: requests of the peer |
//! | `receive_queue.rs` | receives of the queue pair or of its SRQ |
//! | `responses.rs` | ACKs, NAKs and response data |
//! | `datagram.rs` | received datagrams |

use ib_link::{Direction, Route};
use ib_types::Instant;
use ib_wire::packet::Transport;

pub(crate) mod attr;
mod connection;
pub(crate) mod context;
mod datagram;
mod receive_queue;
mod recovery;
mod request;
mod requester;
mod responder;
mod responses;
mod send_queue;

pub use connection::QpConnection;

use crate::completion::WcStatus;
use crate::counters::DropReason;
use crate::error::PostError;
use crate::event::{AsyncEvent, HcaEvent};
use crate::packet::{Packet, Writer};
use crate::resources::HcaResources;
use crate::trace::{OpcodeLayout, PacketNote, PacketTracer, Trigger};
use crate::work_request::{RecvWr, SendWr};
use attr::{QpAttr, QpState, QpType};
use context::QpContext;
use requester::{RequestFailed, Requester};
use responder::Responder;

/// A queue pair.
#[derive(Debug)]
pub(crate) struct Qp {
    pub(crate) context: QpContext,
    requester: Requester,
    responder: Responder,
    /// True if the scheduler of the HCA lists the queue pair among those with packets to send.
    pub(crate) is_listed: bool,
    /// Earliest expiry time for which the HCA's timer heap has an entry of this queue pair.
    pub(crate) timer: Option<Instant>,
    /// True if the last sent packet was a short message, sent ahead of a queued acknowledgement.
    has_led: bool,
    /// True if `AsyncEvent::SqDrained` was reported in the current state.
    is_drained: bool,
    /// The packet trace, if enabled.
    pub(crate) tracer: Option<Box<PacketTracer>>,
}

impl Qp {
    pub(crate) fn new(context: QpContext) -> Self {
        Self {
            context,
            requester: Requester::default(),
            responder: Responder::default(),
            is_listed: false,
            timer: None,
            has_led: false,
            is_drained: false,
            tracer: None,
        }
    }

    /// Changes attributes and state. [`attr::check`] has checked `attr` and returned `to`.
    pub(crate) fn modify(&mut self, hca: &mut HcaResources, attr: &QpAttr, to: QpState) {
        let from = self.context.state;
        self.context.attributes.apply(attr);
        if let Some(tracer) = &mut self.tracer {
            tracer.forget_route();
        }
        self.context.state = to;
        self.is_drained = false;
        match (from, to) {
            (_, QpState::Reset) => {
                (self.requester, self.responder) = (Requester::default(), Responder::default());
            }
            (QpState::Err, QpState::Err) => {}
            (_, QpState::Err) => {
                self.responder.responses.clear();
                self.flush(hca);
            }
            (QpState::Init, QpState::Rtr) => self.responder.start(&self.context),
            (QpState::Rtr, QpState::Rts) => self.requester.start(&self.context),
            (QpState::Rts, QpState::Sqd) => self.report_drained(hca),
            _ => {}
        }
    }

    /// Posts a send request.
    pub(crate) fn post_send(
        &mut self,
        hca: &mut HcaResources,
        wr: SendWr,
    ) -> Result<(), PostError> {
        self.requester.post(&self.context, &hca.regions, hca.now, wr)?;
        if matches!(self.context.state, QpState::Err | QpState::Sqe) {
            self.requester.flush(&self.context, hca);
        }
        Ok(())
    }

    /// Posts a receive.
    pub(crate) fn post_recv(
        &mut self,
        hca: &mut HcaResources,
        wr: RecvWr,
    ) -> Result<(), PostError> {
        self.responder.receives.post(&self.context, wr)?;
        if self.context.state == QpState::Err {
            self.responder.flush(&self.context, hca);
        }
        Ok(())
    }

    /// Processes a packet for this queue pair.
    pub(crate) fn handle(&mut self, hca: &mut HcaResources, route: &Route, packet: &Packet<'_>) {
        let context = &self.context;
        if !context.receives() {
            return hca.counters.drop(DropReason::State);
        }
        if !packet.bth.p_key.matches(context.attributes.pkey) {
            return hca.counters.drop(DropReason::PKey);
        }
        let opcode = packet.bth.opcode;
        let Some(operation) = opcode.operation() else {
            return hca.counters.drop(DropReason::Opcode);
        };
        let qp_type = context.init.qp_type;
        let transport = match qp_type {
            QpType::Rc => Transport::Rc,
            QpType::Uc => Transport::Uc,
            QpType::Ud => Transport::Ud,
        };
        if opcode.transport() != transport {
            return hca.counters.drop(DropReason::Opcode);
        }
        if qp_type == QpType::Ud {
            return datagram::receive(context, hca, &mut self.responder.receives, route, packet);
        }
        if !self.is_from_peer(route) {
            return hca.counters.drop(DropReason::Source);
        }
        if route.is_weak && !context.attributes.route.is_weak {
            return hca.counters.drop(DropReason::Icrc);
        }
        if qp_type == QpType::Uc {
            if self.responder.handle_unreliable(context, hca, operation, packet).is_err() {
                self.enter_error(hca);
            }
            return;
        }
        if operation.is_response() {
            if !context.sends() {
                return hca.counters.drop(DropReason::State);
            }
            if let Err(status) = self.requester.handle(context, hca, operation, packet) {
                self.fail(hca, status);
            }
            return self.report_drained(hca);
        }
        if self.responder.handle_reliable(context, hca, operation, packet).is_err() {
            self.enter_error(hca);
        }
    }

    /// Returns true if a route leads to the port that the queue pair is connected to.
    fn is_from_peer(&self, route: &Route) -> bool {
        let peer = &self.context.attributes.route;
        if peer.is_global || route.is_global {
            return peer.is_global == route.is_global
                && peer.destination == route.destination
                && peer.source == route.source;
        }
        peer.dlid == route.dlid
    }

    /// Returns true if the queue pair may have packets to send.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        !self.responder.responses.is_empty() || self.requester.is_ready(&self.context, now)
    }

    /// Writes the next packet, and returns its route.
    pub(crate) fn transmit(
        &mut self,
        hca: &mut HcaResources,
        writer: &mut Writer<'_>,
    ) -> Option<Route> {
        let context = &self.context;
        // A short message is sent ahead of a queued acknowledgement. In a GSO batch, only the last packet can be
        // shorter, so the link can send both packets in one batch only in this order.
        self.has_led = !self.has_led
            && self.responder.responses.is_acknowledgement()
            && self.requester.starts_short(context, hca.now);
        let route = context.attributes.route;
        if !self.has_led {
            match self.responder.responses.transmit(context, &hca.regions, writer) {
                Ok(true) => return Some(route),
                Ok(false) => {}
                Err(_) => {
                    self.fail_unreported(hca);
                    return Some(route);
                }
            }
        }
        let route = if context.init.qp_type == QpType::Ud {
            let address = self.requester.next_address();
            let handle = address.and_then(|id| hca.ahs.get(id.0));
            if handle.is_none() && self.requester.is_ready(context, hca.now) {
                // The address handle was destroyed before the datagram was sent.
                self.requester.complete_first(context, hca, WcStatus::LocQpOpErr);
                self.after_failed_request(hca);
                return None;
            }
            handle.map(|handle| handle.route)
        } else {
            Some(route)
        };
        match self.requester.transmit(context, hca, writer) {
            Ok(true) => route,
            Ok(false) => None,
            Err(RequestFailed) => {
                self.after_failed_request(hca);
                None
            }
        }
    }

    /// If the queue pair is traced, records a packet that [`Self::transmit`] has written.
    #[inline(never)]
    pub(crate) fn note_sent(&mut self, now: Instant, route: &Route, writer: &Writer<'_>) {
        let Some(tracer) = &mut self.tracer else { return };
        let Some(layout) = OpcodeLayout::of(writer.head()) else { return };
        let sent = &self.requester.last_sent;
        let is_repeated = !layout.is_response && sent.is_repeated;
        let posted = sent.posted.filter(|_| !layout.is_response);
        let is_own = self.context.init.qp_type != QpType::Ud;
        let note = PacketNote {
            posted,
            is_own,
            is_repeated,
            ..PacketNote::new(Direction::Send, now, route)
        };
        tracer.note_parsed(&note, layout, writer.head(), writer.written());
        if is_repeated {
            tracer.trigger(Trigger::Retransmission);
        }
    }

    /// If the queue pair is traced, records a received packet.
    #[inline(never)]
    pub(crate) fn note_received(
        &mut self,
        now: Instant,
        route: &Route,
        bytes: &[u8],
        dropped: Option<DropReason>,
    ) {
        let Some(tracer) = &mut self.tracer else { return };
        let note = PacketNote { dropped, ..PacketNote::new(Direction::Receive, now, route) };
        tracer.note(&note, bytes, bytes);
        if dropped.is_some() {
            tracer.trigger(Trigger::Drop);
        }
    }

    /// If the queue pair is in the error state, reports [`Trigger::Error`] to its packet trace.
    pub(crate) fn note_state(&mut self) {
        if let Some(tracer) = &mut self.tracer
            && self.context.state == QpState::Err
        {
            tracer.trigger(Trigger::Error);
        }
    }

    /// Runs the timers that have expired.
    pub(crate) fn handle_timeout(&mut self, hca: &mut HcaResources) {
        if !self.context.sends() {
            return;
        }
        if let Err(status) = self.requester.handle_timeout(hca) {
            self.fail(hca, status);
        }
    }

    /// Returns the time of the next timeout.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.context.sends() { self.requester.deadline() } else { None }
    }

    /// Returns the number of retransmitted packets.
    pub(crate) const fn retransmitted(&self) -> u64 {
        self.requester.retransmitted
    }

    /// Completes the oldest request in the send queue with an error, and enters the error state.
    fn fail(&mut self, hca: &mut HcaResources, status: WcStatus) {
        self.requester.complete_first(&self.context, hca, status);
        self.enter_error(hca);
    }

    /// Enters state `Err` for RC, or `Sqe` for UC and UD, after a request has failed locally.
    fn after_failed_request(&mut self, hca: &mut HcaResources) {
        if self.context.init.qp_type == QpType::Rc {
            return self.enter_error(hca);
        }
        // The failed request of a UC or UD queue pair affects only the send queue. The responder keeps running.
        self.context.state = QpState::Sqe;
        self.requester.flush(&self.context, hca);
    }

    /// Enters the error state.
    pub(crate) fn enter_error(&mut self, hca: &mut HcaResources) {
        if self.context.state == QpState::Err {
            return;
        }
        self.context.state = QpState::Err;
        self.responder.responses.clear_before_nak();
        self.flush(hca);
    }

    /// Enters the error state for a reason that no completion reports, such as an overrun of a CQ.
    pub(crate) fn fail_unreported(&mut self, hca: &mut HcaResources) {
        if self.context.state != QpState::Err {
            self.enter_error(hca);
            hca.events.push_back(HcaEvent::Async(AsyncEvent::QpFatal(self.context.id)));
        }
    }

    fn flush(&mut self, hca: &mut HcaResources) {
        self.requester.flush(&self.context, hca);
        self.responder.flush(&self.context, hca);
        if self.context.init.srq.is_some() {
            hca.events.push_back(HcaEvent::Async(AsyncEvent::QpLastWqeReached(self.context.id)));
        }
    }

    /// Reports once that the send queue is drained, if the queue pair is in state `Sqd`.
    fn report_drained(&mut self, hca: &mut HcaResources) {
        if self.context.state == QpState::Sqd && self.requester.is_drained() && !self.is_drained {
            self.is_drained = true;
            hca.events.push_back(HcaEvent::Async(AsyncEvent::SqDrained(self.context.id)));
        }
    }
}
