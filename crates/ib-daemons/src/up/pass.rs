//! A pass over a part of the device: all of it is written, read and compared, or read and kept.

use std::ops::Range;

use ib_block::{Command, Operation};
use ib_storage::nbd::Backing;

/// How long requests are, and how many are in flight.
const LENGTH: u64 = 64 << 10;
const MOST: usize = 48;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Write,
    /// It is read, and what is other than it should be counts as wrong.
    Compare,
    /// It is read, and becomes what it should be.
    Keep,
}

/// What is there, or should be.
#[derive(Debug)]
pub(super) enum Content {
    /// A pattern, of which each number is another one.
    Pattern(u64),
    /// Bytes from a place on.
    Bytes(u64, Vec<u8>),
}

/// A pass.
#[derive(Debug)]
pub(super) struct Pass {
    task: Task,
    part: Range<u64>,
    next: u64,
    under_way: usize,
    /// Bytes that were written or read.
    pub(super) done: u64,
    /// Requests that read something else, and requests that failed.
    pub(super) wrong: u64,
    pub(super) errors: u64,
}

impl Pass {
    pub(super) const fn new(task: Task, part: Range<u64>) -> Self {
        let next = part.start;
        Self { task, part, next, under_way: 0, done: 0, wrong: 0, errors: 0 }
    }

    /// Goes on; returns whether there was anything.
    pub(super) fn work(&mut self, device: &mut impl Backing, content: &mut Content) -> bool {
        let mut moved = false;
        while let Some((offset, errno)) = device.poll() {
            moved = true;
            self.under_way -= 1;
            let data = device.take_data();
            if errno.is_ok() {
                let length = self.length(offset);
                self.done += length;
                if self.task != Task::Write {
                    let found = data.copied();
                    let is_whole = found.len() as u64 == length;
                    match self.task {
                        Task::Keep if is_whole => content.keep(offset, &found),
                        Task::Compare if is_whole && content.is(offset, &found) => {}
                        _ => self.wrong += 1,
                    }
                }
            } else {
                self.errors += 1;
            }
            device.give_back(data);
        }
        while self.next < self.part.end && self.under_way < MOST {
            moved = true;
            let (offset, length) = (self.next, self.length(self.next));
            let (operation, data) = match self.task {
                Task::Write => (Operation::Write, content.bytes(offset, length)),
                Task::Compare | Task::Keep => (Operation::Read, Vec::new()),
            };
            let command = Command { operation, offset, length, fua: false };
            device.submit(offset, command, &data);
            (self.next, self.under_way) = (offset + length, self.under_way + 1);
        }
        moved
    }

    /// Asks for nothing more.
    pub(super) const fn stop(&mut self) {
        self.part.end = self.next;
    }

    /// Returns how many requests all of it takes.
    pub(super) const fn requests(&self) -> u64 {
        (self.part.end - self.part.start).div_ceil(LENGTH)
    }

    /// Returns where it asks next.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns how many requests are in flight.
    pub(super) const fn under_way(&self) -> usize {
        self.under_way
    }

    pub(super) const fn is_over(&self) -> bool {
        self.next == self.part.end && self.under_way == 0
    }

    /// Returns how long the request at a place is.
    fn length(&self, offset: u64) -> u64 {
        LENGTH.min(self.part.end - offset)
    }
}

impl Content {
    /// Returns what is at a place.
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

    fn is(&self, offset: u64, data: &[u8]) -> bool {
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

    fn keep(&mut self, offset: u64, data: &[u8]) {
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
