//! The packets of requests: their headers, and the data that they carry.

use ib_types::Psn;
use ib_wire::packet::{AtomicEth, Bth, Deth, Ieth, ImmDt, Opcode, Operation, Reth, Transport};

use super::attr::QpType;
use super::core::{Core, Cx};
use super::send::Wqe;
use crate::objects::{Data, SendOp};
use crate::packet::Writer;
use crate::region::AccessFlags;

/// Writes the packet with a sequence number of a request: the headers and its part of the data.
pub(super) fn write(
    core: &Core,
    cx: &Cx<'_>,
    (wqe, sent, psn): (&Wqe, u32, Psn),
    wants_ack: bool,
    writer: &mut Writer<'_>,
) -> Result<(), ()> {
    let mtu = core.mtu() as u32;
    let is_first = sent == 0;
    let is_last = wqe.is_read() || sent + 1 == wqe.count;
    let (operation, imm, ieth) = operation(&wqe.wr.op, is_first, is_last);
    let (start, length) = if wqe.is_read() {
        (0, 0)
    } else {
        let start = sent * mtu;
        (start, (wqe.length - start).min(mtu))
    };
    let transport = match core.qp_type {
        QpType::Rc => Transport::Rc,
        QpType::Uc => Transport::Uc,
        QpType::Ud => Transport::Ud,
    };
    let bth = Bth {
        opcode: Opcode::new(transport, operation).expect("the request was checked"),
        solicited_event: is_last && wqe.wr.flags.solicited,
        pad_count: (length.wrapping_neg() & 3) as u8,
        p_key: core.attributes.pkey,
        destination: match &wqe.wr.op {
            SendOp::SendDatagram { to, .. } => to.remote_qpn,
            _ => core.attributes.dest_qp_num,
        },
        ack_request: core.qp_type == QpType::Rc && (is_last || wants_ack),
        psn: if wqe.is_read() { wqe.first.wrapping_add(wqe.received) } else { psn },
        ..Bth::default()
    };
    writer.put(&bth.to_bytes());
    match &wqe.wr.op {
        SendOp::SendDatagram { to, .. } => {
            let controlled = to.remote_qkey.is_controlled();
            let q_key = if controlled { core.attributes.qkey } else { to.remote_qkey };
            writer.put(&Deth { q_key, source: core.number }.to_bytes());
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
    gather(core, cx, &wqe.wr.data, (start as usize, length as usize), writer)?;
    writer.pad();
    Ok(())
}

fn atomic(at: &crate::objects::RemoteAddress, swap_or_add: u64, compare: u64) -> [u8; 28] {
    let (virtual_address, r_key) = (at.addr, at.rkey);
    AtomicEth { virtual_address, r_key, swap_or_add, compare }.to_bytes()
}

/// Returns the operation of a packet, its immediate data and the key that it invalidates.
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
        SendOp::LocalInvalidate { .. } | SendOp::Register(_) => {
            unreachable!("local requests have no packets")
        }
    };
    (operation, imm, ieth)
}

/// Copies a part of a request's data into a packet.
fn gather(
    core: &Core,
    cx: &Cx<'_>,
    data: &Data,
    (start, length): (usize, usize),
    writer: &mut Writer<'_>,
) -> Result<(), ()> {
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
        let range = (sge.lkey, sge.addr.wrapping_add(skip as u64), part);
        let (memory, offset) =
            cx.regions.open(core.pd, range, AccessFlags::default()).map_err(drop)?;
        let mut done = 0;
        if start == 0 && skip == 0 && left == length {
            // What a trace has is what is sent, even where the memory changes meanwhile.
            let kept = writer.put_kept(part, |bytes| memory.read(offset, bytes));
            done = kept.map_err(drop)?;
        }
        memory.read(offset + done, writer.take(part - done)).map_err(drop)?;
        (skip, left) = (0, left - part);
    }
    Ok(())
}
