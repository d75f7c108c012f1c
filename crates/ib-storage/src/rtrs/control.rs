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
//! Requests and responses are lines of JSON ([`ib_control::console`]). Threads serve the socket. The data loop only polls
//! a request queue, so that clients cannot block it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use ib_control::console::{ConsoleServer, Serving};
use ib_control::desk::{Question, Questions, desk};
use ib_control::page::PageServer;
use ib_os::alarm::Alarm;

mod client;
mod message;
mod server;
mod session;

pub use client::{ControlClient, ControlError};
pub use message::{ControlRequest, Reply};
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
    questions: Questions,
    /// The socket, as long as it is there.
    _serving: Option<Serving>,
}

impl Control {
    /// Lets others ask at a socket, if one is named, of the owner only; and have metrics from a port of the loopback
    /// device, if one is named.
    ///
    /// # Errors
    /// Fails when somebody else has the socket or the port, or it cannot be had.
    pub fn open(socket: Option<&Path>, metrics: Option<u16>) -> Result<Self, OpenError> {
        let alarm = Alarm::new()?;
        let (desk, questions) = desk(alarm.bell());
        if let Some(port) = metrics {
            let failed = |source| OpenError::Metrics { port, source };
            let (server, desk) = (PageServer::bind(port).map_err(failed)?, desk.clone());
            let page = move || desk.ask(&ControlRequest::Metrics.to_line()).unwrap_or_default();
            let page = move || Reply::parse(&page()).map(|reply| reply.text).unwrap_or_default();
            server.serve(page).map_err(failed)?;
        }
        let serve = |path: &Path| {
            let failed = |source| OpenError::Socket { path: path.to_owned(), source };
            ConsoleServer::serve_at(path.to_owned(), desk).map_err(failed)
        };
        let serving = socket.map(serve).transpose()?;
        Ok(Self { alarm, questions, _serving: serving })
    }

    /// Returns the next question. What is none is told so.
    fn take(&mut self) -> Option<(ControlRequest, Question)> {
        loop {
            let question = self.questions.take()?;
            match ControlRequest::parse(question.line()) {
                Ok(ask) => return Some((ask, question)),
                Err(why) => question.answer(why.to_line()),
            }
        }
    }

    /// Has [`Control::as_fd`] tell of questions from now on; returns whether there is one already.
    fn begin_wait(&mut self) -> bool {
        self.alarm.silence();
        self.questions.has_one()
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.alarm.as_fd()
    }
}

#[cfg(test)]
pub(super) mod tests;
