//! Division of commands into steps that a device supports.

use crate::{Command, Geometry, Operation};

/// The steps of a command, as an iterator.
///
/// A step is at most as long as the device supports. If the command has FUA and the device does not, a flush is the last
/// step. The other steps may be executed in any order, but must complete before the flush.
///
/// Steps of [`Operation::WriteZeroes`] have no data. The executor writes zeros as data if the device requires that.
#[derive(Clone, Debug)]
pub struct Plan {
    left: Command,
    most: u64,
    fua: bool,
    flushes: bool,
}

impl Plan {
    /// Divides a command that fits the geometry ([`Geometry::check`]). `max_data` is the maximum length of the data of a step in
    /// bytes; it is at least a logical block.
    #[must_use]
    pub fn new(command: Command, geometry: &Geometry, max_data: u32) -> Self {
        let block = u64::from(geometry.logical_block);
        let whole = |most: u64| (most / block * block).max(block);
        let most = match (command.operation, geometry.discard) {
            (Operation::Discard, Some(discard)) => whole(discard.max),
            // RNBD messages have 32 bits for the length.
            (Operation::SecureErase, _) => whole(u64::from(u32::MAX)),
            _ => whole(u64::from(max_data)),
        };
        let writes = command.operation.is_change();
        let wants = command.fua && writes && geometry.write_back;
        let fua = wants && geometry.fua && command.operation != Operation::Discard;
        let is_flush = command.operation == Operation::Flush;
        let left = if is_flush { Command { length: 0, ..command } } else { command };
        Self { left, most, fua, flushes: wants && !fua || is_flush }
    }

    /// Returns true if the last step is a flush, which has to wait for the others.
    #[must_use]
    pub const fn ends_with_flush(&self) -> bool {
        self.flushes
    }
}

impl Iterator for Plan {
    type Item = Command;

    fn next(&mut self) -> Option<Command> {
        if self.left.length > 0 {
            let length = self.left.length.min(self.most);
            let step = Command { length, fua: self.fua, ..self.left };
            self.left.offset += length;
            self.left.length -= length;
            return Some(step);
        }
        std::mem::take(&mut self.flushes).then_some(Command::FLUSH)
    }
}

#[cfg(test)]
mod tests;
