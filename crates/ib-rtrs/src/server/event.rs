//! Configuration, events and requests of a server.

use std::time::Duration;

use ib_types::{Gid, Mtu};
use ib_wire::mad::cm::RejectReason;

use crate::{Direction, Errno, Heartbeats, SharedKey, Transport};

/// Identifies a session of a server. A session that restarts after the loss of all its paths gets another ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(super) key: u32,
    pub(super) incarnation: u32,
}

/// Identifies a path of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerPathId {
    pub(super) index: u32,
    pub(super) serial: u32,
}

/// Identifies a request that a server has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRequestId {
    pub(super) path: ServerPathId,
    pub(super) serial: u32,
    pub(super) chunk: u16,
}

/// A request of a client. The user has to complete it with [`Server::complete`](super::Server::complete), even if its
/// path has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// The ID of the request.
    pub id: ServerRequestId,
    /// The session.
    pub session: SessionId,
    /// The path over which the request arrived.
    pub path: ServerPathId,
    /// The direction of the data.
    pub direction: Direction,
    /// The chunk of the request. If a retransmission arrives in this chunk over another path,
    /// [`Server::poll_request`](super::Server::poll_request) returns it only after this request has completed.
    pub chunk: u16,
    /// Offset of the user's header in the session's memory. The client may be able to change the header, so read it
    /// only once.
    pub header_offset: usize,
    /// Length of the header in bytes.
    pub header_length: u32,
    /// Offset in the session's memory of the written data, or of the buffer for READ data.
    pub data_offset: usize,
    /// Length in bytes of the written data, or maximum length in bytes of the READ data.
    pub data_length: u32,
    /// The processor that polled the completion by which the request arrived.
    pub cpu: u32,
}

/// An event of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A session has started: a path is connected, and no other path of the session is connected.
    SessionUp {
        /// The session.
        session: SessionId,
        /// The name of the session.
        name: Vec<u8>,
    },
    /// A session has ended, because none of its paths is connected. The server's user must close the objects that it
    /// has opened for the session, such as block devices.
    SessionDown {
        /// The session.
        session: SessionId,
    },
    /// A path is connected.
    PathUp {
        /// The session of the path.
        session: SessionId,
        /// The path.
        path: ServerPathId,
    },
    /// A path is no longer connected.
    PathDown {
        /// The session of the path.
        session: SessionId,
        /// The path.
        path: ServerPathId,
        /// The reason.
        why: EndReason,
    },
    /// A connection was refused.
    Refused {
        /// GID of the client, taken from its packets.
        from: Gid,
        /// The reason.
        why: Refusal,
    },
}

/// The reason why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// Error number, which the connect response reports.
    #[error("{0}{why}", why = meaning(*.0))]
    Errno(Errno),
    /// Reject reason, which the connection manager reports in the REJ.
    #[error("{0}{why}", why = cause(*.0))]
    Reason(RejectReason),
    /// The requested path MTU exceeds that of the HCA. The value is the MTU of the HCA.
    #[error("invalid path MTU: expected at most {} bytes, the MTU of the HCA", .0.bytes())]
    Mtu(Mtu),
}

/// Returns why the server refuses a connection with an error number. The text of [`Refusal::Errno`] appends the reason.
const fn meaning(errno: Errno) -> &'static str {
    match errno {
        Errno::EACCES => ", the client's address is not allowed, or the client has no key",
        Errno::ENOMEM => ", the server has no memory, or its maximum number of sessions",
        Errno::ENXIO => ", the server has lost or closed the session",
        Errno::EEXIST => ", the session already has a path between these addresses",
        Errno::ECONNRESET => ", the connect request is invalid or outdated",
        _ => "",
    }
}

/// Returns why the server refuses a connection with a reject reason. The text of [`Refusal::Reason`] appends the cause.
const fn cause(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::CONSUMER => ", the HCA is not in the partition that the client requests",
        RejectReason::PRIMARY_GID => ", it differs from the GID that sent the request",
        _ => "",
    }
}

