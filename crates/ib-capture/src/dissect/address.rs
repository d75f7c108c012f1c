//! Addresses of packets.

use std::fmt;
use std::net::IpAddr;

/// Source or destination address of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IP address.
    Ip(IpAddr),
    /// A LID.
    Lid(u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Lid(lid) => write!(f, "lid {lid}"),
        }
    }
}
