//! Responses of a responder: ACKs, NAKs, READ data, and results of atomic operations.

use ib_types::Psn;
use ib_wire::packet::{
    Acknowledgement, Aeth, AtomicAckEth, Bth, Header, NakCode, Opcode, Operation, Reth, RnrTimer,
    Syndrome,
};

use super::core::{Core, Cx};
use super::receive::Responder;
use crate::packet::{Packet, Writer};
use crate::region::AccessFlags;

/// A queued response.
#[derive(Clone, Copy, Debug)]
pub(super) enum Response {
    /// An ACK or a NAK.
    Ack { psn: Psn, syndrome: Syndrome, msn: u32 },
    /// The data of the READ or atomic with this first PSN. The response begins with packet `start` of the whole
    /// response; packet `next` is sent next.
    Data { first: Psn, start: u32, next: u32 },
}

/// A READ or atomic that the peer may repeat.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resource {
    pub(super) first: Psn,
    pub(super) packets: u32,
    pub(super) msn: u32,
    pub(super) data: ResponseData,
    /// True if the last packet of the response has been sent.
    pub(super) is_answered: bool,
}

/// The data of a response: a memory range for a READ, or the original value for an atomic.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResponseData {
    Read { addr: u64, rkey: u32, length: u32 },
    Atomic { original: u64 },
}

impl Response {
    /// Returns true for a NAK.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Ack { syndrome, .. } if *syndrome != Syndrome::ACK)
    }

    const fn psn(&self) -> Psn {
        match *self {
            Self::Ack { psn, .. } => psn,
            Self::Data { first, .. } => first,
        }
    }

    fn is_data_of(&self, request: Psn) -> bool {
        matches!(self, Self::Data { first, .. } if *first == request)
    }
}

impl Responder {
    /// Acknowledges all packets up to a PSN.
    pub(super) fn ack(&mut self, psn: Psn) {
        self.push_ack(psn, Syndrome::ACK);
    }

    /// Sends a NAK for the expected packet.
    pub(super) fn nak(&mut self, code: NakCode) {
        self.push_ack(self.expected, Syndrome::new(Acknowledgement::Nak(code)));
    }

    /// Sends an RNR NAK.
    pub(super) fn not_ready(&mut self, core: &Core) {
        let timer = RnrTimer::new(core.attributes.min_rnr_timer).expect("it was checked");
        self.push_ack(self.expected, Syndrome::new(Acknowledgement::RnrNak(timer)));
    }

    fn push_ack(&mut self, psn: Psn, syndrome: Syndrome) {
        let msn = self.msn;
        let ack = Response::Ack { psn, syndrome, msn };
        // A later ACK replaces one that is still queued. A NAK acknowledges all packets before it, too.
        match self.responses.back_mut() {
            Some(Response::Ack { psn: of, syndrome: before, .. })
                if *before != Syndrome::ACK && psn.is_before(*of) => {}
            Some(last @ Response::Ack { .. }) => *last = ack,
            _ => self.responses.push_back(ack),
        }
    }

    /// Queues the response to a new READ or atomic. The oldest resource is freed for it, with its repeated response.
    pub(super) fn push_data(&mut self, core: &Core, resource: Resource) {
        if self.resources.len() >= core.most_served()
            && let Some(oldest) = self.resources.pop_front()
        {
            self.responses.retain(|it| !it.is_data_of(oldest.first));
        }
        // A NAK for the missing request is out of date.
        self.responses.pop_back_if(|last| last.is_refusal());
        self.responses.push_back(Response::Data { first: resource.first, start: 0, next: 0 });
        self.resources.push_back(resource);
    }

    /// Queues the response to a repeated READ or atomic, starting at some packet, before all responses behind it. A
    /// queued response to the same request is replaced. The response that it interrupts is restarted, because the peer
    /// drops packets that arrive out of order.
    fn push_again(&mut self, first: Psn, start: u32) {
        let again = Response::Data { first, start, next: start };
        if let Some(queued) = self.responses.iter_mut().find(|it| it.is_data_of(first)) {
            *queued = again;
            return;
        }
        let behind = self.responses.iter().position(|it| first.is_before(it.psn()));
        let at = behind.unwrap_or(self.responses.len());
        if let Some(Response::Data { start, next, .. }) = self.responses.get_mut(at) {
            *next = *start;
        }
        self.responses.insert(at, again);
    }

    /// Returns true if the only queued response is an acknowledgement.
    pub(super) fn only_acknowledges(&self) -> bool {
        self.responses.len() == 1 && matches!(self.responses[0], Response::Ack { .. })
    }

    /// Answers a duplicate request.
    pub(super) fn repeat(&mut self, core: &Core, operation: Operation, packet: &Packet<'_>) {
        let psn = packet.bth.psn;
        match operation {
            Operation::ReadRequest => {
                let Some(reth) = packet.header(Header::Reth).map(Reth::parse) else { return };
                self.repeat_read(core, psn, &reth);
            }
            Operation::CompareSwap | Operation::FetchAdd => {
                let is_this = |it: &&Resource| {
                    it.first == psn && matches!(it.data, ResponseData::Atomic { .. })
                };
                if self.resources.iter().any(|it| is_this(&it)) {
                    self.push_again(psn, 0);
                }
            }
            _ => {
                // All packets up to here have arrived, including retransmitted ones. Queued responses before this PSN
                // are sent first.
                self.ack(self.expected.wrapping_sub(1));
            }
        }
    }

