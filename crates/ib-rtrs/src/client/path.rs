//! The paths of a session: their state and objects, and the selection of a path for each request.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_cm::ConnectionId;
use ib_hca::{CqId, Memory, MrId, Sge};
use ib_types::Psn;
use ib_wire::rtrs::Capabilities;

use crate::client::config::{PathSpec, Policy};
use crate::client::liveness::Liveness;
use crate::client::session::Limits;
use crate::connection::AdapterId;
use crate::connection::Connection;
use crate::stats::ClientPathStats;

/// The number of a path. It is unique within the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(super) u32);

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The client is connecting the path.
    Connecting,
    /// The path is connected and accepts requests.
    Connected,
    /// The path has failed, and the client will reconnect it after a delay.
    Waiting,
    /// The path is not connected, and the client will not reconnect it.
    Disconnected,
    /// The client waits for the server's confirmation of the disconnect.
    Closing,
}

/// The state into which a path changes after `Closing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ClosedState {
    Disconnected,
    Removed,
}

/// The address and key of one of the server's chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) addr: u64,
    pub(super) rkey: u32,
}

/// The receive buffers of one connection: offset in the inbox, size of each in bytes, and number of buffers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receives {
    pub(super) offset: usize,
    pub(super) size: u32,
    pub(super) count: u32,
}

/// A connection that is being established.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) connection: Connection,
    pub(super) psn: Psn,
}

/// The registered memory of all receive buffers of a path.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) memory: Arc<Memory>,
    pub(super) mr: MrId,
    pub(super) key: u32,
    /// The receive buffers of each connection.
    pub(super) receives: Vec<Receives>,
}

/// The server's offer, from its response to the first connection of the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offer {
    pub(super) limits: Limits,
    pub(super) capabilities: Capabilities,
    /// True if each response of the server contains a new key for the chunk.
    pub(super) has_new_keys: bool,
}

impl Offer {
    const NONE: Self =
        Self { limits: Limits::NONE, capabilities: Capabilities(0), has_new_keys: false };
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: PathId,
    pub(super) spec: PathSpec,
    pub(super) uuid: [u8; 16],
    pub(super) state: PathState,
    /// Number of attempts so far to connect the path, modulo 65,536. Each REQ contains it.
    pub(super) reconnects: u16,
    /// Number of attempts that have failed since the path was last connected.
    pub(super) attempts: u32,
    /// True if the path has been connected at some time.
    pub(super) was_connected: bool,
    /// True if the session opens only after this path is connected. This is the case if the path was added before the
    /// session opened, and no attempt has failed.
    pub(super) is_awaited: bool,
    /// True if the client has stopped reconnecting the path after failures.
    pub(super) is_given_up: bool,
    /// True if the path may create the session at the server.
    pub(super) is_first: bool,
    pub(super) local: usize,
    pub(super) cq: Option<CqId>,
    pub(super) attempt: Option<Attempt>,
    pub(super) connections: Vec<Connection>,
    /// The offer that the server made when the path was last connected.
    pub(super) offer: Offer,
    pub(super) inbox: Option<Inbox>,
    /// The client's random number, while the client waits for the proof of the server.
    pub(super) nonce: Option<[u8; 32]>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) liveness: Liveness,
    pub(super) inflight: u32,
    pub(super) stats: ClientPathStats,
    /// Connections whose disconnect the server has not confirmed yet.
    pub(super) closing: Vec<ConnectionId>,
    /// The state into which the path changes once `closing` is empty.
    pub(super) next_state: Option<ClosedState>,
}

impl Path {
    pub(super) fn new(
        id: PathId,
        spec: PathSpec,
        uuid: [u8; 16],
        local: usize,
        processors: usize,
    ) -> Self {
        Self {
            id,
            spec,
            uuid,
            state: PathState::Disconnected,
            reconnects: 0,
            attempts: 0,
            was_connected: false,
            is_awaited: false,
            is_given_up: false,
            is_first: false,
            local,
            cq: None,
            attempt: None,
            connections: Vec::new(),
            offer: Offer::NONE,
            inbox: None,
            nonce: None,
            chunks: Vec::new(),
            liveness: Liveness::default(),
            inflight: 0,
            stats: ClientPathStats::new(processors),
            closing: Vec::new(),
            next_state: None,
        }
    }

    /// Returns true if the server fences paths.
    pub(super) const fn fences(&self) -> bool {
        self.offer.capabilities.contains(Capabilities::FENCE)
    }

    /// Returns the buffer of a receive; an empty SGE if the receive has no buffer.
    pub(super) fn receive(&self, connection: u16, index: u32) -> Sge {
        let Some(inbox) = &self.inbox else { return Sge::default() };
        let receives = inbox.receives.get(usize::from(connection)).copied().unwrap_or_default();
        if index >= receives.count {
            return Sge::default();
        }
        let offset = receives.offset as u64 + u64::from(index) * u64::from(receives.size);
        Sge { addr: inbox.memory.address() + offset, length: receives.size, lkey: inbox.key }
    }

