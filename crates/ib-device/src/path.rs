//! Paths to other ports.

use std::io;
use std::net::IpAddr;

use ib_link::Route;
use ib_types::{Mtu, PKey};

/// A path to another port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Route of its packets.
    pub route: Route,
    /// The largest payload that they carry.
    pub mtu: Mtu,
    /// The partition.
    pub p_key: PKey,
}

/// Why there is no path to an address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// No port has the address.
    #[error("nobody in the fabric has the address {0}")]
    Unknown(IpAddr),
    /// The SA returns no path.
    #[error("no path to {to}: {why}")]
    None {
        /// The address.
        to: IpAddr,
        /// The response of the SA.
        why: String,
    },
    /// The system failed, or the simulator has gone.
    #[error("asking for a path: {0}")]
    Io(#[from] io::Error),
}
