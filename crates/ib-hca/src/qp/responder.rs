//! The responder: checks and executes the requests of the peer.
//!
//! The requests of all operations are in one file, because they change the same expected PSN, partial message and
//! responses.

use ib_link::Direction;
use ib_types::{Instant, Psn};
use ib_wire::packet::{
    Acknowledgement, AtomicEth, Header, Ieth, ImmDt, NakCode, Operation, Position, Reth, RnrTimer,
    Syndrome,
};

use super::attr::QpType;
use super::context::QpContext;
use super::receive_queue::ReceiveQueue;
use super::responses::{ResponseData, ResponseQueue};
use crate::completion::{Wc, WcOpcode, WcStatus};
use crate::counters::DropReason;
use crate::event::{AsyncEvent, HcaEvent};
use crate::packet::Packet;
use crate::region::AccessFlags;
use crate::resources::HcaResources;
use crate::trace::Message;
use crate::work_request::{MAX_MESSAGE, RecvWr};

/// A message of which only the first packets have been received.
#[derive(Debug, Default)]
enum PartialMessage {
    #[default]
    None,
    /// A SEND, with the receive that the message consumes.
    Send { wr: RecvWr, received: u32 },
    /// An RDMA WRITE.
    Write { addr: u64, rkey: u32, length: u32, received: u32 },
}

/// A gap in the PSNs of received packets: the expected packet is missing, or was rejected with an RNR NAK.
#[derive(Debug)]
struct Gap {
    /// PSN of the most recently received packet behind the gap.
    last: Psn,
    /// Number of packets received since the last NAK.
    count: u32,
    /// True if the gap was caused by an RNR NAK: the peer then retransmits the packet without another NAK.
    is_not_ready: bool,
}

/// The NAK for a gap is repeated each time that this many packets after the gap have been received.
const NAK_EVERY: u32 = 16;

/// The responder of a queue pair.
#[derive(Debug, Default)]
pub(super) struct Responder {
    pub(super) receives: ReceiveQueue,
    pub(super) responses: ResponseQueue,
    /// The expected PSN.
    expected: Psn,
    /// Message sequence number: the number of completed messages.
    msn: u32,
    /// The gap in the PSNs of received packets, for which a NAK was sent; `None` if there is no gap.
    gap: Option<Gap>,
    partial: PartialMessage,
    /// Time and PSN of the first packet of the partially received message.
    began: (Instant, Psn),
    /// True if the remaining packets of a UC message are skipped, because one of its packets was lost or invalid.
    skips: bool,
}

/// A message of which all packets have been received.
#[derive(Clone, Copy)]
struct CompletedMessage {
    /// Work request ID of the receive that the message consumed; 0 if it consumed none.
    wr_id: u64,
    opcode: WcOpcode,
    /// Message size in bytes.
    length: u32,
}

/// Refusal of a request, after which the queue pair fails (IBTA volume 1, 9.9.6).
struct Refusal {
    /// Code of the NAK; `None` if the peer gets no NAK.
    code: Option<NakCode>,
    /// Completion status of the receive.
    status: WcStatus,
}

const INVALID: Refusal =
    Refusal { code: Some(NakCode::INVALID_REQUEST), status: WcStatus::LocQpOpErr };
const ACCESS: Refusal =
    Refusal { code: Some(NakCode::REMOTE_ACCESS), status: WcStatus::LocAccessErr };
const TOO_LONG: Refusal =
    Refusal { code: Some(NakCode::INVALID_REQUEST), status: WcStatus::LocLenErr };
const OPERATIONAL: Refusal =
    Refusal { code: Some(NakCode::REMOTE_OPERATIONAL), status: WcStatus::LocProtErr };
/// A SEND with invalidation whose key is not valid.
const BAD_INVALIDATION: Refusal = Refusal { code: None, status: WcStatus::LocProtErr };

/// Error of [`Responder::execute`].
enum ExecuteError {
    /// The request is refused, and the queue pair fails.
    Refused(Refusal),
    /// No receive is posted.
    NotReady,
}

impl From<Refusal> for ExecuteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Error: a request was refused with a NAK, and the queue pair fails.
pub(super) struct RequestRefused;

impl Responder {
    /// Sets the expected PSN on the transition to RTR.
    pub(super) const fn start(&mut self, context: &QpContext) {
        self.expected = context.attributes.rq_psn;
    }

