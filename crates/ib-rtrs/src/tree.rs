//! The statistics and control tree: the files by which people and programs see a session and its paths, and change
//! them. It owns no file system: its owner hands over paths and what was written, and gets texts and errors.
//!
//! | module | holds |
//! |---|---|
//! | `client` | [`ClientTree`]: the files of a session |
//! | `server` | [`ServerTree`]: the files of a server's sessions |
//! | `ibtrs` | names and formats of IBTRS, below `ibtrs-client` and `ibtrs-server` |
//! | `rtrs` | names and formats of RTRS of Linux 6.1, below `rtrs-client` and `rtrs-server` |
//! | `layout` | which files there are |
//! | `walk` | from a path to a file |
//! | `value` | what is written to files |
//! | `metrics` | the numbers for Prometheus |
//!
//! Both sides have their files twice, under the names and in the formats of IBTRS, from which RTRS came (the README of
//! "\[PATCH v4 14/25\] ibtrs: a bit of documentation"), and as Linux 6.1 has them below `/sys/devices/virtual`. It makes
//! no difference where something is written.

use crate::adapters::{AdapterId, Adapters};
use crate::address::PathAddress;
use crate::client::PathSpec;
use ib_types::Errno;

mod client;
mod ibtrs;
mod layout;
mod metrics;
mod rtrs;
mod server;
mod value;
mod walk;

pub use client::{ClientTree, Written};
pub use server::ServerTree;
pub use walk::{Entry, Kind};

/// The longest text that is written to a file, in bytes: a page, as in sysfs.
pub const LONGEST: usize = 4096;

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what} ({errno})")]
pub struct TreeError {
    /// The number of the error, as system calls tell it.
    pub errno: Errno,
    /// The path that was named.
    pub path: String,
    /// What is wrong.
    pub what: String,
}

impl TreeError {
    /// Returns that something is wrong with a path.
    #[must_use]
    pub fn new(errno: Errno, path: &str, what: impl Into<String>) -> Self {
        Self { errno, path: path.to_owned(), what: what.into() }
    }
}

/// A port, as it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// The HCA.
    pub adapter: String,
    /// The number of its port.
    pub number: u8,
}

/// Names and paths of HCAs, which the tree gets from their owner.
pub trait Ports: Adapters {
    /// Returns the name of the port of an HCA; `None` once the HCA is removed.
    fn port_name(&self, id: AdapterId) -> Option<PortName>;

    /// Returns the specification of a path that was written to `add_path`.
    ///
    /// # Errors
    /// Fails with an error number and a reason if there is no path, or if the owner cannot add paths.
    fn find_path(&mut self, address: &PathAddress) -> Result<PathSpec, (Errno, String)>;
}
