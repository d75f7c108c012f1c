//! Whoever asks.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_rtrs::Errno;
use ib_rtrs::tree::{Entry, Kind};
use serde_json::Value;

use super::message::to_kind;
use super::{ControlRequest, Reply};
use ib_control::lines::LineClient;

/// How long an answer may take: longer than what is written may take at the other end.
const PATIENCE: Duration = Duration::from_secs(90);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Nobody is there, or does not answer.
    #[error("{}: {source}", socket.display())]
    Io {
        /// The socket.
        socket: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What comes is no answer.
    #[error("{}: the answer cannot be read: {what}", socket.display())]
    Malformed {
        /// The socket.
        socket: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It is not done.
    #[error("{text}")]
    Refused {
        /// The number of the error.
        errno: Errno,
        /// What is wrong.
        text: String,
    },
}

impl ControlError {
    /// Returns the number of the error, as system calls tell it.
    #[must_use]
    pub fn errno(&self) -> Errno {
        match self {
            Self::Refused { errno, .. } => *errno,
            Self::Io { source, .. } if is_late(source) => Errno::ETIMEDOUT,
            Self::Io { .. } | Self::Malformed { .. } => Errno::EIO,
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A connection to a control socket. After an error other than [`ControlError::Refused`] it is of no use any more.
pub struct ControlClient {
    socket: PathBuf,
    lines: LineClient,
}

impl ControlClient {
    /// Connects to a socket.
    ///
    /// # Errors
    /// Fails when nobody listens there.
    pub fn connect(socket: &Path) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Io { socket: socket.to_owned(), source };
        let lines = LineClient::connect_at(socket).map_err(failed)?;
        lines.set_timeout(PATIENCE).map_err(failed)?;
        Ok(Self { socket: socket.to_owned(), lines })
    }

    /// Has answers take no longer than this; 90 s without it.
    ///
    /// # Errors
    /// Fails when that is no time at all.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), ControlError> {
        let failed = |source| ControlError::Io { socket: self.socket.clone(), source };
        self.lines.set_timeout(timeout).map_err(failed)
    }

    /// Asks.
    ///
    /// # Errors
    /// Fails when there is no answer, or what is asked is not done.
    pub fn ask(&mut self, ask: &ControlRequest) -> Result<Reply, ControlError> {
        let socket = &self.socket;
        let reply = self.lines.request(ask).map_err(|source| {
            let socket = socket.clone();
            if source.kind() == io::ErrorKind::InvalidData {
                return ControlError::Malformed { socket, what: source.to_string() };
            }
            let late = io::Error::new(io::ErrorKind::TimedOut, "there was no answer in time");
            let source = if is_late(&source) { late } else { source };
            ControlError::Io { socket, source }
        })?;
        if reply.ok {
            return Ok(reply);
        }
        let errno = reply.data["errno"].as_u64().and_then(|errno| u16::try_from(errno).ok());
        Err(ControlError::Refused { errno: errno.map_or(Errno::EIO, Errno), text: reply.text })
    }

    /// Returns what is in a directory.
    ///
    /// # Errors
    /// As [`ControlClient::ask`].
    pub fn list(&mut self, path: &str) -> Result<Vec<Entry>, ControlError> {
        let reply = self.ask(&ControlRequest::List(path.to_owned()))?;
        let entry = |data: &Value| {
            Some(Entry { name: data["name"].as_str()?.to_owned(), kind: to_kind(data)? })
        };
        let entries = reply.data.as_array().and_then(|all| all.iter().map(entry).collect());
        entries.ok_or_else(|| self.malformed("no list"))
    }

    /// Returns what a path leads to.
    ///
    /// # Errors
    /// As [`ControlClient::ask`].
    pub fn kind(&mut self, path: &str) -> Result<Kind, ControlError> {
        let reply = self.ask(&ControlRequest::Kind(path.to_owned()))?;
        to_kind(&reply.data).ok_or_else(|| self.malformed("neither a file nor a directory"))
    }

    /// Returns what a file says.
    ///
    /// # Errors
    /// As [`ControlClient::ask`].
    pub fn read(&mut self, path: &str) -> Result<String, ControlError> {
        Ok(self.ask(&ControlRequest::Read(path.to_owned()))?.text)
    }

    /// Writes to a file, and waits until that is done.
    ///
    /// # Errors
    /// As [`ControlClient::ask`].
    pub fn write(&mut self, path: &str, value: &str) -> Result<(), ControlError> {
        let (path, value) = (path.to_owned(), value.to_owned());
        self.ask(&ControlRequest::Write { path, value }).map(drop)
    }

    fn malformed(&self, what: &str) -> ControlError {
        ControlError::Malformed { socket: self.socket.clone(), what: what.to_owned() }
    }
}
