//! Serves the statistics and control tree to other processes: over a Unix socket, and as metrics
//! for Prometheus.
//!
//! | module | holds |
//! |---|---|
//! | `message` | [`ControlRequest`], and the replies to it |
//! | `session` | the tree of a client's session |
//! | `server` | the tree of a server |
//! | `client` | [`ControlClient`]: the client of the socket |
//!
//! Requests and responses are lines of JSON ([`ib_control::lines`]). Threads serve the socket. The
//! driver thread only polls a request queue, so that clients cannot block it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use ib_control::lines::{LineServer, ServedSocket};
use ib_control::page::PageServer;
use ib_control::queue::{QueuedRequest, RequestQueue, request_queue};
use ib_os::alarm::Alarm;

mod client;
pub(in crate::rtrs) mod message;
mod server;
mod session;

pub use client::{ControlClient, ControlError};
pub use ib_control::lines::Reply;
pub use message::{ControlRequest, EntryData, FileData};
pub use session::PathFinder;

pub(super) use server::ServerControl;
pub(super) use session::SessionControl;

/// Error of [`Control::open`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The control socket cannot be opened.
    #[error("cannot open control socket {}: {source}", path.display())]
    Socket {
        /// Path of the control socket.
        path: PathBuf,
        /// The reason why the control socket cannot be opened.
        source: io::Error,
    },
    /// The metrics server cannot listen.
    #[error("cannot serve metrics at {address}: {source}")]
    Metrics {
        /// The TCP address.
        address: SocketAddr,
        /// The reason why the metrics server cannot listen.
        source: io::Error,
    },
    /// The process has no free file descriptors.
    #[error("cannot create a socket pair for control requests: {0}")]
    System(#[from] io::Error),
}

/// The sockets for control and metrics, and the queue of their requests.
pub struct Control {
    alarm: Alarm,
    queue: RequestQueue,
    /// The control socket, whose file is removed when `Control` is dropped.
    _serving: Option<ServedSocket>,
}

impl Control {
    /// Opens a control socket that only its owner can access, and a metrics server at a TCP address.
    /// Both are optional.
    ///
    /// # Errors
    /// Fails if the socket or address is in use or cannot be opened.
    pub fn open(socket: Option<&Path>, metrics: Option<SocketAddr>) -> Result<Self, OpenError> {
        let alarm = Alarm::new()?;
        let (sender, queue) = request_queue(alarm.bell());
        if let Some(address) = metrics {
            let failed = |source| OpenError::Metrics { address, source };
            let (server, sender) = (PageServer::bind(address).map_err(failed)?, sender.clone());
            let page =
                move || sender.request(&ControlRequest::Metrics.to_line()).unwrap_or_default();
            let page = move || {
                serde_json::from_str(&page()).map(|reply: Reply| reply.text).unwrap_or_default()
            };
            server.serve(page).map_err(failed)?;
        }
        let serve = |path: &Path| {
            let failed = |source| OpenError::Socket { path: path.to_owned(), source };
            LineServer::serve_at(path.to_owned(), sender).map_err(failed)
        };
        let serving = socket.map(serve).transpose()?;
        Ok(Self { alarm, queue, _serving: serving })
    }

    /// Returns the next request. Refuses malformed requests.
    fn take(&mut self) -> Option<(ControlRequest, QueuedRequest)> {
        loop {
            let request = self.queue.take()?;
            match ControlRequest::parse(request.line()) {
                Ok(ask) => return Some((ask, request)),
                Err(refusal) => request.respond(refusal.to_line()),
            }
        }
    }

    /// Resets the descriptor of [`Control::as_fd`]. Returns true if a request is already queued.
    fn begin_wait(&mut self) -> bool {
        self.alarm.silence();
        self.queue.has_request()
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }
}

#[cfg(test)]
pub(super) mod tests;
