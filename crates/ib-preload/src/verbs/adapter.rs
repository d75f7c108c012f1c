//! The uverbs device of the process: moves work requests from the rings into the engine, and
//! completions back.
//!
//! Receives are taken from the rings before packets are handled, so that every packet finds the
//! receives that were posted before its arrival. All send requests are posted to the engine as
//! signaled, so that the elements of the send ring are released in order. If the program posted a
//! request as unsignaled, its successful completion is dropped here.

use std::io;
use std::os::fd::AsRawFd;

use ib_device::{Device, DeviceEvent};
use ib_hca::{
    AsyncEvent, CqId, HcaEvent, PostError, QpAttr, QpId, QpState, QpType, RecvWr, SendFlags,
    SendOp, SendWr, SrqId, UdDestination, Wc, WcOpcode, WcStatus,
};
use ib_os::clock;

use super::attributes::Port;
use super::events::Source;
use super::objects::{Cq, Objects, Posted, Qp};
use super::rxe::{self, Operation, SendElement};

/// Types of asynchronous events (`ib_event_type`).
mod event_type {
    pub(super) const CQ_ERR: u32 = 0;
    pub(super) const QP_FATAL: u32 = 1;
    pub(super) const QP_REQ_ERR: u32 = 2;
    pub(super) const QP_ACCESS_ERR: u32 = 3;
    pub(super) const SQ_DRAINED: u32 = 5;
    pub(super) const DEVICE_FATAL: u32 = 8;
    pub(super) const PORT_ACTIVE: u32 = 9;
    pub(super) const PORT_ERR: u32 = 10;
    pub(super) const LID_CHANGE: u32 = 11;
    pub(super) const PKEY_CHANGE: u32 = 12;
    pub(super) const SM_CHANGE: u32 = 13;
    pub(super) const SRQ_LIMIT_REACHED: u32 = 15;
    pub(super) const QP_LAST_WQE_REACHED: u32 = 16;
    pub(super) const GID_CHANGE: u32 = 18;
}

/// The uverbs device of the process, with its port.
pub(super) struct Adapter {
    pub(super) device: Device,
    pub(super) port: Port,
    /// True if the link has failed. Only commands that destroy objects succeed then.
    pub(super) has_failed: bool,
    /// Value of the port's change counter when `port` was read.
    changes: u64,
    /// Buffer into which elements are copied from the rings.
    element: Vec<u8>,
}

impl Adapter {
    pub(super) fn new(mut device: Device) -> Self {
        let port = Port::of(&mut device);
        let changes = device.attached().map_or(0, |port| port.changes());
        Self { device, port, has_failed: false, changes, element: Vec::new() }
    }

    /// Returns the descriptors of the link, which are readable if packets have arrived. Unused
    /// array elements are -1.
    pub(super) fn descriptors(&self) -> [i32; 2] {
        self.device.files().map(|file| file.map_or(-1, |file| file.as_raw_fd()))
    }

    /// Processes all queues of the device once: takes requests from the rings, processes packets,
    /// and returns completions to the program. Returns true if any packet was processed.
    pub(super) fn turn(&mut self, objects: &mut Objects) -> io::Result<bool> {
        self.take_receives(objects);
        let waiting: Vec<u32> = objects.qps.iter_mut().map(|(handle, ..)| handle).collect();
        for handle in waiting {
            self.take_sends(objects, handle);
        }
        let moved = self.device.progress()?;
        if moved {
            // Acknowledgements are sent before the program can read the completions, because the
            // program may then destroy the queue pair.
            self.device.flush();
        }
        self.settle(objects);
        Ok(moved)
    }

    /// Passes completions and events of the engine to the program.
    pub(super) fn settle(&mut self, objects: &mut Objects) {
        self.complete(objects);
        while let Some(event) = self.device.poll_event() {
            match event {
                DeviceEvent::Hca(HcaEvent::Completion(cq)) => notify_solicited(objects, cq),
                DeviceEvent::Hca(HcaEvent::Async(event)) => report(objects, &event),
                DeviceEvent::Hca(HcaEvent::Mad { .. }) => {}
                DeviceEvent::Cm(event) => {
                    objects.cm.handle(event, &mut self.device, clock::now());
                    // Sends responses, such as a rejection.
                    self.device.flush();
                }
            }
        }
        while let Some(completion) = self.device.poll_query() {
            objects.cm.handle_query(&completion);
        }
        self.report_port(objects);
    }

