//! Errors of requests to a service.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ib_wire::acm::ClientStatus;

use super::{ReplyError, ServiceAddress};
use crate::Address;

/// Error of an invalid request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The two addresses of a path have incompatible types.
    #[error(
        "the path leads from {0} to {1}: expected names and IP addresses, two GIDs or two LIDs"
    )]
    Mixed(Address, Address),
    /// A GID or a LID was given as the address of an endpoint.
    #[error("the address of the endpoint is {0}: expected a name or an IP address")]
    NoEndpoint(Address),
}

/// Error of a client's connection or request.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client cannot connect to the service.
    #[error("cannot connect to {service}: {error}; expected a running `ibfabric acm` or ibacm")]
    Connect {
        /// Address of the service.
        service: ServiceAddress,
        /// Error that the operating system returned.
        error: Arc<io::Error>,
    },
    /// The connection has failed. All further requests on it fail.
    #[error("the connection to {service} failed: {error}")]
    Broken {
        /// Address of the service.
        service: ServiceAddress,
        /// Error that the operating system returned.
        error: Arc<io::Error>,
    },
    /// The service closed the connection. All further requests on it fail.
    #[error("{service} closed the connection after {incomplete} bytes of a reply")]
    Closed {
        /// Address of the service.
        service: ServiceAddress,
        /// Number of received bytes of an incomplete reply.
        incomplete: usize,
    },
    /// The service sent an invalid reply. All further requests on the connection fail.
    #[error("{service} sent an invalid reply: {error}")]
    Reply {
        /// Address of the service.
        service: ServiceAddress,
        /// Description of the invalid reply.
        error: ReplyError,
    },
    /// No reply was received in time.
    #[error("{service} did not reply within {} s", .limit.as_secs_f64())]
    Timeout {
        /// Address of the service.
        service: ServiceAddress,
        /// The time limit that expired.
        limit: Duration,
    },
    /// The service rejected the request with this status.
    #[error("the service rejected the request: {} (status {})", .0, .0.0)]
    Refused(ClientStatus),
    /// The request is invalid.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl ClientError {
    /// Returns the kind of system error that corresponds to the error. If the service rejected the request, the kind
    /// depends on the status:
    ///
    /// | status | kind |
    /// |---|---|
    /// | 1 (no memory) | `OutOfMemory` |
    /// | 3 (no data) | `NotFound` |
    /// | 5 (not connected) | `NotConnected` |
    /// | 6 (timeout) | `TimedOut` |
    /// | 7 (source address), 9 (destination address) | `AddrNotAvailable` |
    /// | all others | `InvalidInput` |
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
