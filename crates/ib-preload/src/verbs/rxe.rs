//! Ring elements in the format that programs share with the rxe driver: work requests and
//! completions.
//!
//! ```text
//! send:     wr_id:64 0:32 opcode:32 flags:32 immediate:32 | union:960 | state:320 | DMA | SGEs or inline data
//! receive:  wr_id:64 0:64 | DMA | SGEs
//! DMA:      length:32 resid:32 cur_sge:32 num_sge:32 sge_offset:32 0:32
//! SGE:      address:64 length:32 lkey:32
//! ```
//! Elements are copied out of the ring before they are decoded. A program that changes an element
//! at the same time affects only its own request. Source: `rdma_user_rxe.h` of the Linux kernel.

use ib_hca::{
    AccessFlags, Data, RecvWr, RemoteAddress, SendFlags, SendOp, Sge, Wc, WcOpcode, WcStatus,
    WindowBinding,
};
use ib_types::{QKey, Qpn};

use super::abi::{Completion, Field, bytes_of};

/// Offset of the union of operation parameters in a send request.
const UNION: usize = 24;

/// Offset of the DMA structure in a send request.
const SEND_DMA: usize = UNION + 120 + 40;

/// Offset of the DMA structure in a receive.
const RECV_DMA: usize = 16;

/// Size of the DMA structure in bytes, without SGEs and inline data.
const DMA: usize = 24;

/// Size of an SGE in bytes.
pub(super) const SGE: usize = 16;

/// Size of a send request in a ring in bytes, without SGEs and inline data.
pub(super) const SEND_WQE: usize = SEND_DMA + DMA;

/// Size of a receive request in a ring in bytes, without SGEs.
pub(super) const RECV_WQE: usize = RECV_DMA + DMA;

/// Size of a completion in a ring in bytes.
pub(super) const CQE: usize = Completion::SIZE;

/// Operation of a send request.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Operation of an RC or UC queue pair.
    Connected(SendOp),
    /// SEND of a UD queue pair, to the destination of the address handle `ah`.
    Datagram { ah: u32, remote_qpn: Qpn, remote_qkey: QKey, imm: Option<u32> },
}

/// A send request.
#[derive(Clone, Debug)]
pub(super) struct SendElement {
    pub(super) wr_id: u64,
    pub(super) operation: Operation,
    pub(super) data: Data,
    pub(super) flags: SendFlags,
}

/// Opcodes of send requests (`ib_uverbs_wr_opcode`).
mod opcode {
    pub(super) const RDMA_WRITE: u32 = 0;
    pub(super) const RDMA_WRITE_WITH_IMM: u32 = 1;
    pub(super) const SEND: u32 = 2;
    pub(super) const SEND_WITH_IMM: u32 = 3;
    pub(super) const RDMA_READ: u32 = 4;
    pub(super) const ATOMIC_CMP_AND_SWP: u32 = 5;
    pub(super) const ATOMIC_FETCH_AND_ADD: u32 = 6;
    pub(super) const LOCAL_INV: u32 = 7;
    pub(super) const BIND_MW: u32 = 8;
    pub(super) const SEND_WITH_INV: u32 = 9;
}

/// Flags of send requests (`ibv_send_flags`).
mod flag {
    pub(super) const FENCE: u32 = 1;
    pub(super) const SIGNALED: u32 = 1 << 1;
    pub(super) const SOLICITED: u32 = 1 << 2;
    pub(super) const INLINE: u32 = 1 << 3;
}

/// Flags of completions (`ibv_wc_flags`).
mod wc_flag {
    pub(super) const GRH: u32 = 1;
    pub(super) const WITH_IMM: u32 = 1 << 1;
    pub(super) const WITH_INV: u32 = 1 << 3;
}

impl SendElement {
    /// Decodes a send request. If `is_datagram` is true, it is a request of a UD queue pair.
    ///
    /// # Errors
    /// Returns the ID of the request and its completion status: `LocQpOpErr` for operations that
    /// the device does not support, `LocLenErr` if SGEs or inline data exceed the element.
    pub(super) fn decode(bytes: &[u8], is_datagram: bool) -> Result<Self, (u64, WcStatus)> {
        let wr_id = read(bytes, 0);
        let failed = (wr_id, WcStatus::LocQpOpErr);
        let (code, send_flags): (u32, u32) = (read(bytes, 12), read(bytes, 16));
        let immediate = u32::from_be_bytes(read(bytes, 20));
        let to = RemoteAddress { addr: read(bytes, UNION), rkey: read(bytes, UNION + 8) };
        let at = RemoteAddress { rkey: read(bytes, UNION + 24), ..to };
        let operation = match code {
            opcode::SEND | opcode::SEND_WITH_IMM => {
                let imm = (code == opcode::SEND_WITH_IMM).then_some(immediate);
                if is_datagram {
                    Operation::Datagram {
                        ah: read(bytes, UNION + 12),
                        remote_qpn: Qpn::truncated(read(bytes, UNION)),
                        remote_qkey: QKey(read(bytes, UNION + 4)),
                        imm,
                    }
                } else {
                    Operation::Connected(SendOp::Send { imm })
                }
            }
            _ if is_datagram => return Err(failed),
            opcode::RDMA_WRITE => Operation::Connected(SendOp::Write { to, imm: None }),
            opcode::RDMA_WRITE_WITH_IMM => {
                Operation::Connected(SendOp::Write { to, imm: Some(immediate) })
            }
            opcode::RDMA_READ => Operation::Connected(SendOp::Read { from: to }),
            opcode::ATOMIC_CMP_AND_SWP => {
                let (compare, swap) = (read(bytes, UNION + 8), read(bytes, UNION + 16));
                Operation::Connected(SendOp::CompareSwap { at, compare, swap })
            }
            opcode::ATOMIC_FETCH_AND_ADD => {
                Operation::Connected(SendOp::FetchAdd { at, add: read(bytes, UNION + 8) })
            }
            opcode::SEND_WITH_INV => {
                Operation::Connected(SendOp::SendInvalidate { rkey: read(bytes, 20) })
            }
            opcode::LOCAL_INV => {
                Operation::Connected(SendOp::LocalInvalidate { rkey: read(bytes, 20) })
            }
            opcode::BIND_MW => Operation::Connected(SendOp::BindWindow(Box::new(WindowBinding {
                addr: read(bytes, UNION),
                length: read(bytes, UNION + 8),
                lkey: read(bytes, UNION + 16),
                rkey: read(bytes, UNION + 20),
                key: read::<u32>(bytes, UNION + 24) as u8,
                access: AccessFlags(read(bytes, UNION + 28)),
            }))),
            _ => return Err(failed),
        };
        let too_long = (wr_id, WcStatus::LocLenErr);
        let data = if send_flags & flag::INLINE == 0 {
            sges(bytes, SEND_DMA).ok_or(too_long)?
        } else {
            let length: u32 = read(bytes, SEND_DMA);
            let bytes = bytes.get(SEND_WQE..).and_then(|rest| rest.get(..length as usize));
            Data::Inline(bytes.ok_or(too_long)?.into())
        };
        let flags = SendFlags {
            signaled: send_flags & flag::SIGNALED != 0,
            solicited: send_flags & flag::SOLICITED != 0,
            fence: send_flags & flag::FENCE != 0,
        };
        Ok(Self { wr_id, operation, data, flags })
    }
}

