//! Responses of a responder: ACKs, NAKs, READ data, and results of atomic operations.

use std::collections::VecDeque;

use ib_types::Psn;
use ib_wire::packet::{
    Acknowledgement, Aeth, AtomicAckEth, Bth, NakCode, Opcode, Operation, Reth, Syndrome, Transport,
};

use super::context::QpContext;
use crate::packet::Writer;
use crate::region::{AccessFlags, Regions};

/// A queued response.
#[derive(Clone, Copy, Debug)]
enum Response {
    /// An ACK or a NAK.
    Ack { psn: Psn, syndrome: Syndrome, msn: u32 },
    /// Response data of the READ or atomic whose first PSN is `first`. The response begins with packet `start`, and
    /// packet `next` is sent next.
    Data { first: Psn, start: u32, next: u32 },
}

/// A READ or atomic that the peer may send again.
#[derive(Clone, Copy, Debug)]
struct Resource {
    first: Psn,
    packets: u32,
    msn: u32,
    data: ResponseData,
    /// True if the last packet of the response has been sent.
    is_answered: bool,
}

/// The data of a response: a memory range for a READ, the original value for an atomic.
#[derive(Clone, Copy, Debug)]
pub(super) enum ResponseData {
    Read { addr: u64, rkey: u32, length: u32 },
    Atomic { original: u64 },
}

