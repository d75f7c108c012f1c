//! Submission of requests: checks, selection of a path, and work requests.

use ib_hca::{AccessFlags, Data, Hca, PostError, RemoteAddress, SendOp};
use ib_types::Instant;
use ib_wire::rtrs::{Descriptor, Immediate, MessageType, ReadFlags, ReadHeader, WriteHeader};

use super::liveness::PROBE_AFTER;
use super::request::{Request, RequestId, Segment};
use super::slots::{RequestMemory, SlotState};
use super::{Client, Failure, PathId, RequestError, Timer};
use crate::Direction;
use crate::adapters::Adapters;
use crate::connection;

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
