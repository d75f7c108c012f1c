//! Global identifiers (GIDs).

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::Guid;

/// A 128-bit global identifier (GID): the address of a port across subnets, or of a multicast
/// group.
///
/// A unicast GID is a subnet prefix followed by a port GUID. With RoCEv2, a GID is the IP address of the port. The
/// number in the type is in host byte order. Source: IBTA volume 1, chapter 4.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub u128);

impl Gid {
    /// The number zero, which is reserved. It also stands for an unknown GID.
    pub const ZERO: Self = Self(0);

    /// The default subnet prefix, `fe80::/64`.
    pub const DEFAULT_PREFIX: u64 = 0xfe80_0000_0000_0000;

    /// Creates a unicast GID from a subnet prefix and a port GUID.
    #[must_use]
    pub const fn new(prefix: u64, guid: Guid) -> Self {
        Self((prefix as u128) << 64 | guid.0 as u128)
    }

    /// Returns the upper 64 bits, which are the subnet prefix of a unicast GID.
    #[must_use]
    pub const fn prefix(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns the lower 64 bits, which are the port GUID of a unicast GID.
    #[must_use]
    pub const fn guid(self) -> Guid {
        Guid(self.0 as u64)
    }

    /// Returns true if the GID belongs to a multicast group, that is, if its first byte is 0xff.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0 >> 120 == 0xff
    }

    /// Returns the IPv4 address if the GID has the form `::ffff:a.b.c.d`, as with RoCEv2; `None` for all other GIDs.
    #[must_use]
    pub const fn to_ipv4(self) -> Option<Ipv4Addr> {
        Ipv6Addr::from_bits(self.0).to_ipv4_mapped()
    }

    /// Creates a GID from its 16 bytes on the wire.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Returns the 16 bytes on the wire.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(address: Ipv6Addr) -> Self {
        Self(address.to_bits())
    }
}

impl From<Ipv4Addr> for Gid {
    /// Converts the IPv4 address a.b.c.d to `::ffff:a.b.c.d`, the GID of a RoCEv2 port.
    fn from(address: Ipv4Addr) -> Self {
        address.to_ipv6_mapped().into()
    }
}

impl From<Gid> for Ipv6Addr {
    fn from(gid: Gid) -> Self {
        Self::from_bits(gid.0)
    }
}

impl fmt::Display for Gid {
    /// Writes the GID as an IPv6 address in the short form of RFC 5952.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Ipv6Addr::from(*self), f)
    }
}

/// Error of parsing a [`Gid`] from text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a GID: expected an IPv6 address such as fe80::2:c903:a1:b2c3")]
pub struct ParseGidError {
    text: String,
}

impl FromStr for Gid {
    type Err = ParseGidError;

    /// Parses an IPv6 address.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address: Result<Ipv6Addr, AddrParseError> = text.parse();
        address.map(Self::from).map_err(|_| ParseGidError { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests;
