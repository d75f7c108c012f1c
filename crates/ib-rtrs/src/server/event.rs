//! What a server tells its user.

use ib_types::{Gid, Mtu};
use ib_wire::mad::cm::RejectReason;

use crate::{Direction, Errno};

/// The number of a session. One that begins again after its last path was lost has another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(super) key: u32,
    pub(super) incarnation: u32,
}

/// The number of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerPathId {
    pub(super) index: u32,
    pub(super) serial: u32,
}

/// The number of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerRequestId {
    pub(super) path: ServerPathId,
    pub(super) serial: u32,
    pub(super) chunk: u16,
}

/// A request of a client. It has to be answered with [`Server::complete`](super::Server::complete), whatever becomes of
/// its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// Its number.
    pub id: ServerRequestId,
    /// The session.
    pub session: SessionId,
    /// The path that it came over.
    pub path: ServerPathId,
    /// Which way the data goes.
    pub direction: Direction,
    /// The chunk, which no other request of the session has until this one is answered: one that a client sends again
    /// over another path meanwhile is told of after that.
    pub chunk: u16,
    /// Where the user's header lies in the session's memory. The client may change it meanwhile if it likes, so whoever
    /// believes in what it says reads it once.
    pub header_offset: usize,
    /// How long the header is in bytes.
    pub header_length: u32,
    /// Where the data lies in the session's memory, or has to be put.
    pub data_offset: usize,
    /// How long the data is in bytes, or may become.
    pub data_length: u32,
    /// The processor that has found it.
    pub cpu: u32,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// A session has begun: the first of its paths is connected.
    SessionUp {
        /// The session.
        session: SessionId,
        /// Its name.
        name: Vec<u8>,
    },
    /// A session has ended: none of its paths is connected any more. What its client has opened is closed.
    SessionDown {
        /// The session.
        session: SessionId,
    },
    /// A path is connected.
    PathUp {
        /// Its session.
        session: SessionId,
        /// The path.
        path: ServerPathId,
    },
    /// A path is not connected any more.
    PathDown {
        /// Its session.
        session: SessionId,
        /// The path.
        path: ServerPathId,
        /// Why.
        why: EndReason,
    },
    /// A connection is refused.
    Refused {
        /// Who has asked for it, as its packets say.
        from: Gid,
        /// Why.
        why: Refusal,
    },
}

/// Why a connection is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// By this server, which tells the client so.
    #[error("{0}")]
    Errno(Errno),
    /// By what the connection manager knows.
    #[error("{0}")]
    Reason(RejectReason),
    /// By the path MTU; the largest one that the HCA carries.
    #[error("invalid path MTU: the adapter carries {0:?}")]
    Mtu(Mtu),
}

/// Why a path has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndReason {
    /// The client has not finished what it has begun in time.
    #[error("the client has not connected the path in time")]
    Silent,
    /// Heartbeats are not answered.
    #[error("heartbeats are not answered")]
    Heartbeat,
    /// The client has ended it.
    #[error("the client has ended the connection")]
    Disconnected,
    /// The client has not gone on with a connection.
    #[error("the client has not gone on with a connection")]
    Refused,
    /// The client has connected it again.
    #[error("the client has connected the path anew")]
    Replaced,
    /// The client takes it for dead.
    #[error("the client takes the path for dead")]
    Fenced,
    /// What was sent, or came in, failed.
    #[error("the transport failed: {0:?}")]
    Transport(ib_hca::WcStatus),
    /// The port has no link.
    #[error("the port has no link")]
    LinkDown,
    /// The user wants it so.
    #[error("it is not wanted any more")]
    Unwanted,
    /// The path was half-open and was closed in favour of another one.
    #[error("the path was half-open, and others needed its place")]
    HalfOpen,
    /// The client does not know the key.
    #[error("the client does not know the key")]
    Unproven,
    /// The client has said something that makes no sense.
    #[error("the client has sent {0}")]
    Protocol(&'static str),
    /// The HCA cannot create the objects of the path.
    #[error("the adapter has no more of what a path needs")]
    Setup,
}