impl Response {
    /// Returns true if the response is a NAK.
    fn is_nak(&self) -> bool {
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

/// The queued responses, and the responder resources. A resource is a recent READ or atomic, kept to answer a
/// repetition of the request. Each queued response with data refers to a resource.
#[derive(Debug, Default)]
pub(super) struct ResponseQueue {
    /// The queued responses in the order of their PSNs.
    responses: VecDeque<Response>,
    /// The last READs and atomics, which the peer may repeat, in the order of their PSNs.
    resources: VecDeque<Resource>,
}

/// Error: the R_Key of a READ no longer gives access. A NAK was written, and the caller fails the queue pair.
pub(super) struct ReadFailed;

impl ResponseQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    /// Returns true if the only queued response is an acknowledgement.
    pub(super) fn is_acknowledgement(&self) -> bool {
        self.responses.len() == 1 && matches!(self.responses[0], Response::Ack { .. })
    }

    /// Removes all queued responses.
    pub(super) fn clear(&mut self) {
        self.responses.clear();
    }

    /// Removes all responses except a NAK at the end, which reports the error to the peer.
    pub(super) fn clear_before_nak(&mut self) {
        let nak = self.responses.pop_back_if(|last| last.is_nak());
        self.responses.clear();
        self.responses.extend(nak);
    }

    /// Queues an ACK or a NAK with the given PSN and message sequence number.
    #[inline]
    pub(super) fn acknowledge(&mut self, psn: Psn, syndrome: Syndrome, msn: u32) {
        let ack = Response::Ack { psn, syndrome, msn };
        // A new ACK replaces a queued ACK. A queued NAK is kept, because it also acknowledges all packets before its
        // PSN.
        match self.responses.back_mut() {
            Some(Response::Ack { psn: of, syndrome: before, .. })
                if *before != Syndrome::ACK && psn.is_before(*of) => {}
            Some(last @ Response::Ack { .. }) => *last = ack,
            _ => self.responses.push_back(ack),
        }
    }

    /// Queues an ACK in answer to the duplicate packet `psn` of a SEND or WRITE. `expected` and `msn` are the
    /// responder's next PSN and its message sequence number.
    ///
    /// The ACK covers all executed packets before the next READ or atomic. It does not cover that READ or atomic. Soft
    /// RoCE of Linux 6.1 would complete a READ of one packet by an ACK with the PSN of the READ, although no data has
    /// arrived.
    ///
    /// No ACK is added if a response with a higher PSN is already queued, because that response acknowledges the
    /// duplicate.
    pub(super) fn acknowledge_again(&mut self, psn: Psn, expected: Psn, msn: u32) {
        // PSNs are compared modulo 2^24, so a very old resource may count as later than `psn`. The second comparison
        // excludes it.
        let is_next = |it: &&Resource| psn.is_before(it.first) && it.first.is_before(expected);
        let (end, msn) = match self.resources.iter().find(is_next) {
            Some(next) => (next.first, next.msn.wrapping_sub(1) & 0xff_ffff),
            None => (expected, msn),
        };
        let last = end.wrapping_sub(1);
        if self.responses.back().is_none_or(|queued| !last.is_before(queued.psn())) {
            self.acknowledge(last, Syndrome::ACK, msn);
        }
    }

    /// Returns true if a resource is free for a new READ or atomic.
    ///
    /// A new request shows that fewer than `most` requests of the peer are outstanding, so the peer has received the
    /// oldest response. The resource of that response is free even if a repetition of the response is queued.
    pub(super) fn has_room(&self, most: usize) -> bool {
        self.resources.len() < most
            || self.resources.front().is_some_and(|oldest| oldest.is_answered)
    }

    /// Queues the response to a new READ or atomic. If all responder resources are in use, frees the oldest resource,
    /// and removes its response from the queue.
    pub(super) fn push(
        &mut self,
        most: usize,
        first: Psn,
        packets: u32,
        msn: u32,
        data: ResponseData,
    ) {
        if self.resources.len() >= most
            && let Some(oldest) = self.resources.pop_front()
        {
            self.responses.retain(|it| !it.is_data_of(oldest.first));
        }
        // The missing request has arrived, so a queued NAK for it is obsolete.
        self.responses.pop_back_if(|last| last.is_nak());
        self.responses.push_back(Response::Data { first, start: 0, next: 0 });
        self.resources.push_back(Resource { first, packets, msn, data, is_answered: false });
    }

    /// Queues the response to a repeated READ. The repeated READ may request only the rest of the original one.
    pub(super) fn repeat_read(&mut self, mtu: usize, psn: Psn, reth: &Reth) {
        let found = self.resources.iter().rev().find_map(|resource| {
            let ResponseData::Read { addr, rkey, length } = resource.data else { return None };
            let skipped = u32::try_from(psn.distance_from(resource.first)).ok()?;
            if skipped >= resource.packets {
                return None;
            }
            // The repeated READ must request exactly the rest of the original range, from its own PSN on.
            let done = skipped * mtu as u32;
            let is_rest = reth.virtual_address == addr.wrapping_add(u64::from(done))
                && reth.r_key == rkey
                && reth.dma_length == length - done;
            is_rest.then_some((resource.first, skipped))
        });
        if let Some((first, skipped)) = found {
            self.repeat(first, skipped);
        }
    }

    /// Queues the response to a repeated atomic, if the original result is still kept.
    pub(super) fn repeat_atomic(&mut self, psn: Psn) {
        let is_repeated =
            |it: &Resource| it.first == psn && matches!(it.data, ResponseData::Atomic { .. });
        if self.resources.iter().any(is_repeated) {
            self.repeat(psn, 0);
        }
    }

    /// Queues the response to a repeated READ or atomic, from packet `start` on. Responses are in the order of their
    /// PSNs.
    ///
    /// The new response replaces a queued response to the same request. Otherwise it is inserted in PSN order. The
    /// response behind the new one starts again from its first packet if some of its packets were already sent. The
    /// peer drops packets that arrive out of order.
    fn repeat(&mut self, first: Psn, start: u32) {
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

    /// Writes the next packet. Returns false if there is no packet to send.
    pub(super) fn transmit(
        &mut self,
        context: &QpContext,
        regions: &Regions,
        writer: &mut Writer<'_>,
    ) -> Result<bool, ReadFailed> {
        while let Some(response) = self.responses.front_mut() {
            let (first, is_first, next) = match response {
                Response::Ack { psn, syndrome, msn } => {
                    write_acknowledgement(context, *psn, *syndrome, *msn, writer);
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
            let written = write_data(context, regions, resource, next - 1, is_first, writer);
            let is_answered = resource.is_answered;
            resource.is_answered |= is_last;
            if is_last || written.is_err() {
                self.responses.pop_front();
            }
            match written {
                Ok(()) => return Ok(true),
                // The response was sent before, so the peer may have the data. An invalid R_Key is then no error.
                Err(_) if is_answered => {}
                Err(RegionClosed { psn, msn }) => {
                    let code = Acknowledgement::Nak(NakCode::REMOTE_ACCESS);
                    write_acknowledgement(context, psn, Syndrome::new(code), msn, writer);
                    self.responses.clear();
                    return Err(ReadFailed);
                }
            }
        }
        Ok(false)
    }
}

/// Error: the R_Key of a READ became invalid after the request was checked. Holds PSN and MSN of the NAK.
struct RegionClosed {
    psn: Psn,
    msn: u32,
}

/// Writes one packet of a response with data.
fn write_data(
    context: &QpContext,
    regions: &Regions,
    resource: &Resource,
    number: u32,
    is_first: bool,
    writer: &mut Writer<'_>,
) -> Result<(), RegionClosed> {
    let Resource { first, packets, msn, data, .. } = *resource;
    let psn = first.wrapping_add(number);
    let aeth = Aeth { syndrome: Syndrome::ACK, msn }.to_bytes();
    let (addr, rkey, length) = match data {
        ResponseData::Atomic { original } => {
            write_bth(context, Operation::AtomicAcknowledge, psn, 0, writer);
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
    let start = number * context.mtu() as u32;
    let part = (length - start).min(context.mtu() as u32) as usize;
    // The R_Key is checked again, because it may have become invalid since the request was checked.
    let opened = if part == 0 {
        None
    } else {
        let address = addr.wrapping_add(u64::from(start));
        let opened =
            regions.open_remote(context.owner(), rkey, address, part, AccessFlags::REMOTE_READ);
        Some(opened.map_err(|_| RegionClosed { psn, msn })?)
    };
    write_bth(context, operation, psn, part, writer);
    if is_first || is_last {
        writer.put(&aeth);
    }
    if let Some((memory, offset)) = opened {
        memory.read(offset, writer.append(part)).expect("the region is within its memory");
    }
    writer.pad();
    Ok(())
}

/// Writes an ACK or a NAK.
fn write_acknowledgement(
    context: &QpContext,
    psn: Psn,
    syndrome: Syndrome,
    msn: u32,
    writer: &mut Writer<'_>,
) {
    write_bth(context, Operation::Acknowledge, psn, 0, writer);
    writer.put(&Aeth { syndrome, msn }.to_bytes());
}

/// Writes the BTH of a response.
fn write_bth(
    context: &QpContext,
    operation: Operation,
    psn: Psn,
    payload: usize,
    writer: &mut Writer<'_>,
) {
    let bth = Bth {
        opcode: Opcode::new(Transport::Rc, operation).expect("RC has all response opcodes"),
        pad_count: (payload.wrapping_neg() & 3) as u8,
        p_key: context.attributes.pkey,
        destination: context.attributes.dest_qp_num,
        psn,
        ..Bth::default()
    };
    writer.put(&bth.to_bytes());
}

#[cfg(test)]
mod tests;