/// Decodes the ring element of a receive request.
///
/// # Errors
/// Returns the ID of the receive if the SGEs exceed the element.
pub(super) fn decode_receive(bytes: &[u8]) -> Result<RecvWr, u64> {
    let wr_id = read(bytes, 0);
    Ok(RecvWr { wr_id, data: sges(bytes, RECV_DMA).ok_or(wr_id)? })
}

/// Returns the SGEs of a queue element, which follow the DMA structure at offset `dma`. Returns
/// `None` if they exceed the element.
fn sges(bytes: &[u8], dma: usize) -> Option<Data> {
    let count: u32 = read(bytes, dma + 12);
    let size = (count as usize).checked_mul(SGE)?;
    let found = bytes.get(dma + DMA..)?.get(..size)?;
    let sge =
        |bytes: &[u8]| Sge { addr: read(bytes, 0), length: read(bytes, 8), lkey: read(bytes, 12) };
    let sges: Vec<Sge> = found.chunks_exact(SGE).map(sge).collect();
    Some(Data::from(&sges[..]))
}

/// Reads the value at an offset. Returns zero if the element is too short.
fn read<T: Field + Default>(bytes: &[u8], at: usize) -> T {
    bytes.get(at..at + T::SIZE).map(T::read).unwrap_or_default()
}

/// Returns the ring element of a completion.
pub(super) fn encode_completion(wc: &Wc) -> Vec<u8> {
    let (immediate, flags) = match (wc.imm_data, wc.invalidated_rkey) {
        (Some(data), _) => (data.to_be_bytes(), wc_flag::WITH_IMM),
        (None, Some(rkey)) => (rkey.to_ne_bytes(), wc_flag::WITH_INV),
        (None, None) => ([0; 4], 0),
    };
    bytes_of(&Completion {
        wr_id: wc.wr_id,
        status: status_number(wc.status),
        opcode: match wc.opcode {
            WcOpcode::Send => 0,
            WcOpcode::RdmaWrite => 1,
            WcOpcode::RdmaRead => 2,
            WcOpcode::CompSwap => 3,
            WcOpcode::FetchAdd => 4,
            WcOpcode::BindMw => 5,
            WcOpcode::LocalInv => 6,
            WcOpcode::RegMr => 8,
            WcOpcode::Recv => 1 << 7,
            WcOpcode::RecvRdmaWithImm => (1 << 7) + 1,
        },
        vendor_err: 0,
        byte_len: wc.byte_len,
        immediate,
        qp_num: wc.qp_num.get(),
        src_qp: wc.src_qp.get(),
        wc_flags: flags | if wc.grh { wc_flag::GRH } else { 0 },
        slid: wc.slid,
        sl: wc.sl,
        port_num: 1,
        ..Completion::default()
    })
}

/// Returns the number of a completion status (`ibv_wc_status`).
const fn status_number(status: WcStatus) -> u32 {
    match status {
        WcStatus::Success => 0,
        WcStatus::LocLenErr => 1,
        WcStatus::LocQpOpErr => 2,
        WcStatus::LocProtErr => 4,
        WcStatus::WrFlushErr => 5,
        WcStatus::MwBindErr => 6,
        WcStatus::BadRespErr => 7,
        WcStatus::LocAccessErr => 8,
        WcStatus::RemInvReqErr => 9,
        WcStatus::RemAccessErr => 10,
        WcStatus::RemOpErr => 11,
        WcStatus::RetryExcErr => 12,
        WcStatus::RnrRetryExcErr => 13,
    }
}

/// Returns true if completions with this opcode belong to receives.
pub(super) const fn is_receive(opcode: WcOpcode) -> bool {
    matches!(opcode, WcOpcode::Recv | WcOpcode::RecvRdmaWithImm)
}

#[cfg(test)]
mod tests;
