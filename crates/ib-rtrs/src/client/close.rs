//! Adding, disconnecting and removing paths, and the end of the session.

use std::time::Duration;

use ib_cm::ConnectionId;
use ib_types::Instant;
use rand::Rng;

use super::path::{ClosedState, Path, PathState};
use super::session::Stage;
use super::{Client, ClientEvent, Failure, PathId, PathSpec, Timer, uuid};
use crate::connection::{self, SetupError};
use crate::connection::{Adapter, Adapters};

/// Maximum number of paths of a session, as in Linux.
const MAX_PATHS: usize = 128;

/// Timeout of waiting for the server to confirm a disconnect.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Error of [`Client::add_path`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The session has the maximum number of paths.
    #[error("the session has the maximum of {MAX_PATHS} paths: remove one first")]
    TooMany,
    /// The session is closed or closing.
    #[error("the session is closed")]
    Closed,
    /// The HCA cannot create the objects of the path.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

impl Client {
    /// Adds a path and starts to connect it.
    ///
    /// The first path creates the session at the server. Until this path is connected, the client only records further
    /// paths, and connects them afterwards. If the first path fails, the next path creates the session. The session is
    /// up once a path is connected and each other path has been connected or has failed once.
    ///
    /// # Errors
    /// Fails if the session has too many paths or is closed, or if the HCA cannot create the objects of the path.
    pub fn add_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        spec: PathSpec,
    ) -> Result<PathId, AddError> {
        if self.session.is_ending() {
            return Err(AddError::Closed);
        }
        if self.paths.iter().count() >= MAX_PATHS {
            return Err(AddError::TooMany);
        }
        let local = self.registrations.index_of(cx, spec.adapter)?;
        let id = self.paths.next_id();
        let processors = self.config.processors.max(1) as usize;
        let mut path = Path::new(id, spec, uuid(&mut self.rng), local, processors);
        path.is_awaited = self.session.stage == Stage::Opening;
        let was_any = self.paths.iter().any(|path| path.was_connected);
        path.is_first = self.paths.iter().next().is_none();
        let begins = was_any || path.is_first;
        self.paths.add(path);
        if begins {
            self.start_connecting(now, cx, id);
            self.settle(now, cx);
        }
        Ok(id)
    }

    /// Disconnects a path. [`ClientEvent::PathDisconnected`] reports that the server has confirmed the disconnect,
    /// or has not responded in time. Returns false if there is no such path.
    pub fn disconnect_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) -> bool {
        self.end_path(now, cx, id, ClosedState::Disconnected)
    }

    /// Disconnects and removes a path. [`ClientEvent::PathRemoved`] reports that the server has confirmed the
    /// disconnect, or has not responded in time. Returns false if there is no such path.
    pub fn remove_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) -> bool {
        self.end_path(now, cx, id, ClosedState::Removed)
    }

    /// Reconnects a path immediately. [`ClientEvent::PathUp`] or [`ClientEvent::PathDown`] reports the result. Returns
    /// false if there is no such path, or if the path is being connected or closed.
    pub fn reconnect_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) -> bool {
        match self.path_state(id) {
            None | Some(PathState::Closing | PathState::Connecting) => return false,
            Some(PathState::Connected) => self.fail_path(now, cx, id, Failure::ClosedLocally),
            Some(PathState::Waiting | PathState::Disconnected) => {}
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.attempts = 0;
        }
        self.start_connecting(now, cx, id);
        self.settle(now, cx);
        true
    }

    /// Closes the session. Requests in flight fail. [`ClientEvent::Closed`] reports that all paths are removed.
    pub fn close(&mut self, now: Instant, cx: &mut impl Adapters) {
        if self.session.is_ending() {
            return;
        }
        self.session.stage = Stage::Closing;
        let ids: Vec<PathId> = self.paths().collect();
        for id in ids {
            self.end_path(now, cx, id, ClosedState::Removed);
        }
        self.finish_close(now, cx);
    }

    fn end_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
        next_state: ClosedState,
    ) -> bool {
        let Some(path) = self.paths.get_mut(id) else { return false };
        if path.state == PathState::Closing {
            // If the removal of the path was already requested, a disconnect does not replace it.
            path.next_state = path.next_state.max(Some(next_state));
            return true;
        }
        self.timers.stop((id, Timer::Reconnect));
        let connections =
            self.paths.get(id).map(|path| path.connections.clone()).unwrap_or_default();
        self.fail_path(now, cx, id, Failure::ClosedLocally);
        let Some(path) = self.paths.get_mut(id) else { return false };
        path.state = PathState::Closing;
        path.next_state = Some(next_state);
        let adapter = path.spec.adapter;
        if let Some(Adapter { cm, .. }) = cx.get(adapter) {
            let ids = connections.iter().map(|it| it.id);
            path.closing = ids.filter(|&it| cm.state(it) == Some(ib_cm::State::DreqSent)).collect();
        }
        let closing = path.closing.clone();
        for &connection in &closing {
            self.paths.add_connection(adapter, connection, id);
        }
        if closing.is_empty() {
            self.path_closed(now, cx, id);
        } else {
            self.timers.set((id, Timer::Close), (), now + CLOSE_TIMEOUT);
        }
        self.settle(now, cx);
        self.give_up(now, cx);
        true
    }

    /// Handles the end of a connection: the server has disconnected it, or has confirmed the client's disconnect.
    pub(super) fn connection_closed(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: PathId,
        connection: ConnectionId,
    ) {
        let Some(path) = self.paths.get_mut(id) else { return };
        if path.state != PathState::Closing {
            return self.fail_path(now, cx, id, Failure::Disconnected);
        }
        path.closing.retain(|&it| it != connection);
        if path.closing.is_empty() {
            self.path_closed(now, cx, id);
        }
    }

    /// Completes the disconnect or removal of a path, after the server has confirmed it or has not responded in time.
    pub(super) fn path_closed(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        self.timers.stop((id, Timer::Close));
        let Some(path) = self.paths.get_mut(id) else { return };
        let (adapter, closing) = (path.spec.adapter, std::mem::take(&mut path.closing));
        let ends = (adapter, path.spec.address);
        path.state = PathState::Disconnected;
        let next_state = path.next_state.take();
        for connection in closing {
            self.paths.remove_connection(adapter, connection);
        }
        match next_state {
            Some(ClosedState::Removed) => {
                self.paths.remove(id);
                self.fencing.path_removed(id, ends);
                self.events.push_back(ClientEvent::PathRemoved(id));
            }
            _ => self.events.push_back(ClientEvent::PathDisconnected(id)),
        }
        self.finish_close(now, cx);
    }

    /// Ends the session once all its paths are removed.
    fn finish_close(&mut self, now: Instant, cx: &mut impl Adapters) {
        if self.session.stage == Stage::Closing && self.paths.iter().next().is_none() {
            self.give_up(now, cx);
            self.session.stage = Stage::Closed;
            self.registrations.release(cx);
            self.events.push_back(ClientEvent::Closed);
        }
    }

    /// Disconnects a path, and destroys its objects at the HCA.
    pub(super) fn tear_down(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        let Self { paths, timers, newly_connected, .. } = self;
        paths.set_disconnected(id);
        let Some(path) = paths.get_mut(id) else { return };
        for timer in
            [Timer::Connect, Timer::Heartbeat, Timer::IoTimeout, Timer::Probe, Timer::Reconnect]
        {
            timers.stop((id, timer));
        }
        newly_connected.retain(|&it| it != id);
        let attempt = path.attempt.take().map(|attempt| attempt.connection);
        let connections = std::mem::take(&mut path.connections);
        path.chunks.clear();
        let adapter = path.spec.adapter;
        let Some(Adapter { hca, cm }) = cx.get(adapter) else { return };
        let (cq, inbox) = (path.cq.take(), path.inbox.take());
        for connection in connections.into_iter().chain(attempt) {
            paths.remove_connection(adapter, connection.id);
            connection::end(hca, cm, now, connection);
        }
        if let Some(cq) = cq {
            paths.remove_cq(adapter, cq);
            // All queue pairs of the CQ have been destroyed, so the CQ can be destroyed.
            hca.destroy_cq(cq).ok();
        }
        if let Some(inbox) = inbox {
            hca.dereg_mr(inbox.mr).ok();
        }
    }

    /// Returns the random part of the delay before a path is reconnected.
    pub(super) fn jitter(&mut self) -> Duration {
        let most = self.config.reconnect_jitter.as_nanos() as u64;
        if most == 0 { Duration::ZERO } else { Duration::from_nanos(self.rng.next_u64() % most) }
    }
}