/// The reason why the server has closed a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndReason {
    /// The path was not connected in time. The value is the timeout.
    #[error("the client has not connected the path within {} s", .0.as_secs_f64())]
    ConnectTimeout(Duration),
    /// The client does not respond to heartbeats.
    #[error("the client does not respond to heartbeats")]
    Heartbeat,
    /// The client has disconnected the path.
    #[error("the client has disconnected the path")]
    Disconnected,
    /// The client has rejected the REP of a connection, or has not sent an RTU in time.
    #[error("the client has rejected a connection, or has not confirmed it in time (RTU)")]
    HandshakeFailed,
    /// The client has reconnected the path.
    #[error("the client has reconnected the path")]
    Replaced,
    /// The client has requested a fence of the path.
    #[error("the client has fenced the path, so that its late requests are not executed")]
    Fenced,
    /// A work request has failed.
    #[error("a work request of the path has failed: {0:?}")]
    Transport(ib_hca::WcStatus),
    /// The HCA port of the path has no link.
    #[error("the HCA port of the path has no link")]
    LinkDown,
    /// The user has disconnected the path.
    #[error("the path was closed locally")]
    ClosedLocally,
    /// The path was half-open, and was closed to make room for another half-open path.
    #[error("the path was half-open, and the limit of half-open paths was reached")]
    HalfOpen,
    /// The client has not proven that it has the shared key.
    #[error(
        "the client does not have the configured key: expected the same key (--key-file) at both ends"
    )]
    WrongKey,
    /// The client has sent an invalid message.
    #[error("the client has sent {0}")]
    Protocol(&'static str),
    /// The HCA was removed, or has refused a call for the path, for example to create a queue pair.
    #[error("the HCA was removed, or has refused an operation of the path")]
    Setup,
}

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// Maximum number of requests in flight per session, 1 to 8192.
    pub queue_depth: u16,
    /// Maximum length of the data of a request in bytes.
    pub max_io_size: u32,
    /// Maximum total length of the user's header and the RTRS message that follows it, in bytes, 64 to 65536.
    pub max_header_size: u32,
    /// True if the key of a chunk is valid for one request only; each response then has a new key. If false, a client
    /// can change the data of a request while the server executes the request.
    pub always_invalidate: bool,
    /// True if clients of this project may fence failed paths; see [`ClientConfig::fence`](crate::ClientConfig::fence).
    pub fence: bool,
    /// The shared key: the server accepts only clients that prove that they have it. If `None`, the server accepts
    /// clients without this proof, such as those of Linux.
    pub key: Option<SharedKey>,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// Time limit for establishing a path.
    pub connect_timeout: Duration,
    /// Heartbeats by which the server detects dead clients.
    pub heartbeats: Heartbeats,
    /// Timeouts and retries of the queue pairs.
    pub transport: Transport,
}

impl Default for ServerConfig {
    /// The default values are those of Linux: 512 requests of up to 124 KiB with headers of up to 4 KiB, and a new key
    /// for each request.
    fn default() -> Self {
        Self {
            queue_depth: 512,
            max_io_size: 126_976,
            max_header_size: 4096,
            always_invalidate: true,
            fence: true,
            key: None,
            max_sessions: 1024,
            connect_timeout: Duration::from_secs(60),
            heartbeats: Heartbeats::default(),
            transport: Transport::default(),
        }
    }
}

impl ServerConfig {
    /// Returns the size of a chunk in bytes.
    #[must_use]
    pub const fn chunk_size(&self) -> u32 {
        self.max_io_size.saturating_add(self.max_header_size)
    }

    /// Returns the offset at which a chunk's READ data is stored in the memory of a session. READ data is stored after
    /// all chunks.
    pub(super) fn read_offset(&self, chunk: u16) -> usize {
        (usize::from(self.queue_depth) + usize::from(chunk)) * self.chunk_size() as usize
    }

    /// Limits queue depth and lengths. The 28-bit payload of immediate data can then address each byte of all chunks,
    /// whose total size fits in 32 bits.
    pub(super) fn clamped(mut self) -> Self {
        self.queue_depth = self.queue_depth.clamp(1, 8192);
        self.max_header_size = self.max_header_size.clamp(64, 65_536);
        let bits = u16::BITS - (self.queue_depth - 1).leading_zeros();
        let most = (1_u32 << (28 - bits)).min(u32::MAX / u32::from(self.queue_depth));
        self.max_header_size = self.max_header_size.min(most / 2);
        self.max_io_size = self.max_io_size.clamp(512, most - self.max_header_size);
        self
    }
}