    /// Takes send requests of a queue pair from its ring until the engine has no more room.
    pub(super) fn take_sends(&mut self, objects: &mut Objects, handle: u32) {
        let Some(qp) = objects.qps.get_mut(handle) else { return };
        let state = self.device.hca().query_qp(qp.id).map(|(_, state, _)| state);
        if !matches!(state, Some(QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Err)) {
            return;
        }
        // The number of elements is bounded, because the program may change the ring at the same time.
        for _ in 0..qp.send_ring.capacity() {
            if qp.refused.is_some() || !qp.send_ring.peek(&mut self.element) {
                break;
            }
            let is_datagram = qp.qp_type == QpType::Ud;
            let decoded = SendElement::decode(&self.element, is_datagram);
            let posted = decoded.and_then(|element| {
                let wr_id = element.wr_id;
                let posted =
                    Posted { wr_id, is_signaled: qp.signals_all || element.flags.signaled };
                let op = match element.operation {
                    Operation::Connected(op) => op,
                    Operation::Datagram { ah, remote_qpn, remote_qkey, imm } => {
                        let ah = objects.ahs.get_mut(ah).copied();
                        let ah = ah.ok_or((wr_id, WcStatus::LocQpOpErr))?;
                        let to = UdDestination { ah, remote_qpn, remote_qkey };
                        SendOp::SendDatagram { to, imm }
                    }
                };
                let flags = SendFlags { signaled: true, ..element.flags };
                // The completion of this request is recognised by the position of the request in
                // `posted`, not by `wr_id`.
                let wr = SendWr { wr_id, op, data: element.data, flags };
                match self.device.hca().post_send(clock::now(), qp.id, wr) {
                    Ok(()) => Ok(Some(posted)),
                    Err(PostError::Full(_)) => Ok(None),
                    Err(error) => Err((wr_id, status_of(&error))),
                }
            });
            match posted {
                Ok(Some(posted)) => {
                    qp.posted.push_back(posted);
                    qp.send_ring.advance();
                }
                Ok(None) => break,
                Err(refused) => qp.refused = Some(refused),
            }
        }
        self.complete_refused(objects, handle);
    }

    /// Completes a refused request, if all earlier requests of the queue pair are complete.
    fn complete_refused(&mut self, objects: &mut Objects, handle: u32) {
        let Some(qp) = objects.qps.get_mut(handle) else { return };
        let Some((wr_id, status)) = qp.refused.take_if(|_| qp.posted.is_empty()) else { return };
        qp.send_ring.advance();
        qp.send_ring.release();
        let (id, send_cq) = (qp.id, qp.send_cq);
        let wc = Wc { wr_id, status, ..completion(qp, WcOpcode::Send) };
        push(objects, send_cq, &wc);
        self.fail(id);
        self.complete(objects);
    }

    /// Takes posted receives out of all rings, until the rings are empty or the engine's queues are
    /// full.
    pub(super) fn take_receives(&mut self, objects: &mut Objects) {
        let mut failed = Vec::new();
        for (handle, _, qp) in objects.qps.iter_mut() {
            let Some(ring) = &mut qp.recv_ring else { continue };
            for _ in 0..ring.capacity() {
                if !ring.peek(&mut self.element) {
                    break;
                }
                let posted = rxe::decode_receive(&self.element).map_err(|wr_id| (wr_id, None));
                let posted = posted.and_then(|wr| self.post_receive(qp.id, wr));
                match posted {
                    Ok(()) => ring.advance(),
                    Err((_, Some(PostError::Full(_) | PostError::State { .. }))) => break,
                    Err((wr_id, error)) => {
                        ring.advance();
                        ring.release();
                        let status = error.as_ref().map_or(WcStatus::LocLenErr, status_of);
                        let wc = Wc { wr_id, status, ..completion_of(qp.number, WcOpcode::Recv) };
                        failed.push((handle, qp.recv_cq, wc));
                        break;
                    }
                }
            }
        }
        for (handle, cq, wc) in failed {
            push(objects, cq, &wc);
            if let Some(qp) = objects.qps.get_mut(handle) {
                let id = qp.id;
                self.fail(id);
            }
        }
        for (_, _, srq) in objects.srqs.iter_mut() {
            for _ in 0..srq.ring.capacity() {
                if !srq.ring.peek(&mut self.element) {
                    break;
                }
                // An invalid receive of an SRQ is dropped, because no queue pair could report the
                // error.
                if let Ok(wr) = rxe::decode_receive(&self.element) {
                    let posted = self.device.hca().post_srq_recv(srq.id, wr);
                    if matches!(posted, Err(PostError::Full(_))) {
                        break;
                    }
                }
                srq.ring.advance();
            }
        }
    }

    /// Releases the elements of receives that messages have taken from the SRQs.
    fn release_receives(&mut self, objects: &mut Objects) {
        for (_, _, srq) in objects.srqs.iter_mut() {
            srq.ring.release_all_but(self.device.hca().srq_len(srq.id).unwrap_or(0));
        }
    }

