//! Queue pairs.
//!
//! | file | holds |
//! |---|---|
//! | `attr.rs` | states, attributes, which change needs which |
//! | `send.rs` | the send queue: packets out, and out again |
//! | `request.rs` | the packets of requests |
//! | `acked.rs` | what comes back to it |
//! | `recovery.rs` | loss recovery: retransmissions and retries |
//! | `receive.rs` | requests of the other side |
//! | `respond.rs` | what is answered |
//! | `datagram.rs` | datagrams |

use ib_link::{Direction, Route};
use ib_types::Instant;
use ib_wire::packet::{Operation, Transport};

mod acked;
pub mod attr;
mod connection;
pub(crate) mod core;
mod datagram;
mod post;
mod receive;
mod recovery;
mod request;
mod respond;
mod send;

pub use attr::{ModifyError, QpAttr, QpAttrName, QpAttributes, QpCap, QpInitAttr, QpState, QpType};
pub use connection::QpConnection;

use self::core::{Core, Cx};
use crate::counters::Drop;
use crate::hca::{AsyncEvent, HcaEvent};
use crate::objects::{Sge, WcStatus};
use crate::packet::{Packet, Writer};
use crate::trace::{Noted, Packets, Shape, Trigger};
pub(crate) use post::check_recv;
use receive::Responder;
use recovery::Recovery;
use send::{Idle, SendQueue};

/// A queue pair.
#[derive(Debug)]
pub(crate) struct Qp {
    pub(crate) core: Core,
    send: SendQueue,
    responder: Responder,
    /// Whether the HCA has it in its list of those that may have something to send.
    pub(crate) listed: bool,
    /// The time for which the HCA has noted it.
    pub(crate) noted: Option<Instant>,
    /// Whether a message has gone before an acknowledgement.
    led: bool,
    /// Whether it was told that all is done that had begun before sending was stopped.
    is_drained: bool,
    /// What is kept of its packets, while that is wanted.
    pub(crate) packets: Option<Box<Packets>>,
}

impl Qp {
    pub(crate) fn new(core: Core) -> Self {
        let (send, responder) = (SendQueue::default(), Responder::default());
        Self {
            core,
            send,
            responder,
            listed: false,
            noted: None,
            led: false,
            is_drained: false,
            packets: None,
        }
    }

    /// Changes attributes and state, after the change was checked.
    pub(crate) fn modify(&mut self, cx: &mut Cx<'_>, attr: &QpAttr, to: QpState) {
        let from = self.core.state;
        self.core.attributes.apply(attr);
        if let Some(packets) = &mut self.packets {
            packets.forget_way();
        }
        self.core.state = to;
        self.is_drained = false;
        match (from, to) {
            (_, QpState::Reset) => {
                (self.send, self.responder) = (SendQueue::default(), Responder::default());
            }
            (QpState::Err, QpState::Err) => {}
            (_, QpState::Err) => {
                self.responder.responses.clear();
                self.flush(cx);
            }
            (QpState::Init, QpState::Rtr) => self.responder.start(&self.core),
            (QpState::Rtr, QpState::Rts) => self.send.start(&self.core),
            (QpState::Rts, QpState::Sqd) => self.report_drained(cx),
            _ => {}
        }
    }

