//! The responder: checks and executes the requests of the peer.

use std::collections::VecDeque;

use ib_link::Direction;
use ib_types::{Instant, Psn};
use ib_wire::packet::{AtomicEth, Header, Ieth, ImmDt, NakCode, Operation, Position, Reth};

use super::attr::QpType;
use super::core::{Core, Cx};
use super::respond::{Resource, Response, ResponseData};
use crate::counters::Drop;
use crate::hca::{AsyncEvent, HcaEvent};
use crate::objects::{RecvWr, WcOpcode, WcStatus};
use crate::packet::Packet;
use crate::region::AccessFlags;
use crate::trace::Message;

/// A partially received message.
#[derive(Debug, Default)]
enum Current {
    #[default]
    None,
    /// A SEND into a receive.
    Send { wr: RecvWr, received: u32 },
    /// An RDMA WRITE.
    Write { addr: u64, rkey: u32, length: u32, received: u32 },
}

/// A gap: packets arrived behind a missing one.
#[derive(Debug)]
struct Ahead {
    /// The last of them.
    last: Psn,
    /// Number of packets since the last NAK.
    count: u32,
    /// True if no packet is missing, but an RNR NAK was sent: the packet will be retransmitted.
    not_ready: bool,
}

/// Number of packets behind a missing one after which the NAK is repeated.
const TOLD_EVERY: u32 = 16;

/// The receiving half of a queue pair.
#[derive(Debug, Default)]
pub(super) struct Responder {
    pub(super) queue: VecDeque<RecvWr>,
    /// The expected PSN.
    pub(super) expected: Psn,
    /// Message sequence number: the number of completed messages.
    pub(super) msn: u32,
    /// The current gap, after a NAK was sent.
    ahead: Option<Ahead>,
    current: Current,
    /// Start time and first PSN of the partially received message.
    began: (Instant, Psn),
    /// On an unreliable connection: true if the rest of a message is skipped.
    skips: bool,
    /// The queued responses in the order of their PSNs.
    pub(super) responses: VecDeque<Response>,
    /// The last READs and atomics in the order of their PSNs: those that the peer may repeat.
    pub(super) resources: VecDeque<Resource>,
}

/// A completed message: work request ID of the receive, operation, and length.
type Ended = (u64, WcOpcode, u32);

/// A failure of the responder: the NAK to the peer, and the status of the receive.
pub(super) struct Refused {
    code: Option<NakCode>,
    status: WcStatus,
}

const INVALID: Refused =
    Refused { code: Some(NakCode::INVALID_REQUEST), status: WcStatus::LocQpOpErr };
const ACCESS: Refused =
    Refused { code: Some(NakCode::REMOTE_ACCESS), status: WcStatus::LocAccessErr };
const TOO_LONG: Refused =
    Refused { code: Some(NakCode::INVALID_REQUEST), status: WcStatus::LocLenErr };
const OPERATIONAL: Refused =
    Refused { code: Some(NakCode::REMOTE_OPERATIONAL), status: WcStatus::LocProtErr };

/// The reason why a packet was not executed.
enum Deferred {
    /// The queue pair fails.
    Refused(Refused),
    /// No receive is posted.
    NotReady,
}

impl From<Refused> for Deferred {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl Responder {
    /// Starts with a sequence number.
    pub(super) fn start(&mut self, core: &Core) {
        self.expected = core.attributes.rq_psn;
    }