    /// Processes a request packet of a reliable connection.
    pub(super) fn handle_reliable(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), RequestRefused> {
        let psn = packet.bth.psn;
        let distance = psn.distance_from(self.expected);
        if distance < 0 {
            hca.counters.drop(DropReason::Duplicate);
            self.answer_duplicate(context, operation, packet);
            return Ok(());
        }
        if distance > 0 {
            hca.counters.drop(DropReason::Psn);
            if self.needs_nak(psn) {
                self.nak(NakCode::SEQUENCE);
                hca.counters.sequence_naks_sent += 1;
            }
            return Ok(());
        }
        match self.execute(context, hca, operation, packet) {
            Ok(()) => {
                self.gap = None;
                Ok(())
            }
            Err(ExecuteError::NotReady) => {
                // After the RNR NAK, later packets are silently dropped until the refused packet is retransmitted.
                self.gap = Some(Gap { last: psn, count: 0, is_not_ready: true });
                let code = context.attributes.min_rnr_timer;
                let timer = RnrTimer::new(code).expect("the RNR timer code is at most 31");
                let nak = Syndrome::new(Acknowledgement::RnrNak(timer));
                self.responses.acknowledge(self.expected, nak, self.msn);
                hca.counters.rnr_naks_sent += 1;
                Ok(())
            }
            Err(ExecuteError::Refused(refusal)) => {
                self.refuse(context, hca, &refusal);
                Err(RequestRefused)
            }
        }
    }

    /// Processes a request packet of an unreliable connection. If a packet of a message is missing, drops all later
    /// packets of this message.
    pub(super) fn handle_unreliable(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), RequestRefused> {
        let is_start = matches!(operation.position(), Position::First | Position::Only);
        let fits = packet.bth.psn == self.expected;
        self.expected = packet.bth.psn.wrapping_add(1);
        if is_start {
            // The receive of an incomplete message is put back, and the new message uses it.
            self.give_back(context, hca);
            self.skips = false;
        } else if !fits || self.skips {
            self.skips = true;
            hca.counters.drop(DropReason::Psn);
            return Ok(());
        }
        let result = self.execute(context, hca, operation, packet);
        self.responses.clear();
        match result {
            Ok(()) => Ok(()),
            // The buffer of the receive is not accessible, so a later message could not use the receive either.
            Err(ExecuteError::Refused(refusal)) if refusal.status == WcStatus::LocProtErr => {
                self.fail_receive(context, hca, &refusal);
                Err(RequestRefused)
            }
            Err(_) => {
                hca.counters.drop(DropReason::NoReceive);
                self.give_back(context, hca);
                self.skips = true;
                Ok(())
            }
        }
    }

    /// Discards a partial message, and puts its receive back into the queue.
    fn give_back(&mut self, context: &QpContext, hca: &mut HcaResources) {
        if let PartialMessage::Send { wr, .. } = std::mem::take(&mut self.partial) {
            self.receives.give_back(context, hca, wr);
        }
    }

    /// Sends a NAK with the expected PSN.
    fn nak(&mut self, code: NakCode) {
        let nak = Syndrome::new(Acknowledgement::Nak(code));
        self.responses.acknowledge(self.expected, nak, self.msn);
    }

    /// Returns true if a packet behind a gap requires a NAK. The first such packet requires one. A later packet
    /// requires another NAK if the first NAK or the retransmission was probably lost. This is assumed if the PSN does
    /// not increase, or if the packet is the 16th since the last NAK.
    fn needs_nak(&mut self, psn: Psn) -> bool {
        let Some(gap) = &mut self.gap else {
            self.gap = Some(Gap { last: psn, count: 0, is_not_ready: false });
            return true;
        };
        if gap.is_not_ready {
            return false;
        }
        let is_repeated = !gap.last.is_before(psn);
        gap.last = psn;
        gap.count += 1;
        if is_repeated || gap.count >= NAK_EVERY {
            gap.count = 0;
            return true;
        }
        false
    }

    /// Answers a duplicate request.
    fn answer_duplicate(&mut self, context: &QpContext, operation: Operation, packet: &Packet<'_>) {
        let psn = packet.bth.psn;
        match operation {
            Operation::ReadRequest => {
                if let Some(reth) = packet.header(Header::Reth).map(Reth::parse) {
                    self.responses.repeat_read(context.mtu(), psn, &reth);
                }
            }
            Operation::CompareSwap | Operation::FetchAdd => self.responses.repeat_atomic(psn),
            _ => self.responses.acknowledge_again(psn, self.expected, self.msn),
        }
    }

