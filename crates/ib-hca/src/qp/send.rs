//! The send queue: selects the next packet, and the packet to resume from after a loss.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::time::Duration;

use ib_link::Direction;
use ib_types::{Instant, Psn};

use super::attr::{QpState, QpType};
use super::core::{Core, Cx};
use super::recovery::{Recovery, RoundTrip};
use super::request::write;
use crate::objects::{SendOp, SendWr, Wc, WcOpcode, WcStatus};
use crate::packet::Writer;
use crate::trace::Message;

/// Maximum number of packets of a long message between ACK requests; ACKs are requested four times per window.
const ACK_EVERY: u32 = 16;

/// Minimum congestion window in packets.
const LEAST_WINDOW: u32 = 16;

/// A work request in the queue.
#[derive(Debug)]
pub(super) struct Wqe {
    pub(super) wr: SendWr,
    /// Message size in bytes.
    pub(super) length: u32,
    /// First PSN and number of PSNs; undefined before the request is started.
    pub(super) first: Psn,
    pub(super) count: u32,
    pub(super) begun: bool,
    /// Number of received READ response packets.
    pub(super) received: u32,
    /// True if the request is among the outstanding READs and atomics.
    pub(super) counted: bool,
    /// True if all responses have arrived, or if a local operation is done.
    pub(super) done: bool,
    /// Times at which it was posted, and at which its first packet was sent.
    pub(super) posted: Instant,
    pub(super) started: Instant,
}

impl Wqe {
    pub(super) const fn last(&self) -> Psn {
        self.first.wrapping_add(self.count.wrapping_sub(1))
    }

    /// Returns true for operations with response data: READs and atomics.
    pub(super) const fn is_read(&self) -> bool {
        matches!(
            self.wr.op,
            SendOp::Read { .. } | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }
        )
    }

    const fn is_local(&self) -> bool {
        matches!(self.wr.op, SendOp::LocalInvalidate { .. } | SendOp::Register(_))
    }
}

/// Maximum size of messages that may be sent before a queued acknowledgement.
const SHORT: RangeInclusive<u32> = 4..=256;

/// A send queue.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    pub(super) wqes: VecDeque<Wqe>,
    /// The request of the next packet, and the number of its packets sent.
    cursor: usize,
    sent: u32,
    /// PSNs of the next packet, of the oldest unacknowledged packet, and of the first packet never sent.
    pub(super) next: Psn,
    pub(super) unacked: Psn,
    pub(super) end: Psn,
    /// Number of outstanding READs and atomics.
    pub(super) reads: u32,
    /// Congestion window in packets, and slow-start threshold.
    window: u32,
    threshold: u32,
    grown: u32,
    since_request: u32,
    pub(super) retries_left: u8,
    pub(super) rnr_left: u8,
    /// RNR timer: no packet is sent before this time.
    pub(super) pause: Option<Instant>,
    /// ACK timeout: time of the next retransmission.
    pub(super) deadline: Option<Instant>,
    pub(super) resent: u64,
    /// True if the last written packet was a retransmission.
    pub(super) repeats: bool,
    /// Post time of the message, if the last written packet was its first.
    pub(super) posted: Option<Instant>,
    pub(super) recovery: Recovery,
    /// The packet of the current round-trip measurement, and its transmission time.
    pub(super) timed: Option<(Psn, Instant)>,
    pub(super) round_trip: Option<RoundTrip>,
    /// Time of the last transmission.
    last_sent: Instant,
    /// Time at which the last packet is retransmitted as a probe.
    pub(super) probe: Option<Instant>,
    /// True if a probe is due.
    probes: bool,
    /// True if a probe was sent since the last response.
    probed: bool,
}

/// The reason why no packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// The queue is empty, or waits for a response.
    Waits,
    /// The first request has failed.
    Failed(WcStatus),
}

