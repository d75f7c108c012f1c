//! Completions of a path: received requests, heartbeats and failures. Responses to requests.

use std::collections::btree_map::Entry;

use ib_hca::{Data, Hca, PostError, RemoteAddress, SendOp, Sge, Wc, WcOpcode, WcStatus};
use ib_types::Instant;
use ib_wire::rtrs::{
    Descriptor, Fence, Immediate, ImmediateKind, MessageType, ReadFlags, ReadHeader, RkeyResponse,
    WriteHeader,
};

use crate::client::heartbeat;
use crate::connection::Adapters;
use crate::connection::HeartbeatAction;
use crate::connection::WorkId;
use crate::server::accept::INFO_RECEIVE;
use crate::server::path::{Operation, State};
use crate::server::path::{StoreId, StoreRange};
use crate::server::{EndReason, Server, ServerPathId, ServerRequest, ServerRequestId, Timer};
use crate::{Direction, Errno, connection};

/// A received message that is handled outside of the loop that polls the CQ, because it also involves other paths or
/// HCAs.
enum FollowUp {
    None,
    /// An info request, or the client's nonce or proof for the authentication by a shared key. The value is the length
    /// of the message in bytes.
    Info(usize),
    /// A fence request.
    Fence(Fence),
}

impl Server {
    /// Handles the completions that a path's CQ has queued.
    pub(super) fn handle_completions(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        cpu: u32,
        id: ServerPathId,
    ) {
        let mut found = 0;
        let mut has_more = true;
        while has_more {
            let Some(path) = self.path(id) else { return };
            let (Some(cq), Some(adapter)) = (path.cq, cx.get(path.adapter)) else { return };
            let hca = adapter.hca;
            hca.req_notify_cq(cq, false);
            let mut follow_up = Ok(FollowUp::None);
            has_more = false;
            while let Some(wc) = hca.poll_cq(cq) {
                found += 1;
                follow_up = self.handle_completion(now, hca, cpu, id, &wc);
                if !matches!(follow_up, Ok(FollowUp::None)) {
                    has_more = follow_up.is_ok();
                    break;
                }
            }
            let done = match follow_up {
                Ok(FollowUp::None) => Ok(()),
                Ok(FollowUp::Info(length)) => self.handle_info_request(now, cx, id, length),
                Ok(FollowUp::Fence(fence)) => self.handle_fence(now, cx, id, &fence),
                Err(why) => Err(why),
            };
            if let Err(why) = done {
                self.failed.push_back((id, why));
                has_more = false;
            }
        }
        if let Some(path) = self.path_mut(id).filter(|_| found > 0) {
            path.stats.completions.count(found);
        }
    }