    fn post_receive(&mut self, qp: QpId, wr: RecvWr) -> Result<(), (u64, Option<PostError>)> {
        let wr_id = wr.wr_id;
        let posted = self.device.hca().post_recv(clock::now(), qp, wr);
        posted.map_err(|error| (wr_id, Some(error)))
    }

    /// Moves a queue pair to state `Err`, in which all its requests are flushed.
    fn fail(&mut self, qp: QpId) {
        let attr = QpAttr { qp_state: Some(QpState::Err), ..QpAttr::default() };
        // The error is ignored: if the queue pair is destroyed, it has no requests to flush.
        let _ = self.device.hca().modify_qp(clock::now(), qp, &attr);
    }

    /// Moves all queue pairs to state `Err` after the link has failed. So all outstanding requests complete, and a
    /// program that polls for a completion does not wait forever.
    pub(super) fn fail_all(&mut self, objects: &mut Objects) {
        let qps: Vec<(u32, QpId)> =
            objects.qps.iter_mut().map(|(handle, _, qp)| (handle, qp.id)).collect();
        for &(_, qp) in &qps {
            self.fail(qp);
        }
        self.take_receives(objects);
        for &(handle, _) in &qps {
            self.take_sends(objects, handle);
        }
        self.settle(objects);
    }

    /// Moves the completions of the engine into the rings.
    pub(super) fn complete(&mut self, objects: &mut Objects) {
        // A thread of the program that finds a completion may post another receive at once.
        self.release_receives(objects);
        let cqs: Vec<(u32, CqId)> =
            objects.cqs.iter_mut().map(|(handle, _, cq)| (handle, cq.id)).collect();
        let mut refused = Vec::new();
        for (cq_handle, id) in cqs {
            while let Some(mut wc) = self.device.hca().poll_cq(id) {
                let handle = objects.by_number.get(&wc.qp_num.get()).copied();
                let Some(qp) = handle.and_then(|handle| objects.qps.get_mut(handle)) else {
                    continue;
                };
                if rxe::is_receive(wc.opcode) {
                    if let Some(ring) = &mut qp.recv_ring {
                        ring.release();
                    }
                } else {
                    let Some(posted) = qp.posted.pop_front() else { continue };
                    qp.send_ring.release();
                    if qp.refused.is_some() && qp.posted.is_empty() {
                        refused.extend(handle);
                    }
                    if wc.status == WcStatus::Success && !posted.is_signaled {
                        continue;
                    }
                    wc.wr_id = posted.wr_id;
                }
                push(objects, cq_handle, &wc);
            }
        }
        for handle in refused {
            self.complete_refused(objects, handle);
        }
    }

    /// Reports changes of the port to all contexts.
    fn report_port(&mut self, objects: &mut Objects) {
        let changes = self.device.attached().map_or(0, |port| port.changes());
        if changes == self.changes {
            return;
        }
        self.changes = changes;
        let new = Port::of(&mut self.device);
        let old = std::mem::replace(&mut self.port, new);
        let new = &self.port;
        for (has_changed, event) in [
            (old.lid != new.lid || old.lmc != new.lmc, event_type::LID_CHANGE),
            (old.p_keys != new.p_keys, event_type::PKEY_CHANGE),
            ((old.sm_lid, old.sm_sl) != (new.sm_lid, new.sm_sl), event_type::SM_CHANGE),
            (old.gid != new.gid, event_type::GID_CHANGE),
        ] {
            if has_changed {
                report_to_all(objects, 1, event);
            }
        }
    }
}

/// Reports to all contexts and to all IDs of `rdma_cm` that the device has failed.
pub(super) fn report_fatal(objects: &mut Objects) {
    objects.cm.report_removal();
    report_to_all(objects, 0, event_type::DEVICE_FATAL);
}

/// Returns the completion status of a request that the engine refuses with this error.
fn status_of(error: &PostError) -> WcStatus {
    match error {
        PostError::Sge { .. } => WcStatus::LocProtErr,
        PostError::TooLong { .. } | PostError::AtomicLength(_) => WcStatus::LocLenErr,
        _ => WcStatus::LocQpOpErr,
    }
}

fn completion(qp: &Qp, opcode: WcOpcode) -> Wc {
    completion_of(qp.number, opcode)
}

/// Returns a completion with this queue pair number and opcode, and default values of other fields.
fn completion_of(number: ib_types::Qpn, opcode: WcOpcode) -> Wc {
    Wc {
        wr_id: 0,
        status: WcStatus::Success,
        opcode,
        byte_len: 0,
        qp_num: number,
        src_qp: ib_types::Qpn::SMI,
        imm_data: None,
        invalidated_rkey: None,
        grh: false,
        slid: 0,
        sl: 0,
    }
}

