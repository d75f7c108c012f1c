//! Errors of reading and writing capture files.

use std::io;

/// Error of reading a capture file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The stream failed.
    #[error("byte {offset}: {source}")]
    Io {
        /// Number of bytes read before the error.
        offset: u64,
        /// The error that the stream returned.
        source: io::Error,
    },
    /// The file is truncated.
    #[error("byte {offset}: the file ends within {what}: expected {expected} bytes, found {found}")]
    Truncated {
        /// Name of the item that is truncated.
        what: &'static str,
        /// Offset of the item in the file.
        offset: u64,
        /// Expected number of bytes from this offset on.
        expected: u64,
        /// Number of bytes found from this offset on.
        found: u64,
    },
    /// A field has an invalid value.
    #[error("byte {offset}: {what} is {found}: expected {expected}")]
    Value {
        /// Name of the field.
        what: &'static str,
        /// Offset of the field in the file.
        offset: u64,
        /// The values that the field may have.
        expected: String,
        /// The value of the field in the file.
        found: String,
    },
}

/// Error of writing a capture file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A packet or statistics refer to an interface that was not written before them.
    #[error("interface {found} does not exist: {count} interfaces were written so far")]
    NoSuchInterface {
        /// Number of the interface.
        found: u32,
        /// Number of interfaces written so far.
        count: u32,
    },
    /// A packet, an option or a whole block is longer than its format permits.
    #[error("{what} has {found} bytes: expected at most {limit}")]
    TooLong {
        /// Name of the item, such as "the captured length".
        what: &'static str,
        /// Size of the item in bytes.
        found: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The captured size of a packet exceeds its original size.
    #[error(
        "the captured size is {captured} bytes: expected at most {original}, the original size"
    )]
    CapturedTooLong {
        /// Number of captured bytes of the packet.
        captured: usize,
        /// Original size of the packet in bytes.
        original: u32,
    },
}
