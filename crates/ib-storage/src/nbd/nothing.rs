//! A placeholder for the block device while another owner uses it.

use ib_block::{Command, Errno, ReadData};

use super::Backing;

/// A placeholder for the block device while another owner uses it.
pub(super) struct Nothing;

impl Backing for Nothing {
    fn submit(&mut self, _: u64, command: Command, _: &[u8]) {
        unreachable!("{command:?} was submitted while another owner uses the device");
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        None
    }

    fn take_data(&mut self) -> ReadData {
        ReadData::default()
    }

    fn give_back(&mut self, _: ReadData) {}

    fn losses(&self) -> u64 {
        0
    }
}
