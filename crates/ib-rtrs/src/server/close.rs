//! Ends of paths and sessions; fences.

use ib_hca::{Data, SendOp};
use ib_types::Instant;
use ib_wire::rtrs::{Fence, Fenced, MessageType};

use super::path::State;
use super::{EndReason, Server, ServerEvent, ServerPathId, ServerRequest, Timer, is_later};
use crate::adapters::{Adapter, Adapters};
use crate::connection;

/// A client that waits for a path to be without effect.
#[derive(Debug)]
pub(super) struct PendingFence {
    /// The path over which it has asked.
    via: ServerPathId,
    id: u32,
    session: u32,
    uuid: [u8; 16],
    reconnects: u16,
}

impl Server {
    /// Ends a path: nothing that comes over it has an effect any more, and the client is told. Requests that its user
    /// has got stay until they are answered.
    pub(super) fn end_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        why: EndReason,
    ) {
        let Self { paths, sessions, by_connection, by_cq, timers, requests, .. } = self;
        let path = paths.get_mut(id.index as usize).and_then(Option::as_deref_mut);
        let Some(path) = path.filter(|path| path.id == id && path.state != State::Dead) else {
            return;
        };
        let was_up = std::mem::replace(&mut path.state, State::Dead) == State::Connected;
        timers.stop((id, Timer::Connect));
        timers.stop((id, Timer::Heartbeat));
        let (adapter, key) = (path.adapter, path.session);
        let chunks = std::mem::take(&mut path.chunks);
        let desk = path.control.take().map(|desk| desk.mr);
        let stores = std::mem::take(&mut path.stores).into_iter().flatten();
        let whole = path.whole.take().into_iter().chain(stores).map(|(mr, _)| mr);
        let connections = std::mem::take(&mut path.connections);
        if let Some(Adapter { hca, cm }) = cx.get(adapter) {
            for connection in connections.into_iter().flatten() {
                by_connection.remove(&(adapter, connection.id));
                connection::end(hca, cm, now, connection);
            }
            if let Some(cq) = path.cq.take() {
                by_cq.remove(&(adapter, cq));
                // Its queue pairs are gone.
                hca.destroy_cq(cq).ok();
            }
            for mr in chunks.into_iter().chain(desk).chain(whole) {
                hca.dereg_mr(mr).ok();
            }
            hca.dealloc_pd(path.pd).ok();
        }
        // Those that nobody has got yet nobody gets.
        let own = |request: &ServerRequest| request.path == id;
        let mut freed = Vec::new();
        requests.retain(|request| {
            if own(request) {
                path.drop_request(request.chunk);
                freed.push(request.chunk);
            }
            !own(request)
        });
        if let Some(session) = sessions.get_mut(&key) {
            session.held.retain(|&chunk, waiting| {
                let before = waiting.len();
                waiting.retain(|request| !own(request));
                if waiting.len() < before {
                    path.drop_request(chunk);
                    session.used[usize::from(chunk)] -= 1;
                }
                !waiting.is_empty()
            });
        }
        let is_done = path.outstanding == 0;
        if was_up {
            let session = self.session_id(key).expect("paths have a session");
            self.events.push_back(ServerEvent::PathDown { session, path: id, why });
            let kept = self.sessions.get_mut(&key).expect("paths have a session");
            kept.up -= 1;
            if kept.up == 0 {
                self.events.push_back(ServerEvent::SessionDown { session });
            }
        }
        self.pending_fences.retain(|waiting| waiting.via != id);
        for chunk in freed {
            self.free_chunk(key, chunk);
        }
        if is_done {
            self.forget_path(now, cx, id);
        }
    }

    /// Forgets a path that is gone and has no requests any more; does what has waited for that.
    pub(super) fn forget_path(&mut self, now: Instant, cx: &mut impl Adapters, id: ServerPathId) {
        let Some(path) = self.paths[id.index as usize].take() else { return };
        self.free.push(id.index);
        let key = path.session;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.paths.retain(|&index| index != id.index);
        }
        self.forget_session_without_paths(key);
        self.confirm_fences(now, cx);
        self.answer_questions(now, cx, key);
    }

    pub(super) fn forget_session_without_paths(&mut self, key: u32) {
        if self.sessions.get(&key).is_some_and(|session| session.paths.is_empty()) {
            let session = self.sessions.remove(&key).expect("it was just there");
            self.by_uuid.remove(&session.uuid);
        }
    }

    /// A client takes one of its paths for dead, and wants to know when it has no effect any more.
    pub(super) fn take_fence(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        via: ServerPathId,
        fence: &Fence,
    ) -> Result<(), EndReason> {
        let Some(path) = self.path(via) else { return Ok(()) };
        let session = path.session;
        if path.uuid == fence.path_uuid && !is_later(path.reconnects, fence.reconnects) {
            return Err(EndReason::Protocol("the wish to end the path that it came over"));
        }
        /// The most that a path may wait for.
        const MOST: usize = 1024;
        if self.pending_fences.iter().filter(|waiting| waiting.via == via).count() >= MOST {
            return Err(EndReason::Protocol("more wishes than can be fulfilled"));
        }
        let waiting = PendingFence {
            via,
            id: fence.id,
            session,
            uuid: fence.path_uuid,
            reconnects: fence.reconnects,
        };
        for id in self.meant(&waiting) {
            self.end_path(now, cx, id, EndReason::Fenced);
        }
        self.pending_fences.push(waiting);
        self.confirm_fences(now, cx);
        Ok(())
    }

    /// Returns the paths that a client takes for dead, those that are gone but for their requests included.
    fn meant(&self, waiting: &PendingFence) -> Vec<ServerPathId> {
        let Some(session) = self.sessions.get(&waiting.session) else { return Vec::new() };
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let meant = paths.filter(|path| {
            path.uuid == waiting.uuid && !is_later(path.reconnects, waiting.reconnects)
        });
        meant.map(|path| path.id).collect()
    }

    /// Tells clients which paths have no effect any more.
    fn confirm_fences(&mut self, now: Instant, cx: &mut impl Adapters) {
        let mut at = 0;
        while let Some(waiting) = self.pending_fences.get(at) {
            if !self.meant(waiting).is_empty() {
                at += 1;
                continue;
            }
            let PendingFence { via, id, .. } = self.pending_fences.remove(at);
            let Some(path) = self.path(via).filter(|path| path.state == State::Connected) else {
                continue;
            };
            let qp = path.connections[0].as_ref().expect("all are there").qp;
            let fenced = Fenced { message_type: MessageType::FENCED, id };
            let data = Data::Inline(Box::new(fenced.to_bytes()));
            let op = SendOp::Send { imm: None };
            let sent = cx
                .get(path.adapter)
                .is_some_and(|it| connection::send(it.hca, now, qp, op, data).is_ok());
            if !sent {
                self.failed.push_back((via, EndReason::Setup));
            }
        }
    }
}
