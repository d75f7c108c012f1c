//! The timers of connections and SIDR exchanges.

use crate::id::{ConnectionId, SidrId, SidrRequestId};

/// The event that the CM waits for while a timer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// The peer's response to a message.
    Response,
    /// The consumer's response to an event.
    Consumer,
    /// The end of time-wait, in which late packets of a closed connection may arrive.
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
