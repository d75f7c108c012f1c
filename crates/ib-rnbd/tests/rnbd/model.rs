//! What devices may hold: of each block, which writes were asked for, which have ended, and which of them have to be on
//! the medium.

use std::collections::BTreeMap;

use ib_block::{Command, Errno, Operation};
use ib_types::Instant;

use crate::faults::Violation;
use crate::lab::{Lab, SIZE};

/// The unit of what is asked for, in bytes.
pub(crate) const BLOCK: usize = 1024;

/// How many blocks a device has.
pub(crate) const BLOCKS: usize = SIZE / BLOCK;

/// What was written into a block: its number, or zeros.
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

/// A block. There is one write of it at a time.
#[derive(Clone, Debug)]
struct Block {
    /// All that it was to hold, in order.
    contents: Vec<Content>,
    /// Which of them was confirmed last, and which of them is on the medium at least.
    confirmed: usize,
    stored: usize,
    is_written: bool,
    /// Whether a write of it has ended without anybody knowing what of it is done.
    is_unknown: bool,
}

/// Something that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Under {
    pub(crate) disk: usize,
    pub(crate) command: Command,
    pub(crate) begun: Instant,
    /// What was confirmed then, of each block of the device.
    confirmed: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    disks: Vec<Vec<Block>>,
    pub(crate) under: BTreeMap<u64, Under>,
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

    /// Returns whether somebody can say what comes of a command.
    pub(crate) fn allows(&self, disk: usize, command: &Command) -> bool {
        if command.operation == Operation::Flush {
            return true;
        }
        let blocks = &self.disks[disk][blocks_of(command)];
        blocks.iter().all(|it| !(it.is_unknown || changes(command) && it.is_written))
    }

    /// Takes note that a command is asked for; returns its number, and the data of a write.
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
        self.under.insert(number, Under { disk, command, begun: now, confirmed });
        (number, data)
    }

    /// Takes note that a command has ended; fails when that cannot be.
    pub(crate) fn end(
        &mut self,
        number: u64,
        errno: Errno,
        data: &[u8],
    ) -> Result<Under, Violation> {
        let under = self.under.remove(&number);
        let under = under.ok_or_else(|| format!("{number} has ended twice"))?;
        let Under { disk, command, .. } = &under;
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

    /// Fails when what was to have reached the medium of a device has not.
    pub(crate) fn check_medium(&self, lab: &Lab, disk: usize) -> Result<(), Violation> {
        for (at, block) in self.disks[disk].iter().enumerate().filter(|(_, it)| !it.is_unknown) {
            let found = &lab.disks[disk].medium[at * BLOCK..][..BLOCK];
            let told = |why: Violation| why.of(format_args!("medium: block {at}"));
            block.expect(block.stored, found).map_err(told)?;
        }
        Ok(())
    }

    /// Fails when devices do not hold at the end what was confirmed last.
    pub(crate) fn check_end(&self, lab: &Lab) -> Result<(), Violation> {
        for (disk, blocks) in self.disks.iter().enumerate() {
            for (at, block) in blocks.iter().enumerate().filter(|(_, it)| !it.is_unknown) {
                let found = &lab.disks[disk].cached[at * BLOCK..][..BLOCK];
                let told =
                    |why: Violation| why.of(format_args!("at the end block {at} of disk {disk}"));
                block.expect(block.contents.len() - 1, found).map_err(told)?;
            }
        }
        Ok(())
    }

    /// Returns how many blocks nobody knows anything of.
    pub(crate) fn unknown(&self) -> usize {
        self.disks.iter().flatten().filter(|it| it.is_unknown).count()
    }
}

impl Block {
    /// Fails when bytes are none of what the block has held since some content.
    fn expect(&self, since: usize, found: &[u8]) -> Result<(), Violation> {
        let mut allowed = self.contents[since..].iter();
        if allowed.any(|content| content.bytes() == found) {
            return Ok(());
        }
        let number = u64::from_le_bytes(*found.first_chunk().expect("a block is longer"));
        let is_torn = Content::Written(number).bytes() != found;
        // Each of its words is a number, zero where it was discarded.
        let words = found
            .chunks_exact(8)
            .map(|word| u64::from_le_bytes(*word.first_chunk().expect("8 bytes")));
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