/// Puts a completion into the ring of a CQ. If the CQ is armed, puts an event into its completion
/// channel.
fn push(objects: &mut Objects, handle: u32, wc: &Wc) {
    let Some(cq) = objects.cqs.get_mut(handle) else { return };
    if !cq.ring.push(&rxe::encode_completion(wc)) {
        if !std::mem::replace(&mut cq.has_overrun, true) {
            report_cq_error(objects, handle);
        }
        return;
    }
    if std::mem::take(&mut cq.is_armed) {
        notify(objects, handle);
    }
}

/// Puts a completion event into the completion channel of a CQ.
fn notify(objects: &mut Objects, handle: u32) {
    let Some(cq) = objects.cqs.get_mut(handle) else { return };
    let (channel, user_handle) = (cq.channel, cq.user_handle);
    if let Some(file) = channel.and_then(|channel| objects.event_files.get_mut(&channel)) {
        file.push_completion(handle, user_handle);
    }
}

/// Notifies the program of a solicited or failed completion.
fn notify_solicited(objects: &mut Objects, id: CqId) {
    let found = objects.cqs.iter_mut().find(|(_, _, cq)| cq.id == id);
    if let Some((handle, _, cq)) = found {
        cq.is_armed_solicited = false;
        notify(objects, handle);
    }
}

fn report_cq_error(objects: &mut Objects, handle: u32) {
    let context = objects.cqs.iter_mut().find(|(found, ..)| *found == handle);
    let Some((_, context, cq)) = context else { return };
    let element = cq.user_handle;
    report_to(objects, context, (Source::Cq(handle), element), event_type::CQ_ERR);
}

/// Reports an asynchronous event of the engine to the context of the affected object, or to all
/// contexts.
fn report(objects: &mut Objects, event: &AsyncEvent) {
    let of_cq = |objects: &mut Objects, id: CqId| {
        let found = objects.cqs.iter_mut().find(|(_, _, cq)| cq.id == id);
        found.map(|(handle, context, cq): (_, _, &mut Cq)| {
            (context, (Source::Cq(handle), cq.user_handle))
        })
    };
    let of_qp = |objects: &mut Objects, id: QpId| {
        let found = objects.qps.iter_mut().find(|(_, _, qp)| qp.id == id);
        found.map(|(handle, context, qp)| (context, (Source::Qp(handle), qp.user_handle)))
    };
    let of_srq = |objects: &mut Objects, id: SrqId| {
        let found = objects.srqs.iter_mut().find(|(_, _, srq)| srq.id == id);
        found.map(|(handle, context, srq)| {
            srq.limit = 0;
            (context, (Source::Srq(handle), srq.user_handle))
        })
    };
    let (found, event_type) = match *event {
        AsyncEvent::CqError(id) => (of_cq(objects, id), event_type::CQ_ERR),
        AsyncEvent::QpFatal(id) => (of_qp(objects, id), event_type::QP_FATAL),
        AsyncEvent::QpRequestError(id) => (of_qp(objects, id), event_type::QP_REQ_ERR),
        AsyncEvent::QpAccessError(id) => (of_qp(objects, id), event_type::QP_ACCESS_ERR),
        AsyncEvent::SqDrained(id) => (of_qp(objects, id), event_type::SQ_DRAINED),
        AsyncEvent::QpLastWqeReached(id) => (of_qp(objects, id), event_type::QP_LAST_WQE_REACHED),
        AsyncEvent::SrqLimitReached(id) => (of_srq(objects, id), event_type::SRQ_LIMIT_REACHED),
        AsyncEvent::PortActive => return report_to_all(objects, 1, event_type::PORT_ACTIVE),
        AsyncEvent::PortError => return report_to_all(objects, 1, event_type::PORT_ERR),
    };
    if let Some((context, object)) = found {
        report_to(objects, context, object, event_type);
    }
}

/// Puts an event about the port or the device into the asynchronous event files of all contexts.
fn report_to_all(objects: &mut Objects, element: u64, event_type: u32) {
    let contexts: Vec<u64> = objects.contexts.keys().copied().collect();
    for context in contexts {
        report_to(objects, context, (Source::Device, element), event_type);
    }
}

fn report_to(
    objects: &mut Objects,
    context: u64,
    (source, element): (Source, u64),
    event_type: u32,
) {
    let file = objects.contexts.get(&context).and_then(|context| context.async_file);
    if let Some(file) = file.and_then(|file| objects.event_files.get_mut(&file)) {
        file.push_async(source, element, event_type);
    }
}