    /// Returns the index of the connection that carries the requests of a processor.
    pub(super) fn connection_of(&self, cpu: u32) -> u16 {
        match self.connections.len() {
            0 | 1 => 0,
            count => (cpu % (count as u32 - 1)) as u16 + 1,
        }
    }
}

/// All paths of a session. They can be found by number, by connection and by CQ. `connected` has the connected paths in
/// ascending order.
#[derive(Debug)]
pub(super) struct Paths {
    all: Vec<Option<Box<Path>>>,
    connected: Vec<PathId>,
    /// For each processor, the index in `connected` of the path that [`Policy::RoundRobin`] has selected last.
    last_used: Vec<usize>,
    by_connection: BTreeMap<(AdapterId, ConnectionId), PathId>,
    by_cq: BTreeMap<(AdapterId, CqId), PathId>,
}

impl Paths {
    pub(super) fn new(processors: u32) -> Self {
        Self {
            all: Vec::new(),
            connected: Vec::new(),
            last_used: vec![0; processors.max(1) as usize],
            by_connection: BTreeMap::new(),
            by_cq: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, id: PathId) -> Option<&Path> {
        self.all.get(id.0 as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.all.get_mut(id.0 as usize)?.as_deref_mut()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.all.iter().flatten().map(|path| &**path)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.all.iter_mut().flatten().map(|path| &mut **path)
    }

    /// Returns the number for the next path to be added.
    pub(super) const fn next_id(&self) -> PathId {
        PathId(self.all.len() as u32)
    }

    /// Adds a path. Its number must be [`Paths::next_id`].
    pub(super) fn add(&mut self, path: Path) {
        self.all.push(Some(Box::new(path)));
    }

    /// Removes a path that is not connected. Its number is never used again.
    pub(super) fn remove(&mut self, id: PathId) {
        self.all[id.0 as usize] = None;
    }

    /// Returns the connected paths in the order of their numbers.
    pub(super) fn connected(&self) -> &[PathId] {
        &self.connected
    }

    pub(super) fn set_connected(&mut self, id: PathId) {
        if let Err(at) = self.connected.binary_search(&id) {
            self.connected.insert(at, id);
        }
    }

    pub(super) fn set_disconnected(&mut self, id: PathId) {
        self.connected.retain(|&it| it != id);
    }

    /// Selects a path for a request that the processor `cpu` submits; `None` if no path is connected.
    pub(super) fn choose(&mut self, policy: Policy, cpu: u32) -> Option<PathId> {
        let path = |id: PathId| self.get(id).expect("connected paths exist");
        match (&self.connected[..], policy) {
            ([], _) => None,
            ([only], _) => Some(*only),
            (connected, Policy::RoundRobin) => {
                let count = self.last_used.len();
                let last = &mut self.last_used[cpu as usize % count];
                *last = (*last + 1) % connected.len();
                Some(connected[*last])
            }
            (connected, Policy::MinInflight) => {
                connected.iter().copied().min_by_key(|&id| path(id).inflight)
            }
            (connected, Policy::MinLatency) => {
                let latency = |id: PathId| path(id).liveness.latency().unwrap_or_default();
                connected.iter().copied().min_by_key(|&id| latency(id))
            }
        }
    }

    pub(super) fn of_adapter(&self, adapter: AdapterId) -> Vec<PathId> {
        self.iter().filter(|path| path.spec.adapter == adapter).map(|path| path.id).collect()
    }

    pub(super) fn of_connection(
        &self,
        adapter: AdapterId,
        connection: ConnectionId,
    ) -> Option<PathId> {
        self.by_connection.get(&(adapter, connection)).copied()
    }

    pub(super) fn add_connection(
        &mut self,
        adapter: AdapterId,
        connection: ConnectionId,
        id: PathId,
    ) {
        self.by_connection.insert((adapter, connection), id);
    }

    pub(super) fn remove_connection(&mut self, adapter: AdapterId, connection: ConnectionId) {
        self.by_connection.remove(&(adapter, connection));
    }

    pub(super) fn of_cq(&self, adapter: AdapterId, cq: CqId) -> Option<PathId> {
        self.by_cq.get(&(adapter, cq)).copied()
    }

    pub(super) fn add_cq(&mut self, adapter: AdapterId, cq: CqId, id: PathId) {
        self.by_cq.insert((adapter, cq), id);
    }

    pub(super) fn remove_cq(&mut self, adapter: AdapterId, cq: CqId) {
        self.by_cq.remove(&(adapter, cq));
    }
}

#[cfg(test)]
mod tests;
