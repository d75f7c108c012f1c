//! Heartbeats: detection of a peer that has stopped responding.

/// The action to take at the end of a heartbeat interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeartbeatAction {
    /// No action.
    Wait,
    /// Send a heartbeat.
    Send,
    /// The peer is dead: fail the path.
    Fail,
}

/// Counts successive heartbeat intervals without a message from the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heartbeat {
    /// Number of intervals that have ended since the last message from the peer.
    missed: u32,
}

impl Heartbeat {
    /// Records that a message from the peer has arrived.
    pub(crate) const fn message_received(&mut self) {
        self.missed = 0;
    }

    /// Ends a heartbeat interval, and returns the action to take.
    ///
    /// A dead peer is detected at most `missed_max` + 1 intervals after its last message. Linux needs one interval
    /// more, because it counts from its first heartbeat without a response.
    pub(crate) const fn tick(&mut self, missed_max: u32) -> HeartbeatAction {
        if self.missed > 0 && self.missed >= missed_max {
            return HeartbeatAction::Fail;
        }
        self.missed += 1;
        if self.missed == 1 { HeartbeatAction::Send } else { HeartbeatAction::Wait }
    }
}

#[cfg(test)]
mod tests;