    /// Executes a request with the expected PSN.
    fn execute(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), ExecuteError> {
        use Operation as O;
        self.check_sequence(context, operation, packet)?;
        let psn = packet.bth.psn;
        if matches!(operation.position(), Position::First | Position::Only) {
            self.began = (hca.now, psn);
        }
        let received = match operation {
            O::SendFirst
            | O::SendMiddle
            | O::SendLast
            | O::SendLastImmediate
            | O::SendLastInvalidate
            | O::SendOnly
            | O::SendOnlyImmediate
            | O::SendOnlyInvalidate => self.receive_send(context, hca, operation, packet)?,
            O::WriteFirst
            | O::WriteMiddle
            | O::WriteLast
            | O::WriteLastImmediate
            | O::WriteOnly
            | O::WriteOnlyImmediate => self.receive_write(context, hca, operation, packet)?,
            O::ReadRequest => return Ok(self.receive_read(context, hca, packet)?),
            O::CompareSwap | O::FetchAdd => {
                return Ok(self.receive_atomic(context, hca, operation, packet)?);
            }
            _ => return Err(INVALID.into()),
        };
        if context.init.qp_type == QpType::Rc {
            self.expected = psn.wrapping_add(1);
        }
        if let Some(received) = received {
            self.msn = (self.msn + 1) & 0xff_ffff;
            self.note(context, hca.now, psn, received, WcStatus::Success);
        }
        if packet.bth.ack_request {
            self.responses.acknowledge(psn, Syndrome::ACK, self.msn);
        }
        Ok(())
    }

    /// Checks that the packet continues the partial message, and that its payload has a valid size.
    fn check_sequence(
        &self,
        context: &QpContext,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let position = operation.position();
        let is_send = operation as u8 <= Operation::SendOnlyImmediate as u8
            || operation as u8 >= Operation::SendLastInvalidate as u8;
        let fits = match (&self.partial, position) {
            (PartialMessage::None, Position::First | Position::Only) => true,
            (PartialMessage::Send { .. }, Position::Middle | Position::Last) => is_send,
            (PartialMessage::Write { .. }, Position::Middle | Position::Last) => {
                !is_send && operation != Operation::ReadRequest
            }
            _ => false,
        };
        let (length, mtu) = (packet.payload.len(), context.mtu());
        let is_full = match position {
            Position::First | Position::Middle => length == mtu,
            Position::Last => length <= mtu && length > 0,
            Position::Only => length <= mtu,
        };
        if fits && is_full { Ok(()) } else { Err(INVALID) }
    }

