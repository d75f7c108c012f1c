//! What the ends of a connection tell each other while it is made.

use super::{MAGIC, RtrsError, VERSION};
use crate::little::{little, little_field};
use crate::mad::masks;

little! {
    /// The private data of a REQ, behind the header of `rdma_cm`.
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
        /// Which connection of the path it is; 0 carries information and heartbeats.
        pub connection: u16 = 6,
        /// How many connections the path has.
        pub connections: u16 = 8,
        /// How often the path was connected, this time included.
        pub reconnects: u16 = 10,
        /// The path.
        pub path_uuid: [u8; 16] = 12,
        /// The session, which all paths of a client to a server share.
        pub session_uuid: [u8; 16] = 28,
        /// Bit 0: the session may be a new one.
        pub first_connection: u8 = 44,
    }
}

masks! {
    /// What a server says of itself.
    ConnectFlags(u32) {
        /// The remote key of a chunk changes with every request.
        NEW_KEYS = 1 "new keys",
    }
}

little_field!(ConnectFlags);

little! {
    /// The private data of a REP, and of a REJ.
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
        /// 0 in a REP; a negative error number of Linux in a REJ.
        pub error: i16 = 4,
        /// How many chunks there are, and so requests at once.
        pub queue_depth: u16 = 6,
        /// The longest data of a request in bytes.
        pub max_io_size: u32 = 8,
        /// The longest header of a request, the message included, in bytes.
        pub max_header_size: u32 = 12,
        /// What the server does.
        pub flags: ConnectFlags = 16,
    }
}

impl ConnectRequest {
    /// Reads private data behind the header of `rdma_cm`, and checks what it starts with.
    ///
    /// # Errors
    /// Fails for other private data, and for another major version.
    pub fn read(bytes: &[u8]) -> Result<Self, RtrsError> {
        let request = Self::parse(first(bytes, "a request of RTRS")?);
        check(request.magic, request.version).map(|()| request)
    }
}

impl ConnectResponse {
    /// Reads private data, and checks what it starts with.
    ///
    /// # Errors
    /// Fails for other private data, and for another major version.
    pub fn read(bytes: &[u8]) -> Result<Self, RtrsError> {
        let response = Self::parse(first(bytes, "a response of RTRS")?);
        check(response.magic, response.version).map(|()| response)
    }
}

/// Returns the first bytes, if there are so many.
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
