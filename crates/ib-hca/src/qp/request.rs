//! Send requests: the checks of posted requests, and the headers and data of their packets.

use ib_wire::packet::{AtomicEth, Bth, Deth, Ieth, ImmDt, Opcode, Operation, Reth, Transport};

use super::attr::QpType;
use super::context::QpContext;
use super::send_queue::RequestPacket;
use crate::error::PostError;
use crate::packet::Writer;
use crate::region::{AccessFlags, Regions};
use crate::work_request::{Data, MAX_MESSAGE, RemoteAddress, SendOp, SendWr};

/// Size in bytes of the original value that an atomic operation returns.
const ATOMIC: u64 = 8;

/// Checks a posted request, and returns the size of its message in bytes.
pub(super) fn check(context: &QpContext, regions: &Regions, wr: &SendWr) -> Result<u32, PostError> {
    use SendOp as Op;
    let qp_type = context.init.qp_type;
    let is_possible = match qp_type {
        QpType::Rc => !matches!(wr.op, Op::SendDatagram { .. }),
        QpType::Uc => matches!(
            wr.op,
            Op::Send { .. }
                | Op::Write { .. }
                | Op::BindWindow(_)
                | Op::LocalInvalidate { .. }
                | Op::Register(_)
        ),
        QpType::Ud => matches!(wr.op, Op::SendDatagram { .. }),
    };
    if !is_possible {
        return Err(PostError::Operation(qp_type));
    }
    let length = wr.data.length();
    let most = if qp_type == QpType::Ud { context.mtu() as u64 } else { MAX_MESSAGE };
    if length > most {
        return Err(PostError::TooLong { found: length, most });
    }
    let cap = &context.init.cap;
    wr.data.check_count(cap.max_send_sge)?;
    let is_atomic = matches!(wr.op, Op::CompareSwap { .. } | Op::FetchAdd { .. });
    let is_read = is_atomic || matches!(wr.op, Op::Read { .. });
    if let Data::Inline(bytes) = &wr.data {
        if is_read {
            return Err(PostError::Operation(qp_type));
        }
        if bytes.len() > cap.max_inline_data as usize {
            let (found, most) = (bytes.len(), cap.max_inline_data);
            return Err(PostError::TooMuchInline { found, most });
        }
    }
    if is_atomic && length != ATOMIC {
        return Err(PostError::AtomicLength(length));
    }
    if is_read && context.attributes.max_rd_atomic == 0 {
        return Err(PostError::NoReads);
    }
    let access = if is_read { AccessFlags::LOCAL_WRITE } else { AccessFlags::default() };
    wr.data.check_keys(regions, context.pd, access)?;
    Ok(length as u32)
}

/// Error: a local key no longer gives access, because it was invalidated or changed, or its region was deregistered,
/// after the request was posted.
pub(super) struct GatherError;

/// Writes one packet of a request: its headers and its part of the data.
pub(super) fn write(
    context: &QpContext,
    regions: &Regions,
    RequestPacket { wqe, index, psn }: RequestPacket<'_>,
    wants_ack: bool,
    writer: &mut Writer<'_>,
) -> Result<(), GatherError> {
    let mtu = context.mtu() as u32;
    let is_first = index == 0;
    let is_last = wqe.is_read() || index + 1 == wqe.packets;
    let (operation, imm, ieth) = operation(&wqe.wr.op, is_first, is_last);
    let (start, length) = if wqe.is_read() {
        (0, 0)
    } else {
        let start = index * mtu;
        (start, (wqe.length - start).min(mtu))
    };
    let transport = match context.init.qp_type {
        QpType::Rc => Transport::Rc,
        QpType::Uc => Transport::Uc,
        QpType::Ud => Transport::Ud,
    };
    let bth = Bth {
        opcode: Opcode::new(transport, operation).expect("the transport supports the operation"),
        solicited_event: is_last && wqe.wr.flags.solicited,
        pad_count: (length.wrapping_neg() & 3) as u8,
        p_key: context.attributes.pkey,
        destination: match &wqe.wr.op {
            SendOp::SendDatagram { to, .. } => to.remote_qpn,
            _ => context.attributes.dest_qp_num,
        },
        ack_request: context.init.qp_type == QpType::Rc && (is_last || wants_ack),
        psn: if wqe.is_read() { wqe.first.wrapping_add(wqe.received) } else { psn },
        ..Bth::default()
    };
    writer.put(&bth.to_bytes());
    match &wqe.wr.op {
        SendOp::SendDatagram { to, .. } => {
            let controlled = to.remote_qkey.is_controlled();
            let q_key = if controlled { context.attributes.qkey } else { to.remote_qkey };
            writer.put(&Deth { q_key, source: context.number }.to_bytes());
        }
        SendOp::Write { to, .. } if is_first => {
            let (virtual_address, r_key) = (to.addr, to.rkey);
            writer.put(&Reth { virtual_address, r_key, dma_length: wqe.length }.to_bytes());
        }
        SendOp::Read { from } => {
            let done = wqe.received * mtu;
            let virtual_address = from.addr.wrapping_add(u64::from(done));
            let dma_length = wqe.length - done;
            writer.put(&Reth { virtual_address, r_key: from.rkey, dma_length }.to_bytes());
        }
        SendOp::CompareSwap { at, compare, swap } => {
            writer.put(&atomic(at, *swap, *compare));
        }
        SendOp::FetchAdd { at, add } => writer.put(&atomic(at, *add, 0)),
        _ => {}
    }
    if let Some(data) = imm {
        writer.put(&ImmDt { data }.to_bytes());
    }
    if let Some(r_key) = ieth {
        writer.put(&Ieth { r_key }.to_bytes());
    }
    gather(context, regions, &wqe.wr.data, start as usize, length as usize, writer)?;
    writer.pad();
    Ok(())
}

