//! Errors of objects and of posted work requests.

use ib_types::Gid;

use crate::qp::attr::{QpState, QpType};
use crate::region::KeyError;

/// Why an object cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// Something that it needs is not there.
    #[error("there is no such {0}")]
    NoSuch(&'static str),
    /// There are as many as there may be.
    #[error("there are {most} {what}: expected fewer")]
    Full {
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
    },
    /// It asks for more than the adapter takes.
    #[error("{what} is {found}: expected at most {most}, and for queues of completions 1 or more")]
    Value {
        /// Of what.
        what: &'static str,
        /// How much it asks for.
        found: u32,
        /// How much there may be.
        most: u32,
    },
    /// The route is not from this port.
    #[error("the path starts at GID {0}: expected one of the port's own")]
    Source(Gid),
}

/// Why an object cannot be destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DestroyError {
    /// It is not there.
    #[error("there is no such {0}")]
    Gone(&'static str),
    /// Something needs it.
    #[error("{0} is in use")]
    InUse(&'static str),
}

/// Why a queue pair cannot join or leave a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The queue pair is not there.
    #[error("there is no such queue pair")]
    NoSuchQp,
    /// Only datagrams go to groups.
    #[error("a queue pair of type {0:?} cannot join a group: expected Ud")]
    Type(QpType),
    /// The GID is not a group's.
    #[error("GID {0} is not that of a group")]
    NoGroup(Gid),
    /// It is not in the group.
    #[error("the queue pair is not in the group")]
    NotAttached,
}

/// Why a work request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue pair or shared receive queue is not there.
    #[error("there is no such queue")]
    NoSuchQueue,
    /// The queue pair is in a state in which none can be posted.
    #[error("the queue pair is in state {found:?}: expected {expected}")]
    State {
        /// The state.
        found: QpState,
        /// Those in which it can.
        expected: &'static str,
    },
    /// The queue is full.
    #[error("the queue holds {0} work requests and no more")]
    Full(u32),
    /// There are more pieces of memory than the queue takes.
    #[error("{found} pieces of memory: expected at most {most}")]
    TooManySges {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: u32,
    },
    /// There are more bytes in the request itself than the queue takes.
    #[error("{found} bytes inline: expected at most {most}")]
    TooMuchInline {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: u32,
    },
    /// A piece of memory is not open to it.
    #[error("piece {index} of memory: {why}")]
    Sge {
        /// Which one, counted from 0.
        index: usize,
        /// Why.
        why: KeyError,
    },
    /// The message is longer than the transport can carry.
    #[error("a message of {found} bytes: expected at most {most}")]
    TooLong {
        /// Its length.
        found: u64,
        /// The longest.
        most: u64,
    },
    /// The transport does not have the operation.
    #[error("a queue pair of type {0:?} has no such operation")]
    Operation(QpType),
    /// What comes back from an atomic operation is 8 bytes.
    #[error("{0} bytes for what an atomic operation returns: expected 8")]
    AtomicLength(u64),
    /// The address handle is not there, or of another protection domain.
    #[error("there is no such address handle in the protection domain")]
    NoSuchAh,
    /// The queue pair takes its receives from a shared queue.
    #[error("the queue pair takes its receives from a shared receive queue")]
    Shared,
    /// READs and atomics are not possible: the queue pair may have none under way.
    #[error("max_rd_atomic is 0: expected 1 or more for READs and atomics")]
    NoReads,
}
