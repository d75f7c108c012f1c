//! What block devices are like, and what is done with them.

use std::fmt;

/// The unit in which RNBD counts, in bytes, whatever the blocks of a device are.
pub const SECTOR: u64 = 512;

/// What a device is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Its size in bytes, a multiple of the logical block.
    pub size: u64,
    /// The unit of everything that is done with it, in bytes: a power of two from 512 on.
    pub logical_block: u32,
    /// What the medium does at once, in bytes: a power of two, not below the logical block.
    pub physical_block: u32,
    /// How it forgets; `None` when it cannot.
    pub discard: Option<Discard>,
    /// Whether what is stored can be made unreadable.
    pub secure_erase: bool,
    /// Whether it caches what is written until it is told to flush.
    pub write_back: bool,
    /// Whether single writes can be made to reach the medium at once.
    pub fua: bool,
    /// Whether it can only be read.
    pub read_only: bool,
}

/// Where the data of a device comes from: two numbers that mean nothing but that they are the same as before, or are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Another one for other data.
    pub medium: u32,
    /// Another one when writes may be lost that were confirmed and not flushed.
    pub cache: u32,
}

/// How a device forgets what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discard {
    /// In which units, in bytes.
    pub granularity: u32,
    /// Where the first of them starts, in bytes.
    pub alignment: u32,
    /// How much at once at most, in bytes: a multiple of [`SECTOR`].
    pub max: u64,
}

impl Geometry {
    /// Returns a plain device of a size in bytes, with blocks of a length in bytes.
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

    /// Looks whether a command can be done.
    ///
    /// # Errors
    /// Fails when it is not whole blocks, not within the device, or not what the device does.
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

/// What is done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Read.
    Read,
    /// Write.
    Write,
    /// Write what is cached to the medium.
    Flush,
    /// Forget what is stored.
    Discard,
    /// Make what is stored unreadable.
    SecureErase,
    /// Write zeros.
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

/// Something that is done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What.
    pub operation: Operation,
    /// From where on, in bytes; means nothing for a flush.
    pub offset: u64,
    /// How much, in bytes; means nothing for a flush.
    pub length: u64,
    /// Whether it has to have reached the medium when it is done.
    pub fua: bool,
}

impl Command {
    /// A flush.
    pub const FLUSH: Self = Self { operation: Operation::Flush, offset: 0, length: 0, fua: false };
}

/// Why something cannot be done with a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// It is not whole blocks.
    #[error("it is not whole blocks")]
    Unaligned,
    /// It goes beyond the end.
    #[error("it goes beyond the end of the device")]
    Beyond,
    /// The device can only be read.
    #[error("the device can only be read")]
    ReadOnly,
    /// The device does not do that.
    #[error("the device does not do that")]
    NotDone,
}

#[cfg(test)]
mod tests;