    fn handle_completion(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        cpu: u32,
        id: ServerPathId,
        wc: &Wc,
    ) -> Result<FollowUp, EndReason> {
        if wc.status != WcStatus::Success {
            return Err(EndReason::Transport(wc.status));
        }
        let Some(work) = WorkId::of(wc.wr_id) else { return Ok(FollowUp::None) };
        if work.index == INFO_RECEIVE {
            let is_message = wc.opcode == WcOpcode::Recv && wc.imm_data.is_none();
            return if is_message {
                Ok(FollowUp::Info(wc.byte_len as usize))
            } else {
                Err(EndReason::Protocol("a message that is not an info request"))
            };
        }
        let Some(path) = self.path_mut(id) else { return Ok(FollowUp::None) };
        path.heartbeat.message_received();
        let connection = path.connections.get(usize::from(work.connection)).copied().flatten();
        let qp = connection.ok_or(EndReason::Protocol("a message on an unknown connection"))?.qp;
        let mut follow_up = FollowUp::None;
        let mut sge = Sge::default();
        if work.connection == 0 && path.fences() {
            let control =
                path.control.as_ref().expect("paths with connections have control memory");
            let offset;
            (offset, sge) = control.receive(work.index as usize);
            if wc.opcode == WcOpcode::Recv && wc.imm_data.is_none() {
                let mut bytes = [0; Fence::LENGTH];
                control
                    .memory
                    .read(offset, &mut bytes)
                    .expect("receives are within the control memory");
                let fence = Fence::parse(&bytes);
                let is_fence = fence.message_type == MessageType::FENCE
                    && wc.byte_len as usize >= Fence::LENGTH;
                if !is_fence {
                    return Err(EndReason::Protocol("a message of an unknown type"));
                }
                follow_up = FollowUp::Fence(fence);
            }
        }
        connection::receive(hca, now, qp, work, sge).map_err(|_| EndReason::Setup)?;
        if matches!(follow_up, FollowUp::Fence(_)) {
            return Ok(follow_up);
        }
        let (WcOpcode::RecvRdmaWithImm, Some(imm)) = (wc.opcode, wc.imm_data) else {
            return Err(EndReason::Protocol("a message without immediate data"));
        };
        match Immediate(imm).kind() {
            ImmediateKind::Request { payload } => {
                self.handle_request(hca, cpu, id, work.connection, payload, wc.byte_len)?;
            }
            ImmediateKind::Heartbeat { .. } => {
                let op = heartbeat(Immediate::HEARTBEAT_ACKNOWLEDGEMENT);
                connection::send(hca, now, qp, op, Data::None).map_err(|_| EndReason::Setup)?;
            }
            ImmediateKind::HeartbeatAcknowledgement { .. } => {}
            ImmediateKind::Response { .. } | ImmediateKind::Other { .. } => {
                return Err(EndReason::Protocol("immediate data of an unknown type"));
            }
        }
        Ok(FollowUp::None)
    }

    /// Checks and queues a request. Its immediate data contains the chunk, and the offset of the message in the chunk.
    fn handle_request(
        &mut self,
        hca: &mut Hca,
        cpu: u32,
        id: ServerPathId,
        connection: u16,
        payload: u32,
        written: u32,
    ) -> Result<(), EndReason> {
        let (chunk, offset) = Immediate::chunk_and_offset(payload, self.config.queue_depth);
        let Self { paths, sessions, config, requests, .. } = self;
        let path = paths[id.index as usize]
            .as_deref_mut()
            .expect("`handle_completion` has looked up the path");
        let session = sessions.get_mut(&path.session).expect("paths have a session");
        let session_id = super::SessionId { key: path.session, incarnation: session.incarnation };
        let operation = path.operations.get_mut(chunk as usize);
        let operation = operation.ok_or(EndReason::Protocol("a request with an invalid chunk"))?;
        if operation.is_outstanding {
            return Err(EndReason::Protocol("a request in a chunk with an outstanding request"));
        }
        let size = config.chunk_size();
        let start = chunk as usize * size as usize;
        let memory = session.memory.as_ref().expect("a connected path has chunks");
        let message = RequestMessage::read(memory, start, offset, size)?;
        let RequestMessage { direction, user_length, length: own, read_target, needs_invalidation } =
            message;
        let header = user_length.checked_add(own).filter(|&all| all <= config.max_header_size);
        header.ok_or(EndReason::Protocol("a request with a header that is too long"))?;
        let before = offset.checked_sub(user_length);
        let length =
            before.ok_or(EndReason::Protocol("a request with a header outside its chunk"))?;
        if length > config.max_io_size {
            return Err(EndReason::Protocol("a request with too much data"));
        }
        let expected = match direction {
            Direction::Write => offset + own,
            Direction::Read => user_length + own,
        };
        if written != expected {
            return Err(EndReason::Protocol("a request whose length differs from its message"));
        }
        let read_target = read_target.filter(|to| to.length > 0);
        let data_length = match (direction, read_target) {
            (Direction::Write, _) => length,
            (Direction::Read, None) => 0,
            (Direction::Read, Some(to)) if to.length > size => {
                return Err(EndReason::Protocol("a read that is longer than a chunk"));
            }
            (Direction::Read, Some(to)) => to.length.min(length),
        };
        if config.always_invalidate {
            // The client cannot access the chunk again until the response gives it a new key.
            hca.close_mr(path.chunks[chunk as usize]).map_err(|_| EndReason::Setup)?;
        }
        let serial = operation.serial.wrapping_add(1);
        *operation = Operation {
            is_outstanding: true,
            serial,
            connection,
            direction,
            read_target,
            needs_invalidation,
        };
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
                Direction::Read => self.config.read_offset(chunk),
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

    /// Handles the completion of a request: queues the next request that is held for the same chunk.
    ///
    /// A Linux client retransmits the requests of a failed path over another path, in the same chunk, even if the
    /// server still executes the first copy. The server holds the second copy until the first has completed. Otherwise
    /// the first copy could use the data of a later request in the chunk.
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

    /// Sends a heartbeat at the end of a heartbeat interval, or closes the path if too many heartbeats were missed.
    pub(super) fn end_heartbeat_interval(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
    ) {
        let heartbeats = self.config.heartbeats;
        let Some(path) = self.path_mut(id).filter(|path| path.state == State::Connected) else {
            return;
        };
        match path.heartbeat.tick(heartbeats.missed_max) {
            HeartbeatAction::Fail => return self.end_path(now, cx, id, EndReason::Heartbeat),
            HeartbeatAction::Wait => {}
            HeartbeatAction::Send => {
                let qp =
                    path.connections[0].as_ref().expect("connected paths have all connections").qp;
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

/// The RTRS message of a request, as parsed.
struct RequestMessage {
    direction: Direction,
    user_length: u32,
    /// Length of the message in bytes.
    length: u32,
    /// Client memory that receives the data of a READ.
    read_target: Option<Descriptor>,
    needs_invalidation: bool,
}

impl RequestMessage {
    /// Reads the message at an offset in a chunk. Reads it only once, because the client may be able to change it.
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
                    length: WriteHeader::LENGTH as u32,
                    read_target: None,
                    needs_invalidation: false,
                })
            }
            Some(MessageType::READ) => {
                let header = bytes.first_chunk().map(ReadHeader::parse).ok_or(outside)?;
                let rest = &bytes[ReadHeader::LENGTH..];
                let read_target = match header.count {
                    0 => None,
                    1 => Some(rest.first_chunk().map(Descriptor::parse).ok_or(outside)?),
                    _ => return Err(EndReason::Protocol("a read with several descriptors")),
                };
                let length = ReadHeader::LENGTH + usize::from(header.count) * Descriptor::LENGTH;
                let needs = header.flags.contains(ReadFlags::NEED_INVALIDATION);
                Ok(Self {
                    direction: Direction::Read,
                    user_length: header.user_length.into(),
                    length: length as u32,
                    read_target,
                    needs_invalidation: needs && read_target.is_some(),
                })
            }
            Some(_) => Err(EndReason::Protocol("a request that is neither a read nor a write")),
            None => Err(outside),
        }
    }
}