    /// Processes a request packet of a reliable connection; an error ends the queue pair.
    pub(super) fn handle_reliable(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), ()> {
        let psn = packet.bth.psn;
        let distance = psn.distance_from(self.expected);
        if distance < 0 {
            cx.counters.drop(Drop::Duplicate);
            self.repeat(core, operation, packet);
            return Ok(());
        }
        if distance > 0 {
            cx.counters.drop(Drop::Psn);
            if self.is_news(psn) {
                self.nak(NakCode::SEQUENCE);
                cx.counters.sequence_naks_sent += 1;
            }
            return Ok(());
        }
        match self.execute(core, cx, operation, packet) {
            Ok(()) => {
                self.ahead = None;
                Ok(())
            }
            Err(Deferred::NotReady) => {
                // Later packets are silently dropped until this one is retransmitted.
                self.ahead = Some(Ahead { last: psn, count: 0, not_ready: true });
                self.not_ready(core);
                cx.counters.rnr_naks_sent += 1;
                Ok(())
            }
            Err(Deferred::Refused(refused)) => {
                self.refuse(core, cx, &refused);
                Err(())
            }
        }
    }

    /// Processes a request packet of an unreliable connection: an unexpected packet is dropped with its message.
    pub(super) fn handle_unreliable(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) {
        let starts = matches!(operation.position(), Position::First | Position::Only);
        let fits = packet.bth.psn == self.expected;
        self.expected = packet.bth.psn.wrapping_add(1);
        if starts {
            // The receive of an incomplete message is reused for the next one.
            if let Current::Send { wr, .. } = std::mem::take(&mut self.current) {
                self.give_back(core, cx, wr);
            }
            self.skips = false;
        } else if !fits || self.skips {
            self.skips = true;
            cx.counters.drop(Drop::Psn);
            return;
        }
        let done = self.execute(core, cx, operation, packet);
        if done.is_err() {
            cx.counters.drop(Drop::NoReceive);
            if let Current::Send { wr, .. } = std::mem::take(&mut self.current) {
                self.give_back(core, cx, wr);
            }
            self.skips = true;
        }
        self.responses.clear();
    }

    /// Returns whether to send a NAK for a packet behind a gap: for the first such packet, and again if the NAK or
    /// the retransmission seems to be lost.
    fn is_news(&mut self, psn: Psn) -> bool {
        let Some(ahead) = &mut self.ahead else {
            self.ahead = Some(Ahead { last: psn, count: 0, not_ready: false });
            return true;
        };
        if ahead.not_ready {
            return false;
        }
        let is_again = !ahead.last.is_before(psn);
        ahead.last = psn;
        ahead.count += 1;
        if is_again || ahead.count >= TOLD_EVERY {
            ahead.count = 0;
            return true;
        }
        false
    }

    fn give_back(&mut self, core: &Core, cx: &mut Cx<'_>, wr: RecvWr) {
        match core.srq.and_then(|id| cx.queues.srqs.get_mut(id.0)) {
            Some(srq) => srq.queue.push_front(wr),
            None => self.queue.push_front(wr),
        }
    }

