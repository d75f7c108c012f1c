//! The timers of connections and SIDR exchanges.

use super::{ConnectionId, SidrId, SidrRequestId};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The peer's answer to a message.
    Response,
    /// The consumer's answer to an event.
    Consumer,
    /// The last packets of what has ended.
    TimeWait,
}

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Connection(ConnectionId),
    Asked(SidrId),
    Served(SidrRequestId),
}

/// The deadlines, at most one per key.
pub(super) type Deadlines = ib_types::Deadlines<Key, Timer>;
