//! Requests under way, one for each chunk of the server: the permits of a session, which all its paths share.

use std::sync::Arc;

use ib_hca::Memory;
use ib_hca::memory::OutOfMemory;
use ib_types::Instant;

use super::path::PathId;
use super::request::{RequestId, Segment};
use super::session::Limits;
use crate::Direction;

/// The most bytes that are kept of a header, with the message behind it.
const MAX_STRIDE: u32 = 4096;

/// What becomes of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SlotState {
    /// There is none.
    #[default]
    Free,
    /// It is under way on a path.
    Sent(PathId),
    /// It waits until its path is fenced.
    Held,
    /// It has ended, as that took too long; but its chunk may still be used by the server.
    Abandoned,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) fate: SlotState,
    /// How many requests there were before in its place.
    pub(super) generation: u32,
    pub(super) connection: u16,
    pub(super) direction: Direction,
    pub(super) is_admin: bool,
    pub(super) user: u64,
    pub(super) segments: Vec<Segment>,
    /// How much data it has, and how long the user's header is.
    pub(super) length: u32,
    pub(super) header: u32,
    pub(super) cpu: u32,
    /// When it was made, and when it was last sent.
    pub(super) made: Instant,
    pub(super) sent: Instant,
    /// Which adapter has its key open.
    pub(super) opened: Option<usize>,
    /// Whether the data comes into the session's own buffer.
    pub(super) is_bounced: bool,
    /// Whether it is not sent again.
    pub(super) is_recalled: bool,
}

impl Slot {
    fn new() -> Self {
        Self {
            fate: SlotState::Free,
            generation: 0,
            connection: 0,
            direction: Direction::Read,
            is_admin: false,
            user: 0,
            segments: Vec::new(),
            length: 0,
            header: 0,
            cpu: 0,
            made: Instant::ZERO,
            sent: Instant::ZERO,
            opened: None,
            is_bounced: false,
            is_recalled: false,
        }
    }
}

/// The memory that belongs to a request.
pub(super) struct RequestMemory<'a> {
    /// Where its header lies, and the message behind it.
    pub(super) headers: &'a Memory,
    pub(super) header_at: usize,
    /// Where its data lies while it is put together or apart.
    pub(super) bounce: &'a Arc<Memory>,
    pub(super) bounce_at: usize,
}

/// All of them, and their memory.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Headers of the user with the messages behind them, and data that goes to several pieces of memory.
    pub(super) headers: Option<Arc<Memory>>,
    pub(super) bounce: Option<Arc<Memory>>,
    stride: usize,
    max_io_size: usize,
}

impl Slots {
    /// Makes as many as the server has chunks.
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

    /// Has none of those that are taken sent again.
    pub(super) fn recall(&mut self) {
        for slot in self.slots.iter_mut().filter(|slot| slot.fate != SlotState::Free) {
            slot.is_recalled = true;
        }
    }

    /// Returns whether some of those are on a path.
    pub(super) fn has_recalled(&self) -> bool {
        let mut slots = self.slots.iter();
        slots.any(|slot| slot.is_recalled && matches!(slot.fate, SlotState::Sent(_)))
    }

    /// Returns the number of slots.
    pub(super) const fn count(&self) -> usize {
        self.slots.len()
    }

    /// Returns how many are taken.
    pub(super) const fn taken(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns how long a header of the user may be in front of a message of some bytes.
    pub(super) const fn max_header(&self, message: usize) -> usize {
        self.stride.saturating_sub(message)
    }

    /// Takes a free one.
    pub(super) fn take(&mut self) -> Option<u16> {
        self.free.pop()
    }

    /// Gives one back.
    pub(super) fn give_back(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        slot.fate = SlotState::Free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
    }

    pub(super) fn get(&self, index: u16) -> Option<&Slot> {
        self.slots.get(usize::from(index))
    }

    pub(super) fn get_mut(&mut self, index: u16) -> Option<&mut Slot> {
        self.slots.get_mut(usize::from(index))
    }

    /// Returns a request and the memory that belongs to it; `None` when there is none.
    pub(super) fn parts(&mut self, index: u16) -> Option<(&mut Slot, RequestMemory<'_>)> {
        let header_at = self.header_at(index);
        let bounce_at = self.bounce_at(index);
        let slot = self.slots.get_mut(usize::from(index))?;
        let (headers, bounce) = (self.headers.as_ref()?, self.bounce.as_ref()?);
        Some((slot, RequestMemory { headers, header_at, bounce, bounce_at }))
    }

    /// Returns the number of the request in a place.
    pub(super) fn id(&self, index: u16) -> RequestId {
        RequestId { slot: index, generation: self.slots[usize::from(index)].generation }
    }

    /// Returns where the header of a request lies in its memory.
    pub(super) fn header_at(&self, index: u16) -> usize {
        usize::from(index) * self.stride
    }

    /// Returns where the data of a request lies in the session's own buffer.
    pub(super) fn bounce_at(&self, index: u16) -> usize {
        usize::from(index) * self.max_io_size
    }

    /// Returns those that are under way on a path.
    pub(super) fn on(&self, path: PathId) -> Vec<u16> {
        self.with(|slot| slot.fate == SlotState::Sent(path))
    }

    /// Returns those of which something is true, in the order in which they were made.
    pub(super) fn with(&self, is_wanted: impl Fn(&Slot) -> bool) -> Vec<u16> {
        let indices = (0..).zip(&self.slots);
        let mut found: Vec<(Instant, u16)> = indices
            .filter(|(_, slot)| is_wanted(slot))
            .map(|(index, slot)| (slot.made, index))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, index)| index).collect()
    }
}
