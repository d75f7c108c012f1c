//! The last messages of a queue pair.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use ib_link::{Direction, MessageBlock};
use ib_types::{Instant, Psn};

use crate::objects::{WcOpcode, WcStatus};

/// How many messages are remembered, and how many numbers of 8 bytes each has.
const BLOCKS: u64 = 64;
const WORDS: usize = 6;

/// A message that has ended, as the adapter notes it.
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

/// The command blocks of the last 64 messages of a queue pair, 64 bytes each.
///
/// The adapter writes and any thread may read, at the same time and without a lock: what is written over
/// while it is read is not returned.
#[derive(Debug)]
pub struct MessageRing {
    /// How many messages have ended.
    ended: AtomicU64,
    blocks: [Block; BLOCKS as usize],
}

/// A command block: begin, start, end; the number of the request; length and first sequence number; how many
/// sequence numbers, and what was done and became of it.
#[derive(Debug)]
#[repr(align(64))]
struct Block([AtomicU64; WORDS]);

impl Default for MessageRing {
    fn default() -> Self {
        let block = || Block(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { ended: AtomicU64::new(0), blocks: std::array::from_fn(|_| block()) }
    }
}

impl MessageRing {
    /// How many messages are remembered.
    pub const BLOCKS: u64 = BLOCKS;

    #[inline]
    const fn block(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.blocks[(number % BLOCKS) as usize].0
    }

    /// Notes a message. Only the adapter does so, from one thread at a time.
    #[inline]
    pub(crate) fn write(&self, message: &Message) {
        let number = self.ended.load(Ordering::Relaxed);
        let block = self.block(number);
        // Whoever sees one of the following stores sees as well that this block is not the old one any more.
        fence(Ordering::Release);
        let Message { direction, opcode, status, length, first, packets, .. } = *message;
        let kind = u32::from_le_bytes([direction as u8, opcode as u8, status as u8, 0]);
        let values = [
            message.begin.as_nanos(),
            message.started.as_nanos(),
            message.end.as_nanos(),
            message.wr_id,
            u64::from(length) | u64::from(first.get()) << 32,
            u64::from(packets) | u64::from(kind) << 32,
        ];
        for (word, value) in block.iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
        self.ended.store(number + 1, Ordering::Release);
    }

    /// Returns how many messages have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns a message by its number; `None` when it has not ended yet, or was written over.
    #[must_use]
    pub fn get(&self, number: u64) -> Option<MessageBlock> {
        if number >= self.ended() {
            return None;
        }
        let values = self.block(number).each_ref().map(|word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        // The block with the number of those that have ended may be under way, in the place of one that
        // is a whole ring older.
        if self.ended.load(Ordering::Relaxed) - number >= BLOCKS {
            return None;
        }
        let [direction, opcode, status, ..] = ((values[5] >> 32) as u32).to_le_bytes();
        Some(MessageBlock {
            number,
            direction: if direction == 0 { Direction::Send } else { Direction::Receive },
            operation: WcOpcode::ALL[usize::from(opcode)].name(),
            status: WcStatus::ALL[usize::from(status)].name(),
            wr_id: values[3],
            begin: Instant::from_nanos(values[0]),
            started: Instant::from_nanos(values[1]),
            end: Instant::from_nanos(values[2]),
            length: values[4] as u32,
            first: Psn::truncated((values[4] >> 32) as u32),
            packets: values[5] as u32,
        })
    }

    /// Returns the messages from a number on that are still there, and how many from there on are not.
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

#[cfg(test)]
mod tests;
