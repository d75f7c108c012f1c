//! One path of a session: its queue pairs, memory regions and requests. Memory from which READ data is sent without a
//! copy.

use std::sync::Arc;

use ib_hca::{AccessFlags, CqId, Hca, Memory, MrId, PdId, Sge};
use ib_types::Gid;
use ib_wire::rtrs::{Capabilities, Descriptor, InfoHeader, InfoRequest, RkeyResponse};

use crate::Direction;
use crate::address::PathAddress;
use crate::connection::AdapterId;
use crate::connection::Connection;
use crate::connection::Heartbeat;
use crate::server::{Server, ServerPathId};
use crate::stats::ServerPathStats;

/// The state of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The client is establishing the connections, or has not sent a valid info request yet.
    Connecting,
    /// The server has received the info request. It responds once outstanding requests of closed paths have completed.
    InfoRequested,
    /// The path is connected, and the client may send requests.
    Connected,
    /// The path is closed. It is removed once all its requests have completed.
    Closed,
}

/// The state of the proof that the client has the shared key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProofState {
    /// The client has proven that it has the key, or the server uses no key.
    Done,
    /// The server waits for the client's nonce.
    AwaitsNonce,
    /// The server waits for the client's proof.
    AwaitsProof { client_nonce: [u8; 32], server_nonce: [u8; 32] },
}

/// The last request that used a chunk on this path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    /// True if the request is outstanding.
    pub(super) is_outstanding: bool,
    /// Number of requests that have used the chunk on this path, modulo 2^32.
    pub(super) serial: u32,
    pub(super) connection: u16,
    pub(super) direction: Direction,
    /// Client memory that receives the data of a READ.
    pub(super) read_target: Option<Descriptor>,
    pub(super) needs_invalidation: bool,
}

impl Operation {
    pub(super) const NONE: Self = Self {
        is_outstanding: false,
        serial: 0,
        connection: 0,
        direction: Direction::Read,
        read_target: None,
        needs_invalidation: false,
    };
}

/// Length in bytes of a receive buffer for messages that ibfabric clients send, but Linux clients do not, such as fence
/// requests.
pub(super) const EXTENSION_LENGTH: usize = 80;

/// Number of receives that the server posts on the first connection for messages other than requests.
pub(super) const EXTRA_RECEIVES: usize = 64;

/// The buffers that a path uses for control messages.
///
/// The buffers lie in this order: info request, fence requests, new keys of chunks, info response.
#[derive(Debug)]
pub(super) struct ControlMemory {
    pub(super) memory: Arc<Memory>,
    pub(super) mr: MrId,
    pub(super) key: u32,
    depth: usize,
}

impl ControlMemory {
    /// Returns the size of all control buffers in bytes.
    pub(super) const fn size(depth: usize) -> usize {
        Self::keys(depth)
            + RkeyResponse::LENGTH * depth
            + InfoHeader::LENGTH
            + Descriptor::LENGTH * depth
    }

    pub(super) const fn new(memory: Arc<Memory>, mr: MrId, key: u32, depth: usize) -> Self {
        Self { memory, mr, key, depth }
    }

    /// Returns the number of receives that the server posts on the first connection.
    pub(super) const fn receives(depth: usize) -> usize {
        depth + EXTRA_RECEIVES
    }

    const fn keys(depth: usize) -> usize {
        InfoRequest::LENGTH + EXTENSION_LENGTH * Self::receives(depth)
    }

    /// Returns `offset`, and the SGE of the buffer at this offset in the control memory.
    fn buffer(&self, offset: usize, length: usize) -> (usize, Sge) {
        let addr = self.memory.address() + offset as u64;
        (offset, Sge { addr, length: length as u32, lkey: self.key })
    }

    pub(super) fn info_request(&self) -> (usize, Sge) {
        self.buffer(0, InfoRequest::LENGTH)
    }

    pub(super) fn receive(&self, index: usize) -> (usize, Sge) {
        self.buffer(InfoRequest::LENGTH + EXTENSION_LENGTH * index, EXTENSION_LENGTH)
    }

    pub(super) fn new_key(&self, chunk: usize) -> (usize, Sge) {
        let offset = Self::keys(self.depth) + RkeyResponse::LENGTH * chunk;
        self.buffer(offset, RkeyResponse::LENGTH)
    }

