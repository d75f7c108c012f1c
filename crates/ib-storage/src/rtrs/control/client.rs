//! The client of a control socket.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_rtrs::Errno;
use ib_rtrs::tree::{Entry, Kind};
use serde_json::Value;

use super::message::to_kind;
use super::{ControlRequest, Reply};
use ib_control::lines::LineClient;

/// Default timeout of a reply. It is longer than the time that the server allows for a write to a control file.
const REPLY_TIMEOUT: Duration = Duration::from_secs(90);

/// Error of a control request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The control socket cannot be connected, or no reply was received in time.
    #[error("control socket {}: {source}", socket.display())]
    Io {
        /// Path of the control socket.
        socket: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The reply to a request is invalid.
    #[error("control socket {}: invalid reply: {what}", socket.display())]
    Malformed {
        /// Path of the control socket.
        socket: PathBuf,
        /// The reason why the reply is invalid.
        what: String,
    },
    /// The server has refused the request.
    #[error("{text}")]
    Refused {
        /// The error number.
        errno: Errno,
        /// The server's reason.
        text: String,
    },
}

impl ControlError {
    /// Returns the error number that the server sent with a refusal. For other errors, returns
    /// `ETIMEDOUT` if no reply came in time, and `EIO` otherwise.
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

/// A connection to a control socket. After an error other than [`ControlError::Refused`], it can no
/// longer be used.
pub struct ControlClient {
    socket: PathBuf,
    lines: LineClient,
}

impl ControlClient {
    /// Connects to a control socket.
    ///
    /// # Errors
    /// Fails if no server listens on the socket.
    pub fn connect(socket: &Path) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Io { socket: socket.to_owned(), source };
        let lines = LineClient::connect_at(socket).map_err(failed)?;
        lines.set_timeout(REPLY_TIMEOUT).map_err(failed)?;
        Ok(Self { socket: socket.to_owned(), lines })
    }

    /// Sets the timeout of replies; the default is 90 s.
    ///
    /// # Errors
    /// Fails if the timeout is zero.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), ControlError> {
        let failed = |source| ControlError::Io { socket: self.socket.clone(), source };
        self.lines.set_timeout(timeout).map_err(failed)
    }

    /// Sends a request and waits for the reply.
    ///
    /// # Errors
    /// Fails if no valid reply is received in time, or if the server refuses the request.
    pub fn request(&mut self, request: &ControlRequest) -> Result<Reply, ControlError> {
        let socket = &self.socket;
        let reply = self.lines.request(request).map_err(|source| {
            let socket = socket.clone();
            if source.kind() == io::ErrorKind::InvalidData {
                return ControlError::Malformed { socket, what: source.to_string() };
            }
            let late = io::Error::new(io::ErrorKind::TimedOut, "there was no reply in time");
            let source = if is_late(&source) { late } else { source };
            ControlError::Io { socket, source }
        })?;
        if reply.ok {
            return Ok(reply);
        }
        let errno = reply.data["errno"].as_u64().and_then(|errno| u16::try_from(errno).ok());
        Err(ControlError::Refused { errno: errno.map_or(Errno::EIO, Errno), text: reply.text })
    }

    /// Returns the entries of a directory of the tree.
    ///
    /// # Errors
    /// Fails as [`ControlClient::request`] does.
    pub fn list(&mut self, path: &str) -> Result<Vec<Entry>, ControlError> {
        let reply = self.request(&ControlRequest::List(path.to_owned()))?;
        let entry = |data: &Value| {
            Some(Entry { name: data["name"].as_str()?.to_owned(), kind: to_kind(data)? })
        };
        let entries = reply.data.as_array().and_then(|all| all.iter().map(entry).collect());
        entries.ok_or_else(|| self.malformed("expected a list of entries"))
    }

    /// Returns whether a path of the tree is a file or a directory.
    ///
    /// # Errors
    /// Fails as [`ControlClient::request`] does.
    pub fn kind(&mut self, path: &str) -> Result<Kind, ControlError> {
        let reply = self.request(&ControlRequest::Kind(path.to_owned()))?;
        to_kind(&reply.data).ok_or_else(|| self.malformed("expected kind `file` or `directory`"))
    }

    /// Returns the contents of a file of the tree.
    ///
    /// # Errors
    /// Fails as [`ControlClient::request`] does.
    pub fn read(&mut self, path: &str) -> Result<String, ControlError> {
        Ok(self.request(&ControlRequest::Read(path.to_owned()))?.text)
    }

    /// Writes a control file of the tree, and waits until the action that the write starts is complete.
    ///
    /// # Errors
    /// Fails as [`ControlClient::request`] does.
    pub fn write(&mut self, path: &str, value: &str) -> Result<(), ControlError> {
        let (path, value) = (path.to_owned(), value.to_owned());
        self.request(&ControlRequest::Write { path, value }).map(drop)
    }

    fn malformed(&self, what: &str) -> ControlError {
        ControlError::Malformed { socket: self.socket.clone(), what: what.to_owned() }
    }
}
