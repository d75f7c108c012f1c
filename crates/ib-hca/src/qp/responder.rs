//! The responder: checks and executes the requests of the peer.

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
use crate::counters::Drop;
use crate::packet::Packet;
use crate::region::AccessFlags;
use crate::resources::HcaResources;
use crate::trace::Message;
use crate::work_request::{MAX_MESSAGE, RecvWr};

/// A partially received message.
#[derive(Debug, Default)]
enum PartialMessage {
    #[default]
    None,
    /// A SEND into a receive.
    Send { wr: RecvWr, received: u32 },
    /// An RDMA WRITE.
    Write { addr: u64, rkey: u32, length: u32, received: u32 },
}

/// A gap: packets arrived behind a missing one.
#[derive(Debug)]
struct Gap {
    /// PSN of the last packet behind it.
    last: Psn,
    /// Number of packets since the last NAK.
    count: u32,
    /// True if no packet is missing, but an RNR NAK was sent: the packet will be retransmitted.
    is_not_ready: bool,
}

/// Number of packets behind a missing one after which the NAK is repeated.
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
    /// The current gap, after a NAK was sent.
    gap: Option<Gap>,
    partial: PartialMessage,
    /// Start time and first PSN of the partially received message.
    began: (Instant, Psn),
    /// On an unreliable connection: true if the rest of a message is skipped.
    skips: bool,
}

/// A message without errors, whose last packet was executed.
#[derive(Clone, Copy)]
struct Received {
    /// Work request ID of the receive; 0 if the message has consumed none.
    wr_id: u64,
    opcode: WcOpcode,
    /// Message size in bytes.
    length: u32,
}

/// A failure of the responder: the NAK to the peer, and the status of the receive.
struct Refused {
    code: NakCode,
    status: WcStatus,
}

const INVALID: Refused = Refused { code: NakCode::INVALID_REQUEST, status: WcStatus::LocQpOpErr };
const ACCESS: Refused = Refused { code: NakCode::REMOTE_ACCESS, status: WcStatus::LocAccessErr };
const TOO_LONG: Refused = Refused { code: NakCode::INVALID_REQUEST, status: WcStatus::LocLenErr };
const OPERATIONAL: Refused =
    Refused { code: NakCode::REMOTE_OPERATIONAL, status: WcStatus::LocProtErr };

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

/// A request was refused with a NAK: the queue pair fails.
pub(super) struct RequestRefused;

