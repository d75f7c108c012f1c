//! Events of a session, completions of requests, and errors.

use std::time::Duration;

use ib_hca::WcStatus;
use ib_wire::mad::cm::RejectReason;

use super::{PathId, RequestId};
use crate::Errno;
use crate::connection::SetupError;

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The session is up: a path is connected, and each other path has been connected or has failed once.
    Up,
    /// The last connected path was lost. The server closes all objects that the session had opened, such as devices.
    Lost,
    /// A path is connected again after all paths were lost.
    Restored,
    /// A path is connected.
    PathUp(PathId),
    /// A path has failed, or could not be connected.
    PathDown {
        /// The path.
        path: PathId,
        /// The reason.
        why: Failure,
        /// True if the client will reconnect the path after a delay.
        retried: bool,
    },
    /// A path was disconnected. The server has confirmed the disconnect, or has not responded in time.
    PathDisconnected(PathId),
    /// A path was removed.
    PathRemoved(PathId),
    /// The session is closed.
    Closed,
}

/// The completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub id: RequestId,
    /// The number that the user has given to the request.
    pub user: u64,
    /// The result of the request.
    pub outcome: Outcome,
    /// The processor that received the response. If there was no response, the processor that submitted the request.
    pub cpu: u32,
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has responded with this status code.
    Answered(Errno),
    /// The path has failed, and the client has not retransmitted the request: all paths were lost, or the user has
    /// recalled the request ([`Client::recall`](super::Client::recall)). The server has confirmed that it no longer
    /// executes the request, so the user can safely repeat the request.
    Fenced,
    /// The path has failed. The server may have executed the request, or may still execute it later.
    Unknown,
    /// The server has not confirmed the fence of the failed path in time. It may have executed the request, or may
    /// still execute it later.
    TimedOut,
}

impl Outcome {
    /// Returns the status of the request. If there was no response, returns [`Errno::ECONNABORTED`] or
    /// [`Errno::ETIMEDOUT`].
    #[must_use]
    pub const fn errno(self) -> Errno {
        match self {
            Self::Answered(errno) => errno,
            Self::Fenced | Self::Unknown => Errno::ECONNABORTED,
            Self::TimedOut => Errno::ETIMEDOUT,
        }
    }
}

/// The reason why a path is not connected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server refuses the path.
    #[error("the server refuses the path: {0}{why}", why = meaning(*.0))]
    Refused(Errno),
    /// The connection manager of the server has sent a REJ, for example because no server listens.
    #[error("the connection was rejected: {0}")]
    Rejected(RejectReason),
    /// The server does not respond to the REQ.
    #[error("the server does not respond to the connection request (REQ)")]
    Unreachable,
    /// The path was not connected in time. The value is the timeout.
    #[error("the path was not connected within {} s", .0.as_secs_f64())]
    ConnectTimeout(Duration),
    /// The server does not respond to heartbeats.
    #[error("the server does not respond to heartbeats")]
    Heartbeat,
    /// A request was in flight for longer than [`io_timeout`](super::ClientConfig::io_timeout). The value is this
    /// timeout.
    #[error("the server has not completed a request within {} s", .0.as_secs_f64())]
    IoTimeout(Duration),
    /// A work request has failed.
    #[error("the transport failed: {0:?}")]
    Transport(WcStatus),
    /// The server has disconnected the path.
    #[error("the server has disconnected the path")]
    Disconnected,
    /// The server has lost its state of the session, and has created the session again on another path.
    #[error("the server has restarted the session")]
    SessionRestarted,
    /// The port of the path's HCA has no link.
    #[error("the local port of the path has no link")]
    LinkDown,
    /// The user has disconnected, removed or reconnected the path.
    #[error("the path was closed locally")]
    ClosedLocally,
    /// On this path, the queue depth of the server differs from that on earlier paths.
    #[error("the server has {found} chunks: expected {expected}, as on earlier paths")]
    QueueDepth {
        /// Number of chunks that the server offers.
        found: u16,
        /// Number of chunks that the server offered on earlier paths.
        expected: u16,
    },
    /// On this path, the server accepts only shorter request data than on earlier paths.
    #[error(
        "the server accepts requests of up to {found} bytes: expected {expected}, as on earlier paths"
    )]
    MaxIoSize {
        /// Maximum data length of a request that the server accepts on this path, in bytes.
        found: u32,
        /// Maximum data length of a request in this session, in bytes.
        expected: u32,
    },
    /// The server has not proven that it has the shared key.
    #[error("the server does not have the configured key")]
    WrongKey,
    /// The server has sent an invalid message.
    #[error("the server has sent {0}")]
    Protocol(&'static str),
    /// The HCA cannot create the objects of the path.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Returns the meaning of an error with which the server refuses a path. The text of [`Failure::Refused`] appends this
/// meaning to the name of the error.
const fn meaning(errno: Errno) -> &'static str {
    match errno {
        Errno::EACCES => ", the server does not allow this client, or requires a key",
        Errno::ENOMEM => ", the server has no memory, or its maximum number of sessions",
        _ => "",
    }
}

/// The reason why a request was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// All chunks of the server are in use. After a completion, the request can be submitted again.
    #[error("all {0} chunks of the server are in use: submit the request again after a completion")]
    NoPermit(u16),
    /// No path is connected.
    #[error("no path is connected")]
    NoPath,
    /// The data is longer than the server accepts.
    #[error("the request has {found} bytes of data: expected at most {most}")]
    TooLong {
        /// Length of the data in bytes.
        found: u64,
        /// Maximum length in bytes.
        most: u32,
    },
    /// The user's header is longer than the server accepts.
    #[error("the header of the request has {found} bytes: expected at most {most}")]
    HeaderTooLong {
        /// Length of the header in bytes.
        found: usize,
        /// Maximum length in bytes.
        most: u32,
    },
    /// A data segment is not within a registered buffer. The value is the index of the segment.
    #[error("data segment {0} is not within a registered buffer")]
    Segment(usize),
}
