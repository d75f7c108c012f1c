//! Why objects cannot be made, joined or destroyed.

use ib_types::Gid;

use crate::qp::QpType;

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
