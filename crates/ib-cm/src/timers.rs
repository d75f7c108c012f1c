//! The timers of connections and SIDR exchanges.

use crate::id::{ConnectionId, SidrId, SidrRequestId};

/// Event that a timer waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The peer's response to a message.
    Response,
    /// The consumer's response to an event.
    Consumer,
    /// The last packets of a closed connection.
    TimeWait,
}

/// Owner of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Connection(ConnectionId),
    SidrSent(SidrId),
    SidrReceived(SidrRequestId),
}

/// The deadlines, at most one per key.
pub(crate) type Deadlines = ib_types::Deadlines<Key, Timer>;
