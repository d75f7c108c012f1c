//! The state that all paths of a session share: limits of the server, stage of the session, requests in flight.

use std::sync::Arc;

use ib_hca::Memory;
use ib_hca::memory::OutOfMemory;
use ib_types::Instant;
use ib_wire::rtrs::ConnectResponse;

use crate::Direction;
use crate::client::event::Failure;
use crate::client::path::PathId;
use crate::client::requests::{RequestId, Segment};

/// Limits of the requests to a server, from its connect responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of requests in flight.
    pub queue_depth: u16,
    /// Maximum length of the data of a request in bytes.
    pub max_io_size: u32,
    /// Maximum total length of the user's header and the RTRS message that follows it, in bytes.
    pub max_header_size: u32,
}

impl Limits {
    pub(super) const NONE: Self = Self { queue_depth: 0, max_io_size: 0, max_header_size: 0 };

    /// Returns the limits in a connect response. Fails if a limit is out of range, or if the chunks together have 4 GiB
    /// or more. Also fails if immediate data cannot hold each chunk number with each offset in the chunk.
    pub(super) fn of(response: &ConnectResponse) -> Result<Self, Failure> {
        /// Maximum header size that a server may offer, in bytes.
        const MAX_HEADER: u32 = 1 << 20;
        /// Minimum header size that a server may offer, in bytes.
        const MIN_HEADER: u32 = 64;
        let &ConnectResponse { queue_depth, max_io_size, max_header_size, .. } = response;
        let limits = Self { queue_depth, max_io_size, max_header_size };
        if queue_depth == 0 {
            return Err(Failure::Protocol("a connect response with a queue depth of 0"));
        }
        if max_io_size == 0 || !(MIN_HEADER..=MAX_HEADER).contains(&max_header_size) {
            return Err(Failure::Protocol("a connect response with invalid sizes of requests"));
        }
        let bits = u16::BITS - (queue_depth - 1).leading_zeros();
        let chunk = limits.chunk_size();
        if chunk > 1 << (28 - bits) || chunk * u64::from(queue_depth) > u64::from(u32::MAX) {
            return Err(Failure::Protocol(
                "a connect response with chunks beyond the range of immediate data",
            ));
        }
        Ok(limits)
    }

    pub(super) const fn chunk_size(&self) -> u64 {
        self.max_io_size as u64 + self.max_header_size as u64
    }
}

/// The stage in the life of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// No path has been connected, or some path has neither been connected nor failed yet.
    Opening,
    /// A path has been connected, and each other path has been connected or has failed once.
    Open,
    /// The user has closed the session, and paths are being removed.
    Closing,
    /// All paths of the session are removed.
    Closed,
}

/// The state of a session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) uuid: [u8; 16],
    pub(super) stage: Stage,
    /// True if the last connected path was lost, or if the server has lost its state of the session. Reset when a path
    /// is connected.
    pub(super) is_lost: bool,
    /// The epoch: a random number that the server has drawn for this session; 0 if the server reports none.
    epoch: u32,
    limits: Option<Limits>,
}

impl Session {
    pub(super) const fn new(uuid: [u8; 16]) -> Self {
        Self { uuid, stage: Stage::Opening, is_lost: false, epoch: 0, limits: None }
    }

    /// Returns the limits of the server; `None` before the first connection.
    pub(super) const fn limits(&self) -> Option<Limits> {
        self.limits
    }

    /// Returns true if the session is closed or is being closed.
    pub(super) const fn is_ending(&self) -> bool {
        matches!(self.stage, Stage::Closing | Stage::Closed)
    }

    /// Adopts the limits of the first connection. Later connections must have the same queue depth and at least the
    /// same data length, so that requests in flight fit into the server's chunks.
    pub(super) fn agree(&mut self, offered: Limits) -> Result<(), Failure> {
        let limits = self.limits.get_or_insert(offered);
        let (found, expected) = (offered.queue_depth, limits.queue_depth);
        if found != expected {
            return Err(Failure::QueueDepth { found, expected });
        }
        let (found, expected) = (offered.max_io_size, limits.max_io_size);
        if found < expected {
            return Err(Failure::MaxIoSize { found, expected });
        }
        limits.max_header_size = limits.max_header_size.min(offered.max_header_size);
        Ok(())
    }

    /// Records the epoch with which a path was connected. Returns true if the server has restarted the session while
    /// the client considered another path connected.
    pub(super) const fn path_connected(&mut self, epoch: u32, has_others: bool) -> bool {
        let is_other = self.epoch != epoch && has_others;
        self.epoch = epoch;
        self.is_lost |= is_other;
        is_other
    }
}

/// Maximum size in bytes of the buffer for a header and the message that follows it.
const MAX_STRIDE: u32 = 4096;

/// The state of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SlotState {
    /// The slot has no request.
    #[default]
    Free,
    /// The request is in flight on a path.
    Sent(PathId),
    /// The path of the request has failed, and the request waits for the fence of the path.
    Held,
    /// The request has completed, but the server may still use the chunk.
    Abandoned,
}

