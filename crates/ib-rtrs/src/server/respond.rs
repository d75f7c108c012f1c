//! Answers.

use ib_hca::{Data, Hca, PostError, RemoteAddress, SendOp, Sge};
use ib_types::Instant;
use ib_wire::rtrs::{Immediate, ImmediateKind, MessageType, RkeyResponse};

use super::path::{Operation, State};
use super::store::{Piece, StoreId};
use super::{EndReason, Server, ServerRequestId};
use crate::adapters::Adapters;
use crate::connection;
use crate::{Direction, Errno};

/// The data of an answer: so many bytes, in the chunk or elsewhere.
#[derive(Clone, Copy, Debug)]
struct Produced {
    length: u32,
    from: Option<Piece>,
}

impl Server {
    /// Answers a request, at any time after it came: a read with so many bytes of data, which lie where the request
    /// said. What the client wanted beyond them it gets as zeros. An answer to a path that is gone is dropped; then its client
    /// knows no better than that the request may have been carried out.
    ///
    /// Returns false for what is answered already.
    pub fn complete(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerRequestId,
        errno: Errno,
        produced: u32,
    ) -> bool {
        self.finish(now, cx, id, errno, Produced { length: produced, from: None })
    }

    /// Answers a read that has succeeded, with so many bytes of memory of the server's user from an offset on. They are sent
    /// from there, without a copy: what is written there before the client has its answer may come with it, as with every
    /// write beside a read.
    ///
    /// Returns false for what is answered already.
    ///
    /// # Panics
    /// Panics when the memory is not the server's, or ends before the bytes do.
    pub fn complete_from(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerRequestId,
        (store, offset): (StoreId, usize),
        length: u32,
    ) -> bool {
        let from = Some(Piece { store, offset });
        self.finish(now, cx, id, Errno::OK, Produced { length, from })
    }

    fn finish(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerRequestId,
        errno: Errno,
        produced: Produced,
    ) -> bool {
        let chunk = usize::from(id.chunk);
        let Some(path) = self.path_mut(id.path) else { return false };
        let operation = path.operations.get_mut(chunk);
        let Some(operation) = operation.filter(|it| it.is_busy && it.serial == id.serial) else {
            return false;
        };
        operation.is_busy = false;
        let operation = *operation;
        path.outstanding -= 1;
        let (state, adapter, session) = (path.state, path.adapter, path.session);
        let is_last = path.outstanding == 0;
        self.free_chunk(session, id.chunk);
        if state == State::Dead {
            if is_last {
                self.forget_path(now, cx, id.path);
                self.settle(now, cx);
            }
            return true;
        }
        let answered = cx
            .get(adapter)
            .ok_or(PostError::NoSuchQueue)
            .and_then(|it| self.answer(now, it.hca, id, &operation, errno, produced));
        if answered.is_err() {
            self.end_path(now, cx, id.path, EndReason::Setup);
            self.settle(now, cx);
        }
        true
    }

    fn answer(
        &mut self,
        now: Instant,
        hca: &mut Hca,
        id: ServerRequestId,
        operation: &Operation,
        errno: Errno,
        produced: Produced,
    ) -> Result<(), PostError> {
        let Self { paths, sessions, config, stores, .. } = self;
        let path = paths[id.path.index as usize].as_deref_mut().expect("it was just there");
        let memory = sessions[&path.session].memory.as_ref();
        let memory = memory.expect("a path with requests has chunks");
        let chunk = usize::from(id.chunk);
        let connection = path.connections[usize::from(operation.connection)];
        let qp = connection.ok_or(PostError::NoSuchQueue)?.qp;
        let mut has_invalidated = false;
        if let (Direction::Read, Some(to)) = (operation.direction, operation.to) {
            if errno.is_ok() {
                let start = config.read_place(id.chunk);
                let length = produced.length.min(to.length);
                let found = produced.from.map(|piece| (piece, piece.memory(stores, length)));
                let whole = found.filter(|_| length == to.length && path.keeps_sectors);
                let whole = whole.and_then(|(piece, of)| piece.of_path(hca, path, of, length));
                let sge = if let Some(sge) = whole {
                    sge
                } else {
                    let (length, checked) = (length as usize, "its length was checked");
                    if let Some((piece, of)) = found {
                        memory.copy_from(start, (of, piece.offset), length).expect(checked);
                    }
                    let rest = to.length as usize - length;
                    if rest > 0 {
                        // What stood there before is nobody's business.
                        memory.fill(start + length, rest, 0).expect(checked);
                    }
                    let (_, lkey) = path.whole.expect("it is connected");
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
        let desk = path.control.as_ref().expect("it has connections");
        let (offset, sge) = desk.new_key(chunk);
        desk.memory.write(offset, &message.to_bytes()).expect("it has room for all keys");
        connection::send(hca, now, qp, SendOp::Send { imm }, Data::One(sge))
    }
}
