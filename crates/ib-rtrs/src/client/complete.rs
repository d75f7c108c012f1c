//! Handling of the completions of a path: responses, heartbeats, failures.

use ib_hca::{Data, Hca, RemoteAddress, SendOp, Wc, WcOpcode, WcStatus};
use ib_types::Instant;
use ib_wire::rtrs::{Fenced, Immediate, ImmediateKind, MessageType, RkeyResponse};

use super::info::INFO_RECEIVE;
use super::liveness::{PROBE_AFTER, Probe};
use super::path::PathState;
use super::slots::{Slot, SlotState};
use super::{Client, Completion, Failure, Outcome, PathId, Timer};
use crate::adapters::Adapters;
use crate::connection::{self, SetupError, WorkId};
use crate::heartbeat::HeartbeatAction;
use crate::{Direction, Errno};

/// A response of the server: chunk and status from the immediate data, and the new key of the chunk, if the response
/// has one.
struct Response {
    chunk: u32,
    errno: Errno,
    key: Option<RkeyResponse>,
}

impl Client {
    /// Handles the completions that a path's CQ has queued.
    pub(super) fn handle_completions(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        cpu: u32,
        id: PathId,
    ) {
        let Some(path) = self.paths.get(id) else { return };
        let (Some(cq), Some(adapter)) = (path.cq, cx.get(path.spec.adapter)) else { return };
        let hca = adapter.hca;
        hca.req_notify_cq(cq, false);
        let mut found = 0;
        while let Some(wc) = hca.poll_cq(cq) {
            found += 1;
            if let Err(why) = self.handle_completion(now, hca, cpu, id, &wc) {
                self.failed.push_back((id, why));
                break;
            }
        }
        if let Some(path) = self.paths.get_mut(id).filter(|_| found > 0) {
            path.stats.completions.count(found);
        }
        self.handle_fenced(now, cx);
    }

    fn handle_completion(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        cpu: u32,
        id: PathId,
        wc: &Wc,
    ) -> Result<(), Failure> {
        if wc.status != WcStatus::Success {
            return Err(Failure::Transport(wc.status));
        }
        let Some(work) = WorkId::of(wc.wr_id) else { return Ok(()) };
        if work.index == INFO_RECEIVE {
            return self.handle_info(now, hca, id, wc);
        }
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        path.liveness.message_received(now);
        let sge = path.receive(work.connection, work.index);
        let qp = path.connections.get(usize::from(work.connection)).map(|it| it.qp);
        let qp = qp.ok_or(Failure::Protocol("a message on an unknown connection"))?;
        // The message is read before the receive is posted again, because the next message is written into the same
        // buffer.
        let mut message = [0; RkeyResponse::LENGTH];
        let length =
            if wc.opcode == WcOpcode::Recv { wc.byte_len.min(sge.length) as usize } else { 0 };
        if length > 0 {
            let inbox = path.inbox.as_ref().expect("a path with receive buffers has an inbox");
            let offset = (sge.addr - inbox.memory.address()) as usize;
            let message = &mut message[..length.min(RkeyResponse::LENGTH)];
            inbox.memory.read(offset, message).expect("receive buffers are within the inbox");
        }
        connection::receive(hca, now, qp, work, sge).map_err(SetupError::from)?;
        let Some(imm) = wc.imm_data else {
            if length >= Fenced::LENGTH && work.connection == 0 {
                let fenced = Fenced::parse(&message);
                if fenced.message_type == MessageType::FENCED {
                    self.fencing.confirmed.push_back(fenced.id);
                }
            }
            return Ok(());
        };
        match Immediate(imm).kind() {
            ImmediateKind::Response { error, chunk, .. } => {
                let key = RkeyResponse::parse(&message);
                let key = (length == RkeyResponse::LENGTH).then_some(key);
                let response = Response { chunk, errno: Errno(error), key };
                self.handle_response(now, hca, cpu, id, &response)
            }
            ImmediateKind::Heartbeat { .. } => {
                let op = heartbeat(Immediate::HEARTBEAT_ACKNOWLEDGEMENT);
                connection::send(hca, now, qp, op, Data::None).map_err(SetupError::from)?;
                Ok(())
            }
            ImmediateKind::HeartbeatAcknowledgement { .. } => {
                path.liveness.heartbeat_acknowledged(now);
                Ok(())
            }
            ImmediateKind::Request { .. } | ImmediateKind::Other { .. } => {
                Err(Failure::Protocol("immediate data of an unknown type"))
            }
        }
    }

