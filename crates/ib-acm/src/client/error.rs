//! How asking a service fails.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ib_wire::acm::ClientStatus;

use super::{ReplyError, ServiceAddress};
use crate::Address;

/// Why something cannot be asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The ends of a path are not of one sort.
    #[error("a path from {0} to {1}: expected names and IP addresses, two GIDs or two LIDs")]
    Mixed(Address, Address),
    /// No endpoint has such an address.
    #[error("the endpoint with {0}: expected a name or an IP address")]
    NoEndpoint(Address),
}

/// Why a client has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// There is no connection.
    #[error("no connection to {service}: {error}")]
    Connect {
        /// Where the service was expected.
        service: ServiceAddress,
        /// Why there is none.
        error: Arc<io::Error>,
    },
    /// The connection has failed, and so does whatever is asked on it further.
    #[error("the connection to {service} failed: {error}")]
    Broken {
        /// Address of the service.
        service: ServiceAddress,
        /// Why it failed.
        error: Arc<io::Error>,
    },
    /// The service closed the connection. All further requests on it fail.
    #[error("{service} ended the connection, {incomplete} bytes into an answer")]
    Closed {
        /// Address of the service.
        service: ServiceAddress,
        /// Number of received bytes of an incomplete reply.
        incomplete: usize,
    },
    /// The service sent an invalid reply. All further requests on the connection fail.
    #[error("{service} does not speak the protocol: {error}")]
    Reply {
        /// Address of the service.
        service: ServiceAddress,
        /// The found and the expected value.
        error: ReplyError,
    },
    /// No reply was received in time.
    #[error("no answer from {service} within {} s", .limit.as_secs_f64())]
    Timeout {
        /// Address of the service.
        service: ServiceAddress,
        /// The time limit.
        limit: Duration,
    },
    /// The service rejected the request with this status.
    #[error("the service refuses: {} (status {})", .0, .0.0)]
    Refused(ClientStatus),
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl ClientError {
    /// Returns the corresponding kind of system error.
    ///
    /// | status | kind |
    /// |---|---|
    /// | 1 | `OutOfMemory` |
    /// | 3, there is no data | `NotFound` |
    /// | 5 | `NotConnected` |
    /// | 6 | `TimedOut` |
    /// | 7 source, 9 destination | `AddrNotAvailable` |
    /// | 2, 8, 10 and all others | `InvalidInput` |
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Connect { error, .. } | Self::Broken { error, .. } => error.kind(),
            Self::Closed { .. } => io::ErrorKind::ConnectionReset,
            Self::Reply { .. } => io::ErrorKind::InvalidData,
            Self::Timeout { .. } => io::ErrorKind::TimedOut,
            Self::Request(_) => io::ErrorKind::InvalidInput,
            Self::Refused(status) => match *status {
                ClientStatus::ENOMEM => io::ErrorKind::OutOfMemory,
                ClientStatus::ENODATA => io::ErrorKind::NotFound,
                ClientStatus::ENOTCONN => io::ErrorKind::NotConnected,
                ClientStatus::ETIMEDOUT => io::ErrorKind::TimedOut,
                ClientStatus::ESRCADDR | ClientStatus::EDESTADDR => io::ErrorKind::AddrNotAvailable,
                _ => io::ErrorKind::InvalidInput,
            },
        }
    }

    /// Returns the status with which the service rejected the request.
    #[must_use]
    pub const fn status(&self) -> Option<ClientStatus> {
        match self {
            Self::Refused(status) => Some(*status),
            _ => None,
        }
    }
}

impl From<ClientError> for io::Error {
    fn from(error: ClientError) -> Self {
        Self::new(error.kind(), error)
    }
}
