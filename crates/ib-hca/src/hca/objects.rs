//! Creation, change and destruction of the objects of an HCA.

use std::sync::Arc;

use ib_link::Route;
use ib_types::{Instant, Qpn};
use rand::Rng;

use super::Hca;
use super::config::check_limit;
use crate::completion::Cq;
use crate::error::{CreateError, DestroyError};
use crate::id::{AhId, CqId, MrId, PdId, QpId, SrqId};
use crate::memory::Memory;
use crate::qp::Qp;
use crate::qp::attr::{
    self, ModifyError, QpAttr, QpAttrName, QpAttributes, QpInitAttr, QpState, QpType,
};
use crate::qp::context::QpContext;
use crate::region::{AccessFlags, RegionError};
use crate::resources::AddressHandle;
use crate::srq::Srq;
use crate::trace::MessageLog;

impl Hca {
    /// Makes a protection domain (`ibv_alloc_pd`).
    ///
    /// # Errors
    /// Fails when there are as many as there may be.
    pub fn alloc_pd(&mut self) -> Result<PdId, CreateError> {
        self.config.check_count(&self.pds, "protection domains")?;
        Ok(PdId(self.pds.insert(|_| ())))
    }

    /// Destroys a protection domain (`ibv_dealloc_pd`).
    ///
    /// # Errors
    /// Fails when it is not there, or something still belongs to it.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<(), DestroyError> {
        let in_use = self.resources.regions.has_any(pd)
            || self.qps.iter().any(|qp| qp.context.pd == pd)
            || self.resources.srqs.iter().any(|srq| srq.pd == pd)
            || self.resources.ahs.iter().any(|ah| ah.pd == pd);
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
        self.resources.regions.register(&mut self.rng, pd, (memory, offset, length), iova, access)
    }

    /// Makes a region for fast registration (`ib_alloc_mr`).
    ///
    /// # Errors
    /// Fails when the protection domain is not there, or there are too many regions.
    pub fn alloc_mr(&mut self, pd: PdId) -> Result<MrId, RegionError> {
        self.pds.get(pd.0).ok_or(RegionError::NoSuchPd)?;
        self.resources.regions.allocate(&mut self.rng, pd)
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
        self.resources.regions.open_fast(mr, range, iova, access)
    }

    /// Has the key of a region of [`Hca::alloc_mr`] open nothing at once.
    ///
    /// # Errors
    /// Fails when it is not there or not for fast registration.
    pub fn close_mr(&mut self, mr: MrId) -> Result<(), RegionError> {
        self.resources.regions.close_fast(mr)
    }

    /// Opens what [`Hca::close_mr`] has closed for the same memory under the next key, which is returned.
    ///
    /// # Errors
    /// Fails when it is not there, or has no memory.
    pub fn reopen_mr(&mut self, mr: MrId) -> Result<u32, RegionError> {
        self.resources.regions.reopen_fast(mr)
    }

    /// Returns how many memory regions there are.
    #[must_use]
    pub fn regions(&self) -> usize {
        self.resources.regions.len()
    }

    /// Returns the key of a region, which is its local and its remote one.
    #[must_use]
    pub fn key(&self, mr: MrId) -> Option<u32> {
        self.resources.regions.key(mr)
    }

    /// Deregisters memory (`ibv_dereg_mr`): its key opens nothing any more, whatever is under way.
    ///
    /// # Errors
    /// Fails when it is not there.
    pub fn dereg_mr(&mut self, mr: MrId) -> Result<(), RegionError> {
        self.resources.regions.deregister(mr)
    }

    /// Makes a completion queue (`ibv_create_cq`).
    ///
    /// # Errors
    /// Fails when it would be too long, or there are too many.
    pub fn create_cq(&mut self, cqe: u32) -> Result<CqId, CreateError> {
        self.config.check_count(&self.resources.cqs, "completion queues")?;
        let most = self.config.max_cqe;
        if cqe == 0 || cqe > most {
            return Err(CreateError::Value { what: "cqe", found: cqe, most });
        }
        Ok(CqId(self.resources.cqs.insert(|_| Cq::new(cqe as usize))))
    }

    /// Destroys a completion queue (`ibv_destroy_cq`).
    ///
    /// # Errors
    /// Fails when it is not there, or a queue pair uses it.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<(), DestroyError> {
        let found = self.resources.cqs.get(cq.0).ok_or(DestroyError::Gone("completion queue"))?;
        if found.users > 0 {
            return Err(DestroyError::InUse("the completion queue"));
        }
        self.resources.cqs.remove(cq.0);
        Ok(())
    }

    /// Has the next completion told as an event (`ibv_req_notify_cq`).
    pub fn req_notify_cq(&mut self, cq: CqId, solicited_only: bool) {
        if let Some(cq) = self.resources.cqs.get_mut(cq.0) {
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
        self.config.check_count(&self.resources.srqs, "shared receive queues")?;
        check_limit("max_wr", max_wr, self.config.max_qp_wr)?;
        check_limit("max_sge", max_sge, self.config.max_sge)?;
        Ok(SrqId(self.resources.srqs.insert(|_| Srq::new(pd, max_wr, max_sge))))
    }

    /// Has an event told when a shared receive queue has fewer receives than a limit
    /// (`ibv_modify_srq`); 0 for never. False when it is not there, or the limit is beyond its length.
    pub fn arm_srq(&mut self, srq: SrqId, limit: u32) -> bool {
        self.resources.srqs.get_mut(srq.0).is_some_and(|srq| srq.arm(limit))
    }

    /// Destroys a shared receive queue (`ibv_destroy_srq`).
    ///
    /// # Errors
    /// Fails when it is not there, or a queue pair uses it.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<(), DestroyError> {
        let found =
            self.resources.srqs.get(srq.0).ok_or(DestroyError::Gone("shared receive queue"))?;
        if found.users > 0 {
            return Err(DestroyError::InUse("the shared receive queue"));
        }
        self.resources.srqs.remove(srq.0);
        Ok(())
    }

    /// Makes an address handle (`ibv_create_ah`).
    ///
    /// # Errors
    /// Fails when the route is not from this port.
    pub fn create_ah(&mut self, pd: PdId, route: Route) -> Result<AhId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        self.config.check_count(&self.resources.ahs, "address handles")?;
        if !self.config.has_source(&route) {
            return Err(CreateError::Source(route.source));
        }
        Ok(AhId(self.resources.ahs.insert(|_| AddressHandle { pd, route })))
    }

    /// Destroys an address handle (`ibv_destroy_ah`).
    ///
    /// # Errors
    /// Fails when it is not there.
    pub fn destroy_ah(&mut self, ah: AhId) -> Result<(), DestroyError> {
        self.resources.ahs.remove(ah.0).map(drop).ok_or(DestroyError::Gone("address handle"))
    }

    /// Creates a queue pair (`ibv_create_qp`).
    ///
    /// # Errors
    /// Fails if one of its objects does not exist, or if it exceeds a limit.
    pub fn create_qp(&mut self, pd: PdId, init: &QpInitAttr) -> Result<QpId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        self.config.check_count(&self.qps, "queue pairs")?;
        let config = &self.config;
        let cap = &init.cap;
        check_limit("max_send_wr", cap.max_send_wr, config.max_qp_wr)?;
        check_limit("max_recv_wr", cap.max_recv_wr, config.max_qp_wr)?;
        check_limit("max_send_sge", cap.max_send_sge, config.max_sge)?;
        check_limit("max_recv_sge", cap.max_recv_sge, config.max_sge)?;
        check_limit("max_inline_data", cap.max_inline_data, config.max_inline_data)?;
        for cq in [init.send_cq, init.recv_cq] {
            self.resources.cqs.get(cq.0).ok_or(CreateError::NoSuch("completion queue"))?;
        }
        if let Some(srq) = init.srq {
            let srq = self.resources.srqs.get_mut(srq.0);
            srq.ok_or(CreateError::NoSuch("shared receive queue"))?.users += 1;
        }
        for cq in [init.send_cq, init.recv_cq] {
            self.resources.cqs.get_mut(cq.0).expect("the queue exists").users += 1;
        }
        // Unpredictable numbers, above those of QP0 and QP1 and below the multicast QP number.
        let number = loop {
            let number = self.config.qpns.place(Qpn::truncated(self.rng.next_u32()));
            let is_usual = number.get() > 1 && number != Qpn::MULTICAST;
            if is_usual && !self.by_number.contains_key(&number.get()) {
                break number;
            }
        };
        let window = self.config.window.clamp(8, 1 << 22);
        let mut attributes = QpAttributes::default();
        if init.qp_type == QpType::Ud {
            attributes.path_mtu = self.config.active_mtu;
        }
        let context = |id| QpContext {
            id: QpId(id),
            number,
            pd,
            init: *init,
            state: QpState::Reset,
            attributes,
            window,
            messages: MessageLog::default(),
            service: None,
        };
        let id = QpId(self.qps.insert(|id| Qp::new(context(id))));
        self.by_number.insert(number.get(), id);
        self.selections.update(self.qps.get_mut(id.0).expect("the queue pair was inserted"));
        Ok(id)
    }

    /// Destroys a queue pair (`ibv_destroy_qp`), and its completions with it.
    ///
    /// # Errors
    /// Fails if it does not exist, or is attached to a multicast group.
    pub fn destroy_qp(&mut self, id: QpId) -> Result<(), DestroyError> {
        let qp = self.qps.get(id.0).ok_or(DestroyError::Gone("queue pair"))?;
        if self.groups.has(id) {
            return Err(DestroyError::InUse("the queue pair, by a multicast group,"));
        }
        let (number, init) = (qp.context.number, qp.context.init);
        for cq in [init.send_cq, init.recv_cq] {
            let cq = self.resources.cqs.get_mut(cq.0).expect("queue pairs keep their queues");
            cq.users -= 1;
            cq.remove(number);
        }
        if let Some(srq) = init.srq {
            self.resources.srqs.get_mut(srq.0).expect("queue pairs keep their queues").users -= 1;
        }
        self.by_number.remove(&number.get());
        self.qps.remove(id.0);
        Ok(())
    }

    /// Changes a queue pair (`ibv_modify_qp`).
    ///
    /// # Errors
    /// Fails if the transition is invalid, or if a required attribute is missing or has an invalid value. The queue
    /// pair is then unchanged.
    pub fn modify_qp(&mut self, now: Instant, id: QpId, attr: &QpAttr) -> Result<(), ModifyError> {
        let qp = self.qps.get(id.0).ok_or(ModifyError::NoSuchQp)?;
        let to = attr::check(qp.context.init.qp_type, qp.context.state, attr)?;
        if let Some(route) = attr.route.filter(|route| !self.config.has_source(route)) {
            return Err(ModifyError::Source(route.source));
        }
        let most = self.config.active_mtu;
        if let Some(found) = attr.path_mtu.filter(|&mtu| mtu > most) {
            return Err(ModifyError::Mtu { found, most });
        }
        if attr.dest_qp_num.is_some_and(|number| number.get() == 0) {
            let attribute = QpAttrName::dest_qp_num;
            return Err(ModifyError::Value { attribute, found: 0, most: 0xff_ffff });
        }
        let qp = self.qps.get_mut(id.0).expect("the queue pair exists");
        self.resources.now = now;
        qp.modify(&mut self.resources, attr, to);
        self.touch(now, id);
        let qp = self.qps.get_mut(id.0).expect("the queue pair exists");
        self.selections.update(qp);
        Ok(())
    }

    /// Returns the number, the state and the attributes of a queue pair (`ibv_query_qp`).
    #[must_use]
    pub fn query_qp(&self, id: QpId) -> Option<(Qpn, QpState, &QpAttributes)> {
        let context = &self.qps.get(id.0)?.context;
        Some((context.number, context.state, &context.attributes))
    }
}
