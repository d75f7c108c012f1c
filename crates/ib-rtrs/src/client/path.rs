//! One path: its state and its objects.

use std::sync::Arc;

use ib_cm::ConnectionId;
use ib_hca::{CqId, Memory, MrId, Sge};
use ib_types::Psn;
use ib_wire::rtrs::Capabilities;

use super::config::PathSpec;
use super::liveness::Liveness;
use super::session::Limits;
use crate::connection::Connection;
use crate::stats::ClientPathStats;

/// The number of a path; no two of a session ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(super) u32);

impl PathId {
    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Its connections are being made.
    Connecting,
    /// Requests may take it.
    Connected,
    /// It is connected again after a while.
    Waiting,
    /// It is not connected, and will not be by itself.
    Disconnected,
    /// The other end is told that it ends.
    Closing,
}

/// What follows when the server knows that a path ends, or has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum After {
    Disconnected,
    Removed,
}

/// A key to one of the server's chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) addr: u64,
    pub(super) rkey: u32,
}

/// The receives of one connection: so many pieces of so many bytes, from an offset of the path's memory on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Receives {
    pub(super) offset: usize,
    pub(super) size: u32,
    pub(super) count: u32,
}

/// What a connection is while the path is being connected.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) connection: Connection,
    pub(super) psn: Psn,
}

/// The memory that a path receives into.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) memory: Arc<Memory>,
    pub(super) mr: MrId,
    pub(super) key: u32,
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: PathId,
    pub(super) spec: PathSpec,
    pub(super) uuid: [u8; 16],
    pub(super) state: PathState,
    /// How often its connection was begun.
    pub(super) reconnects: u16,
    /// How many attempts in succession have come to nothing.
    pub(super) attempts: u32,
    /// Whether it was connected before, and whether it was asked for with the session.
    pub(super) was_connected: bool,
    pub(super) is_awaited: bool,
    /// Whether it was given up, though it is wanted.
    pub(super) is_given_up: bool,
    /// Whether it may begin a new session at the server.
    pub(super) is_first: bool,
    pub(super) local: usize,
    pub(super) cq: Option<CqId>,
    pub(super) attempt: Option<Attempt>,
    pub(super) connections: Vec<Connection>,
    pub(super) capabilities: Capabilities,
    pub(super) has_new_keys: bool,
    /// What the server has said of itself when the path was last connected.
    pub(super) offered: Limits,
    pub(super) inbox: Option<Inbox>,
    /// The own random number, while the server's proof is awaited.
    pub(super) nonce: Option<[u8; 32]>,
    pub(super) receives: Vec<Receives>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) liveness: Liveness,
    pub(super) inflight: u32,
    pub(super) stats: ClientPathStats,
    /// Connections of which the other end does not know yet that they have ended, and what follows.
    pub(super) ending: Vec<ConnectionId>,
    pub(super) after: Option<After>,
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
            capabilities: Capabilities(0),
            has_new_keys: false,
            offered: Limits::NONE,
            inbox: None,
            nonce: None,
            receives: Vec::new(),
            chunks: Vec::new(),
            liveness: Liveness::default(),
            inflight: 0,
            stats: ClientPathStats::new(processors),
            ending: Vec::new(),
            after: None,
        }
    }

    /// Returns whether the server fences paths.
    pub(super) const fn fences(&self) -> bool {
        self.capabilities.contains(Capabilities::FENCE)
    }

    /// Returns the memory of a receive.
    pub(super) fn receive(&self, connection: u16, index: u32) -> Sge {
        let receives = self.receives.get(usize::from(connection)).copied().unwrap_or_default();
        let (Some(inbox), true) = (&self.inbox, index < receives.count) else {
            return Sge::default();
        };
        let offset = receives.offset as u64 + u64::from(index) * u64::from(receives.size);
        Sge { addr: inbox.memory.address() + offset, length: receives.size, lkey: inbox.key }
    }

    /// Returns which connection the requests of a processor go over.
    pub(super) fn connection_of(&self, cpu: u32) -> u16 {
        match self.connections.len() {
            0 | 1 => 0,
            count => (cpu % (count as u32 - 1)) as u16 + 1,
        }
    }
}
