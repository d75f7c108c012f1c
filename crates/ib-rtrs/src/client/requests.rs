//! Submission of requests. Completions of a path: responses, heartbeats and failures.

use ib_hca::{AccessFlags, Data, Hca, PostError, RemoteAddress, SendOp, Wc, WcOpcode, WcStatus};
use ib_types::Instant;
use ib_wire::rtrs::{
    Descriptor, Fenced, Immediate, ImmediateKind, MessageType, ReadFlags, ReadHeader, RkeyResponse,
    WriteHeader,
};

use crate::client::info::INFO_RECEIVE;
use crate::client::liveness::{PROBE_AFTER, Probe};
use crate::client::path::PathState;
use crate::client::session::{RequestMemory, Slot, SlotState};
use crate::client::{Client, Completion, Failure, Outcome, PathId, RequestError, Timer};
use crate::connection::Adapters;
use crate::connection::HeartbeatAction;
use crate::connection::{SetupError, WorkId};
use crate::{Direction, Errno, connection};

/// Maximum length in bytes of the RTRS message that follows the user's header in a chunk.
const LONGEST: usize = ReadHeader::LENGTH + Descriptor::LENGTH;

impl Client {
    /// Sends a request. [`Client::poll_completion`] returns the completion of the request.
    ///
    /// # Errors
    /// Fails if no path is connected, all chunks of the server are in use, or the request is invalid.
    pub fn request(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        request: &Request<'_>,
    ) -> Result<RequestId, RequestError> {
        let length = self.check(request)?;
        let path = self.choose(request.cpu).ok_or(RequestError::NoPath)?;
        let depth = self.slots.count() as u16;
        let index = self.slots.take().ok_or(RequestError::NoPermit(depth))?;
        let at = self.slots.header_at(index);
        let headers =
            self.slots.headers.as_ref().expect("`prepare` allocates headers with the slots");
        headers.write(at, request.header).expect("`check` has limited the length of the header");
        let slot = self.slots.get_mut(index).expect("`take` returns existing slots");
        slot.direction = request.direction;
        slot.is_admin = request.is_admin;
        slot.user = request.user;
        slot.segments.clear();
        slot.segments.extend(request.data.iter().filter(|segment| segment.length > 0));
        slot.length = length;
        slot.header = request.header.len() as u32;
        slot.cpu = request.cpu;
        slot.submitted = now;
        slot.opened = None;
        slot.is_recalled = false;
        let id = self.slots.id(index);
        self.send_over(now, cx, index, path);
        self.settle(now, cx);
        Ok(id)
    }

    /// Recalls the requests in flight: if their path fails, they complete instead of being retransmitted. Call this
    /// function if the server would misinterpret a retransmission, for example after a device was reopened.
    pub fn recall(&mut self) {
        self.slots.recall();
    }

    /// Returns true if a request that [`Self::recall`] has recalled is still in flight on a path.
    #[must_use]
    pub fn has_recalled(&self) -> bool {
        self.slots.has_recalled()
    }

    /// Checks a request. Returns the length of its data in bytes.
    fn check(&self, request: &Request<'_>) -> Result<u32, RequestError> {
        let limits = self.session.limits().ok_or(RequestError::NoPath)?;
        let most = self.slots.max_header(LONGEST);
        if request.header.len() > most {
            let most = most as u32;
            return Err(RequestError::HeaderTooLong { found: request.header.len(), most });
        }
        let mut length = 0;
        for (index, segment) in request.data.iter().enumerate() {
            let memory = self.registrations.buffer(segment.buffer);
            let end = segment.offset.checked_add(segment.length as usize);
            let fits = memory.is_some_and(|memory| end.is_some_and(|end| end <= memory.len()));
            if !fits {
                return Err(RequestError::Segment(index));
            }
            length += u64::from(segment.length);
        }
        let most = limits.max_io_size;
        u32::try_from(length)
            .ok()
            .filter(|&length| length <= most)
            .ok_or(RequestError::TooLong { found: length, most })
    }

    /// Returns the path on which a request of a processor is sent.
    pub(super) fn choose(&mut self, cpu: u32) -> Option<PathId> {
        self.paths.choose(self.config.policy, cpu)
    }

    /// Sends a request over a path. If the request cannot be posted, fails the path; the request is then retransmitted
    /// or completed.
    pub(super) fn send_over(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        index: u16,
        path: PathId,
    ) {
        let slot = self.slots.get_mut(index).expect("requests have slots");
        (slot.state, slot.sent) = (SlotState::Sent(path), now);
        let Some(target) = self.paths.get_mut(path) else { return };
        target.inflight += 1;
        let adapter = target.spec.adapter;
        if target.liveness.watch() {
            self.timers.set((path, Timer::Probe), (), now + PROBE_AFTER);
        }
        let posted = match cx.get(adapter) {
            Some(adapter) => self.post(now, adapter.hca, index, path),
            None => Err(PostError::NoSuchQueue),
        };
        if let Err(error) = posted {
            self.failed.push_back((path, Failure::Setup(error.into())));
        }
    }

