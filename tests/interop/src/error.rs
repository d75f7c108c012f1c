//! Errors of guests and of commands.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// A guest did not boot.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BootError {
    /// This machine lacks a program, a device or a permission that guests need.
    #[error("cannot run a guest on this machine: {0}")]
    Unavailable(String),
    /// A file could not be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error that the system call returned.
        source: io::Error,
    },
    /// A program that prepares the guest failed.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The program with its arguments.
        command: String,
        /// The program's standard error, or the error with which it could not be run.
        message: String,
    },
    /// The image could not be built.
    #[error("cannot build the guest's image, see {}:\n{tail}", log.display())]
    Build {
        /// Path of the complete log.
        log: PathBuf,
        /// Last lines of the log of the build.
        tail: String,
    },
    /// The emulator exited before the guest was ready.
    #[error("the emulator exited with {status} while the guest booted:\n{console}")]
    Ended {
        /// Exit status of the emulator.
        status: ExitStatus,
        /// Last output of the emulator and of the guest's kernel.
        console: String,
    },
    /// The guest was not ready in time.
    #[error("the guest was not ready after {} s:\n{console}", limit.as_secs())]
    Silent {
        /// The time limit that has expired.
        limit: Duration,
        /// Last output of the emulator and of the guest's kernel.
        console: String,
    },
}

impl BootError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}

/// A command in the guest or on the host did not complete as expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The command contains a line break, but commands in the guest are single lines.
    #[error("expected a command of one line, found {0:?}")]
    Lines(String),
    /// The guest exited before or during the command.
    #[error("the guest exited before the end of `{command}`; its output:\n{output}")]
    Gone {
        /// The command.
        command: String,
        /// Output of the command.
        output: String,
    },
    /// A program on the host could not be started.
    #[error("cannot run `{command}`: {source}")]
    Start {
        /// The program with its arguments.
        command: String,
        /// The error that the system call returned.
        source: io::Error,
    },
    /// The expected event did not happen within the time limit. If the event was the end of the command, the command
    /// was killed.
    #[error("`{command}` did not {what} within {:.1} s; its output:\n{output}", limit.as_secs_f64())]
    Timeout {
        /// The command.
        command: String,
        /// The expected event as a verb phrase: `exit`, `print "…"`.
        what: String,
        /// The time limit that has expired.
        limit: Duration,
        /// Output of the command until the time limit.
        output: String,
    },
    /// The command exited before the expected event happened.
    #[error("`{command}` exited with status {status} and did not {what}; its output:\n{output}")]
    Early {
        /// The command.
        command: String,
        /// The expected event as a verb phrase: `print "…"`.
        what: String,
        /// Exit status of the command.
        status: u8,
        /// Output of the command.
        output: String,
    },
    /// The command exited with a status other than 0.
    #[error("`{command}` exited with status {status}; its output:\n{output}")]
    Failed {
        /// The command.
        command: String,
        /// Exit status of the command.
        status: u8,
        /// Output of the command.
        output: String,
    },
}
