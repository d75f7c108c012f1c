//! What comes in: requests, heartbeats, failures.

use std::collections::btree_map::Entry;

use ib_hca::{Data, Hca, Wc, WcOpcode, WcStatus};
use ib_types::Instant;
use ib_wire::rtrs::{
    Descriptor, Fence, Immediate, ImmediateKind, MessageType, ReadFlags, ReadHeader, WriteHeader,
};

use super::accept::QUESTION;
use super::path::{Operation, State};
use super::{EndReason, Server, ServerPathId, ServerRequest, ServerRequestId, Timer};
use crate::Direction;
use crate::adapters::Adapters;
use crate::client::heartbeat;
use crate::connection::{self, WorkId};
use crate::heartbeat::Beat;

/// Work of a completion that involves other paths or HCAs than its own.
enum Further {
    Nothing,
    /// The client queries the chunks or sends a proof. The message has this length in bytes.
    Question(usize),
    /// The client requests a fence of a path.
    Fence(Fence),
}

impl Server {
    /// Takes what a path has completed.
    pub(super) fn take_completions(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        cpu: u32,
        id: ServerPathId,
    ) {
        let mut found = 0;
        let mut goes_on = true;
        while goes_on {
            let Some(path) = self.path(id) else { return };
            let (Some(cq), Some(adapter)) = (path.cq, cx.get(path.adapter)) else { return };
            let hca = adapter.hca;
            hca.req_notify_cq(cq, false);
            let mut further = Ok(Further::Nothing);
            goes_on = false;
            while let Some(wc) = hca.poll_cq(cq) {
                found += 1;
                further = self.take_completion(now, hca, cpu, id, &wc);
                if !matches!(further, Ok(Further::Nothing)) {
                    goes_on = further.is_ok();
                    break;
                }
            }
            let done = match further {
                Ok(Further::Nothing) => Ok(()),
                Ok(Further::Question(length)) => self.take_question(now, cx, id, length),
                Ok(Further::Fence(fence)) => self.take_fence(now, cx, id, &fence),
                Err(why) => Err(why),
            };
            if let Err(why) = done {
                self.failed.push_back((id, why));
                goes_on = false;
            }
        }
        if let Some(path) = self.path_mut(id).filter(|_| found > 0) {
            path.stats.completions.count(found);
        }
    }

    fn take_completion(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        cpu: u32,
        id: ServerPathId,
        wc: &Wc,
    ) -> Result<Further, EndReason> {
        if wc.status != WcStatus::Success {
            return Err(EndReason::Transport(wc.status));
        }
        let Some(work) = WorkId::of(wc.wr_id) else { return Ok(Further::Nothing) };
        if work.index == QUESTION {
            let is_question = wc.opcode == WcOpcode::Recv && wc.imm_data.is_none();
            return if is_question {
                Ok(Further::Question(wc.byte_len as usize))
            } else {
                Err(EndReason::Protocol("something else than a question for chunks"))
            };
        }
        let Some(path) = self.path_mut(id) else { return Ok(Further::Nothing) };
        path.heartbeat.heard();
        let connection = path.connections.get(usize::from(work.connection)).copied().flatten();
        let qp = connection.ok_or(EndReason::Protocol("something over no connection"))?.qp;
        let mut further = Further::Nothing;
        let mut sge = ib_hca::Sge::default();
        if work.connection == 0 && path.fences() {
            let desk = path.control.as_ref().expect("it has connections");
            let offset;
            (offset, sge) = desk.receive(work.index as usize);
            if wc.opcode == WcOpcode::Recv && wc.imm_data.is_none() {
                let mut bytes = [0; Fence::LENGTH];
                desk.memory.read(offset, &mut bytes).expect("it was received there");
                let fence = Fence::parse(&bytes);
                let is_fence = fence.message_type == MessageType::FENCE
                    && wc.byte_len as usize >= Fence::LENGTH;
                if !is_fence {
                    return Err(EndReason::Protocol("a message that nobody knows"));
                }
                further = Further::Fence(fence);
            }
        }
        connection::receive(hca, now, qp, work, sge).map_err(|_| EndReason::Setup)?;
        if matches!(further, Further::Fence(_)) {
            return Ok(further);
        }
        let (WcOpcode::RecvRdmaWithImm, Some(imm)) = (wc.opcode, wc.imm_data) else {
            return Err(EndReason::Protocol("a message where there is none"));
        };
        match Immediate(imm).kind() {
            ImmediateKind::Request { payload } => {
                self.take_request(hca, cpu, (id, work.connection), payload, wc.byte_len)?;
            }
            ImmediateKind::Heartbeat { .. } => {
                let op = heartbeat(Immediate::HEARTBEAT_ACKNOWLEDGEMENT);
                connection::send(hca, now, qp, op, Data::None).map_err(|_| EndReason::Setup)?;
            }
            ImmediateKind::HeartbeatAcknowledgement { .. } => {}
            ImmediateKind::Response { .. } | ImmediateKind::Other { .. } => {
                return Err(EndReason::Protocol("immediate data that means nothing"));
            }
        }
        Ok(Further::Nothing)
    }

