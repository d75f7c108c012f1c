//! The expected content of each sector, and the byte ranges of outstanding commands.

use std::collections::BTreeMap;

use ib_block::{Command, Operation};

use super::pattern::{self, SECTOR};

/// Verifies that reads return the data of earlier writes.
#[derive(Clone, Debug)]
pub(super) struct Verifier {
    /// For each sector: the number of the last write to it, called its round; 0 if the content of the sector is
    /// unknown.
    rounds: Vec<u32>,
    round: u32,
    /// Byte ranges of outstanding commands, as a map from start to end. The ranges do not overlap.
    busy: BTreeMap<u64, u64>,
}

impl Verifier {
    /// Returns the verifier of a device of `size` bytes. The content of the device is unknown.
    pub(super) fn new(size: u64) -> Self {
        Self { rounds: vec![0; (size / SECTOR) as usize], round: 0, busy: BTreeMap::new() }
    }

    /// Returns true if no outstanding command overlaps the range of `command`.
    pub(super) fn is_free(&self, command: &Command) -> bool {
        let end = command.offset + command.length;
        let before = self.busy.range(..end).next_back();
        before.is_none_or(|(_, ends)| *ends <= command.offset)
    }

    /// Returns true if the range contains a sector whose content is known.
    pub(super) fn was_written(&self, offset: u64, length: u64) -> bool {
        self.rounds[sectors(offset, length)].iter().any(|round| *round > 0)
    }

    /// Records that a command becomes outstanding. The caller ensures that it overlaps no other outstanding command.
    /// For a write, fills `data` with verifiable content and returns the number of the write; for other commands,
    /// returns 0.
    pub(super) fn begin(&mut self, command: &Command, data: &mut [u8]) -> u32 {
        if command.length > 0 {
            self.busy.insert(command.offset, command.offset + command.length);
        }
        if command.operation != Operation::Write {
            return 0;
        }
        // After number 2^32 − 1, writes are numbered from 1 again: 0 stands for unknown content.
        self.round = self.round.checked_add(1).unwrap_or(1);
        pattern::fill(data, command.offset, self.round);
        self.round
    }

    /// Records the completion of a command, and verifies the data of a read. `data` is the data that a successful
    /// command has returned; `None` if the command has failed.
    ///
    /// # Errors
    /// Fails if a read returned a wrong number of bytes, or other data than the last write to a sector has written.
    pub(super) fn end(
        &mut self,
        command: &Command,
        round: u32,
        data: Option<&[u8]>,
    ) -> Result<(), String> {
        if command.length == 0 {
            return Ok(());
        }
        self.busy.remove(&command.offset);
        let place = sectors(command.offset, command.length);
        match (command.operation, data) {
            (Operation::Write, Some(_)) => self.rounds[place].fill(round),
            (Operation::Read, Some(data)) if data.len() as u64 != command.length => {
                return Err(format!("{} bytes: expected {}", data.len(), command.length));
            }
            (Operation::Read, Some(data)) => {
                let known = self.rounds[place.clone()].iter();
                for ((number, round), sector) in
                    place.zip(known).zip(data.chunks_exact(SECTOR as usize))
                {
                    pattern::check(sector, number as u64, *round)?;
                }
            }
            (Operation::Read, None) => {}
            // After a failed write and after a discard, the content is unknown.
            _ => self.rounds[place].fill(0),
        }
        Ok(())
    }
}

/// Returns the indices of the sectors in a byte range.
const fn sectors(offset: u64, length: u64) -> std::ops::Range<usize> {
    (offset / SECTOR) as usize..((offset + length) / SECTOR) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(operation: Operation, offset: u64, length: u64) -> Command {
        Command { operation, offset, length, fua: false }
    }

    #[test]
    fn ranges_of_outstanding_requests_are_not_free() {
        let mut verifier = Verifier::new(1 << 20);
        let write = command(Operation::Write, 4096, 1024);
        let round = verifier.begin(&write, &mut [0; 1024]);
        for (offset, length, free) in [
            (0, 4096, true),
            (0, 4608, false),
            (4608, 512, false),
            (5120, 512, true),
            (0, 1 << 20, false),
        ] {
            let read = command(Operation::Read, offset, length);
            assert_eq!(verifier.is_free(&read), free, "{length} bytes at {offset}");
        }
        assert!(verifier.is_free(&Command::FLUSH));
        verifier.end(&write, round, Some(&[])).expect("a write returns no data to verify");
        assert!(verifier.is_free(&command(Operation::Read, 0, 1 << 20)));
    }

    #[test]
    fn sectors_are_compared_with_their_last_write() {
        let mut verifier = Verifier::new(1 << 20);
        let mut disk = vec![0; 8192];
        for (offset, length) in [(0, 4096), (1024, 1024), (3584, 2048)] {
            let write = command(Operation::Write, offset, length);
            let place = offset as usize..(offset + length) as usize;
            let round = verifier.begin(&write, &mut disk[place]);
            verifier.end(&write, round, Some(&[])).expect("a write returns no data to verify");
        }
        let read = command(Operation::Read, 0, 8192);
        verifier.begin(&read, &mut []);
        assert_eq!(verifier.end(&read, 0, Some(&disk)), Ok(()));
        assert!(verifier.was_written(5120, 512) && !verifier.was_written(5632, 512));
        // A read that returns the data of an older write must fail.
        let mut old = vec![0; 512];
        pattern::fill(&mut old, 1024, 1);
        disk[1024..1536].copy_from_slice(&old);
        let wrong = verifier
            .end(&read, 0, Some(&disk))
            .expect_err("the sector was written by an older write");
        assert_eq!(
            wrong,
            "sector 2 contains data marked as sector 2 of write 1: expected the data of write 2"
        );
        let short = verifier.end(&read, 0, Some(&disk[..512])).expect_err("the data is too short");
        assert_eq!(short, "512 bytes: expected 8192");
    }

    #[test]
    fn content_after_failures_and_discards_is_unknown() {
        let mut verifier = Verifier::new(1 << 20);
        let write = command(Operation::Write, 0, 512);
        for last in [(write, None), (command(Operation::Discard, 0, 512), Some(&[][..]))] {
            let round = verifier.begin(&write, &mut [0; 512]);
            verifier.end(&write, round, Some(&[])).expect("a write returns no data to verify");
            assert!(verifier.was_written(0, 512));
            let round = verifier.begin(&last.0, &mut [0; 512]);
            verifier.end(&last.0, round, last.1).expect("the command returns no data to verify");
            assert!(!verifier.was_written(0, 512));
        }
    }
}
