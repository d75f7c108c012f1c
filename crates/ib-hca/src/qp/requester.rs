//! The requester: sends the packets of requests, processes responses and recovers from losses.
//!
//! Sending, response processing and loss recovery are in one file, because all three change the same send queue, window
//! and retries.

use std::ops::RangeInclusive;
use std::time::Duration;

use ib_link::Direction;
use ib_types::{Instant, Psn};
use ib_wire::packet::{Acknowledgement, Aeth, AtomicAckEth, Header, NakCode, Operation, Position};

use super::attr::{QpState, QpType};
use super::context::QpContext;
use super::recovery::{CongestionWindow, NoRetriesLeft, Probe, Recovery, RoundTripTimer};
use super::request;
use super::send_queue::{SendQueue, Wqe};
use crate::completion::{Wc, WcStatus};
use crate::counters::DropReason;
use crate::error::PostError;
use crate::id::AhId;
use crate::packet::{Packet, Writer};
use crate::region::Regions;
use crate::resources::HcaResources;
use crate::trace::Message;
use crate::work_request::{SendOp, SendWr};

/// In a long message, at most this many packets are sent between ACK requests. With a small window, ACKs are requested
/// four times per window.
const ACK_EVERY: u32 = 16;

/// Messages with a size in this range, in bytes, may be sent ahead of a queued acknowledgement.
const SHORT: RangeInclusive<u32> = 4..=256;

/// The requester of a queue pair.
#[derive(Debug, Default)]
pub(super) struct Requester {
    queue: SendQueue,
    window: CongestionWindow,
    recovery: Recovery,
    round_trip: RoundTripTimer,
    probe: Probe,
    /// RNR timer: no packet is sent before this time.
    rnr_timer: Option<Instant>,
    /// Time at which the ACK timeout expires.
    ack_timer: Option<Instant>,
    /// Number of packets sent since the last packet with an ACK request.
    since_ack_request: u32,
    pub(super) retransmitted: u64,
    pub(super) last_sent: SentPacket,
}

/// The last packet that was written.
#[derive(Debug, Default)]
pub(super) struct SentPacket {
    at: Instant,
    /// True if the packet was a retransmission.
    pub(super) is_repeated: bool,
    /// Time at which the message was posted, if the packet was its first.
    pub(super) posted: Option<Instant>,
}

/// Error: a request has failed locally, and has been completed with an error.
pub(super) struct RequestFailed;

/// Error of the first request in the queue: the status with which the caller completes it.
type FailureStatus = WcStatus;

impl Requester {
    /// Sets the first PSN, the window and the retries on the transition to RTS.
    pub(super) const fn start(&mut self, context: &QpContext) {
        self.queue.start(context.attributes.sq_psn);
        self.window = CongestionWindow::new(context.window);
        self.restore_retries(context);
    }

    const fn restore_retries(&mut self, context: &QpContext) {
        let attributes = &context.attributes;
        self.recovery.progress(attributes.retry_cnt, attributes.rnr_retry);
    }

    /// Posts a request.
    pub(super) fn post(
        &mut self,
        context: &QpContext,
        regions: &Regions,
        now: Instant,
        wr: SendWr,
    ) -> Result<(), PostError> {
        match context.state {
            QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Err => {}
            found => return Err(PostError::State { found, expected: "Rts, Sqd, Sqe or Err" }),
        }
        if self.queue.len() >= context.init.cap.max_send_wr as usize {
            return Err(PostError::Full(context.init.cap.max_send_wr));
        }
        let length = request::check(context, regions, &wr)?;
        self.queue.push(wr, length, now);
        Ok(())
    }

    /// Returns true if all requests whose transmission has started are acknowledged.
    pub(super) fn is_drained(&self) -> bool {
        self.queue.front().is_none_or(|wqe| !wqe.is_started)
    }

