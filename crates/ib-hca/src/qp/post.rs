//! Work requests, checked as they are posted.

use super::Qp;
use super::attr::{QpState, QpType};
use super::core::Core;
use super::send::Wqe;
use crate::hca::MAX_MESSAGE;
use crate::objects::{Data, PostError, RecvWr, SendOp, SendWr};
use crate::region::{AccessFlags, Regions};

use ib_types::{Instant, Psn};

/// The length of what an atomic operation returns.
const ATOMIC: u64 = 8;

impl Qp {
    /// Takes a request to send.
    pub(crate) fn post_send(
        &mut self,
        now: Instant,
        regions: &Regions,
        wr: SendWr,
    ) -> Result<(), PostError> {
        let core = &self.core;
        match core.state {
            QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Err => {}
            found => return Err(PostError::State { found, expected: "Rts, Sqd, Sqe or Err" }),
        }
        if self.send.wqes.len() >= core.cap.max_send_wr as usize {
            return Err(PostError::Full(core.cap.max_send_wr));
        }
        let length = check_send(core, regions, &wr)?;
        let wqe = Wqe {
            wr,
            length,
            first: Psn::truncated(0),
            count: 0,
            begun: false,
            received: 0,
            counted: false,
            done: false,
            posted: now,
            started: Instant::NEVER,
        };
        self.send.wqes.push_back(wqe);
        Ok(())
    }

    /// Takes a receive.
    pub(crate) fn post_recv(&mut self, regions: &Regions, wr: RecvWr) -> Result<(), PostError> {
        let core = &self.core;
        if core.srq.is_some() {
            return Err(PostError::Shared);
        }
        if core.state == QpState::Reset {
            return Err(PostError::State { found: core.state, expected: "any but Reset" });
        }
        if self.responder.queue.len() >= core.cap.max_recv_wr as usize {
            return Err(PostError::Full(core.cap.max_recv_wr));
        }
        check_recv(regions, core.pd, core.cap.max_recv_sge, &wr)?;
        self.responder.queue.push_back(wr);
        Ok(())
    }

    /// Ends at once what was posted to a queue pair that has failed.
    pub(crate) fn flush_posted(&mut self, cx: &mut super::core::Cx<'_>) {
        match self.core.state {
            QpState::Err => {
                self.flush_sends(cx);
                self.responder.flush(&self.core, cx);
            }
            QpState::Sqe => self.flush_sends(cx),
            _ => {}
        }
    }
}

/// Checks a request to send; returns the length of its message.
fn check_send(core: &Core, regions: &Regions, wr: &SendWr) -> Result<u32, PostError> {
    use SendOp as Op;
    let fits = match (core.qp_type, &wr.op) {
        (QpType::Rc, op) => !matches!(op, Op::SendDatagram { .. }),
        (QpType::Uc, op) => matches!(
            op,
            Op::Send { .. } | Op::Write { .. } | Op::LocalInvalidate { .. } | Op::Register(_)
        ),
        (QpType::Ud, op) => matches!(op, Op::SendDatagram { .. }),
    };
    if !fits {
        return Err(PostError::Operation(core.qp_type));
    }
    let length = wr.data.length();
    let most = if core.qp_type == QpType::Ud { core.mtu() as u64 } else { MAX_MESSAGE };
    if length > most {
        return Err(PostError::TooLong { found: length, most });
    }
    let sges = wr.data.sges();
    if sges.len() > core.cap.max_send_sge as usize {
        return Err(PostError::TooManySges { found: sges.len(), most: core.cap.max_send_sge });
    }
    let is_read = matches!(wr.op, Op::Read { .. } | Op::CompareSwap { .. } | Op::FetchAdd { .. });
    if let Data::Inline(bytes) = &wr.data {
        if is_read {
            return Err(PostError::Operation(core.qp_type));
        }
        if bytes.len() > core.cap.max_inline_data as usize {
            let (found, most) = (bytes.len(), core.cap.max_inline_data);
            return Err(PostError::TooMuchInline { found, most });
        }
    }
    if matches!(wr.op, Op::CompareSwap { .. } | Op::FetchAdd { .. }) && length != ATOMIC {
        return Err(PostError::AtomicLength(length));
    }
    if is_read && core.attributes.max_rd_atomic == 0 {
        return Err(PostError::NoReads);
    }
    let access = if is_read { AccessFlags::LOCAL_WRITE } else { AccessFlags::default() };
    check_sges(regions, core.pd, sges, access)?;
    Ok(length as u32)
}

/// Checks a receive.
pub(crate) fn check_recv(
    regions: &Regions,
    pd: crate::objects::PdId,
    most: u32,
    wr: &RecvWr,
) -> Result<(), PostError> {
    if let Data::Inline(bytes) = &wr.data {
        return Err(PostError::TooMuchInline { found: bytes.len(), most: 0 });
    }
    let sges = wr.data.sges();
    if sges.len() > most as usize {
        return Err(PostError::TooManySges { found: sges.len(), most });
    }
    let length = wr.data.length();
    if length > u64::from(u32::MAX) {
        return Err(PostError::TooLong { found: length, most: u32::MAX.into() });
    }
    check_sges(regions, pd, sges, AccessFlags::LOCAL_WRITE)
}

fn check_sges(
    regions: &Regions,
    pd: crate::objects::PdId,
    sges: &[crate::objects::Sge],
    access: AccessFlags,
) -> Result<(), PostError> {
    for (index, sge) in sges.iter().enumerate().filter(|(_, sge)| sge.length > 0) {
        let range = (sge.lkey, sge.addr, sge.length as usize);
        regions.open(pd, range, access).map_err(|why| PostError::Sge { index, why })?;
    }
    Ok(())
}