    pub(super) fn info_response(&self) -> (usize, Sge) {
        let offset = Self::keys(self.depth) + RkeyResponse::LENGTH * self.depth;
        self.buffer(offset, InfoHeader::LENGTH + Descriptor::LENGTH * self.depth)
    }
}

#[derive(Debug)]
pub(super) struct Path {
    pub(super) id: ServerPathId,
    /// The key of the path's session in `Server::sessions`.
    pub(super) session: u32,
    pub(super) adapter: AdapterId,
    pub(super) address: PathAddress,
    /// GID of the client, taken from its packets.
    pub(super) peer: Gid,
    pub(super) uuid: [u8; 16],
    pub(super) reconnects: u16,
    pub(super) state: State,
    pub(super) capabilities: Capabilities,
    pub(super) pd: PdId,
    pub(super) cq: Option<CqId>,
    pub(super) control: Option<ControlMemory>,
    pub(super) connections: Vec<Option<Connection>>,
    pub(super) proof: ProofState,
    /// The session name from the info request.
    pub(super) name: Vec<u8>,
    /// For each chunk, the region through which the client writes.
    pub(super) chunks: Vec<MrId>,
    /// The region of the session's memory from which READ data is sent, and its `lkey`.
    pub(super) send_region: Option<(MrId, u32)>,
    /// True if the MTU is at least 512 bytes. No packet then splits a sector, so that concurrent writes to a store do
    /// not tear the sectors of a READ.
    pub(super) has_whole_sectors: bool,
    /// For each store, its region and `lkey`, once the store is registered at the HCA of the path.
    pub(super) stores: Vec<Option<(MrId, u32)>>,
    pub(super) operations: Vec<Operation>,
    pub(super) outstanding: u32,
    pub(super) heartbeat: Heartbeat,
    pub(super) stats: ServerPathStats,
}

impl Path {
    /// Drops a request that was not yet returned to the user.
    pub(super) fn drop_request(&mut self, chunk: u16) {
        self.operations[usize::from(chunk)].is_outstanding = false;
        self.outstanding -= 1;
    }

    /// Returns true if client and server support fences.
    pub(super) const fn fences(&self) -> bool {
        self.capabilities.contains(Capabilities::FENCE)
    }
}

/// Identifies a store: memory from which the server may send READ data without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(u32);

impl Server {
    /// Adds a store: memory from which [`Server::complete_from`] may send READ data. Clients have no access to this
    /// memory. A store cannot be removed.
    pub fn add_store(&mut self, memory: Arc<Memory>) -> StoreId {
        self.stores.push(memory);
        StoreId(self.stores.len() as u32 - 1)
    }
}

/// A range of a store. The response determines the length of the range.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreRange {
    pub(super) store: StoreId,
    pub(super) offset: usize,
}

impl StoreRange {
    /// Returns the memory of the store, after checking the range.
    ///
    /// # Panics
    /// Panics if there is no such store, or if the range exceeds it.
    pub(super) fn memory(self, stores: &[Arc<Memory>], length: u32) -> &Arc<Memory> {
        let memory = &stores[self.store.0 as usize];
        let end = self.offset.checked_add(length as usize);
        assert!(end.is_some_and(|end| end <= memory.len()), "the range must be within its store");
        memory
    }

    /// Returns the SGE of the range at the HCA of a path. At the first use, registers the store at the HCA; returns
    /// `None` if that fails.
    pub(super) fn sge(
        self,
        hca: &mut Hca,
        path: &mut Path,
        memory: &Arc<Memory>,
        length: u32,
    ) -> Option<Sge> {
        let index = self.store.0 as usize;
        if path.stores.len() <= index {
            path.stores.resize(index + 1, None);
        }
        let lkey = match path.stores[index] {
            Some((_, lkey)) => lkey,
            None => {
                let whole = (memory, 0, memory.len());
                let access = AccessFlags::default();
                let mr = hca.reg_mr(path.pd, whole, memory.address(), access).ok()?;
                let lkey = hca.key(mr).expect("the region was just registered");
                path.stores[index] = Some((mr, lkey));
                lkey
            }
        };
        Some(Sge { addr: memory.address() + self.offset as u64, length, lkey })
    }
}
