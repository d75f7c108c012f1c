//! The kernel's devices for management datagrams, `/dev/infiniband/umadN`.
//!
//! | module | holds |
//! |---|---|
//! | [`abi`] | the binary interface: the header before every datagram, the ioctls |
//! | `sysfs` | [`UmadDevice`]: which devices there are, and what is known of their ports |
//! | `link` | [`UmadLink`]: a port of a real HCA as a [`MadLink`](ib_link::MadLink) |
//! | `file` | an open file, real or invented by a preloaded library |
//!
//! ```no_run
//! use ib_link::MadLink;
//! use ib_umad::{UmadDevice, UmadLink, UmadOptions};
//! use ib_wire::mad::MgmtClass;
//!
//! let options = UmadOptions::classes(&[MgmtClass::SUBN_DIRECTED_ROUTE, MgmtClass::PERFORMANCE]);
//! let mut link = UmadLink::open(&UmadDevice::find("mlx5_0", Some(1))?, &options)?;
//! assert_eq!(link.port()?.number, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;

pub mod abi;
mod file;
mod link;
mod sysfs;

pub use link::{UmadAgent, UmadDuty, UmadLink, UmadMessage, UmadOptions, UmadRmpp};
pub use sysfs::UmadDevice;

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UmadError {
    /// There is no such port.
    #[error("no device {wanted} under /sys/class/infiniband_mad, found: {known}")]
    NoDevice {
        /// What was looked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// A file says something unexpected.
    #[error("{path} says {found:?}, expected {expected}")]
    Content {
        /// The file.
        path: String,
        /// What it says.
        found: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The system failed.
    #[error("{doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}
