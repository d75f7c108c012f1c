//! The umad devices of the Linux kernel, `/dev/infiniband/umadN`: a link that sends and receives MADs, and the binary
//! interface of the devices.
//!
//! [`UmadLink`] sends and receives MADs at a port of a real HCA. A preloaded library can emulate
//! the devices.
//!
//! | module | contents |
//! |---|---|
//! | `link` | [`UmadLink`]: a port of an HCA as a [`MadLink`](ib_link::MadLink) |
//! | `sysfs` | [`UmadDevice`]: list of devices, attributes of their ports |
//! | `file` | an open file, of the kernel or emulated by a preloaded library |
//! | [`abi`] | the binary interface: the header of MADs, the ioctls |
//!
//! # Examples
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
//!
//! The header that precedes each MAD that is read from a device or written to it:
//!
//! ```
//! use ib_umad::abi::UmadHeader;
//!
//! let header = UmadHeader { agent: 3, lid: 17, timeout_ms: 1_000, ..UmadHeader::default() };
//! assert_eq!(UmadHeader::parse(&header.to_bytes()), header);
//! ```

use std::io;

pub mod abi;
mod file;
mod link;
mod sysfs;

pub use link::{IsSmHolder, UmadAgent, UmadLink, UmadMessage, UmadOptions, UmadRmpp};
pub use sysfs::UmadDevice;

/// Error of a umad device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UmadError {
    /// No umad device belongs to the requested port.
    #[error(
        "no device {wanted} under /sys/class/infiniband_mad, found: {}",
        if known.is_empty() { "none" } else { known.as_str() }
    )]
    NoDevice {
        /// The requested device.
        wanted: String,
        /// The list of the existing devices.
        known: String,
    },
    /// A file has unexpected content.
    #[error("{path}: found {found:?}, expected {expected}")]
    Content {
        /// Path of the file.
        path: String,
        /// Content of the file.
        found: String,
        /// A description of the content that is expected in this file.
        expected: &'static str,
    },
    /// A system call failed.
    #[error("{doing} {path}: {source}{}", permission_hint(source))]
    Io {
        /// The operation that failed, for example `opening`.
        doing: &'static str,
        /// Path of the file.
        path: String,
        /// The error that the system call returned.
        source: io::Error,
    },
}

/// Returns the next step for the message of [`UmadError::Io`] if the kernel has denied access; otherwise an empty text.
fn permission_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => ": expected root, or read and write access to the file",
        _ => "",
    }
}