/// The data of a READ response. `store` is `None` if the data is in the session's memory.
#[derive(Clone, Copy, Debug)]
struct ReadData {
    length: u32,
    store: Option<StoreRange>,
}

impl Server {
    /// Completes a request and sends the response.
    ///
    /// For a successful READ, sends `length` bytes of data at
    /// [`ServerRequest::data_offset`](super::ServerRequest::data_offset), and fills the rest of the client's buffer
    /// with zeros. If the path has failed, no response is sent: the client does not know whether the request was
    /// executed.
    ///
    /// Returns false if the request was already completed.
    pub fn complete(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerRequestId,
        errno: Errno,
        length: u32,
    ) -> bool {
        self.finish(now, cx, id, errno, ReadData { length, store: None })
    }

    /// Completes a successful READ with the `length` bytes at `offset` in `store`.
    ///
    /// The server sends the data without a copy only if the data fills the client's buffer, and if the path MTU is at
    /// least 512 bytes. Concurrent writes to the store may change this data until the client has received it.
    ///
    /// Returns false if the request was already completed.
    ///
    /// # Panics
    /// Panics if there is no such store, or if the range exceeds it.
    pub fn complete_from(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerRequestId,
        (store, offset): (StoreId, usize),
        length: u32,
    ) -> bool {
        let store = Some(StoreRange { store, offset });
        self.finish(now, cx, id, Errno::OK, ReadData { length, store })
    }