    /// Executes a request with the expected PSN.
    fn execute(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Deferred> {
        use Operation as O;
        self.check_sequence(core, operation, packet)?;
        let psn = packet.bth.psn;
        if matches!(operation.position(), Position::First | Position::Only) {
            self.began = (cx.now, psn);
        }
        let ended = match operation {
            O::SendFirst
            | O::SendMiddle
            | O::SendLast
            | O::SendLastImmediate
            | O::SendLastInvalidate
            | O::SendOnly
            | O::SendOnlyImmediate
            | O::SendOnlyInvalidate => self.receive_send(core, cx, operation, packet)?,
            O::WriteFirst
            | O::WriteMiddle
            | O::WriteLast
            | O::WriteLastImmediate
            | O::WriteOnly
            | O::WriteOnlyImmediate => self.receive_write(core, cx, operation, packet)?,
            O::ReadRequest => {
                let length = self.receive_read(core, cx, packet)?;
                self.note(core, cx.now, (0, WcOpcode::RdmaRead, length), WcStatus::Success);
                return Ok(());
            }
            O::CompareSwap | O::FetchAdd => {
                self.receive_atomic(core, cx, operation, packet)?;
                let is_swap = operation == O::CompareSwap;
                let opcode = if is_swap { WcOpcode::CompSwap } else { WcOpcode::FetchAdd };
                self.note(core, cx.now, (0, opcode, 8), WcStatus::Success);
                return Ok(());
            }
            _ => return Err(INVALID.into()),
        };
        if core.qp_type == QpType::Rc {
            self.expected = psn.wrapping_add(1);
        }
        if let Some(ended) = ended {
            self.msn = (self.msn + 1) & 0xff_ffff;
            self.note_until(core, (cx.now, psn), ended, WcStatus::Success);
        }
        if packet.bth.ack_request {
            self.ack(psn);
        }
        Ok(())
    }

    /// Checks that the packet's position in its message is valid.
    fn check_sequence(
        &self,
        core: &Core,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let position = operation.position();
        let is_send = operation as u8 <= Operation::SendOnlyImmediate as u8
            || operation as u8 >= Operation::SendLastInvalidate as u8;
        let fits = match (&self.current, position) {
            (Current::None, Position::First | Position::Only) => true,
            (Current::Send { .. }, Position::Middle | Position::Last) => is_send,
            (Current::Write { .. }, Position::Middle | Position::Last) => {
                !is_send && operation != Operation::ReadRequest
            }
            _ => false,
        };
        let length = packet.payload.len();
        let full = match position {
            Position::First | Position::Middle => length == core.mtu(),
            Position::Last => length <= core.mtu() && length > 0,
            Position::Only => length <= core.mtu(),
        };
        if fits && full { Ok(()) } else { Err(INVALID) }
    }

    fn receive_send(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<Option<Ended>, Deferred> {
        let (wr, received) = match std::mem::take(&mut self.current) {
            Current::Send { wr, received } => (wr, received),
            _ => (self.take_receive(core, cx).ok_or(Deferred::NotReady)?, 0),
        };
        let place = super::scatter(core, cx, wr.data.sges(), received as usize, packet.payload);
        // A longer message than any receive can hold is an error in any case.
        let received = received.saturating_add(packet.payload.len() as u32);
        let fits = place.unwrap_or(true);
        let is_last = matches!(operation.position(), Position::Last | Position::Only);
        let failed = match (place, fits) {
            (Err(()), _) => Some(OPERATIONAL),
            (Ok(_), false) => Some(TOO_LONG),
            _ => None,
        };
        if let Some(refused) = failed {
            self.current = Current::Send { wr, received };
            return Err(refused.into());
        }
        if !is_last {
            self.current = Current::Send { wr, received };
            return Ok(None);
        }
        let invalidated = packet.header(Header::Ieth).map(|bytes| Ieth::parse(bytes).r_key);
        if let Some(key) = invalidated
            && cx.regions.invalidate(core.pd, key).is_err()
        {
            self.current = Current::Send { wr, received };
            return Err(OPERATIONAL.into());
        }
        let ended = (wr.wr_id, WcOpcode::Recv, received);
        self.complete(core, cx, packet, ended, invalidated);
        Ok(Some(ended))
    }

    fn receive_write(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<Option<Ended>, Deferred> {
        let (addr, rkey, length, received) = match self.current {
            Current::Write { addr, rkey, length, received } => (addr, rkey, length, received),
            _ => {
                let reth = packet.header(Header::Reth).map(Reth::parse).ok_or(INVALID)?;
                if !core.attributes.qp_access_flags.contains(AccessFlags::REMOTE_WRITE) {
                    return Err(INVALID.into());
                }
                let (addr, rkey) = (reth.virtual_address, reth.r_key);
                if reth.dma_length > 0 {
                    let range = (rkey, addr, reth.dma_length as usize);
                    let access = AccessFlags::REMOTE_WRITE;
                    cx.regions.open(core.pd, range, access).map_err(|_| ACCESS)?;
                }
                (addr, rkey, reth.dma_length, 0)
            }
        };
        let is_last = matches!(operation.position(), Position::Last | Position::Only);
        let now = received.checked_add(packet.payload.len() as u32).ok_or(INVALID)?;
        if now > length || is_last && now != length {
            return Err(INVALID.into());
        }
        let has_imm = packet.header::<4>(Header::ImmDt).is_some();
        // A message with immediate data needs a receive before its last packet is executed.
        if has_imm && !self.has_receive(core, cx) {
            return Err(Deferred::NotReady);
        }
        if !packet.payload.is_empty() {
            let range = (rkey, addr.wrapping_add(u64::from(received)), packet.payload.len());
            let opened = cx.regions.open(core.pd, range, AccessFlags::REMOTE_WRITE);
            let (memory, offset) = opened.map_err(|_| ACCESS)?;
            memory.write(offset, packet.payload).map_err(|_| ACCESS)?;
        }
        if !is_last {
            self.current = Current::Write { addr, rkey, length, received: now };
            return Ok(None);
        }
        self.current = Current::None;
        if !has_imm {
            return Ok(Some((0, WcOpcode::RdmaWrite, length)));
        }
        let wr = self.take_receive(core, cx).ok_or(Deferred::NotReady)?;
        let ended = (wr.wr_id, WcOpcode::RecvRdmaWithImm, length);
        self.complete(core, cx, packet, ended, None);
        Ok(Some(ended))
    }

    fn receive_read(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        packet: &Packet<'_>,
    ) -> Result<u32, Refused> {
        let reth = packet.header(Header::Reth).map(Reth::parse).ok_or(INVALID)?;
        self.check_resources(core, AccessFlags::REMOTE_READ)?;
        let length = reth.dma_length;
        if u64::from(length) > crate::hca::MAX_MESSAGE || !packet.payload.is_empty() {
            return Err(INVALID);
        }
        if length > 0 {
            let range = (reth.r_key, reth.virtual_address, length as usize);
            let access = AccessFlags::REMOTE_READ;
            cx.regions.open(core.pd, range, access).map_err(|_| ACCESS)?;
        }
        let psn = packet.bth.psn;
        let packets = length.div_ceil(core.mtu() as u32).max(1);
        self.expected = psn.wrapping_add(packets);
        self.msn = (self.msn + 1) & 0xff_ffff;
        let (addr, rkey, msn) = (reth.virtual_address, reth.r_key, self.msn);
        let data = ResponseData::Read { addr, rkey, length };
        self.push_data(core, Resource { first: psn, packets, msn, data, is_answered: false });
        Ok(length)
    }

    fn receive_atomic(
        &mut self,
        core: &Core,
        cx: &mut Cx<'_>,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let eth = packet.header(Header::AtomicEth).map(AtomicEth::parse).ok_or(INVALID)?;
        self.check_resources(core, AccessFlags::REMOTE_ATOMIC)?;
        if !packet.payload.is_empty() || eth.virtual_address % 8 != 0 {
            return Err(INVALID);
        }
        let range = (eth.r_key, eth.virtual_address, 8);
        let opened = cx.regions.open(core.pd, range, AccessFlags::REMOTE_ATOMIC);
        let (memory, offset) = opened.map_err(|_| ACCESS)?;
        let original = match operation {
            Operation::CompareSwap => memory.compare_swap(offset, eth.compare, eth.swap_or_add),
            _ => memory.fetch_add(offset, eth.swap_or_add),
        };
        let original = original.map_err(|_| INVALID)?;
        let psn = packet.bth.psn;
        self.expected = psn.wrapping_add(1);
        self.msn = (self.msn + 1) & 0xff_ffff;
        let msn = self.msn;
        let data = ResponseData::Atomic { original };
        self.push_data(core, Resource { first: psn, packets: 1, msn, data, is_answered: false });
        Ok(())
    }

    /// Checks that the peer has READ or atomic access, and that a resource is free for a new request.
    ///
    /// The peer sends a new request only if one of its resources is free. So the oldest response has arrived, and its
    /// resource is free even if a repeated response is queued.
    fn check_resources(&self, core: &Core, access: AccessFlags) -> Result<(), Refused> {
        let most = core.most_served();
        let is_full = self.resources.len() >= most;
        let is_free = !is_full || self.resources.front().is_some_and(|oldest| oldest.is_answered);
        let allowed = core.attributes.qp_access_flags.contains(access) && is_free;
        if allowed { Ok(()) } else { Err(INVALID) }
    }

    fn has_receive(&self, core: &Core, cx: &Cx<'_>) -> bool {
        match core.srq {
            Some(id) => cx.queues.srqs.get(id.0).is_some_and(|srq| !srq.queue.is_empty()),
            None => !self.queue.is_empty(),
        }
    }

    /// Takes the next receive.
    pub(super) fn take_receive(&mut self, core: &Core, cx: &mut Cx<'_>) -> Option<RecvWr> {
        let Some(id) = core.srq else { return self.queue.pop_front() };
        let srq = cx.queues.srqs.get_mut(id.0)?;
        let wr = srq.queue.pop_front()?;
        if srq.limit > 0 && (srq.queue.len() as u32) < srq.limit {
            srq.limit = 0;
            cx.events.push_back(HcaEvent::Async(AsyncEvent::SrqLimitReached(id)));
        }
        Some(wr)
    }

    /// Records the completion of the message before the expected packet.
    fn note(&self, core: &Core, now: Instant, ended: Ended, status: WcStatus) {
        self.note_until(core, (now, self.expected.wrapping_sub(1)), ended, status);
    }

    /// Records the completion of a message, given its last PSN.
    #[inline]
    fn note_until(
        &self,
        core: &Core,
        (now, last): (Instant, Psn),
        (wr_id, opcode, length): Ended,
        status: WcStatus,
    ) {
        let (began, first) = self.began;
        core.messages.note(&Message {
            direction: Direction::Receive,
            opcode,
            status,
            wr_id,
            begin: began,
            started: began,
            end: now,
            length,
            first,
            packets: last.distance_from(first).unsigned_abs() + 1,
        });
    }

    /// Completes a receive.
    fn complete(
        &self,
        core: &Core,
        cx: &mut Cx<'_>,
        packet: &Packet<'_>,
        (wr_id, opcode, byte_len): Ended,
        invalidated_rkey: Option<u32>,
    ) {
        let imm_data = packet.header(Header::ImmDt).map(|bytes| ImmDt::parse(bytes).data);
        let wc = crate::objects::Wc {
            wr_id,
            opcode,
            byte_len,
            imm_data,
            invalidated_rkey,
            src_qp: core.attributes.dest_qp_num,
            ..core.completion()
        };
        cx.complete(core.recv_cq, wc, packet.bth.solicited_event);
    }

    /// Sends the NAK that ends the queue pair, and completes the current receive with an error.
    fn refuse(&mut self, core: &Core, cx: &mut Cx<'_>, refused: &Refused) {
        if let Some(code) = refused.code {
            self.nak(code);
            cx.counters.naks_sent += 1;
        }
        if let Current::Send { wr, received } = std::mem::take(&mut self.current) {
            let (wr_id, status) = (wr.wr_id, refused.status);
            self.note_until(
                core,
                (cx.now, self.expected),
                (wr_id, WcOpcode::Recv, received),
                status,
            );
            let wc =
                crate::objects::Wc { wr_id, status, opcode: WcOpcode::Recv, ..core.completion() };
            cx.complete(core.recv_cq, wc, true);
        }
    }

    /// Flushes all receives of a failed queue pair.
    pub(super) fn flush(&mut self, core: &Core, cx: &mut Cx<'_>) {
        let current = std::mem::take(&mut self.current);
        let begun = if let Current::Send { wr, .. } = current { Some(wr) } else { None };
        for wr in begun.into_iter().chain(std::mem::take(&mut self.queue)) {
            let (wr_id, status) = (wr.wr_id, WcStatus::WrFlushErr);
            let opcode = WcOpcode::Recv;
            let wc = crate::objects::Wc { wr_id, status, opcode, ..core.completion() };
            cx.complete(core.recv_cq, wc, true);
        }
    }
}
