//! Reasons why a guest does not run, and why a command failed.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a guest did not boot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootError {
    /// This machine cannot run guests, or may not; nothing has failed.
    #[error("no guest can run here: {0}")]
    Unavailable(String),
    /// A file could not be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program that prepares something failed.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The program with its arguments.
        command: String,
        /// What it said.
        message: String,
    },
    /// The image could not be built.
    #[error("the guest's image cannot be built, see {}:\n{tail}", log.display())]
    Build {
        /// The whole log.
        log: PathBuf,
        /// The end of the log.
        tail: String,
    },
    /// The emulator ended before the guest was up.
    #[error("the emulator ended with {status} while the guest booted:\n{console}")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// The end of what it and the guest's kernel said.
        console: String,
    },
    /// The guest did not come up in time.
    #[error("the guest was not ready after {} s:\n{console}", limit.as_secs())]
    Silent {
        /// How long was waited.
        limit: Duration,
        /// The end of what the guest's kernel said.
        console: String,
    },
}

impl BootError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// Why a command came to nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A command of the guest is one line.
    #[error("{0:?} is more than a line")]
    Lines(String),
    /// The guest takes no commands any more.
    #[error("the guest has gone while `{command}` was to run; it said:\n{output}")]
    Gone {
        /// The command.
        command: String,
        /// What the command wrote.
        output: String,
    },
    /// A program beside the guest could not be started.
    #[error("cannot run `{command}`: {source}")]
    Start {
        /// The program with its arguments.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// A command did not do in time what was waited for; if it was its end, it has been killed.
    #[error("`{command}` did not {what} within {:.1} s; it said:\n{output}", limit.as_secs_f64())]
    Timeout {
        /// The command.
        command: String,
        /// What was waited for.
        what: String,
        /// The limit.
        limit: Duration,
        /// What it wrote.
        output: String,
    },
    /// A command ended before it did what was waited for.
    #[error("`{command}` ended with status {status} and did not {what}; it said:\n{output}")]
    Early {
        /// The command.
        command: String,
        /// What was waited for.
        what: String,
        /// Its status.
        status: u8,
        /// What it wrote.
        output: String,
    },
    /// A command failed that has no reason to.
    #[error("`{command}` ended with status {status}; it said:\n{output}")]
    Failed {
        /// The command.
        command: String,
        /// Its status.
        status: u8,
        /// What it wrote.
        output: String,
    },
}