    /// Takes a packet that is for this queue pair.
    pub(crate) fn handle(&mut self, cx: &mut Cx<'_>, route: &Route, packet: &Packet<'_>) {
        if !self.core.receives() {
            return cx.counters.drop(Drop::State);
        }
        if !packet.bth.p_key.matches(self.core.attributes.pkey) {
            return cx.counters.drop(Drop::PKey);
        }
        let opcode = packet.bth.opcode;
        let Some(operation) = opcode.operation() else { return cx.counters.drop(Drop::Opcode) };
        let is_own = match self.core.qp_type {
            QpType::Rc => opcode.transport() == Transport::Rc,
            QpType::Uc => opcode.transport() == Transport::Uc,
            QpType::Ud => opcode.transport() == Transport::Ud,
        };
        if !is_own {
            return cx.counters.drop(Drop::Opcode);
        }
        if self.core.qp_type == QpType::Ud {
            return self.receive_datagram(cx, route, packet);
        }
        if !self.comes_from_peer(route) {
            return cx.counters.drop(Drop::Source);
        }
        if route.is_weak && !self.core.attributes.route.is_weak {
            return cx.counters.drop(Drop::Icrc);
        }
        if self.core.qp_type == QpType::Uc {
            return self.responder.handle_unreliable(&self.core, cx, operation, packet);
        }
        if is_response(operation) {
            if !self.core.sends() {
                return cx.counters.drop(Drop::State);
            }
            if let Err(status) = self.send.handle(&self.core, cx, operation, packet) {
                self.fail(cx, status);
            }
            return self.report_drained(cx);
        }
        if self.responder.handle_reliable(&self.core, cx, operation, packet).is_err() {
            self.enter_error(cx);
        }
    }

    /// Packets are taken from the port that the queue pair is connected to only.
    fn comes_from_peer(&self, route: &Route) -> bool {
        let peer = &self.core.attributes.route;
        if peer.is_global || route.is_global {
            return peer.is_global == route.is_global
                && peer.destination == route.destination
                && peer.source == route.source;
        }
        peer.dlid == route.dlid
    }

    /// Returns true when there may be something to send.
    pub(crate) fn is_ready(&self, now: Instant) -> bool {
        !self.responder.responses.is_empty() || self.send.is_ready(&self.core, now)
    }

    /// Writes the next packet; returns the way that it takes.
    pub(crate) fn transmit(&mut self, cx: &mut Cx<'_>, writer: &mut Writer<'_>) -> Option<Route> {
        // A link takes both in one piece when the shorter one, which an acknowledgement is, comes last.
        self.led = !self.led
            && self.responder.only_acknowledges()
            && self.send.starts_short(&self.core, cx.now);
        if !self.led {
            match self.responder.transmit(&self.core, cx, writer) {
                Ok(true) => return Some(self.core.attributes.route),
                Ok(false) => {}
                Err(()) => {
                    self.enter_error(cx);
                    return Some(self.core.attributes.route);
                }
            }
        }
        let route = self.route_of_next(cx);
        if self.core.qp_type == QpType::Ud
            && route.is_none()
            && self.send.is_ready(&self.core, cx.now)
        {
            // The way was destroyed before the datagram could take it.
            self.send.pop(&self.core, cx, WcStatus::LocQpOpErr);
            self.after_failure(cx);
            return None;
        }
        match self.send.transmit(&self.core, cx, writer) {
            Ok(()) => route,
            Err(Idle::Waits) => None,
            Err(Idle::Failed(_)) => {
                self.after_failure(cx);
                None
            }
        }
    }

    /// Keeps a packet that was written.
    #[inline(never)]
    pub(crate) fn note_sent(&mut self, now: Instant, route: &Route, writer: &Writer<'_>) {
        let Some(packets) = &mut self.packets else { return };
        let Some(shape) = Shape::of(writer.start()) else { return };
        let is_repeated = !shape.is_response && self.send.repeats;
        let posted = self.send.posted.filter(|_| !shape.is_response);
        let is_own = self.core.qp_type != QpType::Ud;
        let noted =
            Noted { posted, is_own, is_repeated, ..Noted::new((Direction::Send, now), route) };
        packets.keep(&noted, shape, writer.start(), writer.written());
        if is_repeated {
            packets.trigger(Trigger::Retransmission);
        }
    }

    /// Keeps a packet that has come in.
    #[inline(never)]
    pub(crate) fn note_received(
        &mut self,
        now: Instant,
        route: &Route,
        bytes: &[u8],
        dropped: Option<Drop>,
    ) {
        let Some(packets) = &mut self.packets else { return };
        packets.note(
            &Noted { dropped, ..Noted::new((Direction::Receive, now), route) },
            bytes,
            bytes,
        );
        if dropped.is_some() {
            packets.trigger(Trigger::Drop);
        }
    }