    fn receive_send(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<Option<CompletedMessage>, ExecuteError> {
        let (wr, received) = match std::mem::take(&mut self.partial) {
            PartialMessage::Send { wr, received } => (wr, received),
            _ => (self.receives.take(context, hca).ok_or(ExecuteError::NotReady)?, 0),
        };
        let sges = wr.data.sges();
        let pd = ReceiveQueue::pd(context, hca);
        let scattered = hca.regions.scatter(pd, sges, received as usize, packet.payload);
        // If the sum saturates at 4 GiB, the message is larger than any receive, and is refused in any case.
        let received = received.saturating_add(packet.payload.len() as u32);
        let is_last = matches!(operation.position(), Position::Last | Position::Only);
        let mut refusal = match scattered {
            Ok(true) => None,
            Ok(false) => Some(TOO_LONG),
            Err(_) => Some(OPERATIONAL),
        };
        let mut invalidated = None;
        if refusal.is_none() && is_last {
            invalidated = packet.header(Header::Ieth).map(|bytes| Ieth::parse(bytes).r_key);
            if let Some(key) = invalidated
                && hca.regions.invalidate(context.owner(), key).is_err()
            {
                refusal = Some(BAD_INVALIDATION);
            }
        }
        if refusal.is_none() && is_last {
            let message =
                CompletedMessage { wr_id: wr.wr_id, opcode: WcOpcode::Recv, length: received };
            self.complete(context, hca, packet, message, invalidated);
            return Ok(Some(message));
        }
        self.partial = PartialMessage::Send { wr, received };
        refusal.map_or(Ok(None), |refusal| Err(refusal.into()))
    }

    fn receive_write(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<Option<CompletedMessage>, ExecuteError> {
        let access = AccessFlags::REMOTE_WRITE;
        let (addr, rkey, length, received) = match self.partial {
            PartialMessage::Write { addr, rkey, length, received } => {
                (addr, rkey, length, received)
            }
            _ => {
                let reth = packet.header(Header::Reth).map(Reth::parse).ok_or(INVALID)?;
                if !context.attributes.qp_access_flags.contains(access) {
                    return Err(INVALID.into());
                }
                let Reth { virtual_address: addr, r_key: rkey, dma_length: length } = reth;
                if length > 0 {
                    let opened = hca.regions.open_remote(
                        context.owner(),
                        rkey,
                        addr,
                        length as usize,
                        access,
                    );
                    if opened.is_err() {
                        // The receive that the immediate data would have used reports the error.
                        if operation == Operation::WriteOnlyImmediate
                            && let Some(wr) = self.receives.take(context, hca)
                        {
                            self.partial = PartialMessage::Send { wr, received: 0 };
                        }
                        return Err(ACCESS.into());
                    }
                }
                (addr, rkey, length, 0)
            }
        };
        let is_last = matches!(operation.position(), Position::Last | Position::Only);
        let now = received.checked_add(packet.payload.len() as u32).ok_or(INVALID)?;
        if now > length || is_last && now != length {
            return Err(INVALID.into());
        }
        let has_imm = packet.header::<4>(Header::ImmDt).is_some();
        // The last packet of a message with immediate data is only executed if a receive is posted.
        if has_imm && self.receives.is_empty(context, hca) {
            return Err(ExecuteError::NotReady);
        }
        if !packet.payload.is_empty() {
            let address = addr.wrapping_add(u64::from(received));
            let opened = hca.regions.open_remote(
                context.owner(),
                rkey,
                address,
                packet.payload.len(),
                access,
            );
            let (memory, offset) = opened.map_err(|_| ACCESS)?;
            memory.write(offset, packet.payload).map_err(|_| ACCESS)?;
        }
        if !is_last {
            self.partial = PartialMessage::Write { addr, rkey, length, received: now };
            return Ok(None);
        }
        self.partial = PartialMessage::None;
        if !has_imm {
            return Ok(Some(CompletedMessage { wr_id: 0, opcode: WcOpcode::RdmaWrite, length }));
        }
        let wr = self.receives.take(context, hca).ok_or(ExecuteError::NotReady)?;
        let message =
            CompletedMessage { wr_id: wr.wr_id, opcode: WcOpcode::RecvRdmaWithImm, length };
        self.complete(context, hca, packet, message, None);
        Ok(Some(message))
    }

    fn receive_read(
        &mut self,
        context: &QpContext,
        hca: &HcaResources,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let access = AccessFlags::REMOTE_READ;
        let reth = packet.header(Header::Reth).map(Reth::parse).ok_or(INVALID)?;
        self.check_resources(context, access)?;
        let Reth { virtual_address: addr, r_key: rkey, dma_length: length } = reth;
        if u64::from(length) > MAX_MESSAGE || !packet.payload.is_empty() {
            return Err(INVALID);
        }
        if length > 0 {
            let opened =
                hca.regions.open_remote(context.owner(), rkey, addr, length as usize, access);
            opened.map_err(|_| ACCESS)?;
        }
        let packets = length.div_ceil(context.mtu() as u32).max(1);
        let data = ResponseData::Read { addr, rkey, length };
        let message = CompletedMessage { wr_id: 0, opcode: WcOpcode::RdmaRead, length };
        self.respond(context, hca.now, packet.bth.psn, packets, data, message);
        Ok(())
    }

    fn receive_atomic(
        &mut self,
        context: &QpContext,
        hca: &HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let access = AccessFlags::REMOTE_ATOMIC;
        let eth = packet.header(Header::AtomicEth).map(AtomicEth::parse).ok_or(INVALID)?;
        self.check_resources(context, access)?;
        if !packet.payload.is_empty() || eth.virtual_address % 8 != 0 {
            return Err(INVALID);
        }
        let opened =
            hca.regions.open_remote(context.owner(), eth.r_key, eth.virtual_address, 8, access);
        let (memory, offset) = opened.map_err(|_| ACCESS)?;
        let (original, opcode) = match operation {
            Operation::CompareSwap => {
                let original = memory.compare_swap(offset, eth.compare, eth.swap_or_add);
                (original, WcOpcode::CompSwap)
            }
            _ => (memory.fetch_add(offset, eth.swap_or_add), WcOpcode::FetchAdd),
        };
        let data = ResponseData::Atomic { original: original.map_err(|_| INVALID)? };
        let message = CompletedMessage { wr_id: 0, opcode, length: 8 };
        self.respond(context, hca.now, packet.bth.psn, 1, data, message);
        Ok(())
    }

    /// Checks that the peer may execute READs or atomics, and that a responder resource is free for one more.
    fn check_resources(&self, context: &QpContext, access: AccessFlags) -> Result<(), Refusal> {
        let is_allowed = context.attributes.qp_access_flags.contains(access)
            && self.responses.has_room(context.responder_resources());
        if is_allowed { Ok(()) } else { Err(INVALID) }
    }

    /// Queues the response to a READ or atomic. The request uses one PSN for each packet of the response.
    fn respond(
        &mut self,
        context: &QpContext,
        now: Instant,
        first: Psn,
        packets: u32,
        data: ResponseData,
        message: CompletedMessage,
    ) {
        self.expected = first.wrapping_add(packets);
        self.msn = (self.msn + 1) & 0xff_ffff;
        self.responses.push(context.responder_resources(), first, packets, self.msn, data);
        let last = self.expected.wrapping_sub(1);
        self.note(context, now, last, message, WcStatus::Success);
    }

    /// Records the message block of a message. `last` is the PSN of its last packet.
    #[inline]
    fn note(
        &self,
        context: &QpContext,
        now: Instant,
        last: Psn,
        CompletedMessage { wr_id, opcode, length }: CompletedMessage,
        status: WcStatus,
    ) {
        let (began, first) = self.began;
        context.messages.note(&Message {
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
        context: &QpContext,
        hca: &mut HcaResources,
        packet: &Packet<'_>,
        CompletedMessage { wr_id, opcode, length }: CompletedMessage,
        invalidated_rkey: Option<u32>,
    ) {
        let wc = Wc {
            byte_len: length,
            imm_data: packet.header(Header::ImmDt).map(|bytes| ImmDt::parse(bytes).data),
            invalidated_rkey,
            src_qp: context.attributes.dest_qp_num,
            ..context.completion(wr_id, opcode)
        };
        hca.complete(context.init.recv_cq, wc, packet.bth.solicited_event);
    }

    /// Sends a NAK, reports an asynchronous event, and completes the current receive with an error. The caller fails
    /// the queue pair.
    fn refuse(&mut self, context: &QpContext, hca: &mut HcaResources, refusal: &Refusal) {
        if let Some(code) = refusal.code {
            self.nak(code);
            hca.counters.naks_sent += 1;
        }
        let event = match refusal.code {
            Some(NakCode::REMOTE_ACCESS) => Some(AsyncEvent::QpAccessError(context.id)),
            Some(NakCode::INVALID_REQUEST) => Some(AsyncEvent::QpRequestError(context.id)),
            _ => None,
        };
        hca.events.extend(event.map(HcaEvent::Async));
        self.fail_receive(context, hca, refusal);
    }

    /// Completes the current receive with an error.
    fn fail_receive(&mut self, context: &QpContext, hca: &mut HcaResources, refusal: &Refusal) {
        if let PartialMessage::Send { wr, received } = std::mem::take(&mut self.partial) {
            let (wr_id, status, opcode) = (wr.wr_id, refusal.status, WcOpcode::Recv);
            let message = CompletedMessage { wr_id, opcode, length: received };
            self.note(context, hca.now, self.expected, message, status);
            let wc = Wc { status, ..context.completion(wr_id, opcode) };
            hca.complete(context.init.recv_cq, wc, true);
        }
    }

    /// Flushes all receives of a failed queue pair.
    pub(super) fn flush(&mut self, context: &QpContext, hca: &mut HcaResources) {
        let current = match std::mem::take(&mut self.partial) {
            PartialMessage::Send { wr, .. } => Some(wr),
            _ => None,
        };
        for wr in current.into_iter().chain(self.receives.drain()) {
            let completion = context.completion(wr.wr_id, WcOpcode::Recv);
            let wc = Wc { status: WcStatus::WrFlushErr, ..completion };
            hca.complete(context.init.recv_cq, wc, true);
        }
    }
}
