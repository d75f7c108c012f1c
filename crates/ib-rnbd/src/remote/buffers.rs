//! Where the data of requests lies.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use ib_hca::Memory;
use ib_rtrs::{Adapters, BufferId, Client as Rtrs, Segment, SetupError};

use ib_block::data::{Lent, Part, ReadData};

/// Buffers that have held the data of requests, for others: memory that is fresh from the system costs more than what is
/// done with it.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl SpareBuffers {
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
pub(super) struct BufferPool {
    pub(super) memory: Arc<Memory>,
    buffer: BufferId,
    pub(super) piece: usize,
    count: usize,
    free: Vec<usize>,
    /// How many pieces are lent.
    lent: usize,
    /// What was lent comes back here, however whoever has it ends.
    returned: Receiver<usize>,
    returns: Sender<usize>,
}

impl BufferPool {
    pub(super) fn new(
        rtrs: &mut Rtrs,
        cx: &mut impl Adapters,
        (piece, count): (usize, usize),
    ) -> Result<Self, SetupError> {
        let memory = Memory::zeroed(piece * count)?;
        let buffer = rtrs.register(cx, Arc::clone(&memory))?;
        let (returns, returned) = mpsc::channel();
        let (free, lent) = ((0..count).rev().collect(), 0);
        Ok(Self { memory, buffer, piece, count, free, lent, returned, returns })
    }

    /// Takes a piece that nobody has.
    pub(super) fn take(&mut self) -> Option<usize> {
        if self.lent > 0 {
            while let Ok(slot) = self.returned.try_recv() {
                self.lent -= 1;
                self.free.push(slot);
            }
        }
        self.free.pop()
    }

    /// Gives one back.
    pub(super) fn give(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Returns how many pieces are never lent: the greater half.
    pub(super) const fn unlent(&self) -> usize {
        self.count - self.count / 2
    }

    /// Hands out what lies in some pieces, in order, where it lies. Whoever keeps that long must not hold up others: half of all
    /// pieces can be lent, and of what is more there is a copy.
    pub(super) fn hand_out(&mut self, parts: Vec<Part>, spare: &mut SpareBuffers) -> ReadData {
        if self.lent + parts.len() <= self.count - self.unlent() {
            self.lent += parts.len();
            let (memory, returns) = (Arc::clone(&self.memory), self.returns.clone());
            return ReadData::Lent(Lent::new(memory, parts, self.piece, returns));
        }
        let mut bytes = spare.take(parts.iter().map(|part| part.length).sum());
        let mut rest = &mut bytes[..];
        for Part { slot, length } in parts {
            let (to, behind) = rest.split_at_mut(length);
            self.memory.read(slot * self.piece, to).expect("a step fits its piece");
            rest = behind;
            self.give(slot);
        }
        ReadData::Bytes(bytes)
    }

    pub(super) const fn segment(&self, slot: usize, length: u32) -> Segment {
        Segment { buffer: self.buffer, offset: slot * self.piece, length }
    }
}