    /// Returns the address handle of the next datagram to send.
    pub(super) fn next_address(&self) -> Option<AhId> {
        let SendOp::SendDatagram { to, .. } = self.queue.front()?.wr.op else { return None };
        Some(to.ah)
    }

    /// Returns true if the QP state, the RNR timer, the congestion window and the fence of the request allow the next
    /// packet to be sent.
    pub(super) fn is_ready(&self, context: &QpContext, now: Instant) -> bool {
        if self.probe.is_next() && context.sends() {
            return true;
        }
        let Some(wqe) = self.queue.current() else { return false };
        context.sends()
            && self.rnr_timer.is_none_or(|until| until <= now)
            && (wqe.is_started || context.state == QpState::Rts)
            && self.may_send(context, wqe)
    }

    /// Returns true if the next packet is a complete SEND or WRITE of 4 to 256 bytes. Such a packet is at least as long
    /// as an acknowledgement.
    pub(super) fn starts_short(&self, context: &QpContext, now: Instant) -> bool {
        let Some(wqe) = self.queue.current() else { return false };
        let is_message = matches!(wqe.wr.op, SendOp::Send { .. } | SendOp::Write { .. });
        is_message && SHORT.contains(&wqe.length) && !wqe.is_started && self.is_ready(context, now)
    }

    /// Returns true if the window, the fence and the number of outstanding READs allow a packet of the request to be
    /// sent.
    fn may_send(&self, context: &QpContext, wqe: &Wqe) -> bool {
        if context.init.qp_type != QpType::Rc {
            return true;
        }
        let reads = self.queue.outstanding_reads;
        let is_fenced = wqe.wr.flags.fence && reads > 0;
        if wqe.is_local() {
            // The fence of an executed local operation is ignored: the outstanding READs may have been posted after it.
            return wqe.is_done || !is_fenced;
        }
        (wqe.is_started || !is_fenced)
            && (!wqe.is_read() || reads < u32::from(context.attributes.max_rd_atomic))
            && self.queue.in_flight() < self.window.size()
    }

    /// Writes the next packet. Returns false if there is no packet to send.
    pub(super) fn transmit(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        writer: &mut Writer<'_>,
    ) -> Result<bool, RequestFailed> {
        self.last_sent.posted = None;
        if self.probe.take() && self.write_probe(context, hca, writer) {
            self.last_sent.is_repeated = true;
            return Ok(true);
        }
        writer.restart();
        loop {
            if !self.is_ready(context, hca.now) {
                return Ok(false);
            }
            if self.queue.current().is_some_and(Wqe::is_local) {
                // A local operation is executed only once, even if packets before it are retransmitted.
                if let Some(op) = self.queue.start_local()
                    && do_local(context, hca, op).is_err()
                {
                    self.fail_current(context, hca);
                    return Err(RequestFailed);
                }
                self.queue.pass_local();
                self.complete_local(context, hca);
                continue;
            }
            self.last_sent.posted = self.queue.start_current(context.mtu(), hca.now);
            let wants_ack = self.since_ack_request + 1 >= self.ack_interval();
            let packet = self.queue.next_packet();
            if request::write(context, &hca.regions, packet, wants_ack, writer).is_err() {
                self.fail_current(context, hca);
                return Err(RequestFailed);
            }
            self.advance(context, hca);
            return Ok(true);
        }
    }

    /// Returns the number of packets between two ACK requests.
    fn ack_interval(&self) -> u32 {
        ACK_EVERY.min(self.window.size() / 4)
    }

    /// Writes the last sent packet once more, as a probe. Returns false if its request has completed, is a READ or
    /// atomic, or has a local key that no longer gives access.
    fn write_probe(
        &self,
        context: &QpContext,
        hca: &mut HcaResources,
        writer: &mut Writer<'_>,
    ) -> bool {
        let Some(packet) = self.queue.last_packet() else { return false };
        hca.counters.retransmitted += 1;
        request::write(context, &hca.regions, packet, true, writer).is_ok()
    }