impl Responder {
    /// Starts with the first PSN.
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
            hca.counters.drop(Drop::Duplicate);
            self.answer_duplicate(context, operation, packet);
            return Ok(());
        }
        if distance > 0 {
            hca.counters.drop(Drop::Psn);
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
            Err(Deferred::NotReady) => {
                // Later packets are silently dropped until this one is retransmitted.
                self.gap = Some(Gap { last: psn, count: 0, is_not_ready: true });
                let code = context.attributes.min_rnr_timer;
                let timer = RnrTimer::new(code).expect("the code was checked");
                let nak = Syndrome::new(Acknowledgement::RnrNak(timer));
                self.responses.acknowledge(self.expected, nak, self.msn);
                hca.counters.rnr_naks_sent += 1;
                Ok(())
            }
            Err(Deferred::Refused(refused)) => {
                self.refuse(context, hca, &refused);
                Err(RequestRefused)
            }
        }
    }

    /// Processes a request packet of an unreliable connection: an unexpected packet is dropped with its message.
    pub(super) fn handle_unreliable(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) {
        let is_start = matches!(operation.position(), Position::First | Position::Only);
        let fits = packet.bth.psn == self.expected;
        self.expected = packet.bth.psn.wrapping_add(1);
        if is_start {
            // The receive of an incomplete message is reused for the next one.
            self.give_back(context, hca);
            self.skips = false;
        } else if !fits || self.skips {
            self.skips = true;
            hca.counters.drop(Drop::Psn);
            return;
        }
        if self.execute(context, hca, operation, packet).is_err() {
            hca.counters.drop(Drop::NoReceive);
            self.give_back(context, hca);
            self.skips = true;
        }
        self.responses.clear();
    }

    /// Discards a partial message, and returns its receive to the queue.
    fn give_back(&mut self, context: &QpContext, hca: &mut HcaResources) {
        if let PartialMessage::Send { wr, .. } = std::mem::take(&mut self.partial) {
            self.receives.give_back(context, hca, wr);
        }
    }

    /// Sends a NAK for the expected packet.
    fn nak(&mut self, code: NakCode) {
        let nak = Syndrome::new(Acknowledgement::Nak(code));
        self.responses.acknowledge(self.expected, nak, self.msn);
    }

    /// Returns true if a NAK is to be sent for a packet behind a gap: for the first such packet, and again if the NAK
    /// or the retransmission seems to be lost.
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
            _ => {
                // All packets up to here have arrived, including retransmitted ones. Queued responses before this PSN
                // are sent first.
                let last = self.expected.wrapping_sub(1);
                self.responses.acknowledge(last, Syndrome::ACK, self.msn);
            }
        }
    }

    /// Executes a request with the expected PSN.
    fn execute(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Deferred> {
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

    /// Checks that the packet's position in its message is valid.
    fn check_sequence(
        &self,
        context: &QpContext,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
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
    ) -> Result<Option<Received>, Deferred> {
        let (wr, received) = match std::mem::take(&mut self.partial) {
            PartialMessage::Send { wr, received } => (wr, received),
            _ => (self.receives.take(context, hca).ok_or(Deferred::NotReady)?, 0),
        };
        let sges = wr.data.sges();
        let scattered = hca.regions.scatter(context.pd, sges, received as usize, packet.payload);
        // A longer message than any receive can hold is an error in any case.
        let received = received.saturating_add(packet.payload.len() as u32);
        let is_last = matches!(operation.position(), Position::Last | Position::Only);
        let mut refused = match scattered {
            Ok(true) => None,
            Ok(false) => Some(TOO_LONG),
            Err(_) => Some(OPERATIONAL),
        };
        let mut invalidated = None;
        if refused.is_none() && is_last {
            invalidated = packet.header(Header::Ieth).map(|bytes| Ieth::parse(bytes).r_key);
            if let Some(key) = invalidated
                && hca.regions.invalidate(context.pd, key).is_err()
            {
                refused = Some(OPERATIONAL);
            }
        }
        if refused.is_none() && is_last {
            let message = Received { wr_id: wr.wr_id, opcode: WcOpcode::Recv, length: received };
            self.complete(context, hca, packet, message, invalidated);
            return Ok(Some(message));
        }
        self.partial = PartialMessage::Send { wr, received };
        refused.map_or(Ok(None), |refused| Err(refused.into()))
    }

    fn receive_write(
        &mut self,
        context: &QpContext,
        hca: &mut HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<Option<Received>, Deferred> {
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
                    let opened = hca.regions.open(context.pd, rkey, addr, length as usize, access);
                    opened.map_err(|_| ACCESS)?;
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
        // A message with immediate data needs a receive before its last packet is executed.
        if has_imm && self.receives.is_empty(context, hca) {
            return Err(Deferred::NotReady);
        }
        if !packet.payload.is_empty() {
            let address = addr.wrapping_add(u64::from(received));
            let opened = hca.regions.open(context.pd, rkey, address, packet.payload.len(), access);
            let (memory, offset) = opened.map_err(|_| ACCESS)?;
            memory.write(offset, packet.payload).map_err(|_| ACCESS)?;
        }
        if !is_last {
            self.partial = PartialMessage::Write { addr, rkey, length, received: now };
            return Ok(None);
        }
        self.partial = PartialMessage::None;
        if !has_imm {
            return Ok(Some(Received { wr_id: 0, opcode: WcOpcode::RdmaWrite, length }));
        }
        let wr = self.receives.take(context, hca).ok_or(Deferred::NotReady)?;
        let message = Received { wr_id: wr.wr_id, opcode: WcOpcode::RecvRdmaWithImm, length };
        self.complete(context, hca, packet, message, None);
        Ok(Some(message))
    }

    fn receive_read(
        &mut self,
        context: &QpContext,
        hca: &HcaResources,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let access = AccessFlags::REMOTE_READ;
        let reth = packet.header(Header::Reth).map(Reth::parse).ok_or(INVALID)?;
        self.check_resources(context, access)?;
        let Reth { virtual_address: addr, r_key: rkey, dma_length: length } = reth;
        if u64::from(length) > MAX_MESSAGE || !packet.payload.is_empty() {
            return Err(INVALID);
        }
        if length > 0 {
            let opened = hca.regions.open(context.pd, rkey, addr, length as usize, access);
            opened.map_err(|_| ACCESS)?;
        }
        let packets = length.div_ceil(context.mtu() as u32).max(1);
        let data = ResponseData::Read { addr, rkey, length };
        let message = Received { wr_id: 0, opcode: WcOpcode::RdmaRead, length };
        self.respond(context, hca.now, packet.bth.psn, packets, data, message);
        Ok(())
    }

    fn receive_atomic(
        &mut self,
        context: &QpContext,
        hca: &HcaResources,
        operation: Operation,
        packet: &Packet<'_>,
    ) -> Result<(), Refused> {
        let access = AccessFlags::REMOTE_ATOMIC;
        let eth = packet.header(Header::AtomicEth).map(AtomicEth::parse).ok_or(INVALID)?;
        self.check_resources(context, access)?;
        if !packet.payload.is_empty() || eth.virtual_address % 8 != 0 {
            return Err(INVALID);
        }
        let opened = hca.regions.open(context.pd, eth.r_key, eth.virtual_address, 8, access);
        let (memory, offset) = opened.map_err(|_| ACCESS)?;
        let (original, opcode) = match operation {
            Operation::CompareSwap => {
                let original = memory.compare_swap(offset, eth.compare, eth.swap_or_add);
                (original, WcOpcode::CompSwap)
            }
            _ => (memory.fetch_add(offset, eth.swap_or_add), WcOpcode::FetchAdd),
        };
        let data = ResponseData::Atomic { original: original.map_err(|_| INVALID)? };
        let message = Received { wr_id: 0, opcode, length: 8 };
        self.respond(context, hca.now, packet.bth.psn, 1, data, message);
        Ok(())
    }

    /// Checks that the peer has READ or atomic access, and that a resource is free for a new request.
    fn check_resources(&self, context: &QpContext, access: AccessFlags) -> Result<(), Refused> {
        let is_allowed = context.attributes.qp_access_flags.contains(access)
            && self.responses.has_room(context.most_served());
        if is_allowed { Ok(()) } else { Err(INVALID) }
    }

    /// Queues the response to a READ or atomic, which takes the PSNs of all its packets.
    fn respond(
        &mut self,
        context: &QpContext,
        now: Instant,
        first: Psn,
        packets: u32,
        data: ResponseData,
        message: Received,
    ) {
        self.expected = first.wrapping_add(packets);
        self.msn = (self.msn + 1) & 0xff_ffff;
        self.responses.push(context.most_served(), first, packets, self.msn, data);
        let last = self.expected.wrapping_sub(1);
        self.note(context, now, last, message, WcStatus::Success);
    }

    /// Records the completion of a message, given its last PSN.
    #[inline]
    fn note(
        &self,
        context: &QpContext,
        now: Instant,
        last: Psn,
        Received { wr_id, opcode, length }: Received,
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
        Received { wr_id, opcode, length }: Received,
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

    /// Sends the NAK that ends the queue pair, and completes the current receive with an error.
    fn refuse(&mut self, context: &QpContext, hca: &mut HcaResources, refused: &Refused) {
        self.nak(refused.code);
        hca.counters.naks_sent += 1;
        if let PartialMessage::Send { wr, received } = std::mem::take(&mut self.partial) {
            let (wr_id, status, opcode) = (wr.wr_id, refused.status, WcOpcode::Recv);
            let message = Received { wr_id, opcode, length: received };
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
