//! The timers of connections and SIDR exchanges.

use crate::id::{ConnectionId, SidrId, SidrRequestId};

/// A timer of a connection or SIDR request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Limits the time until the peer responds to a message.
    Response,
    /// Limits the time until the consumer responds to an event.
    Consumer,
    /// Ends the time-wait of a connection, or the time for which the response to a SIDR request is cached.
    TimeWait,
}

/// The connection or SIDR request to which a timer belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Connection(ConnectionId),
    SidrSent(SidrId),
    SidrReceived(SidrRequestId),
}

/// The deadlines of the timers, at most one for each connection or SIDR request.
pub(crate) type Deadlines = ib_types::Deadlines<Key, Timer>;