    /// Posts the work request that writes the user's header and the RTRS message into the chunk. For a write, it also
    /// writes the data.
    fn post(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        index: u16,
        id: PathId,
    ) -> Result<(), PostError> {
        let Self { slots, paths, registrations, config, session, .. } = self;
        let path = paths.get_mut(id).expect("`send_over` has looked up the path");
        let local = registrations.get(path.local);
        let (Some((slot, buffers)), Some(limits)) = (slots.parts(index), session.limits()) else {
            return Err(PostError::NoSuchQueue);
        };
        let RequestMemory { headers, header_at, bounce, bounce_at } = buffers;
        let chunk = path.chunks[usize::from(index)];
        slot.connection = if slot.is_admin { 0 } else { path.connection_of(slot.cpu) };
        let (length, header) = (slot.length, slot.header);
        let user_length = header as u16;
        let message_at = header_at + header as usize;
        let memory_of = |segment: &Segment| {
            registrations.buffer(segment.buffer).expect("`check` has found the buffer")
        };
        path.stats.count_sg_entries(slot.cpu, slot.segments.len());
        path.stats.traffic.count(slot.direction, u64::from(length) + u64::from(header));
        let write_message = |bytes: &[u8]| {
            headers.write(message_at, bytes).expect("`check` has left room for the message");
            let end = header + bytes.len() as u32;
            local.of_headers(headers, header_at, end)
        };
        let (start, data) = match slot.direction {
            Direction::Write => {
                let message = WriteHeader { message_type: MessageType::WRITE, user_length };
                let end = write_message(&message.to_bytes());
                let sge = |segment: &Segment| {
                    let memory = memory_of(segment);
                    local.of_buffer(segment.buffer, memory, segment.offset, segment.length)
                };
                let data = match &slot.segments[..] {
                    [] => Data::One(end),
                    [one] => Data::Two([sge(one), end]),
                    many if many.len() < hca.config().max_sge as usize => {
                        Data::Many(many.iter().map(sge).chain([end]).collect())
                    }
                    many => {
                        // The HCA does not support this many SGEs, so the segments are copied into the bounce buffer.
                        let mut at = bounce_at;
                        for segment in many {
                            let bytes = memory_of(segment)
                                .to_vec(segment.offset, segment.length as usize)
                                .expect("`check` has found the segments within their buffers");
                            bounce
                                .write(at, &bytes)
                                .expect("`check` has limited the length of the data");
                            at += bytes.len();
                        }
                        Data::Two([local.of_bounce(bounce, bounce_at, length), end])
                    }
                };
                (0, data)
            }
            Direction::Read => {
                let invalidation = ReadFlags(0)
                    .with(ReadFlags::NEED_INVALIDATION, config.need_invalidation && length > 0);
                let message = ReadHeader {
                    message_type: MessageType::READ,
                    user_length,
                    flags: invalidation,
                    count: (length > 0).into(),
                };
                let mut bytes = [0; LONGEST];
                bytes[..ReadHeader::LENGTH].copy_from_slice(&message.to_bytes());
                let mut end = ReadHeader::LENGTH;
                if length > 0 {
                    let (memory, offset) = match &slot.segments[..] {
                        [one] => (memory_of(one), one.offset),
                        _ => (bounce, bounce_at),
                    };
                    slot.is_bounced = slot.segments.len() > 1;
                    let range = (memory, offset, length as usize);
                    let address = memory.address() + offset as u64;
                    let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
                    let region = local.reads[usize::from(index)];
                    let key = hca.open_mr(region, range, address, access);
                    let r_key = key.map_err(|_| PostError::NoSuchQueue)?;
                    slot.opened = Some(path.local);
                    let descriptor = Descriptor { address, r_key, length };
                    bytes[end..].copy_from_slice(&descriptor.to_bytes());
                    end = LONGEST;
                }
                (length, Data::One(write_message(&bytes[..end])))
            }
        };
        let to = RemoteAddress { addr: chunk.addr + u64::from(start), rkey: chunk.rkey };
        let imm = Immediate::request(limits.queue_depth, index.into(), length + header);
        let qp = path.connections[usize::from(slot.connection)].qp;
        connection::send(hca, now, qp, SendOp::Write { to, imm: Some(imm.0) }, data)
    }

    /// Invalidates the key of a READ. If the READ has succeeded (`is_good`) and its data is in the bounce buffer,
    /// copies the data to the segments.
    pub(super) fn take_data(&mut self, hca: &mut Hca, index: u16, is_good: bool) {
        let Self { slots, registrations, .. } = self;
        let Some((slot, buffers)) = slots.parts(index) else { return };
        if let Some(local) = slot.opened.take() {
            // The region may have been removed together with its HCA. Closing it then fails, which does no harm.
            hca.close_mr(registrations.get(local).reads[usize::from(index)]).ok();
        }
        if !std::mem::take(&mut slot.is_bounced) || !is_good {
            return;
        }
        let RequestMemory { bounce, bounce_at, .. } = buffers;
        let mut at = bounce_at;
        for &Segment { buffer, offset, length } in &slot.segments {
            let bytes = bounce.to_vec(at, length as usize).expect("`check` has limited the length");
            if let Some(memory) = registrations.buffer(buffer) {
                memory
                    .write(offset, &bytes)
                    .expect("`check` has found the segments within their buffers");
            }
            at += length as usize;
        }
    }
}

/// A response of the server. Chunk and status come from the immediate data. `key` is the new R_Key of the chunk, if the
/// response is a message with an R_Key.
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

/// The number of a registered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(super) u32);

/// A part of a registered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset of the part in the buffer, in bytes.
    pub offset: usize,
    /// Length of the part in bytes.
    pub length: u32,
}

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(super) slot: u16,
    pub(super) generation: u32,
}

/// A request to a server.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The processor that submits the request.
    pub cpu: u32,
    /// The direction of the data.
    pub direction: Direction,
    /// The user's header. The server passes it to its own user.
    pub header: &'a [u8],
    /// The data to write, or the buffers to read into. The user must not change them until the request has completed.
    pub data: &'a [Segment],
    /// A number chosen by the user. The completion returns it.
    pub user: u64,
    /// True to send the request over the first connection, which carries no block requests.
    pub is_admin: bool,
}
