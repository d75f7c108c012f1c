//! The sockets of the NBD server: its listener, and its connections with their sessions.

use std::io::{self, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use ib_nbd::Session;
use ib_os::sockopt;
use ib_types::Instant;

use super::crowd::Crowd;
use super::gather;

/// Time after which a client that reads no response is disconnected if others wait for memory.
pub(super) const STALLED: Duration = Duration::from_secs(30);

/// Time after which a client that has a turn to finish a write and sends nothing is disconnected if others wait for a turn.
pub(super) const TURN: Duration = Duration::from_secs(1);

/// Maximum number of bytes read from a connection before the next connection is served.
const ROUND: usize = 256 << 10;

/// Send buffer size in bytes: holds whole responses of usual sizes, so that neither end is woken for a part of one.
const ROOM: usize = 512 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) number: u64,
    /// True if the client has disconnected; its input may not be read yet.
    pub(super) is_gone: bool,
    /// True if all of its input was read.
    pub(super) has_ended: bool,
    /// Deadline of the handshake.
    pub(super) deadline: Instant,
    /// Number of lost-write events that were reported to the client.
    pub(super) losses: u64,
    /// Time of the last response that the client has read, or at which it had none to read.
    pub(super) took_at: Instant,
    /// True if the client has a turn to finish a partially received write beyond the budget.
    pub(super) has_turn: bool,
    /// Time of the last input, or at which the turn began.
    pub(super) input_at: Instant,
    /// True if its outstanding request exceeds both the budget and its guarantee.
    pub(super) is_extra: bool,
    pub(super) stream: Stream,
    pub(super) session: Session,
}

#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Listener {
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Connection {
    /// Reads input of the client into the free buffer space. Input beyond the handshake is read only if requested. Returns
    /// true if any was read.
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

    /// Returns true if the client has disconnected and has requests in flight or unread input.
    pub(super) fn leaves(&self, crowd: Crowd) -> bool {
        self.is_gone && (self.session.requests() > 0 || crowd.takes(&self.session))
    }

    /// Returns the time at which the client is disconnected if others wait for memory.
    pub(super) fn stalled_at(&self, guaranteed: usize) -> Option<Instant> {
        let holds = self.session.unsent() > 0 && self.session.kept() > guaranteed;
        holds.then_some(self.took_at + STALLED)
    }

    /// Sends queued output; returns true if any was sent.
    pub(super) fn send(&mut self, now: Instant) -> io::Result<bool> {
        let mut moved = false;
        if self.session.unsent() == 0 {
            self.took_at = now;
        }
        while self.session.unsent() > 0 {
            match gather::send(self.stream.as_fd(), self.session.output()) {
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

impl Stream {
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                // A smaller buffer works as well. The buffer of TCP is tuned automatically unless it is set.
                sockopt::buffer(self.as_fd(), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, ROOM)).ok();
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
            }
        }
        Ok(())
    }

    pub(super) fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(room),
            Self::Tcp(stream) => stream.read(room),
        }
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}
