//! What can go wrong.

use std::time::Duration;

use ib_link::LinkError;
use ib_wire::mad::rmpp::RmppStatus;
use ib_wire::mad::{Method, MgmtClass};

/// Why a request cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The method is never answered, or is an answer itself.
    #[error("nothing answers method {method} of class {class}")]
    NoAnswer {
        /// The class of the request.
        class: MgmtClass,
        /// Its method.
        method: Method,
    },
    /// The class has no messages of several segments, or the message is too long for one.
    #[error("{length} bytes do not make a message of class {class}")]
    NoMessage {
        /// The class of the request.
        class: MgmtClass,
        /// The length of the data in bytes.
        length: usize,
    },
}

/// Why a transfer or a request ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Nothing came back in time.
    #[error("no answer to {attempts} attempts within {waited:?}")]
    TimedOut {
        /// How often it was sent.
        attempts: u32,
        /// The time since it was first sent.
        waited: Duration,
    },
    /// The link knows that it was lost, and no attempt is left.
    #[error("the link lost the request, {attempts} attempts")]
    Lost {
        /// How often it was sent.
        attempts: u32,
    },
    /// This end gave up a message of several segments.
    #[error("gave up the message: {status}")]
    Aborted {
        /// What the other end did.
        status: RmppStatus,
    },
    /// The other end gave up a message of several segments.
    #[error("the other end gave up the message: {status}")]
    Refused {
        /// What it says.
        status: RmppStatus,
    },
}

/// Why a message cannot be sent as a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The class has no messages of several segments, or the message is too long.
    #[error("{length} bytes do not make a message of class {class}")]
    NoMessage {
        /// The class of the response.
        class: MgmtClass,
        /// The length of the data in bytes.
        length: usize,
    },
    /// The response to the same request, sent twice, is under way.
    #[error("a response to this request is under way")]
    UnderWay,
    /// Too many responses are under way.
    #[error("{transfers} responses are under way, more are not allowed")]
    TooMany {
        /// How many.
        transfers: usize,
    },
    /// Requests and responses together would hold more bytes than they may.
    #[error("a response of {length} bytes has no room, {free} are free")]
    NoRoom {
        /// The length of the data in bytes.
        length: usize,
        /// How many bytes there is room for.
        free: usize,
    },
}

/// Why a blocking call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request cannot be started.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The request ended without an answer.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The link carries nothing any more.
    #[error(transparent)]
    Link(#[from] LinkError),
}
