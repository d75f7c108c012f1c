//! Statistics of sessions and paths, and what changes them, for other processes: over a socket in the file system, and
//! as metrics for Prometheus.
//!
//! | module | holds |
//! |---|---|
//! | `message` | [`ControlRequest`]: what is asked, and how it is answered |
//! | `session` | the control of a client's session |
//! | `server` | the control of a server |
//! | `client` | [`ControlClient`]: the client |
//!
//! Requests and responses are lines of JSON ([`ib_control::lines`]). Threads serve the socket. The data loop only polls
//! a request queue, so that clients cannot block it.

use std::io;
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
pub use message::ControlRequest;
pub use session::PathFinder;

pub(super) use server::ServerControl;
pub(super) use session::SessionControl;

/// Why nobody can ask.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The socket cannot be had.
    #[error("{}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The port of the loopback device cannot be had.
    #[error("cannot serve metrics on port {port} of localhost: {source}")]
    Metrics {
        /// The port.
        port: u16,
        /// What the system says.
        source: io::Error,
    },
    /// There are no more files.
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Where others ask.
pub struct Control {
    alarm: Alarm,
    queue: RequestQueue,
    /// The socket, as long as it is there.
    _serving: Option<ServedSocket>,
}

impl Control {
    /// Lets others ask at a socket, if one is named, of the owner only; and have metrics from a port of the loopback
    /// device, if one is named.
    ///
    /// # Errors
    /// Fails when somebody else has the socket or the port, or it cannot be had.
    pub fn open(socket: Option<&Path>, metrics: Option<u16>) -> Result<Self, OpenError> {
        let alarm = Alarm::new()?;
        let (sender, queue) = request_queue(alarm.bell());
        if let Some(port) = metrics {
            let failed = |source| OpenError::Metrics { port, source };
            let (server, sender) = (PageServer::bind(port).map_err(failed)?, sender.clone());
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

    /// Returns the next request. Malformed requests are refused.
    fn take(&mut self) -> Option<(ControlRequest, QueuedRequest)> {
        loop {
            let request = self.queue.take()?;
            match ControlRequest::parse(request.line()) {
                Ok(ask) => return Some((ask, request)),
                Err(refusal) => request.respond(refusal.to_line()),
            }
        }
    }

    /// Resets [`Control::as_fd`]; returns true if a request is queued already.
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