    /// Updates queue, counters and timers after a packet has been written. Completes a UC or UD request if the packet
    /// was the last of this request.
    fn advance(&mut self, context: &QpContext, hca: &mut HcaResources) {
        let now = hca.now;
        let sent = self.queue.advance();
        self.last_sent.is_repeated = sent.is_repeated;
        self.last_sent.at = now;
        if sent.is_repeated {
            self.retransmitted += 1;
            hca.counters.retransmitted += 1;
        } else {
            self.round_trip.sent(sent.psn, now);
        }
        let since = self.since_ack_request + 1;
        self.since_ack_request =
            if sent.is_last || since >= self.ack_interval() { 0 } else { since };
        if context.init.qp_type == QpType::Rc {
            self.probe.sent(now, self.round_trip.timeout());
            if self.ack_timer.is_none() {
                self.ack_timer = context.ack_timeout().map(|after| now + after);
            }
        } else if sent.is_last {
            self.queue.unacked = self.queue.next;
            self.complete_first(context, hca, WcStatus::Success);
            self.complete_local(context, hca);
        }
    }

    /// Completes the current request with an error. Flushes the requests before it, because their results are unknown.
    fn fail_current(&mut self, context: &QpContext, hca: &mut HcaResources) {
        while self.queue.has_passed() {
            self.complete_first(context, hca, WcStatus::WrFlushErr);
        }
        let is_local = self.queue.front().is_some_and(Wqe::is_local);
        let status = if is_local { WcStatus::MwBindErr } else { WcStatus::LocProtErr };
        self.complete_first(context, hca, status);
    }

    /// Completes the executed local operations at the head of the queue.
    fn complete_local(&mut self, context: &QpContext, hca: &mut HcaResources) {
        while self.queue.has_done_local() {
            self.complete_first(context, hca, WcStatus::Success);
        }
    }

    /// Completes the oldest request in the queue.
    pub(super) fn complete_first(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        status: WcStatus,
    ) {
        let Some(wqe) = self.queue.pop() else { return };
        let opcode = wqe.wr.op.completion_opcode();
        context.messages.note(&Message {
            direction: Direction::Send,
            opcode,
            status,
            wr_id: wqe.wr.wr_id,
            begin: wqe.posted,
            started: wqe.started,
            end: hca.now,
            length: wqe.length,
            first: wqe.first,
            packets: wqe.packets,
        });
        if status == WcStatus::Success && !wqe.wr.flags.signaled {
            return;
        }
        let wc = Wc { status, byte_len: wqe.length, ..context.completion(wqe.wr.wr_id, opcode) };
        hca.complete(context.init.send_cq, wc, status != WcStatus::Success);
    }

    /// Flushes all requests and stops the timers.
    pub(super) fn flush(&mut self, context: &QpContext, hca: &mut HcaResources) {
        while !self.queue.is_empty() {
            self.complete_first(context, hca, WcStatus::WrFlushErr);
        }
        (self.rnr_timer, self.ack_timer, self.probe.deadline) = (None, None, None);
        self.recovery = Recovery::default();
    }

    /// Processes a response.
    pub(super) fn handle(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), FailureStatus> {
        let psn = packet.bth.psn;
        if psn.is_before(self.queue.unacked) {
            hca.counters.drop(DropReason::Duplicate);
            return Ok(());
        }
        if !psn.is_before(self.queue.end) {
            hca.counters.drop(DropReason::Psn);
            return Ok(());
        }
        match operation {
            Operation::Acknowledge => {
                let aeth = packet.header(Header::Aeth).map(Aeth::parse);
                let Some(aeth) = aeth else { return Ok(()) };
                self.handle_acknowledgement(context, hca, psn, aeth.syndrome.decode())
            }
            Operation::AtomicAcknowledge => self.handle_atomic(context, hca, packet),
            _ => self.handle_read(context, hca, operation, packet),
        }
    }

