//! Memory for the data of requests: registered buffers, and spare unregistered buffers for copies.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use ib_hca::Memory;
use ib_rtrs::{Adapters, BufferId, Client as Rtrs, Segment, SetupError};

use ib_block::data::{Lent, Part, ReadData};

/// Spare buffers for copies of data. They are reused, because the allocation of memory costs more than the copy.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
}

impl SpareBuffers {
    /// Maximum number of bytes of all spare buffers.
    const MAX_BYTES: usize = 16 << 20;

    /// Returns a buffer of this length, with arbitrary contents.
    pub(super) fn take(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        self.bytes -= buffer.capacity();
        buffer.resize(length, 0);
        buffer
    }

    pub(super) fn keep(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 && self.bytes + buffer.capacity() <= Self::MAX_BYTES {
            self.bytes += buffer.capacity();
            self.buffers.push(buffer);
        }
    }
}

/// Registered memory, divided into buffers of equal length.
#[derive(Debug)]
pub(super) struct BufferPool {
    pub(super) memory: Arc<Memory>,
    buffer: BufferId,
    pub(super) piece: usize,
    count: usize,
    free: Vec<usize>,
    /// Number of buffers that are lent to the user.
    lent: usize,
    /// Receives the indices of lent buffers whose data the user has dropped.
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

    /// Takes a free buffer.
    pub(super) fn take(&mut self) -> Option<usize> {
        if self.lent > 0 {
            while let Ok(slot) = self.returned.try_recv() {
                self.lent -= 1;
                self.free.push(slot);
            }
        }
        self.free.pop()
    }

    /// Returns a buffer to the pool.
    pub(super) fn give(&mut self, slot: usize) {
        self.free.push(slot);
    }

    /// Returns the number of buffers that are never lent: half of all buffers, rounded up.
    pub(super) const fn unlent(&self) -> usize {
        self.count - self.count / 2
    }

    /// Lends the data in these buffers to the user. At most half of all buffers are lent, so that slow users do not
    /// block others. If the limit is reached, copies the data.
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
            self.memory.read(slot * self.piece, to).expect("a part is within its buffer");
            rest = behind;
            self.give(slot);
        }
        ReadData::Bytes(bytes)
    }

    pub(super) const fn segment(&self, slot: usize, length: u32) -> Segment {
        Segment { buffer: self.buffer, offset: slot * self.piece, length }
    }
}