impl SendQueue {
    /// Starts with a sequence number.
    pub(super) fn start(&mut self, core: &Core) {
        let psn = core.attributes.sq_psn;
        (self.next, self.unacked, self.end) = (psn, psn, psn);
        (self.window, self.threshold) = (core.window, core.window);
        self.reset_retries(core);
    }

    pub(super) const fn reset_retries(&mut self, core: &Core) {
        self.retries_left = core.attributes.retry_cnt;
        self.rnr_left = core.attributes.rnr_retry;
        self.recovery.progress();
    }

    /// Returns true if all started requests are acknowledged.
    pub(super) fn is_drained(&self) -> bool {
        self.wqes.front().is_none_or(|wqe| !wqe.begun)
    }

    /// Returns the time without a response after which a probe is sent.
    fn probe_after(&self) -> Option<Duration> {
        self.round_trip.map(RoundTrip::patience)
    }

    /// Requests a probe, a retransmission of the last packet, after a long time without a response.
    pub(super) fn handle_probe(&mut self, now: Instant) {
        self.probe = None;
        let Some(after) = self.probe_after().filter(|_| self.next != self.unacked) else { return };
        if self.last_sent + after > now {
            self.probe = Some(self.last_sent + after);
        } else if !self.probed {
            (self.probes, self.probed) = (true, true);
        }
    }

    /// Writes the last packet again; returns false if its request has completed.
    fn write_probe(&self, core: &Core, cx: &mut Cx<'_>, writer: &mut Writer<'_>) -> bool {
        let psn = self.next.wrapping_sub(1);
        let holds = |wqe: &&Wqe| {
            let is_sent = wqe.begun && wqe.count > 0 && !wqe.is_read();
            is_sent && !psn.is_before(wqe.first) && !wqe.last().is_before(psn)
        };
        let Some(wqe) = self.wqes.iter().find(holds) else { return false };
        let sent = psn.distance_from(wqe.first).unsigned_abs();
        cx.counters.retransmitted += 1;
        write(core, cx, (wqe, sent, psn), true, writer).is_ok()
    }

    /// Returns true if a packet may be ready to be sent.
    pub(super) fn is_ready(&self, core: &Core, now: Instant) -> bool {
        if self.probes && core.sends() {
            return true;
        }
        let Some(wqe) = self.wqes.get(self.cursor) else { return false };
        core.sends()
            && self.pause.is_none_or(|until| until <= now)
            && (wqe.begun || core.state == QpState::Rts)
            && self.has_room(core, wqe)
    }

    /// Returns whether the next packet is a message of its own, short, but longer than an acknowledgement.
    pub(super) fn starts_short(&self, core: &Core, now: Instant) -> bool {
        let Some(wqe) = self.wqes.get(self.cursor) else { return false };
        let is_message = matches!(wqe.wr.op, SendOp::Send { .. } | SendOp::Write { .. });
        is_message && SHORT.contains(&wqe.length) && !wqe.begun && self.is_ready(core, now)
    }

    fn has_room(&self, core: &Core, wqe: &Wqe) -> bool {
        if core.qp_type != QpType::Rc || wqe.is_local() {
            return true;
        }
        let most = u32::from(core.attributes.max_rd_atomic);
        let waits = !wqe.begun && wqe.wr.flags.fence && self.reads > 0;
        !waits && (!wqe.is_read() || self.reads < most) && self.under_way() < self.window
    }

    const fn under_way(&self) -> u32 {
        self.next.distance_from(self.unacked).unsigned_abs()
    }

