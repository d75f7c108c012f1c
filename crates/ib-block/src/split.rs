//! Division of a command into steps that the device supports.

use crate::{Command, Geometry, Operation};

/// An iterator over the steps of a command.
///
/// No step is longer than the device supports. The last step is a flush if the command changes data with FUA, the
/// device has a write cache, and the device has no FUA for this operation. The other steps may be executed in any
/// order, but all must complete before the flush.
///
/// Steps of [`Operation::WriteZeroes`] have no data. RNBD has no such operation, so the RNBD client writes zeros as
/// data.
#[derive(Clone, Debug)]
pub struct Plan {
    left: Command,
    most: u64,
    fua: bool,
    flushes: bool,
}

impl Plan {
    /// Divides a command that [`Geometry::check`] has accepted. No step carries more than `max_data` bytes of data.
    /// `max_data` must be at least one logical block.
    #[must_use]
    pub fn new(command: Command, geometry: &Geometry, max_data: u32) -> Self {
        let block = u64::from(geometry.logical_block);
        let whole = |most: u64| (most / block * block).max(block);
        let most = match (command.operation, geometry.discard) {
            (Operation::Discard, Some(discard)) => whole(discard.max),
            // RNBD messages have a 32-bit length field, so no step can be longer.
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
