//! Message blocks, which are records of completed messages. A lock-free ring holds those of the last messages of a
//! queue pair.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use ib_link::{Direction, MessageBlock};
use ib_types::{Instant, Psn};

use crate::completion::{WcOpcode, WcStatus};

/// Number of message blocks in a ring.
const BLOCKS: u64 = 64;

/// A completed message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message {
    pub(crate) direction: Direction,
    pub(crate) opcode: WcOpcode,
    pub(crate) status: WcStatus,
    pub(crate) wr_id: u64,
    pub(crate) begin: Instant,
    pub(crate) started: Instant,
    pub(crate) end: Instant,
    pub(crate) length: u32,
    pub(crate) first: Psn,
    pub(crate) packets: u32,
}

/// Message blocks of the last 64 completed messages of a queue pair, 64 bytes each.
///
/// The HCA writes blocks, while any thread reads them without a lock. A block that is overwritten while a thread reads
/// it is not returned.
#[derive(Debug)]
pub struct MessageRing {
    /// Number of completed messages.
    ended: AtomicU64,
    blocks: [Block; BLOCKS as usize],
}

/// A message block. Each field is stored separately: packing fields into fewer words would take longer than the saved
/// store instructions.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Block {
    begin: AtomicU64,
    started: AtomicU64,
    end: AtomicU64,
    wr_id: AtomicU64,
    length: AtomicU32,
    first: AtomicU32,
    packets: AtomicU32,
    /// Direction in the lower byte, status in the upper byte. Most callers of [`MessageRing::write`] pass constants, so
    /// the compiler combines the two bytes.
    outcome: AtomicU16,
    opcode: AtomicU8,
}

impl Default for MessageRing {
    fn default() -> Self {
        Self { ended: AtomicU64::new(0), blocks: std::array::from_fn(|_| Block::default()) }
    }
}

impl MessageRing {
    /// Number of message blocks in the ring.
    pub const BLOCKS: u64 = BLOCKS;

    #[inline]
    const fn block(&self, number: u64) -> &Block {
        &self.blocks[(number % BLOCKS) as usize]
    }

    /// Writes the block of a completed message. Only the HCA calls this function, from one thread at a time.
    #[inline]
    pub(crate) fn write(&self, message: &Message) {
        let number = self.ended.load(Ordering::Relaxed);
        let block = self.block(number);
        // A reader that loads a value stored below, and then loads `ended`, gets at least `number` for `ended`. The
        // reader thus detects that the block is being overwritten.
        fence(Ordering::Release);
        let Message { direction, opcode, status, .. } = *message;
        let order = Ordering::Relaxed;
        block.begin.store(message.begin.as_nanos(), order);
        block.started.store(message.started.as_nanos(), order);
        block.end.store(message.end.as_nanos(), order);
        block.wr_id.store(message.wr_id, order);
        block.length.store(message.length, order);
        block.first.store(message.first.get(), order);
        block.packets.store(message.packets, order);
        block.outcome.store(u16::from_le_bytes([direction as u8, status as u8]), order);
        block.opcode.store(opcode as u8, order);
        self.ended.store(number + 1, Ordering::Release);
    }

    /// Returns the number of completed messages.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns the block of the message with the given number; `None` if the message has not completed or its block was
    /// overwritten.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<MessageBlock> {
        if number >= self.ended() {
            return None;
        }
        let (block, order) = (self.block(number), Ordering::Relaxed);
        let [direction, status] = block.outcome.load(order).to_le_bytes();
        let found = MessageBlock {
            number,
            direction: if direction == 0 { Direction::Send } else { Direction::Receive },
            operation: WcOpcode::ALL[usize::from(block.opcode.load(order))].name(),
            status: WcStatus::ALL[usize::from(status)].name(),
            wr_id: block.wr_id.load(order),
            begin: Instant::from_nanos(block.begin.load(order)),
            started: Instant::from_nanos(block.started.load(order)),
            end: Instant::from_nanos(block.end.load(order)),
            length: block.length.load(order),
            first: Psn::truncated(block.first.load(order)),
            packets: block.packets.load(order),
        };
        fence(Ordering::Acquire);
        // The HCA may be writing block `ended`, which overwrites block `ended - BLOCKS`.
        let is_whole = self.ended.load(Ordering::Relaxed) - number < BLOCKS;
        is_whole.then_some(found)
    }

    /// Returns the blocks of the messages from `number` on, and how many of these blocks were overwritten.
    #[must_use]
    pub fn since(&self, number: u64) -> (Vec<MessageBlock>, u64) {
        let ended = self.ended();
        let found: Vec<_> = (number.max(ended.saturating_sub(BLOCKS))..ended)
            .filter_map(|at| self.get(at))
            .collect();
        let lost = ended.saturating_sub(number) - found.len() as u64;
        (found, lost)
    }
}

/// The message ring of a queue pair. The ring is created with the first message.
#[derive(Debug, Default)]
pub(crate) struct MessageLog(OnceCell<Arc<MessageRing>>);

impl MessageLog {
    /// Writes the message block of a completed message.
    #[inline]
    pub(crate) fn note(&self, message: &Message) {
        #[cfg(not(without_message_blocks))]
        self.ring().write(message);
        #[cfg(without_message_blocks)]
        let _ = message;
    }

    /// Returns the ring. Creates it at the first call.
    #[inline]
    pub(crate) fn ring(&self) -> &Arc<MessageRing> {
        self.0.get_or_init(Arc::default)
    }
}

#[cfg(test)]
mod tests;
