//! The server: sessions of clients, their requests and the responses.
//!
//! | module | holds |
//! |---|---|
//! | `event` | [`ServerConfig`], [`ServerEvent`], [`ServerRequest`], [`EndReason`] |
//! | `path` | one path of a session: its queue pairs, memory regions and requests; memory from which READ data is sent without a copy |
//! | `accept` | connection requests: checks, limits, acceptance and refusal |
//! | `info` | info requests: the proof of the key, the addresses of the chunks |
//! | `requests` | completions: requests, heartbeats, failures; responses to requests |
//! | `close` | closing of paths and sessions; path fencing |
//!
//! The memory of a session is divided into chunks. The number of chunks is the queue depth: each request in flight uses
//! one chunk, and the client writes into it. The server's user takes requests from [`Server::poll_request`], and finds
//! header and data of each request in the memory ([`Server::memory`]). The user must complete every request with
//! [`Server::complete`], even if the path has failed, to free the chunk.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ib_cm::{CmError, CmEvent, ConnectionId, ListenerId, PortSpace, ServiceId};
use ib_hca::{AsyncEvent, CqId, HcaEvent, Memory};
use ib_types::{Deadlines, Instant};
use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

mod accept;
mod close;
mod event;
mod info;
mod path;
mod requests;

pub use event::{
    EndReason, Refusal, ServerConfig, ServerEvent, ServerPathId, ServerRequest, ServerRequestId,
    SessionId,
};
pub use path::StoreId;

use close::PendingFence;
use path::{Path, State};

use crate::address::PathAddress;
use crate::connection::{AdapterId, Adapters};
use crate::stats::{ServerPathStats, ServerStat};

/// The timers of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Timeout of connecting the path: from the REP of the first connection to the info response.
    Connect,
    /// End of the heartbeat interval.
    Heartbeat,
}

/// A session: the server's state for all paths of one client session.
#[derive(Debug)]
struct Session {
    uuid: [u8; 16],
    /// Number of times that the session has started. A session starts when a path connects while none is connected.
    incarnation: u32,
    /// Random number that the server draws whenever the session starts. The server reports it to clients of this
    /// project, so that they can detect a restarted session.
    epoch: u32,
    name: Vec<u8>,
    /// The memory of all chunks. It is allocated for the first info request, so that half-open connections use no
    /// memory.
    memory: Option<Arc<Memory>>,
    /// Indices of the session's paths, including closed paths with outstanding requests.
    paths: Vec<u32>,
    /// Number of connected paths.
    up: usize,
    /// For each chunk, the number of outstanding requests. Only one of them is for the user; the others wait in `held`.
    used: Vec<u16>,
    /// For each chunk, the requests that wait until an earlier request in the chunk completes. Each of them arrived
    /// over a different path.
    held: BTreeMap<u16, VecDeque<ServerRequest>>,
}

/// A server: all sessions of its clients.
///
/// The owner passes events of HCAs to [`Server::handle_hca`] and [`Server::handle_cm`]. It calls
/// [`Server::handle_timeout`] at the time that [`Server::poll_timeout`] returns. After each call, the owner polls
/// [`Server::poll_request`] and [`Server::poll_event`] until they return `None`.
#[derive(Debug)]
pub struct Server {
    config: ServerConfig,
    listeners: BTreeMap<AdapterId, Vec<ListenerId>>,
    sessions: BTreeMap<u32, Session>,
    by_uuid: BTreeMap<[u8; 16], u32>,
    next_session: u32,
    rng: ChaCha12Rng,
    paths: Vec<Option<Box<Path>>>,
    free: Vec<u32>,
    next_serial: u32,
    by_connection: BTreeMap<(AdapterId, ConnectionId), ServerPathId>,
    by_cq: BTreeMap<(AdapterId, CqId), ServerPathId>,
    timers: Deadlines<(ServerPathId, Timer)>,
    pending_fences: Vec<PendingFence>,
    events: VecDeque<ServerEvent>,
    requests: VecDeque<ServerRequest>,
    /// Paths that have failed during the current call. [`Server::settle`] handles them.
    failed: VecDeque<(ServerPathId, EndReason)>,
    /// Memory of the user from which READ data is sent without a copy. A [`StoreId`] is an index in this list.
    stores: Vec<Arc<Memory>>,
}