    /// Writes the next packet.
    pub(super) fn transmit(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<(), Idle> {
        self.posted = None;
        if std::mem::take(&mut self.probes) && self.write_probe(core, cx, writer) {
            self.repeats = true;
            return Ok(());
        }
        writer.restart();
        loop {
            if !self.is_ready(core, cx.now) {
                return Err(Idle::Waits);
            }
            let wqe = &mut self.wqes[self.cursor];
            if wqe.is_local() {
                // A local operation is done once, even if packets before it are retransmitted.
                if !wqe.done {
                    (wqe.begun, wqe.done) = (true, true);
                    (wqe.first, wqe.count) = (self.next, 0);
                    if do_local(core, cx, &wqe.wr.op).is_err() {
                        self.fail_here(core, cx);
                        return Err(Idle::Failed(WcStatus::MwBindErr));
                    }
                }
                self.cursor += 1;
                self.complete_local(core, cx);
                continue;
            }
            if !wqe.begun {
                let packets = wqe.length.div_ceil(core.mtu() as u32).max(1);
                (wqe.begun, wqe.first, wqe.count) = (true, self.next, packets);
                wqe.started = cx.now;
                self.posted = Some(wqe.posted);
                if matches!(wqe.wr.op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }) {
                    wqe.count = 1;
                }
            }
            let wants_ack = self.since_request + 1 >= ACK_EVERY.min(self.window / 4);
            if write(core, cx, (wqe, self.sent, self.next), wants_ack, writer).is_err() {
                self.fail_here(core, cx);
                return Err(Idle::Failed(WcStatus::LocProtErr));
            }
            self.advance(core, cx);
            return Ok(());
        }
    }

    /// Advances the cursor behind a written packet.
    fn advance(&mut self, core: &Core, cx: &mut Cx<'_>) {
        let wqe = &mut self.wqes[self.cursor];
        self.repeats = self.next.is_before(self.end);
        if self.repeats {
            self.resent += 1;
            cx.counters.retransmitted += 1;
        }
        if self.timed.is_none() && self.next == self.end {
            self.timed = Some((self.next, cx.now));
        }
        let is_last = if wqe.is_read() {
            self.reads += u32::from(!wqe.counted);
            wqe.counted = true;
            self.next = wqe.first.wrapping_add(wqe.count);
            true
        } else {
            self.next = self.next.wrapping_add(1);
            self.sent += 1;
            self.sent == wqe.count
        };
        let every = ACK_EVERY.min(self.window / 4);
        self.since_request =
            if is_last || self.since_request + 1 >= every { 0 } else { self.since_request + 1 };
        self.last_sent = cx.now;
        if self.end.is_before(self.next) {
            self.end = self.next;
        }
        if is_last {
            (self.cursor, self.sent) = (self.cursor + 1, 0);
        }
        if core.qp_type == QpType::Rc {
            if self.probe.is_none() && !self.probed {
                self.probe = self.probe_after().map(|after| cx.now + after);
            }
            if self.deadline.is_none() {
                self.deadline = self.timeout(core).map(|after| cx.now + after);
            }
        } else if is_last {
            self.unacked = self.next;
            self.pop(core, cx, WcStatus::Success);
            self.complete_local(core, cx);
        }
    }

    /// Returns the ACK timeout.
    pub(super) fn timeout(&self, core: &Core) -> Option<Duration> {
        let exponent = core.attributes.timeout;
        (exponent != 0).then(|| Duration::from_nanos(4096 << exponent))
    }

    /// Starts the ACK timeout.
    pub(super) fn rearm(&mut self, core: &Core, now: Instant) {
        let waits = self.next != self.unacked;
        self.probed = false;
        if !waits {
            self.probe = None;
        } else if self.probe.is_none() {
            self.probe = self.probe_after().map(|after| now + after);
        }
        self.deadline = self.timeout(core).filter(|_| waits).map(|after| now + after);
    }

    /// Fails the request at the cursor, and with it the queue. Requests before it, whose result is unknown, are
    /// flushed.
    fn fail_here(&mut self, core: &Core, cx: &mut Cx<'_>) {
        let status = WcStatus::LocProtErr;
        while self.cursor > 0 {
            self.pop(core, cx, WcStatus::WrFlushErr);
        }
        let status =
            if self.wqes.front().is_some_and(Wqe::is_local) { WcStatus::MwBindErr } else { status };
        self.pop(core, cx, status);
    }