    /// Takes a request: finds its message where the immediate data says, and believes nothing of it.
    fn take_request(
        &mut self,
        hca: &mut Hca,
        cpu: u32,
        (id, connection): (ServerPathId, u16),
        payload: u32,
        written: u32,
    ) -> Result<(), EndReason> {
        let (chunk, offset) = Immediate::chunk_and_offset(payload, self.config.queue_depth);
        let Self { paths, sessions, config, requests, .. } = self;
        let path = paths[id.index as usize].as_deref_mut().expect("it was just there");
        let session = sessions.get_mut(&path.session).expect("paths have a session");
        let session_id = super::SessionId { key: path.session, incarnation: session.incarnation };
        let operation = path.operations.get_mut(chunk as usize);
        let operation = operation.ok_or(EndReason::Protocol("a chunk that is not"))?;
        if operation.is_busy {
            return Err(EndReason::Protocol("a second request in a chunk"));
        }
        let size = config.chunk_size();
        let start = chunk as usize * size as usize;
        let memory = session.memory.as_ref().expect("a connected path has chunks");
        let found = Found::read(memory, start, offset, size)?;
        let Found { direction, user_length, own, to, needs_invalidation } = found;
        let header = user_length.checked_add(own).filter(|&all| all <= config.max_header_size);
        header.ok_or(EndReason::Protocol("a header that is too long"))?;
        let before = offset.checked_sub(user_length);
        let length = before.ok_or(EndReason::Protocol("a header that starts before its chunk"))?;
        if length > config.max_io_size {
            return Err(EndReason::Protocol("more data than fits"));
        }
        let expected = match direction {
            Direction::Write => offset + own,
            Direction::Read => user_length + own,
        };
        if written != expected {
            return Err(EndReason::Protocol("a request of another length than it says"));
        }
        let to = to.filter(|to| to.length > 0);
        let data_length = match (direction, to) {
            (Direction::Write, _) => length,
            (Direction::Read, None) => 0,
            (Direction::Read, Some(to)) if to.length > size => {
                return Err(EndReason::Protocol("a read of more than a chunk"));
            }
            (Direction::Read, Some(to)) => to.length.min(length),
        };
        if config.always_invalidate {
            // The client does not reach the chunk any more, until it is told another key.
            hca.close_mr(path.chunks[chunk as usize]).map_err(|_| EndReason::Setup)?;
        }
        let serial = operation.serial.wrapping_add(1);
        *operation =
            Operation { is_busy: true, serial, connection, direction, to, needs_invalidation };
        path.outstanding += 1;
        path.stats.traffic.count(direction, u64::from(data_length) + u64::from(user_length));
        let chunk = chunk as u16;
        let request = ServerRequest {
            id: ServerRequestId { path: id, serial, chunk },
            session: session_id,
            path: id,
            direction,
            chunk,
            header_offset: start + (offset - user_length) as usize,
            header_length: user_length,
            data_offset: match direction {
                Direction::Write => start,
                Direction::Read => self.config.read_place(chunk),
            },
            data_length,
            cpu,
        };
        let used = &mut session.used[usize::from(chunk)];
        *used += 1;
        match *used {
            1 => requests.push_back(request),
            _ => session.held.entry(chunk).or_default().push_back(request),
        }
        Ok(())
    }