    fn handle_response(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        cpu: u32,
        id: PathId,
        response: &Response,
    ) -> Result<(), Failure> {
        let &Response { chunk, errno, key } = response;
        let index = u16::try_from(chunk)
            .map_err(|_| Failure::Protocol("a response with an invalid chunk"))?;
        let slot = self.slots.get(index).filter(|slot| slot.state == SlotState::Sent(id));
        let slot = slot.ok_or(Failure::Protocol("a response without a request"))?;
        let (direction, sent, from, user) = (slot.direction, slot.sent, slot.cpu, slot.user);
        let path = self.paths.get_mut(id).expect("the path has a request in flight");
        if let Some(key) = key {
            if key.message_type != MessageType::RKEY_RESPONSE || key.chunk != index {
                return Err(Failure::Protocol("a response with the key of another chunk"));
            }
            path.chunks[usize::from(index)].rkey = key.r_key;
        }
        path.inflight -= 1;
        path.stats.latencies.count(direction, now.since(sent));
        path.stats.count_migration(from, cpu);
        self.take_data(hca, index, direction == Direction::Read && errno.is_ok());
        let id = self.slots.id(index);
        let completion = Completion { id, user, outcome: Outcome::Answered(errno), cpu };
        self.give_back(index);
        self.completions.push_back(completion);
        Ok(())
    }

    /// Sends a heartbeat at the end of a heartbeat interval, or fails the path if too many heartbeats were missed.
    pub(super) fn end_heartbeat_interval(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
    ) {
        let heartbeats = self.config.heartbeats;
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.state != PathState::Connected {
            return;
        }
        match path.liveness.tick(heartbeats.missed_max) {
            HeartbeatAction::Fail => return self.fail_path(now, cx, id, Failure::Heartbeat),
            HeartbeatAction::Wait => {}
            HeartbeatAction::Send => {
                if let Err(error) = self.send_heartbeat(now, cx, id) {
                    return self.fail_path(now, cx, id, error.into());
                }
            }
        }
        self.timers.set((id, Timer::Heartbeat), (), now + heartbeats.interval);
    }

    fn send_heartbeat(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
    ) -> Result<(), SetupError> {
        let Some(path) = self.paths.get_mut(id) else { return Ok(()) };
        path.liveness.heartbeat_sent(now);
        let (qp, adapter) = (path.connections[0].qp, path.spec.adapter);
        let adapter = cx.get(adapter).ok_or(SetupError::NoAdapter)?;
        let op = heartbeat(Immediate::HEARTBEAT);
        Ok(connection::send(adapter.hca, now, qp, op, Data::None)?)
    }

    /// Handles the probe timer of a path.
    pub(super) fn probe(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let has_requests = path.state == PathState::Connected && path.inflight > 0;
        match path.liveness.probe(now, has_requests) {
            Probe::Stop => return,
            Probe::Wait => {}
            Probe::Send => {
                if let Err(error) = self.send_heartbeat(now, cx, id) {
                    return self.fail_path(now, cx, id, error.into());
                }
            }
        }
        self.timers.set((id, Timer::Probe), (), now + PROBE_AFTER);
    }

    /// Fails a path if one of its requests has timed out and the server fences paths.
    ///
    /// If the server does not fence paths, a timeout does not fail the path: the client would retransmit a request that
    /// the server may still execute. A late execution of the first copy could overwrite later writes.
    pub(super) fn check_io_timeout(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        let Some(most) = self.config.io_timeout else { return };
        if self.paths.get(id).is_none_or(|it| it.state != PathState::Connected || !it.fences()) {
            return;
        }
        let is_late =
            |slot: &Slot| slot.state == SlotState::Sent(id) && now.since(slot.sent) >= most;
        if self.slots.with(is_late).is_empty() {
            self.timers.set((id, Timer::IoTimeout), (), now + most / 4);
        } else {
            self.fail_path(now, cx, id, Failure::IoTimeout(most));
        }
    }
}

/// Returns the operation that sends only immediate data: a heartbeat or its acknowledgement.
pub(crate) fn heartbeat(immediate: Immediate) -> SendOp {
    SendOp::Write { to: RemoteAddress::default(), imm: Some(immediate.0) }
}
