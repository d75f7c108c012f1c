//! Commands as the steps that a device can do.

use crate::{Command, Geometry, Operation};

/// The steps of a command: as long as the device takes them at once, and a flush behind them where it has to have
/// reached the medium and the device cannot do that by itself. All but the flush may be done in any order; it comes last,
/// and only after all others have ended.
///
/// What a device cannot do at all is done otherwise where that makes no difference to what can be read afterwards: zeros
/// are written as data ([`Operation::WriteZeroes`] stays what it is; whoever does the step provides the zeros).
#[derive(Clone, Debug)]
pub struct Plan {
    left: Command,
    most: u64,
    fua: bool,
    flushes: bool,
}

impl Plan {
    /// Plans a command that was checked ([`Geometry::check`]), on a device that takes so many bytes of data at once,
    /// at least a logical block.
    #[must_use]
    pub fn new(command: Command, geometry: &Geometry, max_data: u32) -> Self {
        let block = u64::from(geometry.logical_block);
        let whole = |most: u64| (most / block * block).max(block);
        let most = match (command.operation, geometry.discard) {
            (Operation::Discard, Some(discard)) => whole(discard.max),
            // Their number has 32 bits.
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

    /// Returns whether the last step has to wait for the others.
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
