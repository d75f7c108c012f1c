//! Errors of requests, responses and blocking calls.

use std::time::Duration;

use ib_link::LinkError;
use ib_wire::mad::rmpp::RmppStatus;
use ib_wire::mad::{Method, MgmtClass};

/// Error of starting a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The method has no response.
    #[error(
        "the method {method} of class {class} has no response: expected Get, Set or another request"
    )]
    NoAnswer {
        /// The class of the request.
        class: MgmtClass,
        /// The method of the request.
        method: Method,
    },
    /// The class does not use RMPP, or the message is too long.
    #[error(
        "a message of {length} bytes cannot be sent in class {class}: expected a class with RMPP and less than 4 GiB"
    )]
    NoMessage {
        /// The class of the request.
        class: MgmtClass,
        /// The length of the request's data in bytes.
        length: usize,
    },
}

/// The reason why a request or a transfer has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// No response or ACK was received in time.
    #[error("no response or ACK to {attempts} transmissions within {waited:?}")]
    TimedOut {
        /// The number of attempts, including the first one.
        attempts: u32,
        /// The time from the first attempt to the failure.
        waited: Duration,
    },
    /// The link has reported the loss of the last attempt.
    #[error("the link has lost the last of {attempts} transmissions")]
    Lost {
        /// The number of attempts, including the first one.
        attempts: u32,
    },
    /// The requester or responder that returns this error has aborted an RMPP transfer.
    #[error("the RMPP transfer was aborted locally: {status}")]
    Aborted {
        /// The RMPP status that states the cause, for example a protocol violation.
        status: RmppStatus,
    },
    /// The peer has stopped or aborted an RMPP transfer.
    #[error("the peer has stopped or aborted the RMPP transfer: {status}")]
    Refused {
        /// The RMPP status with which the peer stopped or aborted the transfer.
        status: RmppStatus,
    },
}

/// Error of sending a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RespondError {
    /// The class does not use RMPP, or the message is too long.
    #[error(
        "a message of {length} bytes cannot be sent in class {class}: expected a class with RMPP and less than 4 GiB"
    )]
    NoMessage {
        /// The class of the response.
        class: MgmtClass,
        /// The length of the response's data in bytes.
        length: usize,
    },
    /// A response to the same request is already being sent.
    #[error("a response to this request is already being sent")]
    UnderWay,
    /// The maximum number of responses is being sent.
    #[error("{transfers} responses are being sent, which is the maximum")]
    TooMany {
        /// The number of responses that are being sent.
        transfers: usize,
    },
    /// The response exceeds the memory limit of all requests and responses.
    #[error("a response of {length} bytes exceeds the memory limit: {free} bytes are free")]
    NoRoom {
        /// The length of the response's data in bytes.
        length: usize,
        /// The free part of the memory limit in bytes.
        free: usize,
    },
}

/// Error of a blocking call.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The request is invalid.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The request has ended without a response.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The link has failed.
    #[error(transparent)]
    Link(#[from] LinkError),
}
