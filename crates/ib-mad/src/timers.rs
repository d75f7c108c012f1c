//! The timers of transfers.

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// The answer to a request.
    Answer,
    /// The acknowledgement of segments.
    Acknowledgement,
    /// The rest of a message whose first segment has come.
    Message,
    /// Late duplicates of a message that is complete.
    Linger,
}

/// The deadlines of many transfers, at most one each.
pub(crate) type Deadlines<K> = ib_types::Deadlines<K, Timer>;
