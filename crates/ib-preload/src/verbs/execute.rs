//! Executes commands on the objects of a context. Error numbers are those of the kernel's uverbs
//! and rxe.
//!
//! | file | holds |
//! |---|---|
//! | `memory.rs` | commands on memory regions and memory windows |
//! | `resize.rs` | new sizes of CQs and SRQs |

use std::collections::VecDeque;

use ib_hca::{CreateError, DestroyError, GroupError, QpCap, QpInitAttr, QpState, QpType};
use ib_os::clock;
use ib_types::Gid;

use super::abi::{
    CreateAh, CreateCq, CreateCqEx, CreateCqResponse, CreateQp, CreateQpResponse, CreateSrq,
    CreateSrqResponse, DestroyCqResponse, ExtendedAttributes, Field, ModifyQp, QpDestination,
    QueryQpResponse, QuerySrqResponse, bytes_of,
};
use super::adapter::Adapter;
use super::attributes::{self, MAX_CQE, mask};
use super::command::{Command, Request};
use super::events::Source;
use super::objects::{Cq, FileId, Objects, Qp, Srq};
use super::ring::{self, Ring};
use super::rxe;
use crate::errno::Errno;

mod memory;
mod resize;

/// Response of a command: the part that the uverbs core defines, followed by the part that the rxe
/// driver defines.
#[derive(Debug, Default)]
pub(super) struct Response {
    pub(super) core: Vec<u8>,
    pub(super) driver: Vec<u8>,
}

impl Response {
    fn core(structure: &impl Field) -> Self {
        Self { core: bytes_of(structure), driver: Vec::new() }
    }

    fn with_driver(mut self, structure: &impl Field) -> Self {
        structure.write(&mut self.driver);
        self
    }

    /// Appends the fields `comp_mask` and `response_length` of an extended response.
    fn extended(mut self) -> Self {
        let length = self.core.len() as u32 + 8;
        0_u32.write(&mut self.core);
        length.write(&mut self.core);
        self
    }
}

/// Executes commands of a context.
pub(super) struct Executor<'a> {
    pub(super) adapter: &'a mut Adapter,
    pub(super) objects: &'a mut Objects,
    pub(super) context: FileId,
}

