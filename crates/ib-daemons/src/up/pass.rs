//! A pass over a part of the block device. It writes, compares or saves the content of the part.

use std::ops::Range;

use ib_block::{Command, Operation};
use ib_storage::nbd::Backing;

/// Size of each request in bytes.
const LENGTH: u64 = 64 << 10;

/// Maximum number of outstanding requests of a pass.
const MOST: usize = 48;

/// The operation of a pass on each block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Write,
    /// Reads the blocks, and counts requests that return unexpected data.
    Compare,
    /// Reads the blocks, and stores their data as the expected content.
    Save,
}

/// The content that a pass writes to the blocks, or that it expects to read from them.
#[derive(Debug)]
pub(super) enum Content {
    /// A pattern that the number determines; different numbers have different patterns.
    Pattern(u64),
    /// Offset of the blocks on the device in bytes, and the data of the blocks.
    Bytes(u64, Vec<u8>),
}

/// A pass over a part of the block device.
#[derive(Debug)]
pub(super) struct Pass {
    task: Task,
    part: Range<u64>,
    next: u64,
    outstanding: usize,
    /// Number of bytes that were written or read.
    pub(super) done: u64,
    /// Number of requests that returned wrong data.
    pub(super) wrong: u64,
    /// Number of requests that failed.
    pub(super) errors: u64,
}

impl Pass {
    pub(super) const fn new(task: Task, part: Range<u64>) -> Self {
        let next = part.start;
        Self { task, part, next, outstanding: 0, done: 0, wrong: 0, errors: 0 }
    }

    /// Submits requests and handles their completions; returns true if there were any.
    pub(super) fn work(&mut self, device: &mut impl Backing, content: &mut Content) -> bool {
        let mut moved = false;
        while let Some((offset, errno)) = device.poll() {
            moved = true;
            self.outstanding -= 1;
            let data = device.take_data();
            if errno.is_ok() {
                let length = self.length(offset);
                self.done += length;
                if self.task != Task::Write {
                    let found = data.copied();
                    let is_whole = found.len() as u64 == length;
                    match self.task {
                        Task::Save if is_whole => content.save(offset, &found),
                        Task::Compare if is_whole && content.matches(offset, &found) => {}
                        _ => self.wrong += 1,
                    }
                }
            } else {
                self.errors += 1;
            }
            device.give_back(data);
        }
        while self.next < self.part.end && self.outstanding < MOST {
            moved = true;
            let (offset, length) = (self.next, self.length(self.next));
            let (operation, data) = match self.task {
                Task::Write => (Operation::Write, content.bytes(offset, length)),
                Task::Compare | Task::Save => (Operation::Read, Vec::new()),
            };
            let command = Command { operation, offset, length, fua: false };
            device.submit(offset, command, &data);
            (self.next, self.outstanding) = (offset + length, self.outstanding + 1);
        }
        moved
    }

    /// Stops submitting requests.
    pub(super) const fn stop(&mut self) {
        self.part.end = self.next;
    }

    /// Returns how many requests the whole pass needs.
    pub(super) const fn requests(&self) -> u64 {
        (self.part.end - self.part.start).div_ceil(LENGTH)
    }

    /// Returns the offset of the next request.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the number of outstanding requests.
    pub(super) const fn outstanding(&self) -> usize {
        self.outstanding
    }

    pub(super) const fn is_over(&self) -> bool {
        self.next == self.part.end && self.outstanding == 0
    }

    /// Returns the size in bytes of the request that starts at the given offset.
    fn length(&self, offset: u64) -> u64 {
        LENGTH.min(self.part.end - offset)
    }
}

impl Content {
    /// Returns `length` bytes of the content, beginning with the byte at `offset` on the device.
    fn bytes(&self, offset: u64, length: u64) -> Vec<u8> {
        match self {
            Self::Pattern(number) => {
                let mut bytes = vec![0; length as usize];
                for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(offset / 8..) {
                    *place = stamp(*number, word).to_le_bytes();
                }
                bytes
            }
            Self::Bytes(from, bytes) => {
                let at = (offset - from) as usize;
                bytes[at..at + length as usize].to_vec()
            }
        }
    }

    fn matches(&self, offset: u64, data: &[u8]) -> bool {
        match self {
            Self::Pattern(number) => {
                let mut words = data.as_chunks::<8>().0.iter().zip(offset / 8..);
                words.all(|(found, word)| *found == stamp(*number, word).to_le_bytes())
            }
            Self::Bytes(from, bytes) => {
                let at = (offset - from) as usize;
                bytes.get(at..at + data.len()).is_some_and(|bytes| bytes == data)
            }
        }
    }

    fn save(&mut self, offset: u64, data: &[u8]) {
        if let Self::Bytes(from, bytes) = self {
            let at = (offset - *from) as usize;
            bytes[at..at + data.len()].copy_from_slice(data);
        }
    }
}

const fn stamp(number: u64, word: u64) -> u64 {
    let word = word ^ number.wrapping_mul(0xa076_1d64_78bd_642f);
    word.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995_0dd0_fee1
}

#[cfg(test)]
pub(super) mod tests;
