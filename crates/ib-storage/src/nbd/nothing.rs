//! Stands in for the server's block device while other code of this process uses the real device.

use ib_block::{Command, Errno, ReadData};

use super::Backing;

/// The block device of the NBD server while other code uses the real device. It gets no requests.
pub(super) struct Nothing;

impl Backing for Nothing {
    fn submit(&mut self, _: u64, command: Command, _: &[u8]) {
        unreachable!("{command:?} was submitted while other code uses the device");
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
