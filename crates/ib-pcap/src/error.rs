//! What can be wrong with a capture file, and with what is to become one.

use std::io;

/// Why a capture file cannot be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The stream failed.
    #[error("byte {offset}: {source}")]
    Io {
        /// How far the stream was read.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The file ends within something.
    #[error("byte {offset}: the file ends within {what}: expected {expected} bytes, found {found}")]
    Truncated {
        /// What is cut off.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// How many bytes it has.
        expected: u64,
        /// How many of them there are.
        found: u64,
    },
    /// A field has a value that it cannot have.
    #[error("byte {offset}: {what} is {found}: expected {expected}")]
    Value {
        /// The field.
        what: &'static str,
        /// Where it stands, or its block for a field of an option.
        offset: u64,
        /// What it could be.
        expected: String,
        /// The value.
        found: String,
    },
}

/// Why something cannot become part of a capture file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A packet or a statistic names an interface that was not written.
    #[error("interface {found} is not in the file: expected one of the {count} written before")]
    NoSuchInterface {
        /// The interface.
        found: u32,
        /// How many there are.
        count: u32,
    },
    /// Something is longer than a block can be.
    #[error("{what} has {found} bytes: expected at most {limit}")]
    TooLong {
        /// What is too long.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The longest there can be.
        limit: usize,
    },
    /// More bytes of a packet were captured than there were.
    #[error("{captured} bytes captured of a packet of {original}: expected no more than it has")]
    MoreThanAll {
        /// The number of bytes given.
        captured: usize,
        /// The length that was told.
        original: u32,
    },
}
