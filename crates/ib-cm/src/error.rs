//! Errors of the calls that a consumer makes.

use crate::connection::State;
use crate::id::{ConnectionId, ServiceId};

/// Error of a call that the consumer made. The call had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CmError {
    /// There is no connection with this ID, or the connection was removed.
    #[error("{call}: connection {id} does not exist")]
    UnknownConnection {
        /// The name of the method that the consumer called.
        call: &'static str,
        /// The connection ID.
        id: ConnectionId,
    },
    /// The connection is in a state that does not allow the call.
    #[error("{call}: connection {id} is in state {state}, which does not allow the call")]
    WrongState {
        /// The name of the method that the consumer called.
        call: &'static str,
        /// The connection.
        id: ConnectionId,
        /// The state of the connection.
        state: State,
    },
    /// The `SIDR_REQ` of a peer does not exist, or already has a response.
    #[error("{call}: the SIDR request does not exist, or has a response already")]
    UnknownSidrRequest {
        /// The name of the method that the consumer called.
        call: &'static str,
    },
    /// The private data does not fit into the message.
    #[error("private data of {message} has {length} bytes: expected at most {limit}")]
    PrivateDataTooLong {
        /// The name of the message.
        message: &'static str,
        /// The length of the private data in bytes.
        length: usize,
        /// The maximum length of private data in the message, in bytes.
        limit: usize,
    },
    /// The value of a field is out of range.
    #[error("{field} is {value}: expected {least} to {most}")]
    OutOfRange {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        value: u32,
        /// The minimum value of the field.
        least: u32,
        /// The maximum value of the field.
        most: u32,
    },
    /// One address in the `rdma_cm` header is IPv4, and the other is IPv6.
    #[error(
        "source and destination address have different IP versions: expected IPv4 or IPv6 for both"
    )]
    MixedFamilies,
    /// The service already has a listener.
    #[error("service {service} already has a listener")]
    ServiceInUse {
        /// The service ID.
        service: ServiceId,
    },
    /// The maximum number of connections or SIDR requests is reached.
    #[error("the CM has {limit} {what}, its maximum: wait until one has ended")]
    Full {
        /// The kind of objects whose number is limited: connections or SIDR requests.
        what: &'static str,
        /// The maximum number of connections or SIDR requests.
        limit: usize,
    },
}