/// The slot of one chunk. It holds the request that uses the chunk.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) state: SlotState,
    /// Number of earlier requests that have used the slot. It distinguishes the [`RequestId`]s of the slot.
    pub(super) generation: u32,
    pub(super) connection: u16,
    pub(super) direction: Direction,
    pub(super) is_admin: bool,
    pub(super) user: u64,
    pub(super) segments: Vec<Segment>,
    /// Length of the data in bytes.
    pub(super) length: u32,
    /// Length of the user's header in bytes.
    pub(super) header: u32,
    pub(super) cpu: u32,
    /// Time when the user submitted the request.
    pub(super) submitted: Instant,
    /// Time when the request was last transmitted.
    pub(super) sent: Instant,
    /// For a READ, index of the client's HCA at which the R_Key given to the server is valid; `None` if no R_Key is
    /// valid.
    pub(super) opened: Option<usize>,
    /// True if the data of a READ is received in the bounce buffer.
    pub(super) is_bounced: bool,
    /// True if the request was recalled: if its path fails, the request completes and is not retransmitted.
    pub(super) is_recalled: bool,
}

impl Slot {
    fn new() -> Self {
        Self {
            state: SlotState::Free,
            generation: 0,
            connection: 0,
            direction: Direction::Read,
            is_admin: false,
            user: 0,
            segments: Vec::new(),
            length: 0,
            header: 0,
            cpu: 0,
            submitted: Instant::ZERO,
            sent: Instant::ZERO,
            opened: None,
            is_bounced: false,
            is_recalled: false,
        }
    }
}

/// The memory that a request uses.
pub(super) struct RequestMemory<'a> {
    /// The memory for the headers and RTRS messages of all requests.
    pub(super) headers: &'a Memory,
    /// The offset of the user's header in `headers`. The RTRS message follows the header.
    pub(super) header_at: usize,
    /// The memory of all bounce buffers. Each of them holds the data of one request with several segments.
    pub(super) bounce: &'a Arc<Memory>,
    /// The offset of the request's bounce buffer in `bounce`.
    pub(super) bounce_at: usize,
}

/// All slots, and their memory.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Memory for the headers and RTRS messages of all requests; `None` before the first connection.
    pub(super) headers: Option<Arc<Memory>>,
    /// Memory for the bounce buffers of all requests; `None` before the first connection.
    pub(super) bounce: Option<Arc<Memory>>,
    stride: usize,
    max_io_size: usize,
}

impl Slots {
    /// Creates a slot for each chunk of the server.
    pub(super) fn prepare(&mut self, limits: &Limits) -> Result<(), OutOfMemory> {
        let count = usize::from(limits.queue_depth);
        self.stride = limits.max_header_size.min(MAX_STRIDE) as usize;
        self.max_io_size = limits.max_io_size as usize;
        self.headers = Some(Memory::zeroed(self.stride * count)?);
        self.bounce = Some(Memory::zeroed(self.max_io_size * count)?);
        self.slots = vec![Slot::new(); count];
        self.free = (0..limits.queue_depth).rev().collect();
        Ok(())
    }

    /// Recalls all requests: marks them, so that none is retransmitted if its path fails.
    pub(super) fn recall(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.state != SlotState::Free) {
            slot.is_recalled = true;
        }
    }

    /// Returns true if a request that [`Self::recall`] has marked is in flight on a path.
    pub(super) fn has_recalled(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.is_recalled && matches!(slot.state, SlotState::Sent(_)))
    }

    /// Returns the number of slots.
    pub(super) const fn count(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of slots that are not free.
    pub(super) const fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns the maximum length of the user's header if it is followed by a message of `message` bytes.
    pub(super) const fn max_header(&self, message: usize) -> usize {
        self.stride.saturating_sub(message)
    }

    /// Takes a free slot, and returns its index; `None` if no slot is free.
    pub(super) fn take(&mut self) -> Option<u16> {
        self.free.pop()
    }

    /// Frees a slot.
    pub(super) fn give_back(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        slot.state = SlotState::Free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }

    pub(super) fn get(&self, index: u16) -> Option<&Slot> {
        self.slots.get(usize::from(index))
    }

    pub(super) fn get_mut(&mut self, index: u16) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(index))
    }

    /// Returns a slot and the memory of its request; `None` if there is no such slot.
    pub(super) fn parts(&mut self, index: u16) -> Option<(&mut Slot, RequestMemory<'_>)> {
        let header_at = self.header_at(index);
        let bounce_at = self.bounce_at(index);
        let slot = self.slots.get_mut(usize::from(index))?;
        let (headers, bounce) = (self.headers.as_ref()?, self.bounce.as_ref()?);
        Some((slot, RequestMemory { headers, header_at, bounce, bounce_at }))
    }

    /// Returns the ID of the request that uses a slot.
    pub(super) fn id(&self, index: u16) -> RequestId {
        RequestId { slot: index, generation: self.slots[usize::from(index)].generation }
    }

    /// Returns the offset of a slot's header in the memory of headers.
    pub(super) fn header_at(&self, index: u16) -> usize {
        usize::from(index) * self.stride
    }

    /// Returns the offset of a slot's bounce buffer in the memory of bounce buffers.
    pub(super) fn bounce_at(&self, index: u16) -> usize {
        usize::from(index) * self.max_io_size
    }

    /// Returns the slots of the requests in flight on a path, in the order in which the requests were submitted.
    pub(super) fn on(&self, path: PathId) -> Vec<u16> {
        self.with(|slot| slot.state == SlotState::Sent(path))
    }

    /// Returns the slots that satisfy a predicate, in the order in which their requests were submitted.
    pub(super) fn with(&self, is_wanted: impl Fn(&Slot) -> bool) -> Vec<u16> {
        let indices = (0..).zip(&self.slots);
        let mut found: Vec<(Instant, u16)> = indices
            .filter(|(_, slot)| is_wanted(slot))
            .map(|(index, slot)| (slot.submitted, index))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, index)| index).collect()
    }
}

#[cfg(test)]
mod tests;