impl Executor<'_> {
    /// Executes a command. Fails with `EINVAL` for commands that open event files or create CQs: the
    /// module `verbs` handles these.
    pub(super) fn execute(&mut self, command: &Command) -> Result<Response, Errno> {
        match command.request {
            Request::GetContext | Request::CreateCompChannel => Err(Errno::INVALID),
            Request::QueryDevice => Ok(Response::core(&self.device())),
            Request::QueryDeviceEx => Ok(self.query_device_ex(command.response.core)),
            Request::QueryPort(query) => {
                if query.port_num != 1 {
                    return Err(Errno::INVALID);
                }
                Ok(Response::core(&self.adapter.port.attributes()))
            }
            Request::AllocPd => {
                let pd = self.adapter.device.hca().alloc_pd().map_err(created)?;
                Ok(Response::core(&self.objects.pds.insert(self.context, pd)))
            }
            Request::DeallocPd(handle) => {
                let &mut pd = self.objects.pds.existing(self.context, handle)?;
                self.adapter.device.hca().dealloc_pd(pd).map_err(destroyed)?;
                self.objects.pds.remove(handle);
                Ok(Response::default())
            }
            Request::CreateAh(create) => self.create_ah(&create),
            Request::DestroyAh(handle) => {
                let &mut ah = self.objects.ahs.existing(self.context, handle)?;
                self.adapter.device.hca().destroy_ah(ah).map_err(destroyed)?;
                self.objects.ahs.remove(handle);
                Ok(Response::default())
            }
            Request::RegMr(reg) => self.reg_mr(&reg),
            Request::ReregMr(rereg) => self.rereg_mr(&rereg),
            Request::DeregMr(handle) => self.dereg_mr(handle),
            Request::AllocMw(alloc) => self.alloc_mw(&alloc),
            Request::DeallocMw(handle) => {
                let &mut mw = self.objects.mws.existing(self.context, handle)?;
                self.adapter.device.hca().dealloc_mw(mw).map_err(destroyed)?;
                self.objects.mws.remove(handle);
                Ok(Response::default())
            }
            Request::CreateCq(_) | Request::CreateCqEx(_) => Err(Errno::INVALID),
            Request::ResizeCq(resize) => self.resize_cq(&resize),
            Request::ReqNotifyCq(request) => {
                let cq = self.objects.cqs.of(self.context, request.cq_handle)?;
                if request.solicited_only == 0 {
                    cq.is_armed = true;
                } else if !cq.is_armed {
                    cq.is_armed_solicited = true;
                    let id = cq.id;
                    self.adapter.device.hca().req_notify_cq(id, true);
                }
                Ok(Response::default())
            }
            Request::DestroyCq(handle) => self.destroy_cq(handle),
            Request::CreateQp(create) => self.create_qp(&create),
            Request::CreateQpEx(create, more) => {
                if more.comp_mask != 0 || more.create_flags != 0 || more.source_qpn != 0 {
                    return Err(Errno::NOT_SUPPORTED);
                }
                self.create_qp(&create).map(Response::extended)
            }
            Request::QueryQp(query) => self.query_qp(query.qp_handle),
            Request::ModifyQp(modify) => self.modify_qp(&modify),
            Request::DestroyQp(handle) => self.destroy_qp(handle),
            Request::PostSend(post) => self.post_send(post.qp_handle),
            Request::AttachMcast(multicast) => {
                let qp = self.objects.qps.of(self.context, multicast.qp_handle)?.id;
                let group = Gid(u128::from_be_bytes(multicast.gid));
                self.adapter
                    .device
                    .hca()
                    .attach_mcast(qp, group)
                    .map_err(|_: GroupError| Errno::INVALID)?;
                Ok(Response::default())
            }
            Request::DetachMcast(multicast) => {
                let qp = self.objects.qps.of(self.context, multicast.qp_handle)?.id;
                let group = Gid(u128::from_be_bytes(multicast.gid));
                self.adapter
                    .device
                    .hca()
                    .detach_mcast(qp, group)
                    .map_err(|_: GroupError| Errno::INVALID)?;
                Ok(Response::default())
            }
            Request::CreateSrq(create) => self.create_srq(&create),
            Request::ModifySrq(modify) => self.modify_srq(&modify, command.response.address != 0),
            Request::QuerySrq(handle) => {
                let srq = self.objects.srqs.of(self.context, handle)?;
                let (max_wr, max_sge, srq_limit) = (srq.max_wr, srq.max_sge, srq.limit);
                let reserved = 0;
                Ok(Response::core(&QuerySrqResponse { max_wr, max_sge, srq_limit, reserved }))
            }
            Request::DestroySrq(handle) => {
                let id = self.objects.srqs.existing(self.context, handle)?.id;
                self.adapter.device.hca().destroy_srq(id).map_err(destroyed)?;
                let events = self.objects.srqs.remove(handle).map_or(0, |srq| srq.events);
                self.forget_events(Source::Srq(handle));
                Ok(Response::core(&events))
            }
        }
    }

    fn device(&mut self) -> super::abi::DeviceAttributes {
        let p_keys = self.adapter.port.p_keys.len();
        attributes::device(self.adapter.device.hca().config(), p_keys)
    }

    fn query_device_ex(&mut self, room: usize) -> Response {
        let attributes = self.device();
        let mut more = ExtendedAttributes {
            device_cap_flags_ex: attributes.device_cap_flags.into(),
            ..ExtendedAttributes::default()
        };
        more.response_length = room.min(attributes_size()) as u32;
        let mut response = Response::core(&attributes);
        more.write(&mut response.core);
        response
    }

    fn create_ah(&mut self, create: &CreateAh) -> Result<Response, Errno> {
        let &mut pd = self.objects.pds.of(self.context, create.pd_handle)?;
        let path = QpDestination {
            dgid: create.dgid,
            flow_label: create.flow_label,
            dlid: create.dlid,
            reserved: 0,
            sgid_index: create.sgid_index,
            hop_limit: create.hop_limit,
            traffic_class: create.traffic_class,
            sl: create.sl,
            src_path_bits: create.src_path_bits,
            static_rate: create.static_rate,
            is_global: create.is_global,
            port_num: create.port_num,
        };
        let route = self.adapter.port.route(&path)?;
        let ah = self.adapter.device.hca().create_ah(pd, route).map_err(created)?;
        let handle = self.objects.ahs.insert(self.context, ah);
        // The driver's part of the response repeats the handle, because send requests of UD queue
        // pairs name the address handle by this number.
        Ok(Response::core(&handle).with_driver(&handle).with_driver(&0_u32))
    }

    /// Creates a CQ. `channel` is the event file of the CQ's completion channel; `None` if the CQ has no channel.
    pub(super) fn create_cq(
        &mut self,
        create: &CreateCq,
        channel: Option<FileId>,
    ) -> Result<Response, Errno> {
        if create.cqe == 0 || create.cqe > MAX_CQE || create.comp_vector != 0 {
            return Err(Errno::INVALID);
        }
        let rings = self.rings()?;
        let ring = Ring::create(rings, create.cqe, rxe::CQE)?;
        // The engine's CQ has the maximum size, because it also holds the completions of unsignaled
        // requests, until all completions are moved into the ring.
        let most = self.adapter.device.hca().config().max_cqe;
        let id = self.adapter.device.hca().create_cq(most).map_err(created)?;
        let info = ring.info();
        let cq = Cq {
            id,
            ring,
            channel,
            user_handle: create.user_handle,
            is_armed: false,
            is_armed_solicited: false,
            has_overrun: false,
            comp_events: 0,
            async_events: 0,
        };
        let cq_handle = self.objects.cqs.insert(self.context, cq);
        let response = CreateCqResponse { cq_handle, cqe: create.cqe };
        Ok(Response::core(&response).with_driver(&info))
    }

    /// Executes the extended command that creates a CQ. Completion timestamps and ignored overruns
    /// are not supported.
    pub(super) fn create_cq_ex(
        &mut self,
        create: &CreateCqEx,
        channel: Option<FileId>,
    ) -> Result<Response, Errno> {
        if create.comp_mask != 0 || create.flags != 0 {
            return Err(Errno::NOT_SUPPORTED);
        }
        let CreateCqEx { user_handle, cqe, comp_vector, comp_channel, .. } = *create;
        let create = CreateCq { user_handle, cqe, comp_vector, comp_channel, reserved: 0 };
        self.create_cq(&create, channel).map(Response::extended)
    }

    fn destroy_cq(&mut self, handle: u32) -> Result<Response, Errno> {
        let id = self.objects.cqs.existing(self.context, handle)?.id;
        self.adapter.device.hca().destroy_cq(id).map_err(destroyed)?;
        self.forget_events(Source::Cq(handle));
        let cq = self.objects.cqs.remove(handle).ok_or(Errno::INVALID)?;
        Ok(Response::core(&DestroyCqResponse {
            comp_events_reported: cq.comp_events,
            async_events_reported: cq.async_events,
        }))
    }

    fn create_qp(&mut self, create: &CreateQp) -> Result<Response, Errno> {
        let qp_type = match create.qp_type {
            2 => QpType::Rc,
            3 => QpType::Uc,
            4 => QpType::Ud,
            _ => return Err(Errno::NOT_SUPPORTED),
        };
        let &mut pd = self.objects.pds.of(self.context, create.pd_handle)?;
        let send_cq = self.objects.cqs.of(self.context, create.send_cq_handle)?.id;
        let recv_cq = self.objects.cqs.of(self.context, create.recv_cq_handle)?.id;
        let srq = match create.is_srq {
            0 => None,
            _ => Some(self.objects.srqs.of(self.context, create.srq_handle)?.id),
        };
        let config = self.adapter.device.hca().config();
        let (max_sge, max_inline) = (config.max_sge, config.max_inline_data);
        let max_wr = config.max_qp_wr;
        if create.max_send_sge > max_sge || create.max_inline_data > max_inline {
            return Err(Errno::INVALID);
        }
        // SGEs and inline data use the same bytes at the end of a ring element, so each can use the
        // larger of both requested sizes.
        let room = (create.max_send_sge as usize * rxe::SGE).max(create.max_inline_data as usize);
        let cap = QpCap {
            max_send_wr: queue_size(create.max_send_wr, max_wr),
            max_recv_wr: if srq.is_some() { 0 } else { queue_size(create.max_recv_wr, max_wr) },
            max_send_sge: ((room / rxe::SGE) as u32).min(max_sge),
            max_recv_sge: if srq.is_some() { 0 } else { create.max_recv_sge },
            max_inline_data: (room as u32).min(max_inline),
        };
        let init = QpInitAttr { qp_type, send_cq, recv_cq, srq, cap };
        let id = self.adapter.device.hca().create_qp(pd, &init).map_err(created)?;
        let made = self.add_qp(create, id, &init, room);
        if made.is_err() {
            // The result is ignored: destroying the new queue pair cannot fail, because nothing
            // uses it.
            let _ = self.adapter.device.hca().destroy_qp(id);
        }
        made
    }

    /// Creates the rings of a queue pair that the engine has created, and adds the queue pair to
    /// the objects.
    fn add_qp(
        &mut self,
        create: &CreateQp,
        id: ib_hca::QpId,
        init: &QpInitAttr,
        room: usize,
    ) -> Result<Response, Errno> {
        let cap = init.cap;
        let (number, ..) = self.adapter.device.hca().query_qp(id).ok_or(Errno::INVALID)?;
        let rings = self.rings()?;
        let send_ring = Ring::create(rings, cap.max_send_wr, rxe::SEND_WQE + room)?;
        let element = rxe::RECV_WQE + cap.max_recv_sge as usize * rxe::SGE;
        let recv_ring = match init.srq {
            Some(_) => None,
            None => Some(Ring::create(rings, cap.max_recv_wr, element)?),
        };
        let recv_info = recv_ring.as_ref().map(Ring::info).unwrap_or_default();
        let send_info = send_ring.info();
        let qp = Qp {
            id,
            number,
            qp_type: init.qp_type,
            cap,
            send_ring,
            recv_ring,
            send_cq: create.send_cq_handle,
            recv_cq: create.recv_cq_handle,
            user_handle: create.user_handle,
            signals_all: create.sq_sig_all != 0,
            posted: VecDeque::new(),
            refused: None,
            path: QpDestination::default(),
            p_key_index: 0,
            events: 0,
        };
        let qp_handle = self.objects.qps.insert(self.context, qp);
        self.objects.by_number.insert(number.get(), qp_handle);
        let response = CreateQpResponse {
            qp_handle,
            qpn: number.get(),
            max_send_wr: cap.max_send_wr,
            max_recv_wr: cap.max_recv_wr,
            max_send_sge: cap.max_send_sge,
            max_recv_sge: cap.max_recv_sge,
            max_inline_data: cap.max_inline_data,
            reserved: 0,
        };
        Ok(Response::core(&response).with_driver(&recv_info).with_driver(&send_info))
    }

    fn query_qp(&mut self, handle: u32) -> Result<Response, Errno> {
        let qp = self.objects.qps.of(self.context, handle)?;
        let (_, state, attributes) =
            self.adapter.device.hca().query_qp(qp.id).ok_or(Errno::INVALID)?;
        let (cap, state) = (qp.cap, attributes::state_number(state));
        Ok(Response::core(&QueryQpResponse {
            dest: qp.path,
            max_send_wr: cap.max_send_wr,
            max_recv_wr: cap.max_recv_wr,
            max_send_sge: cap.max_send_sge,
            max_recv_sge: cap.max_recv_sge,
            max_inline_data: cap.max_inline_data,
            qkey: attributes.qkey.0,
            rq_psn: attributes.rq_psn.get(),
            sq_psn: attributes.sq_psn.get(),
            dest_qp_num: attributes.dest_qp_num.get(),
            qp_access_flags: attributes.qp_access_flags.0,
            pkey_index: qp.p_key_index,
            qp_state: state,
            cur_qp_state: state,
            path_mtu: attributes.path_mtu.code(),
            max_rd_atomic: attributes.max_rd_atomic,
            max_dest_rd_atomic: attributes.max_dest_rd_atomic,
            min_rnr_timer: attributes.min_rnr_timer,
            port_num: 1,
            timeout: attributes.timeout,
            retry_cnt: attributes.retry_cnt,
            rnr_retry: attributes.rnr_retry,
            sq_sig_all: u8::from(qp.signals_all),
            ..QueryQpResponse::default()
        }))
    }

    fn modify_qp(&mut self, modify: &ModifyQp) -> Result<Response, Errno> {
        let qp = self.objects.qps.of(self.context, modify.qp_handle)?;
        let id = qp.id;
        let hca = self.adapter.device.hca();
        let (_, state, _) = hca.query_qp(id).ok_or(Errno::INVALID)?;
        let attr = attributes::change(modify, (qp.qp_type, state), &self.adapter.port)?;
        let hca = self.adapter.device.hca();
        hca.modify_qp(clock::now(), id, &attr).map_err(|_| Errno::INVALID)?;
        if modify.attr_mask & mask::AV != 0 {
            qp.path = modify.dest;
        }
        if modify.attr_mask & mask::PKEY_INDEX != 0 {
            qp.p_key_index = modify.pkey_index;
        }
        if attr.qp_state == Some(QpState::Reset) {
            qp.posted.clear();
            qp.refused = None;
            qp.send_ring.clear();
            if let Some(ring) = &mut qp.recv_ring {
                ring.clear();
            }
        }
        self.adapter.take_receives(self.objects);
        self.adapter.take_sends(self.objects, modify.qp_handle);
        Ok(Response::default())
    }

    fn destroy_qp(&mut self, handle: u32) -> Result<Response, Errno> {
        let id = self.objects.qps.existing(self.context, handle)?.id;
        self.adapter.complete(self.objects);
        self.adapter.device.hca().destroy_qp(id).map_err(destroyed)?;
        self.forget_events(Source::Qp(handle));
        let qp = self.objects.qps.remove(handle).ok_or(Errno::INVALID)?;
        self.objects.by_number.remove(&qp.number.get());
        Ok(Response::core(&qp.events))
    }

    fn post_send(&mut self, handle: u32) -> Result<Response, Errno> {
        let qp = self.objects.qps.of(self.context, handle)?;
        let (_, state, _) = self.adapter.device.hca().query_qp(qp.id).ok_or(Errno::INVALID)?;
        if matches!(state, QpState::Reset | QpState::Init | QpState::Rtr) {
            // The provider has put the requests into the ring before it sent this command. They are refused.
            qp.send_ring.clear();
            return Err(Errno::INVALID);
        }
        self.adapter.take_sends(self.objects, handle);
        Ok(Response::default())
    }

    fn create_srq(&mut self, create: &CreateSrq) -> Result<Response, Errno> {
        let &mut pd = self.objects.pds.of(self.context, create.pd_handle)?;
        let CreateSrq { max_wr, max_sge, srq_limit, .. } = *create;
        if max_wr == 0 || srq_limit > max_wr {
            return Err(Errno::INVALID);
        }
        let hca = self.adapter.device.hca();
        let max_wr = queue_size(max_wr, hca.config().max_qp_wr);
        let id = hca.create_srq(pd, max_wr, max_sge).map_err(created)?;
        hca.arm_srq(id, srq_limit);
        let element = rxe::RECV_WQE + max_sge as usize * rxe::SGE;
        let ring = match self.rings().and_then(|rings| Ring::create(rings, max_wr, element)) {
            Ok(ring) => ring,
            Err(error) => {
                // The result is ignored: destroying the new SRQ cannot fail, because nothing uses
                // it.
                let _ = self.adapter.device.hca().destroy_srq(id);
                return Err(error);
            }
        };
        let info = ring.info();
        let user_handle = create.user_handle;
        let srq = Srq { id, ring, user_handle, max_wr, max_sge, limit: srq_limit, events: 0 };
        let srq_handle = self.objects.srqs.insert(self.context, srq);
        let response = CreateSrqResponse { srq_handle, max_wr, max_sge, srqn: srq_handle };
        Ok(Response::core(&response)
            .with_driver(&info)
            .with_driver(&srq_handle)
            .with_driver(&0_u32))
    }

    /// Destroys all objects of the context. Objects are destroyed before the objects on which they
    /// depend.
    pub(super) fn destroy_all(&mut self) {
        for handle in self.objects.qps.handles(self.context) {
            if let Ok(qp) = self.objects.qps.of(self.context, handle) {
                let id = qp.id;
                self.adapter.device.hca().detach_all_mcast(id);
            }
            self.destroy(Request::DestroyQp(handle));
        }
        self.destroy_each(self.objects.ahs.handles(self.context), Request::DestroyAh);
        self.destroy_each(self.objects.mws.handles(self.context), Request::DeallocMw);
        self.destroy_each(self.objects.mrs.handles(self.context), Request::DeregMr);
        self.destroy_each(self.objects.srqs.handles(self.context), Request::DestroySrq);
        self.destroy_each(self.objects.cqs.handles(self.context), Request::DestroyCq);
        self.destroy_each(self.objects.pds.handles(self.context), Request::DeallocPd);
    }

    fn destroy_each(&mut self, handles: Vec<u32>, destroy: impl Fn(u32) -> Request) {
        for handle in handles {
            self.destroy(destroy(handle));
        }
    }

    /// Destroys one object. An error is ignored: the object remains until its context is closed.
    pub(super) fn destroy(&mut self, request: Request) {
        let response = super::command::ResponseBuffer::default();
        let _ = self.execute(&Command { request, response });
    }

    /// Removes the waiting events about an object from all event files.
    fn forget_events(&mut self, source: Source) {
        for file in self.objects.event_files.values_mut() {
            file.forget(source);
        }
    }

    fn rings(&mut self) -> Result<&mut ring::RingFile, Errno> {
        let context = self.objects.contexts.get_mut(&self.context);
        context.map(|context| &mut context.rings).ok_or(Errno::INVALID)
    }
}

/// Returns the size of a queue in work requests: the capacity of its ring, up to the limit of the
/// device. A requested size above the limit is returned unchanged, and the engine refuses it.
fn queue_size(work_requests: u32, most: u32) -> u32 {
    ring::capacity(work_requests).map_or(work_requests, |room| work_requests.max(room.min(most)))
}

/// Returns the size of the response of the extended QUERY_DEVICE in bytes.
const fn attributes_size() -> usize {
    super::abi::DeviceAttributes::SIZE + ExtendedAttributes::SIZE
}

fn created(error: CreateError) -> Errno {
    match error {
        CreateError::Full { .. } => Errno::NO_MEMORY,
        _ => Errno::INVALID,
    }
}

fn destroyed(error: DestroyError) -> Errno {
    match error {
        DestroyError::InUse(_) => Errno::BUSY,
        _ => Errno::INVALID,
    }
}
