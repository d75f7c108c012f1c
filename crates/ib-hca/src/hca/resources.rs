//! Protection domains, memory regions, completion queues, shared receive queues and address handles.

use std::collections::VecDeque;
use std::sync::Arc;

use ib_link::Route;

use super::{Ah, Hca, Srq};
use crate::completion::Cq;
use crate::error::{CreateError, DestroyError};
use crate::memory::Memory;
use crate::objects::{AhId, CqId, PdId, PostError, RecvWr, SrqId, Wc};
use crate::region::{AccessFlags, MrId, RegionError};
use crate::table::{MOST, Table};

impl Hca {
    pub(super) fn room<T>(&self, table: &Table<T>, what: &'static str) -> Result<(), CreateError> {
        let most = self.config.max_objects.min(MOST);
        if table.len() < most { Ok(()) } else { Err(CreateError::Full { what, most }) }
    }

    /// Makes a protection domain (`ibv_alloc_pd`).
    ///
    /// # Errors
    /// Fails when there are as many as there may be.
    pub fn alloc_pd(&mut self) -> Result<PdId, CreateError> {
        self.room(&self.pds, "protection domains")?;
        Ok(PdId(self.pds.insert(|_| ())))
    }

    /// Destroys a protection domain (`ibv_dealloc_pd`).
    ///
    /// # Errors
    /// Fails when it is not there, or something still belongs to it.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<(), DestroyError> {
        let in_use = self.regions.has_any(pd)
            || self.qps.iter().any(|qp| qp.core.pd == pd)
            || self.queues.srqs.iter().any(|srq| srq.pd == pd)
            || self.queues.ahs.iter().any(|ah| ah.pd == pd);
        if in_use {
            return Err(DestroyError::InUse("the protection domain"));
        }
        self.pds.remove(pd.0).ok_or(DestroyError::Gone("protection domain"))
    }

    /// Registers a range of memory under an address (`ibv_reg_mr_iova`).
    ///
    /// # Errors
    /// Fails when the range or the rights cannot be.
    pub fn reg_mr(
        &mut self,
        pd: PdId,
        (memory, offset, length): (&Arc<Memory>, usize, usize),
        iova: u64,
        access: AccessFlags,
    ) -> Result<MrId, RegionError> {
        self.pds.get(pd.0).ok_or(RegionError::NoSuchPd)?;
        self.regions.register(&mut self.rng, pd, (memory, offset, length), iova, access)
    }

    /// Makes a region for fast registration (`ib_alloc_mr`).
    ///
    /// # Errors
    /// Fails when the protection domain is not there, or there are too many regions.
    pub fn alloc_mr(&mut self, pd: PdId) -> Result<MrId, RegionError> {
        self.pds.get(pd.0).ok_or(RegionError::NoSuchPd)?;
        self.regions.allocate(&mut self.rng, pd)
    }

    /// Gives a region of [`Hca::alloc_mr`] memory at once, without a work request, under its next key, which is
    /// returned; the key before opens nothing any more, whatever is under way. For owners that need no order with
    /// what their queues send: a key that a peer does not know yet can be opened at any time.
    ///
    /// The next key differs in its lowest byte alone, which wraps: after 256 of them a region has the first one again, so
    /// that a peer that has kept a key for as long can reach what is open then.
    ///
    /// # Errors
    /// Fails when it is not there or not for fast registration, or the range or the rights cannot be.
    pub fn open_mr(
        &mut self,
        mr: MrId,
        range: (&Arc<Memory>, usize, usize),
        iova: u64,
        access: AccessFlags,
    ) -> Result<u32, RegionError> {
        self.regions.open_fast(mr, range, iova, access)
    }

    /// Has the key of a region of [`Hca::alloc_mr`] open nothing at once.
    ///
    /// # Errors
    /// Fails when it is not there or not for fast registration.
    pub fn close_mr(&mut self, mr: MrId) -> Result<(), RegionError> {
        self.regions.close_fast(mr)
    }

    /// Opens what [`Hca::close_mr`] has closed for the same memory under the next key, which is returned.
    ///
    /// # Errors
    /// Fails when it is not there, or has no memory.
    pub fn reopen_mr(&mut self, mr: MrId) -> Result<u32, RegionError> {
        self.regions.reopen_fast(mr)
    }

    /// Returns how many memory regions there are.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Returns the key of a region, which is its local and its remote one.
    #[must_use]
    pub fn key(&self, mr: MrId) -> Option<u32> {
        self.regions.key(mr)
    }

    /// Deregisters memory (`ibv_dereg_mr`): its key opens nothing any more, whatever is under way.
    ///
    /// # Errors
    /// Fails when it is not there.
    pub fn dereg_mr(&mut self, mr: MrId) -> Result<(), RegionError> {
        self.regions.deregister(mr)
    }

    /// Makes a completion queue (`ibv_create_cq`).
    ///
    /// # Errors
    /// Fails when it would be too long, or there are too many.
    pub fn create_cq(&mut self, cqe: u32) -> Result<CqId, CreateError> {
        self.room(&self.queues.cqs, "completion queues")?;
        let most = self.config.max_cqe;
        if cqe == 0 || cqe > most {
            return Err(CreateError::Value { what: "cqe", found: cqe, most });
        }
        Ok(CqId(self.queues.cqs.insert(|_| Cq::new(cqe as usize))))
    }

    /// Destroys a completion queue (`ibv_destroy_cq`).
    ///
    /// # Errors
    /// Fails when it is not there, or a queue pair uses it.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<(), DestroyError> {
        let found = self.queues.cqs.get(cq.0).ok_or(DestroyError::Gone("completion queue"))?;
        if found.users > 0 {
            return Err(DestroyError::InUse("the completion queue"));
        }
        self.queues.cqs.remove(cq.0);
        Ok(())
    }

    /// Returns the next completion (`ibv_poll_cq`).
    pub fn poll_cq(&mut self, cq: CqId) -> Option<Wc> {
        self.queues.cqs.get_mut(cq.0)?.poll()
    }

    /// Has the next completion told as an event (`ibv_req_notify_cq`).
    pub fn req_notify_cq(&mut self, cq: CqId, solicited_only: bool) {
        if let Some(cq) = self.queues.cqs.get_mut(cq.0) {
            cq.arm(solicited_only);
        }
    }

    /// Makes a shared receive queue (`ibv_create_srq`).
    ///
    /// # Errors
    /// Fails when it would be too long, or there are too many.
    pub fn create_srq(
        &mut self,
        pd: PdId,
        max_wr: u32,
        max_sge: u32,
    ) -> Result<SrqId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        self.room(&self.queues.srqs, "shared receive queues")?;
        self.check("max_wr", max_wr, self.config.max_qp_wr)?;
        self.check("max_sge", max_sge, self.config.max_sge)?;
        let make =
            |_| Srq { pd, queue: VecDeque::new(), limit: 0, most: max_wr, max_sge, users: 0 };
        Ok(SrqId(self.queues.srqs.insert(make)))
    }

    /// Has an event told when a shared receive queue has fewer receives than a limit
    /// (`ibv_modify_srq`); 0 for never. False when it is not there, or the limit is beyond its length.
    pub fn arm_srq(&mut self, srq: SrqId, limit: u32) -> bool {
        let found = self.queues.srqs.get_mut(srq.0).filter(|srq| limit <= srq.most);
        found.map(|srq| srq.limit = limit).is_some()
    }

    /// Destroys a shared receive queue (`ibv_destroy_srq`).
    ///
    /// # Errors
    /// Fails when it is not there, or a queue pair uses it.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<(), DestroyError> {
        let found =
            self.queues.srqs.get(srq.0).ok_or(DestroyError::Gone("shared receive queue"))?;
        if found.users > 0 {
            return Err(DestroyError::InUse("the shared receive queue"));
        }
        self.queues.srqs.remove(srq.0);
        Ok(())
    }

    /// Returns the number of receives in a shared receive queue.
    #[must_use]
    pub fn srq_len(&self, srq: SrqId) -> Option<usize> {
        self.queues.srqs.get(srq.0).map(|srq| srq.queue.len())
    }

    /// Posts a receive to a shared receive queue (`ibv_post_srq_recv`).
    ///
    /// # Errors
    /// Fails on a queue that is full, and on memory that is not open to it.
    pub fn post_srq_recv(&mut self, srq: SrqId, wr: RecvWr) -> Result<(), PostError> {
        let found = self.queues.srqs.get_mut(srq.0).ok_or(PostError::NoSuchQueue)?;
        if found.queue.len() >= found.most as usize {
            return Err(PostError::Full(found.most));
        }
        crate::qp::check_recv(&self.regions, found.pd, found.max_sge, &wr)?;
        found.queue.push_back(wr);
        Ok(())
    }

    /// Makes an address handle (`ibv_create_ah`).
    ///
    /// # Errors
    /// Fails when the route is not from this port.
    pub fn create_ah(&mut self, pd: PdId, route: Route) -> Result<AhId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        self.room(&self.queues.ahs, "address handles")?;
        if !self.starts_here(&route) {
            return Err(CreateError::Source(route.source));
        }
        Ok(AhId(self.queues.ahs.insert(|_| Ah { pd, route })))
    }

    /// Destroys an address handle (`ibv_destroy_ah`).
    ///
    /// # Errors
    /// Fails when it is not there.
    pub fn destroy_ah(&mut self, ah: AhId) -> Result<(), DestroyError> {
        self.queues.ahs.remove(ah.0).map(drop).ok_or(DestroyError::Gone("address handle"))
    }

    pub(super) fn starts_here(&self, route: &Route) -> bool {
        !route.is_global || self.config.gids.contains(&route.source)
    }

    pub(super) fn check(
        &self,
        what: &'static str,
        found: u32,
        most: u32,
    ) -> Result<(), CreateError> {
        if found <= most { Ok(()) } else { Err(CreateError::Value { what, found, most }) }
    }
}
