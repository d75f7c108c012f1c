//! Responses to requests.

use ib_hca::{Data, Hca, PostError, RemoteAddress, SendOp, Sge};
use ib_types::Instant;
use ib_wire::rtrs::{Immediate, ImmediateKind, MessageType, RkeyResponse};

use super::path::{Operation, State};
use super::store::{StoreId, StoreRange};
use super::{EndReason, Server, ServerRequestId};
use crate::adapters::Adapters;
use crate::connection;
use crate::{Direction, Errno};

/// The data of a READ response. `store` is `None` if the data is in the session's memory.
#[derive(Clone, Copy, Debug)]
struct ReadData {
    length: u32,
    store: Option<StoreRange>,
}

impl Server {
    /// Completes a request and sends the response.
    ///
    /// For a READ, `length` bytes of data are at [`ServerRequest::data_offset`](super::ServerRequest::data_offset), and
    /// the rest of the client's buffer is filled with zeros. If the path has failed, no response is sent: the client
    /// does not know whether the request was executed.
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