    fn handle_acknowledgement(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        psn: Psn,
        acknowledgement: Acknowledgement,
    ) -> Result<(), FailureStatus> {
        match acknowledgement {
            Acknowledgement::Ack(_) => {
                if self.acknowledge(context, hca, psn) {
                    return Ok(());
                }
                // Responses to READs before the acknowledged packet are missing.
                self.report_missing(context, hca.now, psn)
            }
            Acknowledgement::RnrNak(timer) => {
                if !self.acknowledge(context, hca, psn.wrapping_sub(1)) {
                    return self.report_missing(context, hca.now, psn);
                }
                if self.rnr_timer.is_some() || !psn.is_before(self.queue.next) {
                    // A duplicate RNR NAK: the request has not been retransmitted since the first RNR NAK.
                    hca.counters.drop(DropReason::Duplicate);
                    return Ok(());
                }
                hca.counters.rnr_naks_received += 1;
                let used = self.recovery.use_rnr_retry(context.attributes.rnr_retry);
                used.map_err(|NoRetriesLeft| WcStatus::RnrRetryExcErr)?;
                self.go_back(psn);
                self.rnr_timer = Some(hca.now + Duration::from_nanos(timer.nanoseconds()));
                self.ack_timer = None;
                Ok(())
            }
            Acknowledgement::Nak(NakCode::SEQUENCE) => {
                hca.counters.sequence_naks_received += 1;
                // The NAK has the PSN of the missing packet, so all packets before it have arrived.
                self.acknowledge(context, hca, psn.wrapping_sub(1));
                self.report_missing(context, hca.now, psn)
            }
            Acknowledgement::Nak(code) => {
                let status = match code {
                    NakCode::INVALID_REQUEST => WcStatus::RemInvReqErr,
                    NakCode::REMOTE_ACCESS => WcStatus::RemAccessErr,
                    NakCode::REMOTE_OPERATIONAL => WcStatus::RemOpErr,
                    _ => {
                        hca.counters.drop(DropReason::Syndrome);
                        return Ok(());
                    }
                };
                if !self.acknowledge(context, hca, psn.wrapping_sub(1)) {
                    return self.report_missing(context, hca.now, psn);
                }
                Err(status)
            }
            Acknowledgement::Reserved(_) => {
                hca.counters.drop(DropReason::Syndrome);
                Ok(())
            }
        }
    }

    /// Completes the requests whose packets have PSNs up to `psn`, because the responder has acknowledged `psn`. Stops
    /// and returns false at a READ or atomic whose response data is missing.
    fn acknowledge(&mut self, context: &QpContext, hca: &mut HcaResources, psn: Psn) -> bool {
        let before = self.queue.unacked;
        let mut is_complete = true;
        while let Some(head) = self.queue.front() {
            if !head.is_started || head.packets > 0 && psn.is_before(head.last()) {
                break;
            }
            if head.packets > 0 && head.is_read() && !head.is_done {
                is_complete = false;
                break;
            }
            self.complete_first(context, hca, WcStatus::Success);
        }
        let after = psn.wrapping_add(1);
        let reached = match self.queue.front() {
            // A READ is acknowledged as far as its data has arrived.
            Some(head) if head.is_started && head.is_read() => {
                let received = head.first.wrapping_add(head.received);
                if after.is_before(received) { after } else { received }
            }
            _ => after,
        };
        let packets = reached.distance_from(before);
        if packets > 0 {
            self.progress(context, hca.now, psn, reached);
        }
        is_complete
    }