    /// A trace may have waited for the queue pair's end.
    pub(crate) fn note_state(&mut self) {
        if let Some(packets) = &mut self.packets
            && self.core.state == QpState::Err
        {
            packets.trigger(Trigger::Error);
        }
    }

    /// Does what is due.
    pub(crate) fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if !self.core.sends() {
            return;
        }
        if let Err(status) = self.send.handle_timeout(cx) {
            self.fail(cx, status);
        }
    }

    /// Returns when something is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if !self.core.sends() {
            return None;
        }
        let send = &self.send;
        let timers = [send.pause, send.deadline, send.probe, send.recovery.deadline()];
        timers.into_iter().flatten().min()
    }

    /// Returns how many packets were sent again.
    pub(crate) const fn resent(&self) -> u64 {
        self.send.resent
    }

    /// The first request has failed, and the queue pair with it.
    fn fail(&mut self, cx: &mut Cx<'_>, status: WcStatus) {
        self.send.pop(&self.core, cx, status);
        self.enter_error(cx);
    }

    /// A request has failed before it was sent.
    fn after_failure(&mut self, cx: &mut Cx<'_>) {
        if self.core.qp_type == QpType::Rc {
            return self.enter_error(cx);
        }
        // The receiving half of an unreliable queue pair goes on.
        self.core.state = QpState::Sqe;
        self.flush_sends(cx);
    }

    /// The queue pair fails.
    pub(crate) fn enter_error(&mut self, cx: &mut Cx<'_>) {
        if self.core.state == QpState::Err {
            return;
        }
        self.core.state = QpState::Err;
        // Only the refusal still goes out that tells the other side why.
        let refusal = self.responder.responses.pop_back_if(|last| last.is_refusal());
        self.responder.responses.clear();
        self.responder.responses.extend(refusal);
        cx.events.push_back(HcaEvent::Async(AsyncEvent::QpFatal(self.core.id)));
        self.flush(cx);
    }

    fn flush_sends(&mut self, cx: &mut Cx<'_>) {
        while !self.send.wqes.is_empty() {
            self.send.pop(&self.core, cx, WcStatus::WrFlushErr);
        }
        (self.send.pause, self.send.deadline, self.send.probe) = (None, None, None);
        self.send.recovery = Recovery::default();
        self.send.reads = 0;
    }

    fn flush(&mut self, cx: &mut Cx<'_>) {
        self.flush_sends(cx);
        self.responder.flush(&self.core, cx);
        if self.core.srq.is_some() {
            cx.events.push_back(HcaEvent::Async(AsyncEvent::QpLastWqeReached(self.core.id)));
        }
    }

    fn report_drained(&mut self, cx: &mut Cx<'_>) {
        if self.core.state == QpState::Sqd && self.send.is_drained() && !self.is_drained {
            self.is_drained = true;
            cx.events.push_back(HcaEvent::Async(AsyncEvent::SqDrained(self.core.id)));
        }
    }
}

/// Returns true for what a requester gets.
pub(crate) const fn is_response(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::ReadResponseFirst
            | Operation::ReadResponseMiddle
            | Operation::ReadResponseLast
            | Operation::ReadResponseOnly
            | Operation::Acknowledge
            | Operation::AtomicAcknowledge
    )
}

/// Puts bytes into pieces of memory, from some byte of them on. Returns whether they fit; an error when a
/// piece is not open to that.
fn scatter(
    core: &Core,
    cx: &Cx<'_>,
    sges: &[Sge],
    start: usize,
    mut bytes: &[u8],
) -> Result<bool, ()> {
    let mut skip = start;
    for sge in sges {
        let size = sge.length as usize;
        if skip >= size {
            skip -= size;
            continue;
        }
        let part = (size - skip).min(bytes.len());
        if part == 0 {
            break;
        }
        let range = (sge.lkey, sge.addr.wrapping_add(skip as u64), part);
        let opened = cx.regions.open(core.pd, range, acked::WRITES);
        let (memory, offset) = opened.map_err(drop)?;
        memory.write(offset, &bytes[..part]).map_err(drop)?;
        (skip, bytes) = (0, &bytes[part..]);
    }
    Ok(bytes.is_empty())
}