    /// A request in a chunk has ended: hands out the next one, if one waits for that.
    ///
    /// Clients that are Linux kernels send a request that was lost with its path again over another one, in the same
    /// chunk, without knowing whether the first one is still in flight: that would be carried out with the data of
    /// whatever comes into the chunk once the second one is answered.
    pub(super) fn free_chunk(&mut self, session: u32, chunk: u16) {
        let Some(session) = self.sessions.get_mut(&session) else { return };
        session.used[usize::from(chunk)] -= 1;
        if let Entry::Occupied(mut waiting) = session.held.entry(chunk) {
            self.requests.extend(waiting.get_mut().pop_front());
            if waiting.get().is_empty() {
                waiting.remove();
            }
        }
    }

    /// An interval of heartbeats has ended.
    pub(super) fn beat(&mut self, now: Instant, cx: &mut impl Adapters, id: ServerPathId) {
        let heartbeats = self.config.heartbeats;
        let Some(path) = self.path_mut(id).filter(|path| path.state == State::Connected) else {
            return;
        };
        match path.heartbeat.tick(heartbeats.missed_max) {
            Beat::Dead => return self.end_path(now, cx, id, EndReason::Heartbeat),
            Beat::Wait => {}
            Beat::Send => {
                let qp = path.connections[0].as_ref().expect("all are there").qp;
                let adapter = path.adapter;
                let op = heartbeat(Immediate::HEARTBEAT);
                let sent = cx
                    .get(adapter)
                    .is_some_and(|it| connection::send(it.hca, now, qp, op, Data::None).is_ok());
                if !sent {
                    return self.end_path(now, cx, id, EndReason::Setup);
                }
            }
        }
        self.timers.set((id, Timer::Heartbeat), (), now + heartbeats.interval);
    }
}

/// What a message says.
struct Found {
    direction: Direction,
    user_length: u32,
    /// How long the message itself is.
    own: u32,
    to: Option<Descriptor>,
    needs_invalidation: bool,
}

impl Found {
    /// Reads the message at an offset of a chunk, once.
    fn read(
        memory: &ib_hca::Memory,
        start: usize,
        offset: u32,
        size: u32,
    ) -> Result<Self, EndReason> {
        const LONGEST: usize = ReadHeader::LENGTH + Descriptor::LENGTH;
        let left = size.saturating_sub(offset) as usize;
        let mut bytes = [0; LONGEST];
        let bytes = &mut bytes[..left.min(LONGEST)];
        let outside = EndReason::Protocol("a message outside its chunk");
        memory.read(start + offset as usize, bytes).map_err(|_| outside)?;
        let kind = bytes.first_chunk().map(|kind| MessageType(u16::from_le_bytes(*kind)));
        match kind {
            Some(MessageType::WRITE) => {
                let header = bytes.first_chunk().map(WriteHeader::parse).ok_or(outside)?;
                Ok(Self {
                    direction: Direction::Write,
                    user_length: header.user_length.into(),
                    own: WriteHeader::LENGTH as u32,
                    to: None,
                    needs_invalidation: false,
                })
            }
            Some(MessageType::READ) => {
                let header = bytes.first_chunk().map(ReadHeader::parse).ok_or(outside)?;
                let rest = &bytes[ReadHeader::LENGTH..];
                let to = match header.count {
                    0 => None,
                    1 => Some(rest.first_chunk().map(Descriptor::parse).ok_or(outside)?),
                    _ => return Err(EndReason::Protocol("a read to more than one place")),
                };
                let own = ReadHeader::LENGTH + usize::from(header.count) * Descriptor::LENGTH;
                let needs = header.flags.contains(ReadFlags::NEED_INVALIDATION);
                Ok(Self {
                    direction: Direction::Read,
                    user_length: header.user_length.into(),
                    own: own as u32,
                    to,
                    needs_invalidation: needs && to.is_some(),
                })
            }
            Some(_) => Err(EndReason::Protocol("a request that is neither a read nor a write")),
            None => Err(outside),
        }
    }
}
