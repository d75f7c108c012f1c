//! The statistics and control tree. Its files show sessions and paths, and writes to them change sessions and paths.
//!
//! The tree has no file system of its own: the owner passes file paths and written bytes to it, and gets texts or
//! errors.
//!
//! | module | holds |
//! |---|---|
//! | `client` | [`ClientTree`]: the files of a session |
//! | `server` | [`ServerTree`]: the files of a server's sessions |
//! | `ibtrs` | names and formats of IBTRS, in the directories `ibtrs-client` and `ibtrs-server` |
//! | `rtrs` | names and formats of RTRS of Linux 6.1, in the directories `rtrs-client` and `rtrs-server` |
//! | `layout` | the files of a directory |
//! | `walk` | lookup of files and directories by path |
//! | `value` | parsing of written values |
//! | `metrics` | metrics for Prometheus |
//!
//! Client and server have two sets of files with the same effect. One has the names and formats of IBTRS, the
//! predecessor of RTRS (README of "\[PATCH v4 14/25\] ibtrs: a bit of documentation"). The other has those of Linux
//! 6.1, below `/sys/devices/virtual`. Statistics that neither of them has are in the set of IBTRS only.

use crate::address::PathAddress;
use crate::client::PathSpec;
use crate::connection::{AdapterId, Adapters};
use ib_types::Errno;

mod client;
mod ibtrs;
mod layout;
mod metrics;
mod rtrs;
mod server;
mod value;
mod walk;

pub use client::{ClientTree, WriteStatus};
pub use server::ServerTree;
pub use walk::{Entry, Kind};

/// Maximum length in bytes of a write to a file: one page, as in sysfs.
pub const MAX_WRITE: usize = 4096;

/// Error of an access to a file or directory of the tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason} ({errno})")]
pub struct TreeError {
    /// The error number, as a system call would return it.
    pub errno: Errno,
    /// The path of the file or directory.
    pub path: String,
    /// The reason. If a written value is invalid, the reason names the expected values.
    pub reason: String,
}

impl TreeError {
    /// Creates an error.
    #[must_use]
    pub fn new(errno: Errno, path: &str, reason: impl Into<String>) -> Self {
        Self { errno, path: path.to_owned(), reason: reason.into() }
    }
}

/// The files of an engine: a [`Client`](crate::Client) or a [`Server`](crate::Server).
pub trait Tree {
    /// The engine.
    type Engine;

    /// Returns the entries of a directory.
    ///
    /// # Errors
    /// Fails with [`Errno::ENOENT`] if the path does not exist, or with [`Errno::ENOTDIR`] if it leads to a file.
    fn list(&self, engine: &Self::Engine, path: &str) -> Result<Vec<Entry>, TreeError>;

    /// Returns whether a path leads to a file or to a directory.
    ///
    /// # Errors
    /// Fails with [`Errno::ENOENT`] if the path does not exist, or with [`Errno::ENOTDIR`] if a component other than
    /// the last one is a file.
    fn kind(&self, engine: &Self::Engine, path: &str) -> Result<Kind, TreeError>;

    /// Reads a file. The contents end with a newline.
    ///
    /// # Errors
    /// Fails with the errors of [`Tree::kind`], with [`Errno::EISDIR`] if the path is a directory, and with
    /// [`Errno::ENODEV`] if the RTRS path or its HCA was removed.
    fn read(
        &self,
        engine: &Self::Engine,
        ports: &impl Ports,
        path: &str,
    ) -> Result<String, TreeError>;

    /// Returns all metrics in the text format of Prometheus.
    fn metrics(&self, engine: &Self::Engine) -> String;
}

/// The name of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// The name of the HCA.
    pub adapter: String,
    /// The port number.
    pub number: u8,
}

/// The interface by which the owner of the HCAs provides port names and path specifications.
pub trait Ports: Adapters {
    /// Returns the name of the port of an HCA; `None` if the HCA was removed.
    fn port_name(&self, id: AdapterId) -> Option<PortName>;

    /// Returns the specification of the path between the addresses that were written to `add_path`.
    ///
    /// # Errors
    /// Fails with an error number and a reason if there is no route, or if the owner does not support new paths.
    fn find_path(&mut self, address: &PathAddress) -> Result<PathSpec, (Errno, String)>;
}