    /// Updates queue, retries, window and timers, because a response with PSN `response` has acknowledged all packets
    /// before PSN `reached`.
    fn progress(&mut self, context: &QpContext, now: Instant, response: Psn, reached: Psn) {
        let packets = reached.distance_from(self.queue.unacked).unsigned_abs();
        self.round_trip.acknowledged(response, now, self.recovery.round_began());
        self.queue.unacked = reached;
        if self.queue.next.is_before(reached) {
            // The response acknowledges packets that this round has not retransmitted yet. The requester skips them.
            self.go_back(reached);
        }
        self.restore_retries(context);
        self.window.grow(packets);
        let is_in_flight = self.queue.next != self.queue.unacked;
        self.probe.acknowledged(now, is_in_flight, self.round_trip.timeout());
        self.ack_timer = context.ack_timeout().filter(|_| is_in_flight).map(|after| now + after);
    }

    /// Processes a packet of a READ response.
    fn handle_read(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), FailureStatus> {
        let psn = packet.bth.psn;
        let Some(wqe) = self.queue.iter().find(|wqe| wqe.awaits_data()) else {
            hca.counters.drop(DropReason::Response);
            return Ok(());
        };
        let (expected, first) = (wqe.first.wrapping_add(wqe.received), wqe.first);
        if psn.is_before(expected) {
            hca.counters.drop(DropReason::Duplicate);
            return Ok(());
        }
        if psn != expected {
            // A response packet before this one is missing.
            hca.counters.drop(DropReason::Psn);
            return self.report_missing(context, hca.now, psn);
        }
        let mtu = context.mtu();
        let done = wqe.received as usize * mtu;
        let length = (wqe.length as usize - done).min(mtu);
        let is_last = wqe.received + 1 == wqe.packets;
        let fits = matches!(wqe.wr.op, SendOp::Read { .. })
            && packet.payload.len() == length
            && matches!(operation.position(), Position::Last | Position::Only) == is_last;
        if !fits {
            hca.counters.drop(DropReason::Response);
            return Ok(());
        }
        // A READ response also acknowledges all packets before the READ request.
        if !self.acknowledge(context, hca, first.wrapping_sub(1)) {
            return Ok(());
        }
        self.scatter(context, hca, done, packet.payload)?;
        let Some(wqe) = self.queue.front_mut() else { return Ok(()) };
        wqe.received += 1;
        wqe.is_done = is_last;
        self.receive_data(context, hca, psn);
        Ok(())
    }

    fn handle_atomic(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        packet: &Packet<'_>,
    ) -> Result<(), FailureStatus> {
        let psn = packet.bth.psn;
        let Some(eth) = packet.header(Header::AtomicAckEth).map(AtomicAckEth::parse) else {
            return Ok(());
        };
        let wqe = self.queue.iter().find(|wqe| wqe.awaits_data());
        let Some(first) = wqe.filter(|wqe| wqe.is_atomic()).map(|wqe| wqe.first) else {
            hca.counters.drop(DropReason::Response);
            return Ok(());
        };
        if psn != first {
            hca.counters.drop(DropReason::Psn);
            if first.is_before(psn) {
                return self.report_missing(context, hca.now, psn);
            }
            return Ok(());
        }
        if !self.acknowledge(context, hca, psn.wrapping_sub(1)) {
            return Ok(());
        }
        // The original value is stored in native byte order, in which the responder also executes atomic operations.
        self.scatter(context, hca, 0, &eth.original.to_ne_bytes())?;
        let Some(wqe) = self.queue.front_mut() else { return Ok(()) };
        (wqe.received, wqe.is_done) = (1, true);
        self.receive_data(context, hca, psn);
        Ok(())
    }

    /// Copies response data into the buffer of the first request in the queue.
    fn scatter(
        &self,
        context: &QpContext,
        hca: &HcaResources,
        offset: usize,
        bytes: &[u8],
    ) -> Result<(), FailureStatus> {
        let Some(wqe) = self.queue.front() else { return Ok(()) };
        let scattered = hca.regions.scatter(context.pd, wqe.wr.data.sges(), offset, bytes);
        scattered.map(drop).map_err(|_| WcStatus::LocProtErr)
    }

