//! The timers of transactions.

/// A timer, named for the event that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// A request waits for its response.
    Answer,
    /// Sent segments wait for their ACK.
    Acknowledgement,
    /// A partly received message waits for its remaining segments.
    Message,
    /// The end of the time during which duplicates of a complete message are acknowledged.
    Linger,
}

/// The table of running timers, at most one per transaction.
pub(crate) type Deadlines<K> = ib_types::Deadlines<K, Timer>;
