//! What a consumer can do wrong.

use crate::connection::State;
use crate::id::{ConnectionId, ServiceId};

/// Why a call had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CmError {
    /// The number belongs to no connection: none had it, or it is forgotten.
    #[error("{call}: there is no connection {id}")]
    UnknownConnection {
        /// The call.
        call: &'static str,
        /// The number.
        id: ConnectionId,
    },
    /// The connection is in a state that does not allow the call.
    #[error("{call}: connection {id} is in state {state}")]
    WrongState {
        /// The call.
        call: &'static str,
        /// The connection.
        id: ConnectionId,
        /// Its state.
        state: State,
    },
    /// There is no such `SIDR_REQ` of another side that waits for an answer.
    #[error("{call}: there is no such question for a service")]
    UnknownQuestion {
        /// The call.
        call: &'static str,
    },
    /// The private data does not fit into the message.
    #[error("private data of {length} bytes: a {message} holds {limit}")]
    PrivateDataTooLong {
        /// The message.
        message: &'static str,
        /// The length in bytes.
        length: usize,
        /// How many bytes fit.
        limit: usize,
    },
    /// A number does not fit into its field or has no meaning there.
    #[error("{field} is {value}: expected {least} to {most}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The number.
        value: u32,
        /// The lowest legal one.
        least: u32,
        /// The highest legal one.
        most: u32,
    },
    /// One address of the `rdma_cm` header is IPv4, the other IPv6.
    #[error("the source and the destination are of different IP versions")]
    MixedFamilies,
    /// Somebody listens for the service.
    #[error("service {service} is listened for already")]
    ServiceInUse {
        /// The service.
        service: ServiceId,
    },
    /// There are as many as may be.
    #[error("there are {limit} {what} already")]
    Full {
        /// What there are too many of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}
