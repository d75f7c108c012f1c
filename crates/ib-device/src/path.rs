//! Paths to other ports.

use std::io;
use std::net::IpAddr;

use ib_link::Route;
use ib_types::{Mtu, PKey};

/// A path to another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Route of packets on the path.
    pub route: Route,
    /// Path MTU.
    pub mtu: Mtu,
    /// P_Key of the path.
    pub p_key: PKey,
}

/// The reason why there is no path to an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No port has the address.
    #[error("no port of the fabric has the address {0}")]
    Unknown(IpAddr),
    /// The SA returns no path to the address.
    #[error("no path to {to}: {why}")]
    NoPath {
        /// The destination address.
        to: IpAddr,
        /// The reason why the SA returns no path.
        why: String,
    },
    /// A system call failed, or the simulator has disconnected.
    #[error("querying a path: {0}")]
    Io(#[from] io::Error),
}
