//! What ends a command, and the exit status that it means; and what is said on standard error.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use ib_daemons::DaemonError;

/// Prints a message on standard error. Control characters are escaped, since a message may hold text of a peer.
macro_rules! say {
    ($($argument:tt)*) => {{
        ib_daemons::message::print(format_args!($($argument)*));
    }};
}
pub(crate) use say;

/// The answer of a command that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Exit status 0.
    Good,
    /// Exit status 1: the fabric or its routes have a fault.
    Bad,
    /// An exit status that another program has for the same.
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
            Verdict::Other(status) => status,
        })
    }
}

/// What kept a command from running to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The input cannot be used; exit status 2.
    Unusable(String),
    /// The same, and it was said already.
    Said,
    /// Whoever read the output has gone; nothing is said.
    OutputClosed,
}

impl Failure {
    pub(crate) fn unusable(error: impl Display) -> Self {
        Self::Unusable(error.to_string())
    }

    /// Returns what there is to say.
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Unusable(message) => message,
            Self::Said => "it was said already".to_owned(),
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
            Self::Said => ExitCode::from(2),
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Self {
        match error {
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
            Failure::Said => Self::Reported,
            Failure::OutputClosed => Self::OutputClosed,
        }
    }
}

impl From<io::Error> for Failure {
    /// Turns an error of writing to standard output into a failure.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Unusable(format!("cannot write to standard output: {error}"))
        }
    }
}
