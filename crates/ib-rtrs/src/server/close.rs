//! Closing of paths and sessions; path fencing.

use ib_hca::{Data, SendOp};
use ib_types::Instant;
use ib_wire::rtrs::{Fence, Fenced, MessageType};

use super::path::State;
use super::{EndReason, Server, ServerEvent, ServerPathId, ServerRequest, Timer, is_later};
use crate::connection;
use crate::connection::{Adapter, Adapters};

/// A fence request that is not confirmed yet, because a path to be fenced has outstanding requests.
#[derive(Debug)]
pub(super) struct PendingFence {
    /// The path over which the fence was requested.
    via: ServerPathId,
    id: u32,
    session: u32,
    uuid: [u8; 16],
    reconnects: u16,
}

impl Server {
    /// Closes a path, and drops its requests that were not yet returned to the user. Once the user has completed the
    /// returned requests of the path, the path is removed.
    pub(super) fn end_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
        why: EndReason,
    ) {
        let Self { paths, sessions, by_connection, by_cq, timers, requests, .. } = self;
        let path = paths.get_mut(id.index as usize).and_then(Option::as_deref_mut);
        let Some(path) = path.filter(|path| path.id == id && path.state != State::Closed) else {
            return;
        };
        let was_up = std::mem::replace(&mut path.state, State::Closed) == State::Connected;
        timers.stop((id, Timer::Connect));
        timers.stop((id, Timer::Heartbeat));
        let (adapter, key) = (path.adapter, path.session);
        let chunks = std::mem::take(&mut path.chunks);
        let control = path.control.take().map(|control| control.mr);
        let stores = std::mem::take(&mut path.stores).into_iter().flatten();
        let send_regions = path.send_region.take().into_iter().chain(stores).map(|(mr, _)| mr);
        let connections = std::mem::take(&mut path.connections);
        if let Some(Adapter { hca, cm }) = cx.get(adapter) {
            for connection in connections.into_iter().flatten() {
                by_connection.remove(&(adapter, connection.id));
                connection::end(hca, cm, now, connection);
            }
            if let Some(cq) = path.cq.take() {
                by_cq.remove(&(adapter, cq));
                // The queue pairs of the CQ are destroyed. So `destroy_cq` fails only if the CQ was removed together
                // with its HCA.
                hca.destroy_cq(cq).ok();
            }
            for mr in chunks.into_iter().chain(control).chain(send_regions) {
                hca.dereg_mr(mr).ok();
            }
            hca.dealloc_pd(path.pd).ok();
        }
        let is_own = |request: &ServerRequest| request.path == id;
        let mut freed = Vec::new();
        requests.retain(|request| {
            if is_own(request) {
                path.drop_request(request.chunk);
                freed.push(request.chunk);
            }
            !is_own(request)
        });
        if let Some(session) = sessions.get_mut(&key) {
            session.held.retain(|&chunk, waiting| {
                let before = waiting.len();
                waiting.retain(|request| !is_own(request));
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
            let state = self.sessions.get_mut(&key).expect("paths have a session");
            state.up -= 1;
            if state.up == 0 {
                self.events.push_back(ServerEvent::SessionDown { session });
            }
        }
        self.pending_fences.retain(|waiting| waiting.via != id);
        for chunk in freed {
            self.free_chunk(key, chunk);
        }
        if is_done {
            self.remove_path(now, cx, id);
        }
    }

    /// Removes a closed path that has no outstanding requests. Then confirms the fences that have waited for the
    /// removal, and responds to the info requests that have waited for it.
    pub(super) fn remove_path(&mut self, now: Instant, cx: &mut impl Adapters, id: ServerPathId) {
        let Some(path) = self.paths[id.index as usize].take() else { return };
        self.free.push(id.index);
        let key = path.session;
        if let Some(session) = self.sessions.get_mut(&key) {
            session.paths.retain(|&index| index != id.index);
        }
        self.remove_session_without_paths(key);
        self.confirm_fences(now, cx);
        self.respond_to_info_requests(now, cx, key);
    }

    pub(super) fn remove_session_without_paths(&mut self, key: u32) {
        if self.sessions.get(&key).is_some_and(|session| session.paths.is_empty()) {
            let session = self.sessions.remove(&key).expect("the session was looked up");
            self.by_uuid.remove(&session.uuid);
        }
    }

    /// Handles a fence request: closes the path to be fenced, and confirms the fence once no request of that path is
    /// outstanding.
    pub(super) fn handle_fence(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        via: ServerPathId,
        fence: &Fence,
    ) -> Result<(), EndReason> {
        let Some(path) = self.path(via) else { return Ok(()) };
        let session = path.session;
        if path.uuid == fence.path_uuid && !is_later(path.reconnects, fence.reconnects) {
            return Err(EndReason::Protocol("a fence request of the path over which it arrived"));
        }
        /// Maximum number of unconfirmed fences that were requested over one path.
        const MAX_PENDING: usize = 1024;
        if self.pending_fences.iter().filter(|fence| fence.via == via).count() >= MAX_PENDING {
            return Err(EndReason::Protocol("too many fence requests"));
        }
        let pending = PendingFence {
            via,
            id: fence.id,
            session,
            uuid: fence.path_uuid,
            reconnects: fence.reconnects,
        };
        for id in self.fenced_paths(&pending) {
            self.end_path(now, cx, id, EndReason::Fenced);
        }
        self.pending_fences.push(pending);
        self.confirm_fences(now, cx);
        Ok(())
    }

    /// Returns the paths that a fence covers and that are not removed yet. Such a path has the path UUID of the fence
    /// request, and at most as many reconnects as the request contains.
    fn fenced_paths(&self, fence: &PendingFence) -> Vec<ServerPathId> {
        let Some(session) = self.sessions.get(&fence.session) else { return Vec::new() };
        let paths = session.paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        let fenced = paths
            .filter(|path| path.uuid == fence.uuid && !is_later(path.reconnects, fence.reconnects));
        fenced.map(|path| path.id).collect()
    }

    /// Confirms each fence whose paths were all removed.
    fn confirm_fences(&mut self, now: Instant, cx: &mut impl Adapters) {
        let mut at = 0;
        while let Some(fence) = self.pending_fences.get(at) {
            if !self.fenced_paths(fence).is_empty() {
                at += 1;
                continue;
            }
            let PendingFence { via, id, .. } = self.pending_fences.remove(at);
            let Some(path) = self.path(via).filter(|path| path.state == State::Connected) else {
                continue;
            };
            let qp = path.connections[0].as_ref().expect("connected paths have all connections").qp;
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
