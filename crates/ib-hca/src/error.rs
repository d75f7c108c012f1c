//! Errors: creation and destruction of objects, multicast groups, posted work requests.

use ib_types::Gid;

use crate::qp::attr::{QpState, QpType};
use crate::region::KeyError;

/// Error of the creation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// A referenced object does not exist.
    #[error("the {0} does not exist")]
    NoSuch(&'static str),
    /// The HCA already has its maximum number of objects of the requested kind.
    #[error("the HCA has {most} {objects}, its maximum: destroy one before creating another")]
    Full {
        /// Kind of the objects, as a plural noun.
        objects: &'static str,
        /// Maximum number of these objects.
        most: usize,
    },
    /// A requested size exceeds the limit of the HCA, or a CQ of 0 completions is requested.
    #[error("{attribute} is {found}: expected at most {most}, and at least 1 for the cqe of a CQ")]
    Value {
        /// Name of the attribute.
        attribute: &'static str,
        /// Requested value.
        found: u32,
        /// Maximum value.
        most: u32,
    },
    /// The source GID of the route is not a GID of the port.
    #[error("the source GID of the route is {0}: expected a GID of the port")]
    Source(Gid),
}

/// Error of resizing a completion queue or a shared receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResizeError {
    /// The queue does not exist.
    #[error("the {0} does not exist")]
    NoSuch(&'static str),
    /// The requested size exceeds the limit of the HCA, or is smaller than the number of queued elements or the limit
    /// of the SRQ event.
    #[error("{attribute} is {found}: expected {least} to {most}")]
    Value {
        /// Name of the attribute.
        attribute: &'static str,
        /// Requested size.
        found: u32,
        /// Minimum size.
        least: usize,
        /// Maximum size.
        most: u32,
    },
}

/// Error of the destruction of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestroyError {
    /// The object does not exist.
    #[error("the {0} does not exist")]
    NoSuch(&'static str),
    /// The object is still in use: for example, a queue pair uses the CQ.
    #[error("the {0} is in use: destroy or detach the objects that use it first")]
    InUse(&'static str),
}

/// Error of attaching a queue pair to a multicast group, or of detaching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The queue pair does not exist.
    #[error("the queue pair does not exist")]
    NoSuchQp,
    /// The queue pair is not of type UD.
    #[error("a queue pair of type {0:?} cannot be attached to a multicast group: expected Ud")]
    Type(QpType),
    /// The GID is not a multicast GID.
    #[error("GID {0} is not a multicast GID: expected one of ff00::/8 or of an IPv4 group")]
    NoGroup(Gid),
    /// The queue pair is not attached to the group.
    #[error("the queue pair is not attached to the multicast group")]
    NotAttached,
}

/// Error of posting a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue pair or shared receive queue does not exist.
    #[error("the queue pair or shared receive queue does not exist")]
    NoSuchQueue,
    /// The queue pair is in a state in which no requests can be posted.
    #[error("the queue pair is in state {found:?}: expected {expected}")]
    State {
        /// Current state of the queue pair.
        found: QpState,
        /// States in which the request can be posted.
        expected: &'static str,
    },
    /// The queue is full. The value is its size in work requests.
    #[error("the queue is full with {0} work requests: poll completions before posting more")]
    Full(u32),
    /// The request has more SGEs than the limit of the queue.
    #[error("the request has {found} SGEs: expected at most {most}")]
    TooManySges {
        /// Number of SGEs.
        found: usize,
        /// Maximum number of SGEs of a request in this queue.
        most: u32,
    },
    /// The request has more inline data than the limit of the queue.
    #[error("the request has {found} bytes of inline data: expected at most {most}")]
    TooMuchInline {
        /// Size of the inline data in bytes.
        found: usize,
        /// Maximum size in bytes.
        most: u32,
    },
    /// The local key of an SGE does not allow the access.
    #[error("SGE {index}: {why}")]
    Sge {
        /// Index of the SGE, from 0.
        index: usize,
        /// Why the key of the SGE does not allow the access.
        why: KeyError,
    },
    /// The message exceeds the maximum size of the transport.
    #[error("the message has {found} bytes: expected at most {most}")]
    TooLong {
        /// Message size in bytes.
        found: u64,
        /// Maximum size in bytes.
        most: u64,
    },
    /// The transport of the queue pair does not support the operation, or a READ or atomic has inline data.
    #[error(
        "a queue pair of type {0:?} does not support the operation, or the operation does not allow inline data"
    )]
    Operation(QpType),
    /// The buffer for the original value of an atomic operation does not have 8 bytes.
    #[error("the buffer for the original value has {0} bytes: expected 8")]
    AtomicLength(u64),
    /// The address handle does not exist in the protection domain of the queue pair.
    #[error("the address handle does not exist in the protection domain of the queue pair")]
    NoSuchAh,
    /// The queue pair uses an SRQ: receives must be posted to the SRQ.
    #[error(
        "the queue pair has a shared receive queue: post the receive to the shared receive queue"
    )]
    Shared,
    /// The request is a READ or atomic, but `max_rd_atomic` of the queue pair is 0.
    #[error("max_rd_atomic is 0: expected 1 or more for READs and atomics")]
    NoReads,
}
