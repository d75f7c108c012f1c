//! Creation, change and destruction of the objects of an HCA.

use std::sync::Arc;

use ib_link::Route;
use ib_types::{Instant, Qpn};
use rand::Rng;

use super::Hca;
use super::config::{HcaConfig, check_limit};
use crate::completion::Cq;
use crate::error::{CreateError, DestroyError, ResizeError};
use crate::id::{AhId, CqId, MrId, MwId, PdId, QpId, SrqId};
use crate::memory::Memory;
use crate::qp::Qp;
use crate::qp::attr::{
    self, ModifyError, QpAttr, QpAttrName, QpAttributes, QpInitAttr, QpState, QpType,
};
use crate::qp::context::QpContext;
use crate::region::{AccessFlags, MwType, RegionError, Reregistration};
use crate::resources::AddressHandle;
use crate::srq::Srq;
use crate::trace::MessageLog;

impl Hca {
    /// Creates a protection domain (`ibv_alloc_pd`).
    ///
    /// # Errors
    /// Fails if the HCA has its maximum number of protection domains.
    pub fn alloc_pd(&mut self) -> Result<PdId, CreateError> {
        self.config.check_count(&self.pds, "protection domains")?;
        Ok(PdId(self.pds.insert(|_| ())))
    }

    /// Destroys a protection domain (`ibv_dealloc_pd`).
    ///
    /// # Errors
    /// Fails if the protection domain does not exist, or still has regions, windows, queue pairs, SRQs or address
    /// handles.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<(), DestroyError> {
        let in_use = self.resources.regions.has_any(pd)
            || self.qps.iter().any(|qp| qp.context.pd == pd)
            || self.resources.srqs.iter().any(|srq| srq.pd == pd)
            || self.resources.ahs.iter().any(|ah| ah.pd == pd);
        if in_use {
            return Err(DestroyError::InUse("protection domain"));
        }
        self.pds.remove(pd.0).ok_or(DestroyError::NoSuch("protection domain"))
    }

    /// Registers `length` bytes of `memory`, from `offset` on (`ibv_reg_mr_iova`). In SGEs and RDMA requests, `iova` is
    /// the address of the first byte.
    ///
    /// # Errors
    /// Fails if the protection domain does not exist, or if the range or the access flags are invalid.
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

    /// Creates a fast-registration region (`ib_alloc_mr`). Its key gives no access until memory is assigned to it.
    ///
    /// # Errors
    /// Fails if the protection domain does not exist, or if the HCA has its maximum number of regions.
    pub fn alloc_mr(&mut self, pd: PdId) -> Result<MrId, RegionError> {
        self.pds.get(pd.0).ok_or(RegionError::NoSuchPd)?;
        self.resources.regions.allocate(&mut self.rng, pd)
    }

    /// Assigns memory to a fast-registration region immediately, without a work request. Returns its new key.
    ///
    /// The previous key no longer gives access, not even to packets in flight. Unlike [`SendOp::Register`], the call
    /// does not wait for requests that are already posted. Send the new key to the peer after the call.
    ///
    /// Only the lowest byte of the key changes, and it wraps: after 256 calls the first key is valid again. A peer that
    /// has kept that key can then access the new memory.
    ///
    /// [`SendOp::Register`]: crate::SendOp::Register
    ///
    /// # Errors
    /// Fails if the region does not exist or is not a fast-registration region, or if the range or the access flags are
    /// invalid.
    pub fn open_mr(
        &mut self,
        mr: MrId,
        range: (&Arc<Memory>, usize, usize),
        iova: u64,
        access: AccessFlags,
    ) -> Result<u32, RegionError> {
        self.resources.regions.open_fast(mr, range, iova, access)
    }

    /// Invalidates the key of a fast-registration region immediately. The region keeps its memory, and
    /// [`Hca::reopen_mr`] can assign a new key.
    ///
    /// # Errors
    /// Fails if the region does not exist or is not a fast-registration region.
    pub fn close_mr(&mut self, mr: MrId) -> Result<(), RegionError> {
        self.resources.regions.close_fast(mr)
    }

    /// Assigns a new valid key to a fast-registration region that keeps its memory, for example after
    /// [`Hca::close_mr`]. Returns the key.
    ///
    /// # Errors
    /// Fails if the region does not exist, is not a fast-registration region, or has no memory.
    pub fn reopen_mr(&mut self, mr: MrId) -> Result<u32, RegionError> {
        self.resources.regions.reopen_fast(mr)
    }

    /// Returns the number of memory regions.
    #[must_use]
    pub fn region_count(&self) -> usize {
        self.resources.regions.len()
    }

    /// Returns the key of a region, which is both its L_Key and its R_Key.
    #[must_use]
    pub fn key(&self, mr: MrId) -> Option<u32> {
        self.resources.regions.key(mr)
    }

    /// Changes the memory, the protection domain or the access flags of a region (`ibv_rereg_mr`). The region keeps its
    /// key. Each packet in flight accesses either the old or the new region.
    ///
    /// # Errors
    /// Fails if the region or the protection domain does not exist, if a memory window is bound to the region, or if
    /// the range or the access flags are invalid. Also fails for fast-registration regions. The region is then
    /// unchanged.
    pub fn rereg_mr(&mut self, mr: MrId, change: &Reregistration<'_>) -> Result<(), RegionError> {
        if let Some(pd) = change.pd {
            self.pds.get(pd.0).ok_or(RegionError::NoSuchPd)?;
        }
        self.resources.regions.reregister(mr, change)
    }

    /// Allocates a memory window (`ibv_alloc_mw`), which gives no access until a send request
    /// [`SendOp::BindWindow`](crate::SendOp::BindWindow) binds it.
    ///
    /// # Errors
    /// Fails if the protection domain does not exist, or if the HCA has its maximum number of windows.
    pub fn alloc_mw(&mut self, pd: PdId, mw_type: MwType) -> Result<MwId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        self.resources.regions.allocate_window(&mut self.rng, pd, mw_type)
    }

    /// Returns the current R_Key of a memory window.
    #[must_use]
    pub fn window_key(&self, mw: MwId) -> Option<u32> {
        self.resources.regions.window_key(mw)
    }

    /// Unbinds and deallocates a memory window (`ibv_dealloc_mw`).
    ///
    /// # Errors
    /// Fails if the window does not exist.
    pub fn dealloc_mw(&mut self, mw: MwId) -> Result<(), DestroyError> {
        self.resources.regions.remove_window(mw)
    }

    /// Deregisters a region (`ibv_dereg_mr`). Its key no longer gives access, not even to packets in flight.
    ///
    /// # Errors
    /// Fails if the region does not exist, or if a memory window is bound to it.
    pub fn dereg_mr(&mut self, mr: MrId) -> Result<(), RegionError> {
        self.resources.regions.deregister(mr)
    }

    /// Creates a completion queue of `cqe` completions (`ibv_create_cq`).
    ///
    /// # Errors
    /// Fails if `cqe` is 0 or exceeds the limit, or if the HCA has its maximum number of CQs.
    pub fn create_cq(&mut self, cqe: u32) -> Result<CqId, CreateError> {
        self.config.check_count(&self.resources.cqs, "completion queues")?;
        let most = self.config.max_cqe;
        if cqe == 0 || cqe > most {
            return Err(CreateError::Value { attribute: "cqe", found: cqe, most });
        }
        Ok(CqId(self.resources.cqs.insert(|_| Cq::new(cqe as usize))))
    }

    /// Changes the size of a completion queue (`ibv_resize_cq`). Queued completions and requested events remain.
    ///
    /// # Errors
    /// Fails if the CQ does not exist, or if `cqe` is 0, exceeds the limit or is less than the number of completions.
    pub fn resize_cq(&mut self, cq: CqId, cqe: u32) -> Result<(), ResizeError> {
        let queue = self.resources.cqs.get_mut(cq.0);
        let queue = queue.ok_or(ResizeError::NoSuch("completion queue"))?;
        let most = self.config.max_cqe;
        let failed = |least| ResizeError::Value { attribute: "cqe", found: cqe, least, most };
        if cqe == 0 || cqe > most {
            return Err(failed(1));
        }
        queue.resize(cqe).map_err(failed)
    }

    /// Destroys a completion queue (`ibv_destroy_cq`).
    ///
    /// # Errors
    /// Fails if the CQ does not exist, or if a queue pair uses it.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<(), DestroyError> {
        let found = self.resources.cqs.get(cq.0).ok_or(DestroyError::NoSuch("completion queue"))?;
        if found.users > 0 {
            return Err(DestroyError::InUse("completion queue"));
        }
        self.resources.cqs.remove(cq.0);
        Ok(())
    }

    /// Requests an event for the next completion, or for the next solicited completion (`ibv_req_notify_cq`).
    pub fn req_notify_cq(&mut self, cq: CqId, solicited_only: bool) {
        if let Some(cq) = self.resources.cqs.get_mut(cq.0) {
            cq.arm(solicited_only);
        }
    }

    /// Creates a shared receive queue (`ibv_create_srq`).
    ///
    /// # Errors
    /// Fails if the protection domain does not exist, if `max_wr` or `max_sge` exceeds the limit of the HCA, or if the
    /// HCA has its maximum number of SRQs.
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

    /// Requests an event for the time when a shared receive queue has fewer than `limit` receives (`ibv_modify_srq`). A
    /// limit of 0 cancels the request. Returns false if the SRQ does not exist, or if `limit` exceeds the size of the
    /// SRQ.
    pub fn arm_srq(&mut self, srq: SrqId, limit: u32) -> bool {
        self.resources.srqs.get_mut(srq.0).is_some_and(|srq| srq.arm(limit))
    }

    /// Changes the size of a shared receive queue (`ibv_modify_srq` with `IBV_SRQ_MAX_WR`). Its receives remain.
    ///
    /// # Errors
    /// Fails if the SRQ does not exist, or if `max_wr` is 0 or exceeds the limit of the HCA. Also fails if `max_wr` is
    /// less than the number of queued receives, or than the limit that [`Hca::arm_srq`] has set.
    pub fn resize_srq(&mut self, srq: SrqId, max_wr: u32) -> Result<(), ResizeError> {
        let queue = self.resources.srqs.get_mut(srq.0);
        let queue = queue.ok_or(ResizeError::NoSuch("shared receive queue"))?;
        let most = self.config.max_qp_wr;
        let failed = |least| ResizeError::Value { attribute: "max_wr", found: max_wr, least, most };
        if max_wr == 0 || max_wr > most {
            return Err(failed(1));
        }
        queue.resize(max_wr).map_err(failed)
    }

    /// Destroys a shared receive queue (`ibv_destroy_srq`).
    ///
    /// # Errors
    /// Fails if the SRQ does not exist, or if a queue pair uses it.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<(), DestroyError> {
        let found =
            self.resources.srqs.get(srq.0).ok_or(DestroyError::NoSuch("shared receive queue"))?;
        if found.users > 0 {
            return Err(DestroyError::InUse("shared receive queue"));
        }
        self.resources.srqs.remove(srq.0);
        Ok(())
    }

    /// Creates an address handle (`ibv_create_ah`).
    ///
    /// # Errors
    /// Fails if the protection domain does not exist, if the source GID of the route is not a GID of the port, or if
    /// the HCA has its maximum number of address handles.
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
    /// Fails if the address handle does not exist.
    pub fn destroy_ah(&mut self, ah: AhId) -> Result<(), DestroyError> {
        self.resources.ahs.remove(ah.0).map(drop).ok_or(DestroyError::NoSuch("address handle"))
    }

    /// Creates a queue pair (`ibv_create_qp`).
    ///
    /// # Errors
    /// Fails if the PD, a CQ or the SRQ does not exist, or if a limit of the HCA is exceeded.
    pub fn create_qp(&mut self, pd: PdId, init: &QpInitAttr) -> Result<QpId, CreateError> {
        self.pds.get(pd.0).ok_or(CreateError::NoSuch("protection domain"))?;
        HcaConfig::check_room(&self.qps, "queue pairs", self.config.max_qp())?;
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
            self.resources.cqs.get_mut(cq.0).expect("the CQ was found above").users += 1;
        }
        // The number is unpredictable and above 1, and is not the multicast QP number.
        let number = loop {
            let number = self.config.qpns.number(Qpn::truncated(self.rng.next_u32()));
            let is_valid = number.get() > 1 && number != Qpn::MULTICAST;
            if is_valid && !self.by_number.contains_key(&number.get()) {
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

    /// Destroys a queue pair (`ibv_destroy_qp`), removes its completions from its CQs, and unbinds its type 2 windows.
    ///
    /// # Errors
    /// Fails if the queue pair does not exist, or is attached to a multicast group.
    pub fn destroy_qp(&mut self, id: QpId) -> Result<(), DestroyError> {
        let qp = self.qps.get(id.0).ok_or(DestroyError::NoSuch("queue pair"))?;
        if self.groups.is_attached(id) {
            return Err(DestroyError::InUse("queue pair, attached to a multicast group,"));
        }
        let (number, init) = (qp.context.number, qp.context.init);
        for cq in [init.send_cq, init.recv_cq] {
            let cq = self.resources.cqs.get_mut(cq.0).expect("the CQ of a queue pair still exists");
            cq.users -= 1;
            cq.remove(number);
        }
        if let Some(srq) = init.srq {
            self.resources
                .srqs
                .get_mut(srq.0)
                .expect("the SRQ of a queue pair still exists")
                .users -= 1;
        }
        self.resources.regions.unbind_all(id);
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