fn atomic(at: &RemoteAddress, swap_or_add: u64, compare: u64) -> [u8; 28] {
    let (virtual_address, r_key) = (at.addr, at.rkey);
    AtomicEth { virtual_address, r_key, swap_or_add, compare }.to_bytes()
}

/// Returns the operation of a packet, its immediate data, and the R_Key that the peer has to invalidate.
fn operation(op: &SendOp, first: bool, last: bool) -> (Operation, Option<u32>, Option<u32>) {
    use Operation as O;
    let imm = match op {
        SendOp::Send { imm } | SendOp::SendDatagram { imm, .. } | SendOp::Write { imm, .. } => {
            imm.filter(|_| last)
        }
        _ => None,
    };
    let ieth = match op {
        SendOp::SendInvalidate { rkey } if last => Some(*rkey),
        _ => None,
    };
    let operation = match op {
        SendOp::Send { .. } | SendOp::SendDatagram { .. } | SendOp::SendInvalidate { .. } => {
            match (first, last, imm.is_some(), ieth.is_some()) {
                (true, false, ..) => O::SendFirst,
                (false, false, ..) => O::SendMiddle,
                (false, true, false, false) => O::SendLast,
                (false, true, true, _) => O::SendLastImmediate,
                (false, true, _, true) => O::SendLastInvalidate,
                (true, true, false, false) => O::SendOnly,
                (true, true, true, _) => O::SendOnlyImmediate,
                (true, true, _, true) => O::SendOnlyInvalidate,
            }
        }
        SendOp::Write { .. } => match (first, last, imm.is_some()) {
            (true, false, _) => O::WriteFirst,
            (false, false, _) => O::WriteMiddle,
            (false, true, false) => O::WriteLast,
            (false, true, true) => O::WriteLastImmediate,
            (true, true, false) => O::WriteOnly,
            (true, true, true) => O::WriteOnlyImmediate,
        },
        SendOp::Read { .. } => O::ReadRequest,
        SendOp::CompareSwap { .. } => O::CompareSwap,
        SendOp::FetchAdd { .. } => O::FetchAdd,
        SendOp::BindWindow(_) | SendOp::LocalInvalidate { .. } | SendOp::Register(_) => {
            unreachable!("local requests have no packets")
        }
    };
    (operation, imm, ieth)
}

/// Appends `length` bytes of a request's data, from offset `start` on, to the packet.
fn gather(
    context: &QpContext,
    regions: &Regions,
    data: &Data,
    start: usize,
    length: usize,
    writer: &mut Writer<'_>,
) -> Result<(), GatherError> {
    if let Data::Inline(bytes) = data {
        writer.put(&bytes[start..start + length]);
        return Ok(());
    }
    let (mut skip, mut left) = (start, length);
    for sge in data.sges() {
        let size = sge.length as usize;
        if skip >= size {
            skip -= size;
            continue;
        }
        let part = (size - skip).min(left);
        if part == 0 {
            break;
        }
        let address = sge.addr.wrapping_add(skip as u64);
        let opened = regions.open(context.pd, sge.lkey, address, part, AccessFlags::default());
        let (memory, offset) = opened.map_err(|_| GatherError)?;
        let mut done = 0;
        if start == 0 && skip == 0 && left == length {
            // `put_traced` reads the memory once for the packet and the trace. The trace thus records the sent bytes,
            // even if the application changes the memory at the same time.
            let traced = writer.put_traced(part, |bytes| memory.read(offset, bytes));
            done = traced.map_err(|_| GatherError)?;
        }
        memory.read(offset + done, writer.append(part - done)).map_err(|_| GatherError)?;
        (skip, left) = (0, left - part);
    }
    Ok(())
}
