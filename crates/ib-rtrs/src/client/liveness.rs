//! Signs of life of the server on one path: heartbeats, and probes while requests are in flight.

use std::time::Duration;

use ib_types::Instant;

use crate::heartbeat::{Beat, Heartbeat};

/// Silence after which a path with requests in flight is probed. With the timeouts of the transport, all requests continue
/// on another path within 5 s after a cut.
pub(super) const PROBE_AFTER: Duration = Duration::from_millis(500);

/// What a probe timer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// No request is in flight: the timer stops.
    Stop,
    /// The timer starts again.
    Wait,
    /// A heartbeat is sent, and the timer starts again.
    Send,
}

/// When the server was heard on a path, and how fast it has answered.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    heartbeat: Heartbeat,
    /// Time of the last message of the server.
    heard: Instant,
    /// True if the probe timer runs.
    is_watched: bool,
    /// True if a probe was sent since the last message.
    is_probed: bool,
    /// Time of the last heartbeat.
    sent: Option<Instant>,
    /// Round-trip time of the last heartbeat.
    latency: Option<Duration>,
}

impl Liveness {
    /// Starts again for a new connection.
    pub(super) fn connected(&mut self, now: Instant) {
        self.hear(now);
        self.is_watched = false;
        (self.sent, self.latency) = (None, None);
    }

    /// Notes a message of the server.
    pub(super) const fn hear(&mut self, now: Instant) {
        self.heartbeat.heard();
        self.heard = now;
        self.is_probed = false;
    }

    /// Ends a heartbeat interval.
    pub(super) const fn tick(&mut self, missed_max: u32) -> Beat {
        self.heartbeat.tick(missed_max)
    }

    /// Notes that a request is in flight. Returns true if the probe timer has to start.
    pub(super) const fn watch(&mut self) -> bool {
        let starts = !self.is_watched;
        self.is_watched = true;
        starts
    }

    /// Handles the probe timer. The server may still execute the requests, or the path may be cut since it has acknowledged
    /// them, which would remain unknown until the next heartbeat.
    pub(super) fn probe(&mut self, now: Instant, has_requests: bool) -> Probe {
        self.is_watched = has_requests;
        if !has_requests {
            return Probe::Stop;
        }
        let is_silent = now.since(self.heard) >= PROBE_AFTER;
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
