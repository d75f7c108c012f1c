//! The listening socket of the NBD server.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use ib_os::clock;
use ib_types::Instant;

use super::connection::Stream;

/// Interval at which connections are accepted while the server is busy.
const ACCEPT_EVERY: Duration = Duration::from_millis(1);

/// Pause after an accept that failed for lack of file descriptors.
const WITHOUT_FILES: Duration = Duration::from_millis(100);

/// The address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdAddress {
    /// A Unix socket that its owner and group can access.
    Unix(PathBuf),
    /// A TCP port on loopback.
    Tcp(SocketAddr),
}

/// The reason why the listening socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is not loopback. NBD clients are not authenticated, so remote clients are refused.
    #[error("{0}: NBD clients can connect over loopback only")]
    NotLoopback(SocketAddr),
    /// The socket cannot be opened, for example because another process listens on it.
    #[error("cannot listen for NBD clients at {}: {error}", path.display())]
    Unix {
        /// Path of the socket.
        path: PathBuf,
        /// The reason why the socket cannot be opened.
        error: io::Error,
    },
    /// The TCP port cannot be opened.
    #[error("cannot listen for NBD clients at {address}: {error}")]
    Tcp {
        /// The IP address and port.
        address: SocketAddr,
        /// The reason why the TCP port cannot be opened.
        error: io::Error,
    },
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

/// The listening socket, and the time from which connections are accepted again.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Socket,
    accept_at: Instant,
    /// True if the last accept failed for lack of file descriptors.
    lacks_files: bool,
}

impl Listener {
    pub(super) fn open(address: &NbdAddress) -> Result<Self, ListenError> {
        let socket = match address {
            NbdAddress::Unix(path) => {
                let listener = ib_os::unix::listen(path, 0o660);
                let failed = |error| ListenError::Unix { path: path.clone(), error };
                Socket::Unix(listener.map_err(failed)?, path.clone())
            }
            NbdAddress::Tcp(address) if !address.ip().is_loopback() => {
                return Err(ListenError::NotLoopback(*address));
            }
            NbdAddress::Tcp(address) => {
                let listener = TcpListener::bind(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                });
                let failed = |error| ListenError::Tcp { address: *address, error };
                Socket::Tcp(listener.map_err(failed)?)
            }
        };
        Ok(Self { socket, accept_at: Instant::ZERO, lacks_files: false })
    }

    /// Returns the TCP address and port; `None` for a Unix socket.
    pub(super) fn port(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Unix(..) => None,
            Socket::Tcp(listener) => listener.local_addr().ok(),
        }
    }

    /// Returns true if connections may be accepted at time `now`. If so, postpones further accepts by
    /// [`ACCEPT_EVERY`].
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = now >= self.accept_at;
        if is_due {
            self.accept_at = now + ACCEPT_EVERY;
            self.lacks_files = false;
        }
        is_due
    }

    /// Accepts the next connection; `None` if no client waits or no file descriptors are free. If
    /// none are free, waiting clients are accepted later.
    pub(super) fn accept(&mut self) -> Option<Stream> {
        let stream = match &self.socket {
            Socket::Unix(listener, _) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Socket::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
        };
        match stream {
            Ok(stream) => Some(stream),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => {
                self.lacks_files = true;
                self.accept_at = clock::now() + WITHOUT_FILES;
                None
            }
        }
    }

    /// If the process lacks file descriptors, returns the time of the next accept. The caller must
    /// not poll the socket until then, because the poll would report clients that cannot be
    /// accepted. Otherwise returns `None`: the caller can poll the socket.
    pub(super) fn pause(&mut self) -> Option<Instant> {
        if self.lacks_files {
            return Some(self.accept_at);
        }
        // The next call of `is_due` returns true, so that a connection that polling reports is
        // accepted at once.
        self.accept_at = Instant::ZERO;
        None
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Unix(listener, _) => listener.as_fd(),
            Socket::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix(_, path) = &self.socket {
            // Another process may have removed the socket already.
            std::fs::remove_file(path).ok();
        }
    }
}
