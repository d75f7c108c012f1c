//! One path of a session: its objects, its requests.

use std::sync::Arc;

use ib_hca::{CqId, Memory, MrId, PdId, Sge};
use ib_types::Gid;
use ib_wire::rtrs::{Capabilities, Descriptor, InfoHeader, InfoRequest, RkeyResponse};

use super::ServerPathId;
use crate::Direction;
use crate::adapters::AdapterId;
use crate::address::PathAddress;
use crate::connection::Connection;
use crate::heartbeat::Heartbeat;
use crate::stats::ServerPathStats;

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its connections are being made.
    Connecting,
    /// The client has asked for the chunks, but an earlier path still has requests that are not answered.
    Asked,
    /// Requests come in.
    Connected,
    /// It is gone, but for requests that are not answered.
    Dead,
}

/// Whether the client knows the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proving {
    /// It does, or need not.
    Done,
    /// It has to send its random number.
    Hello,
    /// It has, and the server its own; it has to send its proof.
    Asked { client: [u8; 32], server: [u8; 32] },
}

/// A request that is not answered, if it is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) is_busy: bool,
    /// How many there were before in its place.
    pub(super) serial: u32,
    pub(super) connection: u16,
    pub(super) direction: Direction,
    /// Where the client wants what it reads.
    pub(super) to: Option<Descriptor>,
    pub(super) needs_invalidation: bool,
}

impl Operation {
    pub(super) const NONE: Self = Self {
        is_busy: false,
        serial: 0,
        connection: 0,
        direction: Direction::Read,
        to: None,
        needs_invalidation: false,
    };
}

/// How many bytes a receive of the first connection has for what only clients of this project say.
pub(super) const OWN: usize = 80;

/// How many receives the first connection has for other things than requests.
pub(super) const SPARE: usize = 64;

/// The memory of a path beside the chunks: where the question for chunks comes in, where fences do, new keys and the
/// answer with the chunks go out.
#[derive(Debug)]
pub(super) struct ControlMemory {
    pub(super) memory: Arc<Memory>,
    pub(super) mr: MrId,
    pub(super) key: u32,
    depth: usize,
}

impl ControlMemory {
    /// Returns how many bytes the memory has to have.
    pub(super) const fn size(depth: usize) -> usize {
        Self::keys(depth)
            + RkeyResponse::LENGTH * depth
            + InfoHeader::LENGTH
            + Descriptor::LENGTH * depth
    }

    pub(super) const fn new(memory: Arc<Memory>, mr: MrId, key: u32, depth: usize) -> Self {
        Self { memory, mr, key, depth }
    }

    /// Returns how many receives for fences there are.
    pub(super) const fn receives(depth: usize) -> usize {
        depth + SPARE
    }

    const fn keys(depth: usize) -> usize {
        InfoRequest::LENGTH + OWN * Self::receives(depth)
    }

    /// Returns where a piece of it lies, and the piece.
    fn piece(&self, offset: usize, length: usize) -> (usize, Sge) {
        let addr = self.memory.address() + offset as u64;
        (offset, Sge { addr, length: length as u32, lkey: self.key })
    }

    pub(super) fn question(&self) -> (usize, Sge) {
        self.piece(0, InfoRequest::LENGTH)
    }

    pub(super) fn receive(&self, index: usize) -> (usize, Sge) {
        self.piece(InfoRequest::LENGTH + OWN * index, OWN)
    }

    pub(super) fn new_key(&self, chunk: usize) -> (usize, Sge) {
        let offset = Self::keys(self.depth) + RkeyResponse::LENGTH * chunk;
        self.piece(offset, RkeyResponse::LENGTH)
    }

    pub(super) fn answer(&self) -> (usize, Sge) {
        let offset = Self::keys(self.depth) + RkeyResponse::LENGTH * self.depth;
        self.piece(offset, InfoHeader::LENGTH + Descriptor::LENGTH * self.depth)
    }
}

/// A path.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: ServerPathId,
    /// Its session.
    pub(super) session: u32,
    pub(super) adapter: AdapterId,
    pub(super) address: PathAddress,
    /// Who has asked for it, as packets say.
    pub(super) peer: Gid,
    pub(super) uuid: [u8; 16],
    pub(super) reconnects: u16,
    pub(super) state: State,
    pub(super) capabilities: Capabilities,
    pub(super) pd: PdId,
    pub(super) cq: Option<CqId>,
    pub(super) control: Option<ControlMemory>,
    pub(super) connections: Vec<Option<Connection>>,
    pub(super) proof: Proving,
    /// The name that the client gives its session.
    pub(super) name: Vec<u8>,
    /// By chunk: what the client writes through, and the key to that.
    pub(super) chunks: Vec<MrId>,
    /// What answers are sent from: all chunks.
    pub(super) whole: Option<(MrId, u32)>,
    /// Whether no packet of it has a part of a sector only: what is read of one sector was there at one time then, also when it is
    /// sent from where others write.
    pub(super) keeps_sectors: bool,
    /// And what else they are sent from, with the keys, by the numbers of stores.
    pub(super) stores: Vec<Option<(MrId, u32)>>,
    pub(super) operations: Vec<Operation>,
    pub(super) outstanding: u32,
    pub(super) heartbeat: Heartbeat,
    pub(super) stats: ServerPathStats,
}

impl Path {
    /// Forgets a request that its user has not got.
    pub(super) fn drop_request(&mut self, chunk: u16) {
        self.operations[usize::from(chunk)].is_busy = false;
        self.outstanding -= 1;
    }

    /// Returns whether the client may have paths fenced.
    pub(super) const fn fences(&self) -> bool {
        self.capabilities.contains(Capabilities::FENCE)
    }
}