    /// Completes local operations at the head of the queue.
    pub(super) fn complete_local(&mut self, core: &Core, cx: &mut Cx<'_>) {
        while self.cursor > 0 && self.wqes.front().is_some_and(|wqe| wqe.is_local() && wqe.done) {
            self.pop(core, cx, WcStatus::Success);
        }
    }

    /// Completes the first request.
    pub(super) fn pop(&mut self, core: &Core, cx: &mut Cx<'_>, status: WcStatus) {
        let Some(wqe) = self.wqes.pop_front() else { return };
        self.reads -= u32::from(wqe.counted);
        if self.cursor > 0 {
            self.cursor -= 1;
        } else {
            self.sent = 0;
        }
        core.messages.note(&Message {
            direction: Direction::Send,
            opcode: opcode(&wqe.wr.op),
            status,
            wr_id: wqe.wr.wr_id,
            begin: wqe.posted,
            started: wqe.started,
            end: cx.now,
            length: wqe.length,
            first: wqe.first,
            packets: wqe.count,
        });
        if status == WcStatus::Success && !wqe.wr.flags.signaled {
            return;
        }
        let wc = Wc {
            wr_id: wqe.wr.wr_id,
            status,
            opcode: opcode(&wqe.wr.op),
            byte_len: wqe.length,
            ..core.completion()
        };
        cx.complete(core.send_cq, wc, status != WcStatus::Success);
    }

    /// Moves the cursor back to a PSN, from which all packets are retransmitted.
    pub(super) fn go_back(&mut self, psn: Psn) {
        self.next = psn;
        (self.cursor, self.sent, self.reads) = (self.wqes.len(), 0, 0);
        for (number, wqe) in self.wqes.iter_mut().enumerate() {
            let is_behind = wqe.begun && (wqe.count == 0 || wqe.last().is_before(psn));
            wqe.counted &= is_behind;
            self.reads += u32::from(wqe.counted);
            if is_behind || self.cursor < number {
                continue;
            }
            self.cursor = number;
            if wqe.begun && wqe.is_read() {
                self.next = wqe.first.wrapping_add(wqe.received);
            } else if wqe.begun {
                self.sent = psn.distance_from(wqe.first).unsigned_abs();
            }
        }
        self.since_request = 0;
        self.timed = None;
    }

    /// Reduces the congestion window after a loss.
    pub(super) fn shrink(&mut self) {
        self.window = (self.window / 2).max(LEAST_WINDOW);
        (self.threshold, self.grown) = (self.window, 0);
    }

    /// Increases the congestion window after an acknowledgement.
    pub(super) fn grow(&mut self, core: &Core, packets: u32) {
        if self.window >= core.window {
            return;
        }
        self.grown += packets;
        if self.grown >= self.window {
            self.grown = 0;
            self.window = (self.window + 1).min(core.window);
        }
    }
}

/// Executes a local operation, which needs no packet.
fn do_local(core: &Core, cx: &mut Cx<'_>, op: &SendOp) -> Result<(), ()> {
    match op {
        SendOp::LocalInvalidate { rkey } => cx.regions.invalidate(core.pd, *rkey).map_err(drop),
        SendOp::Register(with) => cx.regions.register_fast(core.pd, with).map_err(drop),
        _ => unreachable!("it was asked whether the request is local"),
    }
}

/// Returns the completion opcode of an operation.
pub(super) const fn opcode(op: &SendOp) -> WcOpcode {
    match op {
        SendOp::Send { .. } | SendOp::SendInvalidate { .. } | SendOp::SendDatagram { .. } => {
            WcOpcode::Send
        }
        SendOp::Write { .. } => WcOpcode::RdmaWrite,
        SendOp::Read { .. } => WcOpcode::RdmaRead,
        SendOp::CompareSwap { .. } => WcOpcode::CompSwap,
        SendOp::FetchAdd { .. } => WcOpcode::FetchAdd,
        SendOp::LocalInvalidate { .. } => WcOpcode::LocalInv,
        SendOp::Register(_) => WcOpcode::RegMr,
    }
}
