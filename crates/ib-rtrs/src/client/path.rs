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