impl Server {
    /// Creates a server. It does not listen yet.
    ///
    /// The server derives nonces and epochs from `seed`. Take the seed from the system's random number generator,
    /// except in repeatable tests.
    #[must_use]
    pub fn new(config: ServerConfig, seed: [u8; 32]) -> Self {
        Self {
            rng: ChaCha12Rng::from_seed(seed),
            config: config.clamped(),
            listeners: BTreeMap::new(),
            sessions: BTreeMap::new(),
            by_uuid: BTreeMap::new(),
            next_session: 0,
            paths: Vec::new(),
            free: Vec::new(),
            next_serial: 0,
            by_connection: BTreeMap::new(),
            by_cq: BTreeMap::new(),
            timers: Deadlines::default(),
            pending_fences: Vec::new(),
            events: VecDeque::new(),
            requests: VecDeque::new(),
            failed: VecDeque::new(),
            stores: Vec::new(),
        }
    }

    /// Returns the configuration. Values beyond their limits have been replaced by the limits.
    #[must_use]
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Listens at an HCA for clients that connect to the port number `port`, by IP address or by GID.
    ///
    /// # Errors
    /// Fails if the port number is in use, or if there is no such HCA.
    pub fn listen(
        &mut self,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        port: u16,
    ) -> Result<(), ListenError> {
        let found = cx.get(adapter).ok_or(ListenError::NoAdapter)?;
        let by_ip = found.cm.listen_cm(PortSpace::TCP, port)?;
        let by_gid = match found.cm.listen(ServiceId::port(PortSpace::IB, port)) {
            Ok(listener) => listener,
            Err(error) => {
                found.cm.unlisten(by_ip);
                return Err(error.into());
            }
        };
        self.listeners.entry(adapter).or_default().extend([by_ip, by_gid]);
        Ok(())
    }

    /// Returns the IDs of all paths that are connected or are being connected.
    pub fn paths(&self) -> impl Iterator<Item = ServerPathId> {
        self.paths.iter().flatten().filter(|path| path.state != State::Closed).map(|path| path.id)
    }

    /// Returns the sessions with a connected path, in the order of their creation.
    pub fn sessions(&self) -> impl Iterator<Item = SessionId> {
        let up = self.sessions.iter().filter(|(_, session)| session.up > 0);
        up.map(|(&key, session)| SessionId { key, incarnation: session.incarnation })
    }

    /// Returns the connected paths of a session.
    pub fn connected_paths(&self, id: SessionId) -> impl Iterator<Item = ServerPathId> {
        let paths = self.session(id).map(|session| &session.paths[..]).unwrap_or_default();
        let paths = paths.iter().filter_map(|&index| self.paths[index as usize].as_deref());
        paths.filter(|path| path.state == State::Connected).map(|path| path.id)
    }

    /// Returns the name of a session.
    #[must_use]
    pub fn name(&self, id: SessionId) -> Option<&[u8]> {
        self.session(id).map(|session| &session.name[..])
    }

    /// Returns the memory of a session, which contains the chunks.
    #[must_use]
    pub fn memory(&self, id: SessionId) -> Option<&Arc<Memory>> {
        // The incarnation is not compared: a session that restarts after the loss of all its paths keeps its memory.
        self.sessions.get(&id.key)?.memory.as_ref()
    }

    /// Returns the addresses of a path. The source address is that of the client.
    #[must_use]
    pub fn address(&self, id: ServerPathId) -> Option<PathAddress> {
        self.path(id).map(|path| path.address)
    }

    /// Returns the HCA of a path.
    #[must_use]
    pub fn adapter(&self, id: ServerPathId) -> Option<AdapterId> {
        self.path(id).map(|path| path.adapter)
    }

    /// Returns the statistics of a path.
    #[must_use]
    pub fn stats(&self, id: ServerPathId) -> Option<&ServerPathStats> {
        self.path(id).map(|path| &path.stats)
    }

    /// Returns the number of outstanding requests of a path.
    #[must_use]
    pub fn inflight(&self, id: ServerPathId) -> Option<u32> {
        self.path(id).map(|path| path.outstanding)
    }

    /// Resets one kind of statistics of a path. Returns false if there is no such path.
    pub fn reset_stats(&mut self, id: ServerPathId, what: ServerStat) -> bool {
        self.path_mut(id).map(|path| path.stats.reset(what)).is_some()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Returns the next request.
    pub fn poll_request(&mut self) -> Option<ServerRequest> {
        self.requests.pop_front()
    }

    /// Returns the time at which [`Server::handle_timeout`] has to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Handles the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant, cx: &mut impl Adapters) {
        while let Some(((id, timer), ())) = self.timers.take_due(now) {
            match timer {
                Timer::Connect => {
                    let why = EndReason::ConnectTimeout(self.config.connect_timeout);
                    self.end_path(now, cx, id, why);
                }
                Timer::Heartbeat => self.end_heartbeat_interval(now, cx, id),
            }
            self.settle(now, cx);
        }
    }

