//! Errors of opening a device.

use std::fmt;

use super::LONGEST_NAME;
use crate::recovery::may_pass;
use ib_block::Errno;

/// Why a device cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The server refuses it.
    #[error("the server refuses device {name}: {errno}{}", meaning(*errno))]
    Refused {
        /// The device.
        name: String,
        /// The error of the server.
        errno: Errno,
    },
    /// The answer of the server is invalid.
    #[error("the server's answer about device {name} makes no sense: {what}")]
    Nonsense {
        /// The device.
        name: String,
        /// The fault.
        what: &'static str,
    },
    /// The reopened device has another size.
    #[error("device {name} has {found} bytes{size}: expected {expected}, as before")]
    Changed {
        /// The device.
        name: String,
        /// The size that differs.
        size: Size,
        /// The size in bytes.
        found: u64,
        /// The earlier size in bytes.
        expected: u64,
    },
    /// The reopened device has other data.
    #[error("device {name} has other data than before: {evidence}")]
    Other {
        /// The device.
        name: String,
        /// The evidence.
        evidence: OtherData,
    },
    /// The name is invalid.
    #[error("{0:?}: the name of a device has 1 to {LONGEST_NAME} bytes without a zero")]
    Name(String),
}

/// A size of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The size of the device.
    Device,
    /// The size of its logical block.
    Block,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "",
            Self::Block => " in each block",
        })
    }
}

/// Evidence that a reopened device has other data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtherData {
    /// It caches writes, which it did not before.
    #[error("it caches what is written, which it did not")]
    WriteCache,
    /// The server is of this project and was not before, or the other way round.
    #[error("another kind of server has it")]
    Server,
    /// The server reports another medium.
    #[error("its server says so")]
    Medium,
    /// Another client has written to it.
    #[error("somebody else has written to it")]
    Writer,
}

impl OpenError {
    /// Returns true if the server may open the device later: another client has it open, or takes room that it needs.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Refused { errno, .. } if may_pass(*errno))
    }
}

/// Returns the meaning of an error of opening a device, to follow its name.
const fn meaning(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM => ", another client has it open to write to it",
        Errno::ENOENT => ", it offers none of that name",
        Errno::EACCES | Errno::EROFS => ", it can only be read there",
        _ => "",
    }
}