    /// Answers a repeated READ, which may request only the rest of the first one.
    fn repeat_read(&mut self, core: &Core, psn: Psn, reth: &Reth) {
        let found = self.resources.iter().rev().find_map(|resource| {
            let ResponseData::Read { addr, rkey, length } = resource.data else { return None };
            let skipped = u32::try_from(psn.distance_from(resource.first)).ok()?;
            if skipped >= resource.packets {
                return None;
            }
            // The repeated READ must not exceed the original range.
            let done = skipped * core.mtu() as u32;
            let same = reth.virtual_address == addr.wrapping_add(u64::from(done))
                && reth.r_key == rkey
                && reth.dma_length == length - done;
            same.then_some((resource.first, skipped))
        });
        if let Some((first, skipped)) = found {
            self.push_again(first, skipped);
        }
    }

    /// Writes the next packet; returns false if there is none. An error ends the queue pair.
    pub(super) fn transmit(
        &mut self,
        core: &Core,
        cx: &Cx<'_>,
        writer: &mut Writer<'_>,
    ) -> Result<bool, ()> {
        while let Some(response) = self.responses.front_mut() {
            let (first, is_first, next) = match response {
                Response::Ack { psn, syndrome, msn } => {
                    acknowledge(core, *psn, (*syndrome, *msn), writer);
                    self.responses.pop_front();
                    return Ok(true);
                }
                Response::Data { first, start, next } => {
                    *next += 1;
                    (*first, *start + 1 == *next, *next)
                }
            };
            let resource = self.resources.iter_mut().rfind(|it| it.first == first);
            let resource = resource.expect("a queued response has its resource");
            let is_last = next == resource.packets;
            let written = write(core, cx, resource, (next - 1, is_first), writer);
            let is_answered = resource.is_answered;
            resource.is_answered |= is_last;
            if is_last || written.is_err() {
                self.responses.pop_front();
            }
            match written {
                Ok(()) => return Ok(true),
                // The peer may have the data already, and the region may be closed since: a repetition is no error.
                Err(_) if is_answered => {}
                Err(Closed { psn, msn }) => {
                    let code = Acknowledgement::Nak(NakCode::REMOTE_ACCESS);
                    acknowledge(core, psn, (Syndrome::new(code), msn), writer);
                    self.responses.clear();
                    return Err(());
                }
            }
        }
        Ok(false)
    }
}

/// The region of a response was closed after the request; the PSN and the MSN of the NAK for it.
struct Closed {
    psn: Psn,
    msn: u32,
}

/// Writes a packet of a response with data.
fn write(
    core: &Core,
    cx: &Cx<'_>,
    resource: &Resource,
    (number, is_first): (u32, bool),
    writer: &mut Writer<'_>,
) -> Result<(), Closed> {
    let Resource { first, packets, msn, data, .. } = *resource;
    let psn = first.wrapping_add(number);
    let aeth = Aeth { syndrome: Syndrome::ACK, msn }.to_bytes();
    let (addr, rkey, length) = match data {
        ResponseData::Atomic { original } => {
            head(core, Operation::AtomicAcknowledge, psn, 0, writer);
            writer.put(&aeth);
            writer.put(&AtomicAckEth { original }.to_bytes());
            return Ok(());
        }
        ResponseData::Read { addr, rkey, length } => (addr, rkey, length),
    };
    let is_last = number + 1 == packets;
    let operation = match (is_first, is_last) {
        (true, true) => Operation::ReadResponseOnly,
        (true, false) => Operation::ReadResponseFirst,
        (false, false) => Operation::ReadResponseMiddle,
        (false, true) => Operation::ReadResponseLast,
    };
    let start = number * core.mtu() as u32;
    let part = (length - start).min(core.mtu() as u32) as usize;
    // The R_Key is checked again, because the region may have been closed meanwhile.
    let range = (rkey, addr.wrapping_add(u64::from(start)), part);
    let opened = match part {
        0 => None,
        _ => match cx.regions.open(core.pd, range, AccessFlags::REMOTE_READ) {
            Ok(opened) => Some(opened),
            Err(_) => return Err(Closed { psn, msn }),
        },
    };
    head(core, operation, psn, part, writer);
    if is_first || is_last {
        writer.put(&aeth);
    }
    if let Some((memory, offset)) = opened {
        memory.read(offset, writer.take(part)).expect("the region lies within it");
    }
    writer.pad();
    Ok(())
}

/// Writes an ACK or a NAK.
fn acknowledge(core: &Core, psn: Psn, (syndrome, msn): (Syndrome, u32), writer: &mut Writer<'_>) {
    head(core, Operation::Acknowledge, psn, 0, writer);
    writer.put(&Aeth { syndrome, msn }.to_bytes());
}

/// Writes the BTH of a response.
fn head(core: &Core, operation: Operation, psn: Psn, payload: usize, writer: &mut Writer<'_>) {
    let bth = Bth {
        opcode: Opcode::new(ib_wire::packet::Transport::Rc, operation).expect("RC has it"),
        pad_count: (payload.wrapping_neg() & 3) as u8,
        p_key: core.attributes.pkey,
        destination: core.attributes.dest_qp_num,
        psn,
        ..Bth::default()
    };
    writer.put(&bth.to_bytes());
}
