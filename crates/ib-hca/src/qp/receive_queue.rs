//! Receive queue of a queue pair: its own receives, or those of its SRQ.

use std::collections::VecDeque;

use super::attr::QpState;
use super::context::QpContext;
use crate::error::PostError;
use crate::event::{AsyncEvent, HcaEvent};
use crate::id::PdId;
use crate::resources::HcaResources;
use crate::srq::Srq;
use crate::work_request::RecvWr;

/// Receive queue of a queue pair. If the queue pair uses an SRQ, this queue is empty.
#[derive(Debug, Default)]
pub(super) struct ReceiveQueue(VecDeque<RecvWr>);

impl ReceiveQueue {
    /// Posts a receive.
    pub(super) fn post(&mut self, context: &QpContext, wr: RecvWr) -> Result<(), PostError> {
        if context.init.srq.is_some() {
            return Err(PostError::Shared);
        }
        if context.state == QpState::Reset {
            return Err(PostError::State { found: context.state, expected: "any but Reset" });
        }
        let cap = &context.init.cap;
        if self.0.len() >= cap.max_recv_wr as usize {
            return Err(PostError::Full(cap.max_recv_wr));
        }
        wr.check(cap.max_recv_sge)?;
        self.0.push_back(wr);
        Ok(())
    }

    /// Returns true if no receive is posted: to the SRQ if the queue pair uses one, otherwise to this queue.
    pub(super) fn is_empty(&self, context: &QpContext, hca: &HcaResources) -> bool {
        match context.init.srq {
            Some(id) => hca.srqs.get(id.0).is_none_or(Srq::is_empty),
            None => self.0.is_empty(),
        }
    }

    /// Returns the PD of the receives' memory regions.
    #[inline]
    pub(super) fn pd(context: &QpContext, hca: &HcaResources) -> PdId {
        let srq = context.init.srq.and_then(|id| hca.srqs.get(id.0));
        srq.map_or(context.pd, |srq| srq.pd)
    }

    /// Takes the next receive.
    #[inline]
    pub(super) fn take(&mut self, context: &QpContext, hca: &mut HcaResources) -> Option<RecvWr> {
        let Some(id) = context.init.srq else { return self.0.pop_front() };
        let (wr, is_low) = hca.srqs.get_mut(id.0)?.take()?;
        if is_low {
            hca.events.push_back(HcaEvent::Async(AsyncEvent::SrqLimitReached(id)));
        }
        Some(wr)
    }

    /// Puts a receive back at the head of the queue.
    pub(super) fn give_back(&mut self, context: &QpContext, hca: &mut HcaResources, wr: RecvWr) {
        match context.init.srq.and_then(|id| hca.srqs.get_mut(id.0)) {
            Some(srq) => srq.give_back(wr),
            None => self.0.push_front(wr),
        }
    }

    /// Removes the queue pair's own receives. Receives of its SRQ remain.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = RecvWr> {
        std::mem::take(&mut self.0).into_iter()
    }
}
