//! The address of the NBD server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The address of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A socket in the file system, of the owner and the group.
    Unix(PathBuf),
    /// A port of TCP, on loopback.
    Tcp(SocketAddr),
}

/// Error of opening the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address is not loopback. NBD clients are not authenticated, so remote clients are refused.
    #[error("{0}: programs connect over loopback only")]
    NotLoopback(SocketAddr),
    /// Another process listens there, or the path is not a socket.
    #[error("{}: {error}", path.display())]
    Unix {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The port cannot be opened.
    #[error("{address}: {error}")]
    Tcp {
        /// The port.
        address: SocketAddr,
        /// The system's error.
        error: io::Error,
    },
}
