//! A connection of the NBD server: its socket and its session.

use std::io;
use std::time::Duration;

use ib_nbd::Session;
use ib_os::clock;
use ib_types::Instant;

use super::budget::Usage;
use super::stream::Stream;

/// If a client reads no response for this time while others wait for memory, the server disconnects
/// it.
pub(super) const STALLED: Duration = Duration::from_secs(30);

/// If a client sends nothing for this time in its turn to finish a write, while others wait for a
/// turn, the server disconnects it.
pub(super) const TURN: Duration = Duration::from_secs(1);

/// Maximum number of bytes read from a connection before the next connection is served.
const ROUND: usize = 256 << 10;

/// Timeout of the NBD handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    /// True if the client has disconnected. Part of its input can still be unread.
    pub(super) is_gone: bool,
    /// True if the client has disconnected and all its input was read.
    pub(super) has_ended: bool,
    /// Deadline of the handshake.
    pub(super) deadline: Instant,
    /// Number of lost-write events ([`Backing::losses`](super::Backing::losses)) that were reported
    /// to the client.
    pub(super) losses: u64,
    /// Time when the client last read part of a response, or had no response to read.
    pub(super) took_at: Instant,
    /// True if the client has a turn to receive the rest of a write.
    pub(super) has_input_turn: bool,
    /// Time of the client's last input, or of the start of its input turn.
    pub(super) input_at: Instant,
    /// True if the client has a turn to execute a request and read the response.
    pub(super) has_request_turn: bool,
    pub(super) stream: Stream,
    pub(super) session: Session,
}

impl Connection {
    /// Creates a connection. The `losses` lost-write events before the connection are not reported
    /// to its client.
    pub(super) fn new(number: u64, losses: u64, stream: Stream, session: Session) -> Self {
        let now = clock::now();
        Self {
            number,
            is_gone: false,
            has_ended: false,
            deadline: now + HANDSHAKE_TIMEOUT,
            losses,
            took_at: now,
            has_input_turn: false,
            input_at: now,
            has_request_turn: false,
            stream,
            session,
        }
    }

    /// Reads input of the client into the free buffer space. After the handshake, reads only if
    /// `is_wanted` is true. Returns true if any input was read.
    pub(super) fn read(&mut self, now: Instant, is_wanted: bool) -> io::Result<bool> {
        let mut length = 0;
        while length < ROUND && !self.has_ended && (is_wanted || self.session.is_choosing()) {
            let Some(room) = self.session.room() else { break };
            match self.stream.read(room) {
                Ok(0) => {
                    (self.is_gone, self.has_ended) = (true, true);
                    return Ok(true);
                }
                Ok(read) => {
                    self.session.handle(read);
                    self.input_at = now;
                    length += read;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length > 0)
    }

    /// Returns true if the client has disconnected and has left requests in flight or unread input.
    pub(super) fn leaves(&self, usage: Usage) -> bool {
        self.is_gone && (self.session.requests() > 0 || usage.takes(&self.session))
    }

    /// Returns the time at which the server disconnects the client if the client reads no response
    /// until then, and other clients wait for memory. Returns `None` if the client has no unsent
    /// response, or uses no more memory than its guarantee.
    pub(super) fn stalled_at(&self, guaranteed: usize) -> Option<Instant> {
        let holds = self.session.unsent() > 0 && self.session.kept() > guaranteed;
        holds.then_some(self.took_at + STALLED)
    }

    /// Sends queued output. Returns true if any was sent.
    pub(super) fn send(&mut self, now: Instant) -> io::Result<bool> {
        let mut moved = false;
        if self.session.unsent() == 0 {
            self.took_at = now;
        }
        while self.session.unsent() > 0 {
            match self.stream.send(self.session.output()) {
                Ok(length) => {
                    self.session.sent(length);
                    (moved, self.took_at) = (true, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }
}
