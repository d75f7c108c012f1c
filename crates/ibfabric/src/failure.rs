//! Errors of commands with their exit statuses, and messages on standard error.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use ib_daemons::DaemonError;
use ib_os::signals;

/// Prints an error on standard error. Control characters are escaped, since a message can contain a peer's text.
macro_rules! say {
    ($($argument:tt)*) => {{
        ib_daemons::message::print(format_args!($($argument)*));
    }};
}
pub(crate) use say;

/// Prints a note or a warning on standard error, unless `--quiet` is set.
macro_rules! note {
    ($($argument:tt)*) => {{
        ib_daemons::message::print_note(format_args!($($argument)*));
    }};
}
pub(crate) use note;

/// The verdict of a completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Exit status 0: no problems found.
    Good,
    /// Exit status 1: problems found.
    Bad,
    /// A signal stopped the command early; its results are incomplete.
    Interrupted,
    /// This exit status, for example one of a program with which the command is compatible.
    Other(u8),
}

impl Verdict {
    pub(crate) fn good_if(good: bool) -> Self {
        if good { Self::Good } else { Self::Bad }
    }
}

impl From<ib_daemons::Verdict> for Verdict {
    fn from(verdict: ib_daemons::Verdict) -> Self {
        match verdict {
            ib_daemons::Verdict::Good => Self::Good,
            ib_daemons::Verdict::Bad => Self::Bad,
        }
    }
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        Self::from(match verdict {
            Verdict::Good => 0,
            Verdict::Bad => 1,
            Verdict::Interrupted => signals::exit_status(),
            Verdict::Other(status) => status,
        })
    }
}

/// The error of a command that did not complete.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Unusable input; exit status 2.
    Unusable(String),
    /// A signal stopped the command before it had a result; exit status 128 plus the number of the signal.
    Interrupted(String),
    /// Unusable input, exit status 2; the message has been printed already.
    Said,
    /// The reader of standard output closed it; no message is printed.
    OutputClosed,
}

impl Failure {
    pub(crate) fn unusable(error: impl Display) -> Self {
        Self::Unusable(error.to_string())
    }

    /// Returns the error message, without printing it.
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Unusable(message) | Self::Interrupted(message) => message,
            Self::Said => "the error has been printed".to_owned(),
            Self::OutputClosed => "the output is closed".to_owned(),
        }
    }

    /// Prints the message and returns the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Unusable(message) => {
                say!("{message}");
                ExitCode::from(2)
            }
            Self::Interrupted(message) => {
                say!("{message}");
                ExitCode::from(signals::exit_status())
            }
            Self::Said => ExitCode::from(2),
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Interrupted(message) => Self::Interrupted(message),
            DaemonError::Reported => Self::Said,
            DaemonError::OutputClosed => Self::OutputClosed,
            error => Self::unusable(error),
        }
    }
}

impl From<Failure> for DaemonError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Unusable(message) => Self::Failed(message),
            Failure::Interrupted(message) => Self::Interrupted(message),
            Failure::Said => Self::Reported,
            Failure::OutputClosed => Self::OutputClosed,
        }
    }
}

impl From<io::Error> for Failure {
    /// Converts an error of writing to standard output.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Unusable(format!("cannot write to standard output: {error}"))
        }
    }
}
