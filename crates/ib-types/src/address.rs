//! Addresses of nodes and ports: GUIDs, GIDs, LIDs and the LID mask control (LMC).

use std::fmt;
use std::net::{AddrParseError, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A 64-bit globally unique identifier (EUI-64) of a node, port or system image.
///
/// The number in the type is in host byte order. Source: IBTA volume 1, chapter 4.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u64);

impl Guid {
    /// The number zero, which is not a valid GUID. It stands for an unknown GUID.
    pub const ZERO: Self = Self(0);

    /// Returns a number by which GUIDs are sorted as in OpenSM's tables on a little-endian machine. It is the
    /// big-endian GUID, read as a little-endian integer.
    ///
    /// This order breaks ties between equal routes. Code that must compute the same forwarding tables as OpenSM
    /// therefore iterates in this order.
    #[must_use]
    pub const fn wire_order(self) -> u64 {
        self.0.swap_bytes()
    }

    /// Returns true if the GUID is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

impl fmt::LowerHex for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// Error of parsing a [`Guid`] from text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a GUID: expected 1 to 16 hexadecimal digits, with or without 0x")]
pub struct ParseGuidError {
    text: String,
}

impl FromStr for Guid {
    type Err = ParseGuidError;

    /// Parses 1 to 16 hexadecimal digits, with or without `0x`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
        let legal =
            (1..=16).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_hexdigit());
        legal
            .then(|| u64::from_str_radix(digits, 16).ok())
            .flatten()
            .map(Self)
            .ok_or_else(|| ParseGuidError { text: text.to_owned() })
    }
}

/// A unicast local identifier (LID), 1 to 0xBFFF: the address of a port within its subnet.
///
/// Source: IBTA volume 1, chapter 4.1.3. Of the other 16-bit values, 0 is reserved, 0xC000 to 0xFFFE are multicast
/// LIDs, and 0xFFFF is the permissive LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lid(u16);

/// Error of converting a number to a unicast [`Lid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("LID {value} is not a unicast LID: expected 1 to 49151 (0xbfff)")]
pub struct NotUnicastLid {
    /// The rejected number.
    pub value: u32,
}

impl Lid {
    /// The highest unicast LID, 0xBFFF.
    pub const MAX_UNICAST: u16 = 0xbfff;

    /// Creates a unicast LID.
    ///
    /// # Errors
    /// Returns [`NotUnicastLid`] for zero and for numbers above 49,151 (0xBFFF).
    pub fn unicast(value: u32) -> Result<Self, NotUnicastLid> {
        match u16::try_from(value) {
            Ok(lid) if (1..=Self::MAX_UNICAST).contains(&lid) => Ok(Self(lid)),
            _ => Err(NotUnicastLid { value }),
        }
    }

    /// Returns the LID as a number, 1 to 49,151.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the LID as an index into a linear forwarding table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::LowerHex for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

/// The LID mask control (LMC), 0 to 7: a port has 2^LMC consecutive LIDs.
///
/// Source: IBTA volume 1, chapter 3.5.10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lmc(u8);

/// Error of converting a number to an [`Lmc`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("LMC {value} is out of range: expected 0 to 7")]
pub struct LmcOutOfRange {
    /// The rejected number.
    pub value: u8,
}

impl Lmc {
    /// LMC 0: each port has one LID.
    pub const ZERO: Self = Self(0);

    /// Creates an LMC.
    ///
    /// # Errors
    /// Returns [`LmcOutOfRange`] for numbers above 7.
    pub const fn new(value: u8) -> Result<Self, LmcOutOfRange> {
        if value <= 7 { Ok(Self(value)) } else { Err(LmcOutOfRange { value }) }
    }

    /// Returns the LMC as a number, 0 to 7.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the number of LIDs that each port has, 1 to 128.
    #[must_use]
    pub const fn lids(self) -> u16 {
        1 << self.0
    }
}

impl fmt::Display for Lmc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Lmc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value: u8 =
            text.parse().map_err(|_| format!("`{text}` is not an LMC: expected 0 to 7"))?;
        Self::new(value).map_err(|error| error.to_string())
    }
}

/// A 128-bit global identifier (GID): the address of a port across subnets, or of a multicast
/// group.
///
/// A unicast GID is a subnet prefix followed by a port GUID. With RoCEv2, a GID is the IP address of the port. The
/// number in the type is in host byte order. Source: IBTA volume 1, chapter 4.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gid(pub u128);

impl Gid {
    /// The reserved GID `::`. It also stands for an unknown GID.
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
