//! Adding, disconnecting and removing paths, and the end of the session.

use std::time::Duration;

use ib_cm::ConnectionId;
use ib_types::Instant;
use rand::Rng;

use super::path::{After, Path, PathState};
use super::session::Stage;
use super::{Client, ClientEvent, Failure, PathId, PathSpec, Timer, uuid};
use crate::adapters::{Adapter, Adapters};
use crate::connection::{self, SetupError};

/// Maximum number of paths of a session, as in Linux.
const MAX_PATHS: usize = 128;

/// Timeout of the server's confirmation of a disconnect.
const FAREWELL: Duration = Duration::from_secs(30);

/// Why a path is not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The session has as many paths as may be.
    #[error("the session has {MAX_PATHS} paths: expected fewer")]
    TooMany,
    /// It has ended, or is about to.
    #[error("the session has ended")]
    Closed,
    /// The HCA cannot create the objects of the path.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

impl Client {
    /// Adds a path and begins to connect it. The first path of a session begins it at the server; those that are added
    /// before it is connected wait for that, and the session is up when all of them are connected.
    ///
    /// # Errors
    /// Fails if the session has too many paths or has ended, or if the HCA cannot create the objects of the path.
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
            self.begin_path(now, cx, id);
            self.settle(now, cx);
        }
        Ok(id)
    }

    /// Disconnects a path. [`ClientEvent::PathDisconnected`] tells when the server knows. False when there is no such
    /// path.
    pub fn disconnect_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) -> bool {
        self.end_path(now, cx, id, After::Disconnected)
    }

    /// Disconnects a path and forgets it. [`ClientEvent::PathRemoved`] tells when the server knows. False when there is
    /// no such path.
    pub fn remove_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) -> bool {
        self.end_path(now, cx, id, After::Removed)
    }

    /// Reconnects a path immediately. [`ClientEvent::PathUp`] or [`ClientEvent::PathDown`] reports the result.
    /// Returns false if there is no such path, or if it is being connected or closed.
    pub fn reconnect_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) -> bool {
        match self.path_state(id) {
            None | Some(PathState::Closing | PathState::Connecting) => return false,
            Some(PathState::Connected) => self.fail_path(now, cx, id, Failure::Unwanted),
            Some(PathState::Waiting | PathState::Disconnected) => {}
        }
        if let Some(path) = self.paths.get_mut(id) {
            path.attempts = 0;
        }
        self.begin_path(now, cx, id);
        self.settle(now, cx);
        true
    }

    /// Closes the session. Requests in flight fail with an error. [`ClientEvent::Closed`] reports that the server
    /// has been notified.
    pub fn close(&mut self, now: Instant, cx: &mut impl Adapters) {
        if self.session.is_ending() {
            return;
        }
        self.session.stage = Stage::Closing;
        let ids: Vec<PathId> = self.paths().collect();
        for id in ids {
            self.end_path(now, cx, id, After::Removed);
        }
        self.finish_close(now, cx);
    }

    fn end_path(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId, after: After) -> bool {
        let Some(path) = self.paths.get_mut(id) else { return false };
        if path.state == PathState::Closing {
            // A removal stays one.
            path.after = path.after.max(Some(after));
            return true;
        }
        self.timers.stop((id, Timer::Reconnect));
        let connections =
            self.paths.get(id).map(|path| path.connections.clone()).unwrap_or_default();
        self.fail_path(now, cx, id, Failure::Unwanted);
        let Some(path) = self.paths.get_mut(id) else { return false };
        path.state = PathState::Closing;
        path.after = Some(after);
        let adapter = path.spec.adapter;
        if let Some(Adapter { cm, .. }) = cx.get(adapter) {
            let waits = connections.iter().map(|it| it.id);
            path.ending =
                waits.filter(|&it| cm.state(it) == Some(ib_cm::State::DreqSent)).collect();
        }
        let ending = path.ending.clone();
        for &connection in &ending {
            self.paths.add_connection(adapter, connection, id);
        }
        if ending.is_empty() {
            self.path_closed(now, cx, id);
        } else {
            self.timers.set((id, Timer::Close), (), now + FAREWELL);
        }
        self.settle(now, cx);
        self.give_up(now, cx);
        true
    }

    /// A connection has ended: by the server's wish, or because it has answered ours.
    pub(super) fn ended(
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
        path.ending.retain(|&it| it != connection);
        if path.ending.is_empty() {
            self.path_closed(now, cx, id);
        }
    }

    /// The other end knows that a path has ended, or does not answer.
    pub(super) fn path_closed(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        self.timers.stop((id, Timer::Close));
        let Some(path) = self.paths.get_mut(id) else { return };
        let (adapter, ending) = (path.spec.adapter, std::mem::take(&mut path.ending));
        let ends = (adapter, path.spec.address);
        path.state = PathState::Disconnected;
        let after = path.after.take();
        for connection in ending {
            self.paths.remove_connection(adapter, connection);
        }
        match after {
            Some(After::Removed) => {
                self.paths.remove(id);
                self.fencing.path_removed(id, ends);
                self.events.push_back(ClientEvent::PathRemoved(id));
            }
            _ => self.events.push_back(ClientEvent::PathDisconnected(id)),
        }
        self.finish_close(now, cx);
    }

    /// Ends the session once all its paths are gone.
    fn finish_close(&mut self, now: Instant, cx: &mut impl Adapters) {
        if self.session.stage == Stage::Closing && self.paths.iter().next().is_none() {
            self.give_up(now, cx);
            self.session.stage = Stage::Closed;
            self.registrations.release(cx);
            self.events.push_back(ClientEvent::Closed);
        }
    }

    /// Releases the objects that a path has at its HCA, and disconnects from the server.
    pub(super) fn tear_down(&mut self, now: Instant, cx: &mut impl Adapters, id: PathId) {
        let Self { paths, timers, came_up, .. } = self;
        paths.set_disconnected(id);
        let Some(path) = paths.get_mut(id) else { return };
        for timer in
            [Timer::Connect, Timer::Heartbeat, Timer::Watch, Timer::Probe, Timer::Reconnect]
        {
            timers.stop((id, timer));
        }
        came_up.retain(|&it| it != id);
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
            // Its queue pairs are gone.
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
