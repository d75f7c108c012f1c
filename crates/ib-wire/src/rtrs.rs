//! RTRS, version 2.0: block transport over several paths of reliable connections, as in the Linux
//! kernel's `rtrs-pri.h`.
//!
//! A path is a set of connections between two addresses. Connection parameters are sent in the
//! private data of REQ, REP and REJ. Other messages are sent with SEND, or at the end of the data
//! that the client writes into a chunk of the server's memory. Immediate data announces requests,
//! responses and heartbeats. Messages are little-endian. Immediate data is a header field of the
//! packet, and therefore big-endian.
//!
//! | module | contents |
//! |---|---|
//! | [`connect`] | [`ConnectRequest`], [`ConnectResponse`]: private data of the CM messages |
//! | [`message`] | [`Message`]: info, read, write, R_Key updates |
//! | [`extension`] | [`Extension`], [`Fence`], [`Fenced`], [`Proof`]: the extension of ibfabric |
//! | [`immediate`] | [`Immediate`]: immediate data of requests, responses and heartbeats |
//!
//! ```
//! use ib_wire::rtrs::{Immediate, ImmediateKind};
//!
//! // The server has 512 chunks. The message of a request is at byte 0x1020 of chunk 1.
//! let immediate = Immediate::request(512, 1, 0x1020);
//! assert_eq!(immediate, Immediate(0x0008_1020));
//! let ImmediateKind::Request { payload } = immediate.kind() else { panic!("not a request") };
//! assert_eq!(Immediate::chunk_and_offset(payload, 512), (1, 0x1020));
//! ```

pub mod connect;
pub mod extension;
pub mod immediate;
pub mod message;

pub use connect::{ConnectFlags, ConnectRequest, ConnectResponse};
pub use extension::{Capabilities, Extension, Fence, Fenced, Proof};
pub use immediate::{Immediate, ImmediateKind};
pub use message::{
    Descriptor, Descriptors, InfoHeader, InfoRequest, Message, MessageType, ReadFlags, ReadHeader,
    RkeyResponse, WriteHeader,
};

/// The magic number of RTRS in private data.
pub const MAGIC: u16 = 0x1bbd;

/// The protocol version. The upper byte is the major version, which must be equal at both ends.
pub const VERSION: u16 = 0x0200;

/// The default `rdma_cm` port of RNBD servers.
pub const PORT: u16 = 1234;

/// The reason why private data or a message cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RtrsError {
    /// The message is truncated.
    #[error("{what} has {found} bytes: expected at least {expected}")]
    Truncated {
        /// The name of the truncated message, or of its truncated part.
        what: &'static str,
        /// The minimum length of the message or part in bytes.
        expected: usize,
        /// The number of bytes of the message or part that were found.
        found: usize,
    },
    /// The magic number of the private data is wrong.
    #[error("the RTRS magic number is 0x{0:04x}: expected 0x1bbd")]
    Magic(u16),
    /// The major version of the peer is not supported.
    #[error("the RTRS version is {}.{}: expected 2", .0 >> 8, .0 & 0xff)]
    Version(u16),
}

#[cfg(test)]
mod tests;
