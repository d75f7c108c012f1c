//! Private data of CM messages: the client sends a [`ConnectRequest`], the server sends a
//! [`ConnectResponse`].

use super::{MAGIC, RtrsError, VERSION};
use crate::le_layout::{le_field, le_layout};
use crate::mad::masks;

le_layout! {
    /// The private data of a REQ, after the `rdma_cm` header.
    ///
    /// ```text
    ///  0 zero (2)       2 magic (2)      4 version (2)
    ///  6 connection (2) 8 connections (2) 10 reconnects (2)
    /// 12 path UUID (16)
    /// 28 session UUID (16)
    /// 44 first connection (1)           45 zero (11)
    /// ```
    pub struct ConnectRequest: 56 {
        /// [`MAGIC`].
        pub magic: u16 = 2,
        /// [`VERSION`].
        pub version: u16 = 4,
        /// The index of the connection in its path. Connection 0 carries info messages and
        /// heartbeats.
        pub connection: u16 = 6,
        /// The number of connections of the path.
        pub connections: u16 = 8,
        /// How many times the client has tried to connect the path, including this attempt; modulo 2^16.
        pub reconnects: u16 = 10,
        /// The UUID of the path.
        pub path_uuid: [u8; 16] = 12,
        /// The UUID of the session, which all paths between a client and a server share.
        pub session_uuid: [u8; 16] = 28,
        /// Bit 0: 1 if the server may create the session, 0 if the session must already exist.
        pub first_connection: u8 = 44,
    }
}

masks! {
    /// The flags of a [`ConnectResponse`].
    ConnectFlags(u32) {
        /// The R_Key of a chunk is valid for one request. With each response, the server sends a new one.
        NEW_KEYS = 1 "new keys",
    }
}

le_field!(ConnectFlags);

le_layout! {
    /// The private data of a REP or a REJ.
    ///
    /// ```text
    ///  0 magic (2)          2 version (2)
    ///  4 error (2)          6 queue depth (2)
    ///  8 longest I/O (4)   12 longest header (4)
    /// 16 flags (4)         20 zero (36)
    /// ```
    pub struct ConnectResponse: 56 {
        /// [`MAGIC`].
        pub magic: u16 = 0,
        /// [`VERSION`].
        pub version: u16 = 2,
        /// 0 in a REP; a negative Linux error number in a REJ.
        pub error: i16 = 4,
        /// The number of chunks of the server, which is the maximum number of outstanding requests.
        pub queue_depth: u16 = 6,
        /// The maximum data length of a request, in bytes.
        pub max_io_size: u32 = 8,
        /// The maximum length in bytes of a request without its data: user header and message together.
        pub max_header_size: u32 = 12,
        /// The flags of the server.
        pub flags: ConnectFlags = 16,
    }
}

impl ConnectRequest {
    /// Parses the private data that follows the `rdma_cm` header, and checks its magic number and
    /// version.
    ///
    /// # Errors
    /// Fails if the data is truncated, or if the magic number or the major version is wrong.
    pub fn read(bytes: &[u8]) -> Result<Self, RtrsError> {
        let request = Self::parse(first(bytes, "the RTRS connect request")?);
        check(request.magic, request.version).map(|()| request)
    }
}

impl ConnectResponse {
    /// Parses the private data of a REP or a REJ, and checks its magic number and version.
    ///
    /// # Errors
    /// Fails if the data is truncated, or if the magic number or the major version is wrong.
    pub fn read(bytes: &[u8]) -> Result<Self, RtrsError> {
        let response = Self::parse(first(bytes, "the RTRS connect response")?);
        check(response.magic, response.version).map(|()| response)
    }
}

/// Returns the first `N` bytes. If there are fewer, the error names the message `what`.
pub(super) fn first<'a, const N: usize>(
    bytes: &'a [u8],
    what: &'static str,
) -> Result<&'a [u8; N], RtrsError> {
    bytes.first_chunk().ok_or(RtrsError::Truncated { what, expected: N, found: bytes.len() })
}

fn check(magic: u16, version: u16) -> Result<(), RtrsError> {
    if magic != MAGIC {
        return Err(RtrsError::Magic(magic));
    }
    if version >> 8 != VERSION >> 8 {
        return Err(RtrsError::Version(version));
    }
    Ok(())
}
