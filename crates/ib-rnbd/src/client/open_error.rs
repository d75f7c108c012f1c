//! Errors of opening a device.

use super::LONGEST_NAME;
use crate::recovery::may_pass;
use ib_block::Errno;

/// Why a device cannot be opened, or asked for something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The server has said so.
    #[error("the server refuses device {name}: {errno}{}", meaning(*errno))]
    Refused {
        /// The device.
        name: String,
        /// Why.
        errno: Errno,
    },
    /// The server's answer makes no sense.
    #[error("the server's answer about device {name} makes no sense: {what}")]
    Nonsense {
        /// The device.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// It is another device than it was.
    #[error("device {name} has {found} bytes{what}: expected {expected}, as before")]
    Changed {
        /// The device.
        name: String,
        /// Of what: of all, or in each block.
        what: &'static str,
        /// How many.
        found: u64,
        /// How many there were.
        expected: u64,
    },
    /// The server has other data under its name than before.
    #[error("device {name} has other data than before: {what}")]
    Other {
        /// The device.
        name: String,
        /// What tells that.
        what: &'static str,
    },
    /// No server could have such a device.
    #[error("{0:?}: the name of a device has 1 to {LONGEST_NAME} bytes without a zero")]
    Name(String),
}

impl OpenError {
    /// Returns true if the server may open the device later: another client has it open, or takes room that it needs.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Refused { errno, .. } if may_pass(*errno))
    }
}

/// Returns what a server means that refuses to open a device, behind the name of the error.
const fn meaning(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM => ", another client has it open to write to it",
        Errno::ENOENT => ", it offers none of that name",
        Errno::EACCES | Errno::EROFS => ", it can only be read there",
        _ => "",
    }
}
