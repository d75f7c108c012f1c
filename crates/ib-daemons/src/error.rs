//! Errors and results of the daemons.

use std::fmt::Display;
use std::io;

use thiserror::Error;

/// The reason why a daemon did not start or ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The configuration, a file or the system prevents the daemon from running. The message names the cause.
    #[error("{0}")]
    Failed(String),
    /// A signal stopped the process before it had finished its task. The message names the task.
    #[error("{0}")]
    Interrupted(String),
    /// The daemon failed and has already printed the message.
    #[error("the cause was already printed to standard error")]
    Reported,
    /// The reader of standard output has disconnected.
    #[error("the reader of standard output has disconnected")]
    OutputClosed,
}

impl DaemonError {
    /// Returns an error with the same message as `error`.
    pub(crate) fn failed(error: impl Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Returns the message.
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Failed(message) | Self::Interrupted(message) => message,
            Self::Reported | Self::OutputClosed => self.to_string(),
        }
    }
}

impl From<io::Error> for DaemonError {
    /// Converts an error that occurred while writing to standard output.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(format!("cannot write to standard output: {error}"))
        }
    }
}

/// The result of a daemon that has finished its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The task is finished, and no problems were found.
    Good,
    /// The task is finished, but problems were found.
    Bad,
}

impl Verdict {
    /// Returns [`Verdict::Good`] if `good` is true, and [`Verdict::Bad`] otherwise.
    #[must_use]
    pub const fn good_if(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}
