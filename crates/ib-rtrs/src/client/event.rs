//! Events of a session, completions of requests, and errors.

use ib_hca::WcStatus;
use ib_wire::mad::cm::RejectReason;

use super::{PathId, RequestId};
use crate::Errno;
use crate::connection::SetupError;

/// An event of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// All paths that were added are connected.
    Up,
    /// No path is connected any more. The server closes all objects of the session.
    Lost,
    /// A path is connected again after all were lost.
    Restored,
    /// A path is connected.
    PathUp(PathId),
    /// A path that was connected, or was to be, is not. Unless it was the user's wish or the last attempt, it is
    /// connected again after a while.
    PathDown {
        /// The path.
        path: PathId,
        /// Why.
        why: Failure,
        /// Whether it is tried again.
        retried: bool,
    },
    /// A path that was to be disconnected is, and the server knows, or has not answered.
    PathDisconnected(PathId),
    /// A path that was to be removed is.
    PathRemoved(PathId),
    /// The session has ended.
    Closed,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request.
    pub id: RequestId,
    /// The user's number of the request.
    pub user: u64,
    /// How the request has ended.
    pub outcome: Outcome,
    /// The processor that has found it.
    pub cpu: u32,
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The server has answered with this status.
    Answered(Errno),
    /// All paths, or the session's objects at the server, were lost. The server has confirmed that it executes nothing of
    /// the request any more, so that it can be repeated without danger to later writes.
    Fenced,
    /// The path has failed, and the server may have executed the request, or may execute it later.
    Unknown,
    /// The server has not confirmed the fence of the failed path in time, so the state is unknown as well.
    TimedOut,
}

impl Outcome {
    /// Returns the status of the request: [`Errno::ECONNABORTED`] or [`Errno::ETIMEDOUT`] if there was no answer.
    #[must_use]
    pub const fn errno(self) -> Errno {
        match self {
            Self::Answered(errno) => errno,
            Self::Fenced | Self::Unknown => Errno::ECONNABORTED,
            Self::TimedOut => Errno::ETIMEDOUT,
        }
    }
}

/// Why a path is not connected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server refuses it.
    #[error("the server refuses the path: {0}")]
    Refused(Errno),
    /// The connection manager of the server refuses it, for example because no server listens.
    #[error("the connection is refused: {0}")]
    Rejected(RejectReason),
    /// The server does not answer.
    #[error("nobody answers")]
    Unreachable,
    /// It was not connected in time.
    #[error("the path was not connected in time")]
    Silent,
    /// Heartbeats are not answered.
    #[error("heartbeats are not answered")]
    Heartbeat,
    /// A request took too long.
    #[error("a request took too long")]
    IoTimeout,
    /// A work request has failed.
    #[error("the transport failed: {0:?}")]
    Transport(WcStatus),
    /// The server has ended it.
    #[error("the server has ended the connection")]
    Disconnected,
    /// The server has begun the session anew with another path, as it takes all others for dead; so this one is.
    #[error("the server has forgotten the path")]
    Forgotten,
    /// The port has no link.
    #[error("the port has no link")]
    LinkDown,
    /// The user wants it so.
    #[error("it is not wanted any more")]
    Unwanted,
    /// The server has another number of chunks than before.
    #[error("the server has {found} chunks: expected {expected}, as before")]
    QueueDepth {
        /// How many it has.
        found: u16,
        /// How many it had.
        expected: u16,
    },
    /// The server takes shorter requests than before.
    #[error("the server takes requests of {found} bytes: expected {expected}, as before")]
    MaxIoSize {
        /// How long they may be.
        found: u32,
        /// How long they might be.
        expected: u32,
    },
    /// The server does not know the key.
    #[error("the server does not know the key")]
    Unproven,
    /// The server has sent an invalid message.
    #[error("the server has sent {0}")]
    Protocol(&'static str),
    /// The HCA cannot create the objects of the path.
    #[error(transparent)]
    Setup(#[from] SetupError),
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// As many are under way as may be: it can be made when one has ended.
    #[error("{0} requests are under way and no more may be")]
    NoPermit(u16),
    /// No path is connected.
    #[error("no path is connected")]
    NoPath,
    /// There is more data than fits.
    #[error("{found} bytes of data: expected at most {most}")]
    TooLong {
        /// How much there is.
        found: u64,
        /// How much there may be.
        most: u32,
    },
    /// The header is longer than fits.
    #[error("a header of {found} bytes: expected at most {most}")]
    HeaderTooLong {
        /// How long it is.
        found: usize,
        /// How long it may be.
        most: u32,
    },
    /// A piece of memory is none of a buffer that is registered.
    #[error("piece {0} of memory is not within a registered buffer")]
    Segment(usize),
}