    fn finish(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerRequestId,
        errno: Errno,
        data: ReadData,
    ) -> bool {
        let chunk = usize::from(id.chunk);
        let Some(path) = self.path_mut(id.path) else { return false };
        let operation = path.operations.get_mut(chunk);
        let Some(operation) = operation.filter(|it| it.is_outstanding && it.serial == id.serial)
        else {
            return false;
        };
        operation.is_outstanding = false;
        let operation = *operation;
        path.outstanding -= 1;
        let (state, adapter, session) = (path.state, path.adapter, path.session);
        let is_last = path.outstanding == 0;
        self.free_chunk(session, id.chunk);
        if state == State::Closed {
            if is_last {
                self.remove_path(now, cx, id.path);
                self.settle(now, cx);
            }
            return true;
        }
        let sent = cx
            .get(adapter)
            .ok_or(PostError::NoSuchQueue)
            .and_then(|it| self.respond(now, it.hca, id, &operation, errno, data));
        if sent.is_err() {
            self.end_path(now, cx, id.path, EndReason::Setup);
            self.settle(now, cx);
        }
        true
    }

    fn respond(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: ServerRequestId,
        operation: &Operation,
        errno: Errno,
        data: ReadData,
    ) -> Result<(), PostError> {
        let Self { paths, sessions, config, stores, .. } = self;
        let path =
            paths[id.path.index as usize].as_deref_mut().expect("`finish` has looked up the path");
        let memory = sessions[&path.session].memory.as_ref();
        let memory = memory.expect("a path with requests has chunks");
        let chunk = usize::from(id.chunk);
        let connection = path.connections[usize::from(operation.connection)];
        let qp = connection.ok_or(PostError::NoSuchQueue)?.qp;
        let mut has_invalidated = false;
        if let (Direction::Read, Some(to)) = (operation.direction, operation.read_target) {
            if errno.is_ok() {
                let start = config.read_offset(id.chunk);
                let length = data.length.min(to.length);
                let stored = data.store.map(|range| (range, range.memory(stores, length)));
                let direct = stored.filter(|_| length == to.length && path.has_whole_sectors);
                let direct = direct.and_then(|(range, of)| range.sge(hca, path, of, length));
                let sge = if let Some(sge) = direct {
                    sge
                } else {
                    let length = length as usize;
                    let checked = "`handle_request` has limited the length to a chunk";
                    if let Some((range, of)) = stored {
                        memory.copy_from(start, of, range.offset, length).expect(checked);
                    }
                    let rest = to.length as usize - length;
                    if rest > 0 {
                        // The client must not receive data of earlier requests, which the buffer may contain.
                        memory.fill(start + length, rest, 0).expect(checked);
                    }
                    let (_, lkey) =
                        path.send_region.expect("`open_chunks` has registered the region");
                    Sge { addr: memory.address() + start as u64, length: to.length, lkey }
                };
                let data = Data::One(sge);
                let to = RemoteAddress { addr: to.address, rkey: to.r_key };
                connection::send(hca, now, qp, SendOp::Write { to, imm: None }, data)?;
            }
            if operation.needs_invalidation {
                let op = SendOp::SendInvalidate { rkey: to.r_key };
                connection::send(hca, now, qp, op, Data::None)?;
                has_invalidated = true;
            }
        }
        let error = errno.0.min(511);
        let meaning = ImmediateKind::Response { has_invalidated, error, chunk: id.chunk.into() };
        let imm = Some(Immediate::new(meaning).0);
        if !config.always_invalidate {
            let to = RemoteAddress::default();
            return connection::send(hca, now, qp, SendOp::Write { to, imm }, Data::None);
        }
        let key = hca.reopen_mr(path.chunks[chunk]).map_err(|_| PostError::NoSuchQueue)?;
        let message =
            RkeyResponse { message_type: MessageType::RKEY_RESPONSE, chunk: id.chunk, r_key: key };
        let control = path.control.as_ref().expect("paths with connections have control memory");
        let (offset, sge) = control.new_key(chunk);
        control.memory.write(offset, &message.to_bytes()).expect("there is a buffer for each key");
        connection::send(hca, now, qp, SendOp::Send { imm }, Data::One(sge))
    }
}
