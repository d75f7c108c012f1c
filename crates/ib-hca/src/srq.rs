//! Shared receive queues.

use std::collections::VecDeque;

use crate::error::PostError;
use crate::id::PdId;
use crate::work_request::RecvWr;

/// A shared receive queue.
#[derive(Debug)]
pub(crate) struct Srq {
    pub(crate) pd: PdId,
    queue: VecDeque<RecvWr>,
    /// If fewer receives than this remain, an event is reported; 0 for no event.
    limit: u32,
    max_wr: u32,
    max_sge: u32,
    /// Number of queue pairs that use the SRQ.
    pub(crate) users: u32,
}

impl Srq {
    /// Returns the number of receives in the queue.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) const fn new(pd: PdId, max_wr: u32, max_sge: u32) -> Self {
        Self { pd, queue: VecDeque::new(), limit: 0, max_wr, max_sge, users: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Sets the event threshold. Returns false if the threshold exceeds the size of the queue.
    pub(crate) const fn arm(&mut self, limit: u32) -> bool {
        let fits = limit <= self.max_wr;
        if fits {
            self.limit = limit;
        }
        fits
    }

    /// Sets the size. Fails with the least possible size: the number of queued receives, or the event threshold.
    pub(crate) fn resize(&mut self, max_wr: u32) -> Result<(), usize> {
        let least = self.queue.len().max(self.limit as usize);
        if least > max_wr as usize {
            return Err(least);
        }
        self.max_wr = max_wr;
        Ok(())
    }

    /// Posts a receive.
    pub(crate) fn post(&mut self, wr: RecvWr) -> Result<(), PostError> {
        if self.queue.len() >= self.max_wr as usize {
            return Err(PostError::Full(self.max_wr));
        }
        wr.check(self.max_sge)?;
        self.queue.push_back(wr);
        Ok(())
    }

    /// Takes the next receive. The returned flag is true if fewer receives than the event threshold remain; the event
    /// is then disarmed.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<(RecvWr, bool)> {
        let wr = self.queue.pop_front()?;
        let is_low = (self.queue.len() as u32) < self.limit;
        if is_low {
            self.limit = 0;
        }
        Some((wr, is_low))
    }

    /// Puts a receive back at the head of the queue.
    pub(crate) fn give_back(&mut self, wr: RecvWr) {
        self.queue.push_front(wr);
    }
}
