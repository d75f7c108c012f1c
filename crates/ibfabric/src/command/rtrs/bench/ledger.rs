//! What was written where, and what is under way, so that what is read can be verified.

use std::collections::BTreeMap;

use ib_block::{Command, Operation};

use super::pattern::{self, SECTOR};

/// What is known of a device's sectors.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// In which round each sector was written; 0 where nothing is known.
    rounds: Vec<u32>,
    round: u32,
    /// Where requests are under way: where each begins and ends, in bytes. They do not overlap.
    busy: BTreeMap<u64, u64>,
}

impl Ledger {
    /// Returns what is known of so many bytes at first, which is nothing.
    pub(super) fn new(size: u64) -> Self {
        Self { rounds: vec![0; (size / SECTOR) as usize], round: 0, busy: BTreeMap::new() }
    }

    /// Returns whether nothing is under way to a command's place.
    pub(super) fn is_free(&self, command: &Command) -> bool {
        let end = command.offset + command.length;
        let before = self.busy.range(..end).next_back();
        before.is_none_or(|(_, ends)| *ends <= command.offset)
    }

    /// Returns whether anything is known of a place.
    pub(super) fn was_written(&self, offset: u64, length: u64) -> bool {
        self.rounds[sectors(offset, length)].iter().any(|round| *round > 0)
    }

    /// Begins a command to a place that is free. Gives a write its data, and returns its round.
    pub(super) fn begin(&mut self, command: &Command, data: &mut [u8]) -> u32 {
        if command.length > 0 {
            self.busy.insert(command.offset, command.offset + command.length);
        }
        if command.operation != Operation::Write {
            return 0;
        }
        // After as many writes the old ones are taken for new ones; 0 stays free.
        self.round = self.round.checked_add(1).unwrap_or(1);
        pattern::fill(data, command.offset, self.round);
        self.round
    }

    /// Ends a command: with the data of a read that has succeeded, with `None` when it has failed.
    ///
    /// # Errors
    /// Fails with what is wrong about the data.
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
            // What has failed may have been done, or not; what was forgotten may be anything.
            _ => self.rounds[place].fill(0),
        }
        Ok(())
    }
}

/// Returns the numbers of the sectors of a place.
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
    fn places_under_way_are_not_free() {
        let mut ledger = Ledger::new(1 << 20);
        let write = command(Operation::Write, 4096, 1024);
        let round = ledger.begin(&write, &mut [0; 1024]);
        for (offset, length, free) in [
            (0, 4096, true),
            (0, 4608, false),
            (4608, 512, false),
            (5120, 512, true),
            (0, 1 << 20, false),
        ] {
            let read = command(Operation::Read, offset, length);
            assert_eq!(ledger.is_free(&read), free, "{offset} {length}");
        }
        assert!(ledger.is_free(&Command::FLUSH));
        ledger.end(&write, round, Some(&[])).expect("a write has no data");
        assert!(ledger.is_free(&command(Operation::Read, 0, 1 << 20)));
    }

    #[test]
    fn each_sector_has_what_was_written_to_it_last() {
        let mut ledger = Ledger::new(1 << 20);
        let mut disk = vec![0; 8192];
        for (offset, length) in [(0, 4096), (1024, 1024), (3584, 2048)] {
            let write = command(Operation::Write, offset, length);
            let place = offset as usize..(offset + length) as usize;
            let round = ledger.begin(&write, &mut disk[place]);
            ledger.end(&write, round, Some(&[])).expect("a write has no data");
        }
        let read = command(Operation::Read, 0, 8192);
        ledger.begin(&read, &mut []);
        assert_eq!(ledger.end(&read, 0, Some(&disk)), Ok(()));
        assert!(ledger.was_written(5120, 512) && !ledger.was_written(5632, 512));
        // A sector of an older write is not good enough.
        let mut old = vec![0; 512];
        pattern::fill(&mut old, 1024, 1);
        disk[1024..1536].copy_from_slice(&old);
        let wrong = ledger.end(&read, 0, Some(&disk)).expect_err("it is old");
        assert_eq!(wrong, "sector 2 has sector 2 of round 1: expected what was written in round 2");
        let short = ledger.end(&read, 0, Some(&disk[..512])).expect_err("it is short");
        assert_eq!(short, "512 bytes: expected 8192");
    }

    #[test]
    fn nothing_is_known_of_what_failed_or_was_forgotten() {
        let mut ledger = Ledger::new(1 << 20);
        let write = command(Operation::Write, 0, 512);
        for last in [(write, None), (command(Operation::Discard, 0, 512), Some(&[][..]))] {
            let round = ledger.begin(&write, &mut [0; 512]);
            ledger.end(&write, round, Some(&[])).expect("a write has no data");
            assert!(ledger.was_written(0, 512));
            let round = ledger.begin(&last.0, &mut [0; 512]);
            ledger.end(&last.0, round, last.1).expect("nothing was read");
            assert!(!ledger.was_written(0, 512));
        }
    }
}
