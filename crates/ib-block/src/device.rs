//! Geometry and commands of block devices, and the steps into which a command is divided.

use std::fmt;

/// Size of a sector in bytes: the unit of sizes in RNBD messages, whatever the block size of the device.
pub const SECTOR: u64 = 512;

/// Size, block sizes and features of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Size in bytes, a multiple of the logical block size.
    pub size: u64,
    /// Logical block size in bytes: a power of two of at least 512. Offsets and lengths of commands are multiples of
    /// this size.
    pub logical_block: u32,
    /// Physical block size in bytes: a power of two, at least the logical block size.
    pub physical_block: u32,
    /// Limits of discards; `None` if the device does not support them.
    pub discard: Option<Discard>,
    /// True if the device supports secure erase.
    pub secure_erase: bool,
    /// True if the device has a volatile write cache.
    pub write_back: bool,
    /// True if the device supports FUA writes.
    pub fua: bool,
    /// True if the device is read-only.
    pub read_only: bool,
}

/// Two numbers by which a client detects that a device was replaced or has lost completed writes. Writes to the device
/// do not change these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// A number that identifies the file, disk or memory with the data. Another number means that it was replaced.
    pub medium: u32,
    /// A number that changes if the device may have lost completed writes that were not flushed.
    pub cache: u32,
}

/// Limits of discards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discard {
    /// Size in bytes of one discard unit.
    pub granularity: u32,
    /// Offset in bytes of the first discard unit.
    pub alignment: u32,
    /// Maximum length of a discard in bytes, a multiple of [`SECTOR`].
    pub max: u64,
}

impl Geometry {
    /// Returns the geometry of a device without optional features. Size and block size are in bytes.
    #[must_use]
    pub const fn new(size: u64, block: u32) -> Self {
        Self {
            size,
            logical_block: block,
            physical_block: block,
            discard: None,
            secure_erase: false,
            write_back: false,
            fua: false,
            read_only: false,
        }
    }

    /// Checks that the device supports the given command.
    ///
    /// # Errors
    /// Fails if the range does not consist of whole blocks, if it exceeds the device, or if the device does not support
    /// the operation.
    pub const fn check(&self, command: &Command) -> Result<(), CommandError> {
        let Command { operation, offset, length, .. } = *command;
        match operation {
            Operation::Flush => return Ok(()),
            Operation::Read => {}
            _ if self.read_only => return Err(CommandError::ReadOnly),
            Operation::Discard if self.discard.is_none() => return Err(CommandError::NotDone),
            Operation::SecureErase if !self.secure_erase => return Err(CommandError::NotDone),
            _ => {}
        }
        let block = self.logical_block as u64;
        if !offset.is_multiple_of(block) || !length.is_multiple_of(block) {
            return Err(CommandError::Unaligned);
        }
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(CommandError::Beyond),
        }
    }
}

/// The operation of a command, such as a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Flush the write cache to the medium.
    Flush,
    /// Discard a range: its contents become undefined.
    Discard,
    /// Discard a range and make its previous contents unrecoverable.
    SecureErase,
    /// Write zeros; the command carries no data.
    WriteZeroes,
}

impl Operation {
    /// Returns true if the operation changes data of the device.
    #[must_use]
    pub const fn is_change(self) -> bool {
        !matches!(self, Self::Read | Self::Flush)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
            Self::Discard => "discard",
            Self::SecureErase => "secure erase",
            Self::WriteZeroes => "write zeroes",
        })
    }
}

/// A command to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The operation.
    pub operation: Operation,
    /// Offset in bytes; ignored for a flush.
    pub offset: u64,
    /// Length in bytes; ignored for a flush.
    pub length: u64,
    /// True if the command completes only after its data is on the medium (force unit access).
    pub fua: bool,
}

impl Command {
    /// A flush.
    pub const FLUSH: Self = Self { operation: Operation::Flush, offset: 0, length: 0, fua: false };
}

/// The reason why a device does not support a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Offset or length is not a multiple of the logical block size.
    #[error("offset or length is not a multiple of the block size")]
    Unaligned,
    /// The range exceeds the end of the device.
    #[error("the range exceeds the end of the device")]
    Beyond,
    /// The device is read-only.
    #[error("the device is read-only")]
    ReadOnly,
    /// The device does not support the operation.
    #[error("the device does not support the operation")]
    NotDone,
}

/// An iterator over the steps of a command.
///
/// No step is longer than the device supports. The last step of a flush command is a flush. So is that of a command
/// that changes data with FUA, if the device has a write cache and no FUA for this operation. The other steps may be
/// executed in any order, but all must complete before the flush.
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