    /// Marks packets up to `psn` as acknowledged, because response data for the first request in the queue has arrived.
    /// Completes the request if its data is complete.
    fn receive_data(&mut self, context: &QpContext, hca: &mut HcaResources, psn: Psn) {
        if self.queue.front().is_some_and(|wqe| wqe.is_done) {
            self.acknowledge(context, hca, psn);
            self.complete_local(context, hca);
        } else {
            self.progress(context, hca.now, psn, psn.wrapping_add(1));
        }
    }

    /// Processes a NAK or implied NAK: a response with PSN `psn` shows that the oldest unacknowledged packet is
    /// missing.
    fn report_missing(
        &mut self,
        context: &QpContext,
        now: Instant,
        psn: Psn,
    ) -> Result<(), FailureStatus> {
        // When the RNR timer expires, all unacknowledged packets are retransmitted in any case. A response with a PSN
        // from `next` on answers a transmission before the current round.
        if self.rnr_timer.is_some() || !psn.is_before(self.queue.next) {
            return Ok(());
        }
        let (oldest, estimate) = (self.queue.unacked, self.round_trip.estimate);
        if self.recovery.report_missing(oldest, now, estimate, context.ack_timeout()) {
            return self.retransmit_missing(now);
        }
        Ok(())
    }

    fn retransmit_missing(&mut self, now: Instant) -> Result<(), FailureStatus> {
        if self.recovery.use_retry_for_nak().map_err(|NoRetriesLeft| WcStatus::RetryExcErr)? {
            self.ack_timer = None;
        }
        self.retransmit(now);
        Ok(())
    }

    /// Retransmits all unacknowledged packets.
    fn retransmit(&mut self, now: Instant) {
        self.window.shrink();
        self.go_back(self.queue.unacked);
        self.recovery.start_round(self.queue.unacked, now);
    }

    fn go_back(&mut self, psn: Psn) {
        self.queue.go_back(psn);
        self.since_ack_request = 0;
        self.round_trip.cancel();
    }

    /// Returns the time of the next timeout.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let timers =
            [self.rnr_timer, self.ack_timer, self.probe.deadline, self.recovery.deadline()];
        timers.into_iter().flatten().min()
    }

    /// Runs the timers that have expired.
    pub(super) fn handle_timeout(&mut self, hca: &mut HcaResources) -> Result<(), FailureStatus> {
        let now = hca.now;
        self.rnr_timer.take_if(|until| *until <= now);
        let is_in_flight = self.queue.next != self.queue.unacked;
        let timeout = self.round_trip.timeout().filter(|_| is_in_flight);
        self.probe.handle_timeout(now, self.last_sent.at, timeout);
        if self.ack_timer.is_some_and(|deadline| deadline <= now) {
            hca.counters.timeouts += 1;
            let used = self.recovery.use_retry_for_timeout();
            used.map_err(|NoRetriesLeft| WcStatus::RetryExcErr)?;
            // The next sent packet starts the ACK timer again.
            self.ack_timer = None;
            self.retransmit(now);
            return Ok(());
        }
        let oldest = self.queue.unacked;
        if self.recovery.take_suspected(oldest, now)
            && oldest.is_before(self.queue.next)
            && self.rnr_timer.is_none()
        {
            return self.retransmit_missing(now);
        }
        Ok(())
    }
}

/// Executes a local operation: a binding of a memory window, an invalidation or a fast registration.
fn do_local(context: &QpContext, hca: &mut HcaResources, op: &SendOp) -> Result<(), ()> {
    match op {
        SendOp::BindWindow(with) => hca.regions.bind(context.owner(), with).map_err(drop),
        SendOp::LocalInvalidate { rkey } => {
            hca.regions.invalidate(context.owner(), *rkey).map_err(drop)
        }
        SendOp::Register(with) => hca.regions.register_fast(context.pd, with).map_err(drop),
        _ => unreachable!("the request is a local operation"),
    }
}
