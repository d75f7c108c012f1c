//! Where the data of requests lies.

use std::sync::Arc;

use ib_hca::Memory;
use ib_rtrs::{Adapters, BufferId, Client as Rtrs, Segment, SetupError};

/// Buffers that have held the data of requests, for others: memory that is fresh from the system costs more than what is
/// done with it.
#[derive(Debug, Default)]
pub(super) struct Spare {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl Spare {
    /// How many bytes are kept at most.
    const MOST: usize = 16 << 20;

    /// Returns a buffer of a length, with whatever in it.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer.resize(length, 0);
        buffer
    }

    pub(super) fn keep(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.bytes + buffer.capacity() <= Self::MOST {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

/// Registered memory in pieces of a length.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) memory: Arc<Memory>,
    buffer: BufferId,
    pub(super) piece: usize,
    pub(super) free: Vec<usize>,
}

impl Room {
    pub(super) fn new(
        rtrs: &mut Rtrs,
        cx: &mut impl Adapters,
        (piece, count): (usize, usize),
    ) -> Result<Self, SetupError> {
        let memory = Memory::zeroed(piece * count)?;
        let buffer = rtrs.register(cx, Arc::clone(&memory))?;
        Ok(Self { memory, buffer, piece, free: (0..count).rev().collect() })
    }

    pub(super) const fn segment(&self, slot: usize, length: u32) -> Segment {
        Segment { buffer: self.buffer, offset: slot * self.piece, length }
    }
}
