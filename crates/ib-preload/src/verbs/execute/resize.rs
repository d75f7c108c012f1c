//! New sizes of CQs and SRQs: their elements move into new rings.

use super::{Executor, Response};
use crate::errno::Errno;
use crate::verbs::abi::{ModifySrq, ResizeCq, ResizeCqResponse};
use crate::verbs::attributes::MAX_CQE;
use crate::verbs::ring::Ring;
use crate::verbs::rxe;

impl Executor<'_> {
    /// Moves the unread completions of a CQ into a new ring. The engine's CQ always has the maximum size.
    pub(super) fn resize_cq(&mut self, resize: &ResizeCq) -> Result<Response, Errno> {
        let cqe = resize.cqe;
        let cq = self.objects.cqs.of(self.context, resize.cq_handle)?;
        if cqe == 0 || cqe > MAX_CQE || cq.ring.unread() > cqe {
            return Err(Errno::INVALID);
        }
        let context = self.objects.contexts.get_mut(&self.context).ok_or(Errno::INVALID)?;
        let mut ring = Ring::create(&mut context.rings, cqe, rxe::CQE)?;
        ring.take_unread(&cq.ring)?;
        let info = ring.info();
        cq.ring = ring;
        Ok(Response::core(&ResizeCqResponse { cqe, reserved: 0 }).with_driver(&info))
    }

    /// Changes the size of an SRQ, its event threshold, or both. If the size changes, the response is the location of
    /// the new ring in the device file. `has_buffer` is true if the command contains the address of a buffer for the
    /// response.
    pub(super) fn modify_srq(
        &mut self,
        modify: &ModifySrq,
        has_buffer: bool,
    ) -> Result<Response, Errno> {
        const MAX_WR: u32 = 1;
        const LIMIT: u32 = 1 << 1;
        let has = |bit: u32| modify.attr_mask & bit != 0;
        if modify.attr_mask & !(MAX_WR | LIMIT) != 0 || has(MAX_WR) && !has_buffer {
            return Err(Errno::INVALID);
        }
        // After this call, the engine has all posted receives that fit into its queue.
        self.adapter.take_receives(self.objects);
        let hca = self.adapter.device.hca();
        let srq = self.objects.srqs.of(self.context, modify.srq_handle)?;
        let limit = if has(LIMIT) { modify.srq_limit } else { srq.limit };
        let max_wr = if has(MAX_WR) { modify.max_wr } else { srq.max_wr };
        if limit > max_wr {
            return Err(Errno::INVALID);
        }
        let mut response = Response::default();
        if has(MAX_WR) {
            if max_wr == 0 || max_wr > hca.config().max_qp_wr || srq.ring.posted() > max_wr {
                return Err(Errno::INVALID);
            }
            let context = self.objects.contexts.get_mut(&self.context).ok_or(Errno::INVALID)?;
            let element = rxe::RECV_WQE + srq.max_sge as usize * rxe::SGE;
            let mut ring = Ring::create(&mut context.rings, max_wr, element)?;
            ring.take_posted(&srq.ring)?;
            if has(LIMIT) {
                // The former limit may exceed the new size.
                hca.arm_srq(srq.id, 0);
            }
            hca.resize_srq(srq.id, max_wr).map_err(|_| Errno::INVALID)?;
            response = Response::core(&ring.info());
            (srq.ring, srq.max_wr) = (ring, max_wr);
        }
        if has(LIMIT) {
            if !hca.arm_srq(srq.id, limit) {
                return Err(Errno::INVALID);
            }
            srq.limit = limit;
        }
        Ok(response)
    }
}
