//! Requests: their data and their IDs.

use crate::Direction;

/// The number of a registered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub(super) u32);

/// A part of a registered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset of the part in the buffer, in bytes.
    pub offset: usize,
    /// Length of the part in bytes.
    pub length: u32,
}

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(super) slot: u16,
    pub(super) generation: u32,
}

/// A request to a server.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The processor that submits the request.
    pub cpu: u32,
    /// The direction of the data.
    pub direction: Direction,
    /// The user's header. The server passes it to its own user.
    pub header: &'a [u8],
    /// The data to write, or the buffers to read into. The user must not change them until the request has completed.
    pub data: &'a [Segment],
    /// A number chosen by the user. The completion returns it.
    pub user: u64,
    /// True to send the request over the first connection, which carries no block requests.
    pub is_admin: bool,
}
