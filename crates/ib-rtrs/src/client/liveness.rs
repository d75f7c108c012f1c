//! Detection of a dead server on one path: heartbeats, and probes while requests are in flight.

use std::time::Duration;

use ib_types::Instant;

use crate::connection::{Heartbeat, HeartbeatAction};

/// After this time without a message from the server, the client probes a path that has requests in flight. A probe
/// over a cut cable is not acknowledged, so the path fails. With the default timeouts of the transport, all requests
/// continue on another path within 5 s after the cut.
pub(super) const PROBE_AFTER: Duration = Duration::from_millis(500);

/// The action to take when the probe timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// No request is in flight: stop the probe timer.
    Stop,
    /// The server is not silent, or was probed already: start the probe timer again.
    Wait,
    /// The server is silent: send a heartbeat as a probe, and start the probe timer again.
    Send,
}

/// The times of messages on a path, and the round-trip time of the last heartbeat.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    heartbeat: Heartbeat,
    /// Time of the last message from the server.
    last_message: Instant,
    /// True if the probe timer runs.
    is_watched: bool,
    /// True if a probe was sent after the last message from the server.
    is_probed: bool,
    /// Time when the last heartbeat was sent.
    sent: Option<Instant>,
    /// Round-trip time of the last heartbeat.
    latency: Option<Duration>,
}

impl Liveness {
    /// Resets the times and flags, because the path has just been connected.
    pub(super) fn connected(&mut self, now: Instant) {
        self.message_received(now);
        self.is_watched = false;
        (self.sent, self.latency) = (None, None);
    }

    /// Records that a message from the server has arrived.
    pub(super) const fn message_received(&mut self, now: Instant) {
        self.heartbeat.message_received();
        self.last_message = now;
        self.is_probed = false;
    }

    /// Ends a heartbeat interval, and returns the action to take.
    pub(super) const fn tick(&mut self, missed_max: u32) -> HeartbeatAction {
        self.heartbeat.tick(missed_max)
    }

    /// Records that a request is in flight. Returns true if the probe timer has to be started.
    pub(super) const fn watch(&mut self) -> bool {
        let starts = !self.is_watched;
        self.is_watched = true;
        starts
    }

    /// Handles the expired probe timer. While no message arrives, the client does not know whether the server still
    /// executes the requests, or whether the path is cut. A probe detects a cut path before the next heartbeat does.
    pub(super) fn probe(&mut self, now: Instant, has_requests: bool) -> Probe {
        self.is_watched = has_requests;
        if !has_requests {
            return Probe::Stop;
        }
        let is_silent = now.since(self.last_message) >= PROBE_AFTER;
        if is_silent && !self.is_probed {
            self.is_probed = true;
            return Probe::Send;
        }
        Probe::Wait
    }

    pub(super) const fn heartbeat_sent(&mut self, now: Instant) {
        self.sent = Some(now);
    }

    pub(super) fn heartbeat_acknowledged(&mut self, now: Instant) {
        if let Some(sent) = self.sent {
            self.latency = Some(now.since(sent));
        }
    }

    pub(super) const fn latency(&self) -> Option<Duration> {
        self.latency
    }
}

#[cfg(test)]
mod tests;
