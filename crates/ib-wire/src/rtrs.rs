//! RTRS, version 2.0: block data of several paths over reliable connections.
//!
//! A path is a number of connections between two addresses. What the ends say while they connect is
//! the private data of REQ, REP and REJ; afterwards messages are SENDs, or stand at the end of what is
//! written into a chunk of the server's memory, and immediate data tells what was done. All numbers
//! have their least significant byte first, but immediate data, which is a number of the packet.
//!
//! | module | holds |
//! |---|---|
//! | [`connect`] | [`ConnectRequest`], [`ConnectResponse`]: private data of connections |
//! | [`message`] | [`Message`]: information, reads, writes, new keys |
//! | [`extension`] | [`Extension`], [`Fence`], [`Fenced`], [`Proof`]: what only ends of this project know |
//! | [`immediate`] | [`Immediate`]: requests, responses and heartbeats in 32 bits |
//!
//! ```
//! use ib_wire::rtrs::{Immediate, Meaning};
//!
//! // The message of a request is at byte 0x1020 of the second of 512 chunks.
//! let sent = Immediate::request(512, 1, 0x1020);
//! assert_eq!(sent, Immediate(0x0008_1020));
//! let Meaning::Request { payload } = sent.meaning() else { panic!("no request") };
//! assert_eq!(Immediate::chunk_and_offset(payload, 512), (1, 0x1020));
//! ```

pub mod connect;
pub mod extension;
pub mod immediate;
pub mod message;

pub use connect::{ConnectFlags, ConnectRequest, ConnectResponse};
pub use extension::{Capabilities, Extension, Fence, Fenced, Proof};
pub use immediate::{Immediate, Meaning};
pub use message::{
    Descriptor, Descriptors, InfoHeader, InfoRequest, Message, MessageType, ReadFlags, ReadHeader,
    RkeyResponse, WriteHeader,
};

/// The number that private data of RTRS starts with.
pub const MAGIC: u16 = 0x1bbd;

/// The version: the major one in the upper byte, which has to be the same at both ends.
pub const VERSION: u16 = 0x0200;

/// The port of `rdma_cm` at which a server of block devices listens.
pub const PORT: u16 = 1234;

/// Why bytes are no part of RTRS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RtrsError {
    /// There are too few of them.
    #[error("{what} has {expected} bytes: found {found}")]
    Truncated {
        /// What they would be.
        what: &'static str,
        /// How many there have to be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// Private data starts with another number.
    #[error("the magic number is 0x{0:04x}: expected 0x1bbd")]
    Magic(u16),
    /// The other end has another major version.
    #[error("version {}.{}: expected 2", .0 >> 8, .0 & 0xff)]
    Version(u16),
}

#[cfg(test)]
mod tests;
