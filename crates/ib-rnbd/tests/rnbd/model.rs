//! Reference model of devices. For each block, it records the submitted writes, which of them are confirmed, and
//! which must be on the medium.

use std::collections::BTreeMap;

use ib_block::{Command, Errno, Operation};
use ib_types::Instant;

use crate::faults::Violation;
use crate::lab::{Lab, SIZE};

/// Length of a block in bytes. The lengths of commands are multiples of it.
pub(crate) const BLOCK: usize = 1024;

/// Number of blocks of a device.
pub(crate) const BLOCKS: usize = SIZE / BLOCK;

/// The contents of a block: zeros, or the number of a write, repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Zeros,
    Written(u64),
}

impl Content {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Zeros => vec![0; BLOCK],
            Self::Written(number) => number.to_le_bytes().repeat(BLOCK / 8),
        }
    }
}

/// The model of a block. At most one write to a block is in flight.
#[derive(Clone, Debug)]
struct Block {
    /// All contents that were written to the block, in the order of submission.
    contents: Vec<Content>,
    /// Index in `contents` of the last confirmed contents.
    confirmed: usize,
    /// Index in `contents` of the oldest contents that may be on the medium.
    stored: usize,
    is_written: bool,
    /// True if a write has completed, but it is not known whether it was executed.
    is_unknown: bool,
}

/// A command in flight.
#[derive(Clone, Debug)]
pub(crate) struct PendingCommand {
    pub(crate) disk: usize,
    pub(crate) command: Command,
    pub(crate) begun: Instant,
    /// By block of the device: value of [`Block::confirmed`] when the command was submitted.
    confirmed: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    disks: Vec<Vec<Block>>,
    pub(crate) under: BTreeMap<u64, PendingCommand>,
    last: u64,
}

fn blocks_of(command: &Command) -> std::ops::Range<usize> {
    let first = command.offset as usize / BLOCK;
    first..first + command.length as usize / BLOCK
}

fn changes(command: &Command) -> bool {
    command.operation.is_change()
}

impl Model {
    pub(crate) fn new(disks: usize) -> Self {
        let block = Block {
            contents: vec![Content::Zeros],
            confirmed: 0,
            stored: 0,
            is_written: false,
            is_unknown: false,
        };
        Self { disks: vec![vec![block; BLOCKS]; disks], under: BTreeMap::new(), last: 0 }
    }

    /// Returns true if the result of a command can be checked. The blocks of the command must have known contents. If
    /// the command is a change, no other change of these blocks may be in flight.
    pub(crate) fn allows(&self, disk: usize, command: &Command) -> bool {
        if command.operation == Operation::Flush {
            return true;
        }
        let blocks = &self.disks[disk][blocks_of(command)];
        blocks.iter().all(|it| !(it.is_unknown || changes(command) && it.is_written))
    }

    /// Records the submission of a command. Returns its number, and the data of a write.
    pub(crate) fn begin(&mut self, now: Instant, disk: usize, command: Command) -> (u64, Vec<u8>) {
        self.last += 1;
        let number = self.last;
        let blocks = &mut self.disks[disk];
        let confirmed = blocks.iter().map(|it| it.confirmed).collect();
        let mut data = Vec::new();
        if changes(&command) {
            let is_data = command.operation == Operation::Write;
            let content = if is_data { Content::Written(number) } else { Content::Zeros };
            for block in &mut blocks[blocks_of(&command)] {
                block.contents.push(content);
                block.is_written = true;
                if is_data {
                    data.extend(content.bytes());
                }
            }
        }
        self.under.insert(number, PendingCommand { disk, command, begun: now, confirmed });
        (number, data)
    }

    /// Compares the result of a completed command with the model, and updates the model.
    pub(crate) fn end(
        &mut self,
        number: u64,
        errno: Errno,
        data: &[u8],
    ) -> Result<PendingCommand, Violation> {
        let under = self.under.remove(&number);
        let under = under.ok_or_else(|| format!("command {number} has completed twice"))?;
        let PendingCommand { disk, command, .. } = &under;
        let blocks = &mut self.disks[*disk];
        if changes(command) {
            for block in &mut blocks[blocks_of(command)] {
                block.is_written = false;
                if errno.is_ok() {
                    block.confirmed = block.contents.len() - 1;
                } else {
                    block.is_unknown = true;
                }
                if errno.is_ok() && command.fua {
                    block.stored = block.confirmed;
                }
            }
        }
        if !errno.is_ok() {
            return Ok(under);
        }
        match command.operation {
            Operation::Read => {
                for (at, found) in blocks_of(command).zip(data.chunks(BLOCK)) {
                    if !blocks[at].is_unknown {
                        let since = under.confirmed[at];
                        blocks[at]
                            .expect(since, found)
                            .map_err(|why| why.of(format_args!("block {at}")))?;
                    }
                }
            }
            Operation::Flush => {
                for (block, &confirmed) in blocks.iter_mut().zip(&under.confirmed) {
                    block.stored = block.stored.max(confirmed);
                }
            }
            _ => {}
        }
        Ok(under)
    }

    /// Fails if flushed data is not on the medium of a device.
    pub(crate) fn check_medium(&self, lab: &Lab, disk: usize) -> Result<(), Violation> {
        for (at, block) in self.disks[disk].iter().enumerate().filter(|(_, it)| !it.is_unknown) {
            let found = &lab.disks[disk].medium[at * BLOCK..][..BLOCK];
            let told = |why: Violation| why.of(format_args!("medium: block {at}"));
            block.expect(block.stored, found).map_err(told)?;
        }
        Ok(())
    }

    /// Fails if a device does not have the last confirmed data when the run ends.
    pub(crate) fn check_end(&self, lab: &Lab) -> Result<(), Violation> {
        for (disk, blocks) in self.disks.iter().enumerate() {
            for (at, block) in blocks.iter().enumerate().filter(|(_, it)| !it.is_unknown) {
                let found = &lab.disks[disk].cached[at * BLOCK..][..BLOCK];
                let told = |why: Violation| {
                    why.of(format_args!("at the end of the run, block {at} of disk {disk}"))
                };
                block.expect(block.contents.len() - 1, found).map_err(told)?;
            }
        }
        Ok(())
    }

    /// Returns the number of blocks with unknown contents.
    pub(crate) fn unknown(&self) -> usize {
        self.disks.iter().flatten().filter(|it| it.is_unknown).count()
    }
}

impl Block {
    /// Fails unless the found bytes equal one of the `contents` from index `since` on.
    fn expect(&self, since: usize, found: &[u8]) -> Result<(), Violation> {
        let mut allowed = self.contents[since..].iter();
        if allowed.any(|content| content.bytes() == found) {
            return Ok(());
        }
        let number =
            u64::from_le_bytes(*found.first_chunk().expect("a block has at least 8 bytes"));
        let is_torn = Content::Written(number).bytes() != found;
        // Each word of 8 bytes in a block is the number of a write, or zero.
        let words = found
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(*word.first_chunk().expect("a word has 8 bytes")));
        let is_own = |number| {
            self.contents.iter().any(|content| content.bytes()[..8] == u64::to_le_bytes(number))
        };
        let found = format!("{number}: expected one of {:?}", &self.contents[since..]);
        Err(match (is_torn, { words }.all(is_own)) {
            (_, false) => Violation::Other(format!("was never written, and starts with {found}")),
            (true, true) => Violation::Stale(format!("is torn, and starts with {found}")),
            (false, true) => Violation::Stale(format!("holds {found}")),
        })
    }
}
