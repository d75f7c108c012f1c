//! A connection of the NBD server: its socket and its session.

use std::io;
use std::io::Read as _;
use std::net::TcpStream;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use ib_block::Slice;
use ib_nbd::Session;
use ib_os::{clock, sockopt};
use ib_types::Instant;

use crate::nbd::budget::Usage;

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
    /// Creates a connection. `losses` is the number of lost-write events before this connection,
    /// which are not reported to its client.
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

    /// Returns the time at which the client will have read no response for [`STALLED`]. If other
    /// clients wait for memory at that time, the server disconnects the client. Returns `None` if the
    /// client has no unsent response, or uses no more memory than its guarantee.
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

/// Size of the socket's send buffer in bytes. Responses of usual sizes fit as a whole, so that
/// neither client nor server is woken for a part of a response.
const SEND_BUFFER: usize = 512 << 10;

/// Maximum number of slices in one system call.
const SLICES: usize = 64;

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                // If the kernel refuses this size, a smaller send buffer works too. For TCP, the size
                // is not set, because that would disable the kernel's automatic sizing.
                sockopt::buffer(self.as_fd(), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, SEND_BUFFER))
                    .ok();
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

    /// Sends bytes of the slices without blocking. Returns how many bytes were sent. During the call,
    /// other threads may write to the memory of the slices.
    pub(super) fn send<'a>(&self, slices: impl Iterator<Item = Slice<'a>>) -> io::Result<usize> {
        let mut parts = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; SLICES];
        let mut count = 0;
        for (to, slice) in parts.iter_mut().zip(slices) {
            let start = match slice {
                Slice::Bytes(bytes) => bytes.as_ptr().cast_mut(),
                Slice::Memory(memory, start, length) => {
                    memory.pointer(start, length).map_err(io::Error::other)?
                }
            };
            *to = libc::iovec { iov_base: start.cast(), iov_len: slice.len() };
            count += 1;
        }
        // SAFETY: a `msghdr` of zeros is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = parts.as_mut_ptr();
        message.msg_iovlen = count as _;
        let socket = self.as_fd().as_raw_fd();
        // SAFETY: the system call only reads the slices. They are borrowed for `'a`, and registered
        // memory stays in place while it is borrowed. Other threads write to registered memory with
        // atomics, and a copy by the kernel is not a data race in Rust.
        let sent = unsafe { libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}
