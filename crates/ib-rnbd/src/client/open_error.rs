//! Errors when a client opens a device.

use std::fmt;

use super::MAX_NAME;
use crate::recovery::is_temporary;
use ib_block::Errno;

/// The reason why a device cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The server refuses to open the device.
    #[error("the server refuses device {name}: {errno}{}", meaning(*errno))]
    Refused {
        /// The name of the device.
        name: String,
        /// The error that the server returned.
        errno: Errno,
    },
    /// The response of the server is invalid.
    #[error("invalid response of the server for device {name}: {what}")]
    InvalidResponse {
        /// The name of the device.
        name: String,
        /// The reason why the response is invalid.
        what: &'static str,
    },
    /// The reopened device has another size.
    #[error(
        "device {name} has {found} bytes{size}: expected {expected}, as when it was opened first"
    )]
    SizeChanged {
        /// The name of the device.
        name: String,
        /// Tells which of the device's sizes has changed.
        size: Size,
        /// The size in bytes that the server reports now.
        found: u64,
        /// The size in bytes when the device was open before.
        expected: u64,
    },
    /// The reopened device has other data.
    #[error("device {name} has other data than when it was open before: {evidence}")]
    OtherData {
        /// The name of the device.
        name: String,
        /// The evidence that the data differs.
        evidence: OtherData,
    },
    /// The name is invalid.
    #[error("invalid device name {0:?}: expected 1 to {MAX_NAME} bytes without NUL")]
    Name(String),
}

/// A size of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The size of the whole device, in bytes.
    Device,
    /// The size of a logical block, in bytes.
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
    /// The device has a write cache, which it did not have before.
    #[error("the device has a write cache, which it did not have before")]
    WriteCache,
    /// Either the earlier or the present server is a Linux kernel, and the other is a server of ibfabric.
    #[error("the server was a Linux kernel and is now ibfabric, or the reverse")]
    Server,
    /// The server reports another number for the data of the device ([`Origin::medium`](ib_block::Origin::medium)).
    #[error("the server reports that the file, disk or memory of the device was replaced")]
    Medium,
    /// Another client has written to the device.
    #[error("another client has written to the device")]
    Writer,
}

impl OpenError {
    /// Returns true if a later attempt may succeed, because another client has the device open or the server lacks
    /// memory.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Refused { errno, .. } if is_temporary(*errno))
    }
}

/// Returns the meaning of an error with which the server refuses to open a device. The text of [`OpenError::Refused`]
/// appends this meaning to the name of the error.
const fn meaning(errno: Errno) -> &'static str {
    match errno {
        Errno::EPERM => ", another client has the device open for writing",
        Errno::ENOENT => ", the server exports no such device",
        Errno::EACCES | Errno::EROFS => ", the device is read-only",
        _ => "",
    }
}