    /// Handles an event of an HCA. `cpu` is the processor on which the event was received.
    pub fn handle_hca(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        cpu: u32,
        adapter: AdapterId,
        event: &HcaEvent,
    ) {
        match event {
            HcaEvent::Completion(cq) => {
                if let Some(&id) = self.by_cq.get(&(adapter, *cq)) {
                    self.handle_completions(now, cx, cpu, id);
                    self.settle(now, cx);
                }
            }
            HcaEvent::Async(AsyncEvent::PortError) => self.link_down(now, cx, adapter),
            _ => {}
        }
    }

    /// Handles an event of an HCA's connection manager. Returns the event if it does not belong to this server.
    pub fn handle_cm(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        adapter: AdapterId,
        event: CmEvent,
    ) -> Option<CmEvent> {
        let connection = match &event {
            CmEvent::Requested(requested) => {
                let own = self.listeners.get(&adapter);
                if !own.is_some_and(|own| own.contains(&requested.listener)) {
                    return Some(event);
                }
                self.handle_connect_request(now, cx, adapter, requested);
                self.settle(now, cx);
                return None;
            }
            CmEvent::Established { id, .. }
            | CmEvent::Rejected { id, .. }
            | CmEvent::Failed { id, .. }
            | CmEvent::Disconnected { id, .. }
            | CmEvent::TimeWaitExited { id } => *id,
            _ => return Some(event),
        };
        let Some(&id) = self.by_connection.get(&(adapter, connection)) else { return Some(event) };
        match event {
            CmEvent::Established { .. } => {}
            CmEvent::TimeWaitExited { .. } => {
                self.by_connection.remove(&(adapter, connection));
            }
            CmEvent::Disconnected { .. } => self.end_path(now, cx, id, EndReason::Disconnected),
            _ => self.end_path(now, cx, id, EndReason::HandshakeFailed),
        }
        self.settle(now, cx);
        None
    }

    /// Fails the paths of an HCA whose port has lost its link. [`Server::handle_hca`] calls this function for
    /// [`AsyncEvent::PortError`].
    pub fn link_down(&mut self, now: Instant, cx: &mut impl Adapters, adapter: AdapterId) {
        let paths = self.paths.iter().flatten().filter(|path| path.adapter == adapter);
        let ids: Vec<ServerPathId> = paths.map(|path| path.id).collect();
        for id in ids {
            self.end_path(now, cx, id, EndReason::LinkDown);
        }
        self.settle(now, cx);
    }

    /// Disconnects a path, without waiting until the client confirms it. Returns false if there is no such path.
    pub fn disconnect_path(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        id: ServerPathId,
    ) -> bool {
        let is_there = self.path(id).is_some_and(|path| path.state != State::Closed);
        self.end_path(now, cx, id, EndReason::ClosedLocally);
        self.settle(now, cx);
        is_there
    }

    /// Disconnects all paths and stops listening.
    pub fn close(&mut self, now: Instant, cx: &mut impl Adapters) {
        for (adapter, listeners) in std::mem::take(&mut self.listeners) {
            let Some(adapter) = cx.get(adapter) else { continue };
            for listener in listeners {
                adapter.cm.unlisten(listener);
            }
        }
        let ids: Vec<ServerPathId> = self.paths().collect();
        for id in ids {
            self.end_path(now, cx, id, EndReason::ClosedLocally);
        }
        self.settle(now, cx);
    }

    fn path(&self, id: ServerPathId) -> Option<&Path> {
        self.paths.get(id.index as usize)?.as_deref().filter(|path| path.id == id)
    }

    fn path_mut(&mut self, id: ServerPathId) -> Option<&mut Path> {
        self.paths.get_mut(id.index as usize)?.as_deref_mut().filter(|path| path.id == id)
    }

    fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id.key).filter(|session| session.incarnation == id.incarnation)
    }

    fn session_id(&self, key: u32) -> Option<SessionId> {
        let session = self.sessions.get(&key)?;
        Some(SessionId { key, incarnation: session.incarnation })
    }

    /// Closes all paths that have failed during the current call.
    fn settle(&mut self, now: Instant, cx: &mut impl Adapters) {
        while let Some((id, why)) = self.failed.pop_front() {
            self.end_path(now, cx, id, why);
        }
    }
}

/// Returns true if `count`, a wrapping count of reconnects, is later than `before`.
const fn is_later(count: u16, before: u16) -> bool {
    (count.wrapping_sub(before) as i16) > 0
}

/// Error of [`Server::listen`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The HCA was removed.
    #[error("the HCA was removed")]
    NoAdapter,
    /// The port number is in use.
    #[error(transparent)]
    Cm(#[from] CmError),
}
