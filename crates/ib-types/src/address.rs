//! Names of nodes, ports and paths: GUIDs, GIDs, LIDs and the LID mask control.

mod gid;

use std::fmt;
use std::str::FromStr;

pub use gid::{Gid, ParseGidError};

/// A 64-bit globally unique identifier (EUI-64) of a node, port or system image.
///
/// Held in host byte order; IBTA volume 1, chapter 4.1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guid(pub u64);

impl Guid {
    /// The value zero, which no node may carry and which files use for "not known".
    pub const ZERO: Self = Self(0);

    /// Returns the key by which OpenSM orders its GUID tables on a little-endian machine: the
    /// GUID as it lies on the wire, read as a host integer.
    ///
    /// Ties between routes are decided by this order, so everything that wants OpenSM's tables
    /// must iterate in it.
    #[must_use]
    pub const fn wire_order(self) -> u64 {
        self.0.swap_bytes()
    }

    /// Returns true when the GUID is zero.
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

/// The error of reading a [`Guid`] from text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a GUID: expected 1 to 16 hexadecimal digits, with or without 0x")]
pub struct ParseGuidError {
    text: String,
}

impl FromStr for Guid {
    type Err = ParseGuidError;

    /// Reads 1 to 16 hexadecimal digits with or without a leading `0x`.
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

/// A 16-bit local identifier: the address of a port within its subnet.
///
/// IBTA volume 1, chapter 4.1.3: zero is reserved, 0x0001 to 0xBFFF (49,151) are unicast, 0xC000
/// to 0xFFFE are multicast and 0xFFFF is the permissive LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lid(u16);

/// The error of making a unicast [`Lid`] from a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("LID {value} is not a unicast LID: expected 1 to 49151 (0xbfff)")]
pub struct NotUnicastLid {
    /// The number that is no unicast LID.
    pub value: u32,
}

impl Lid {
    /// The highest unicast LID.
    pub const MAX_UNICAST: u16 = 0xbfff;

    /// Makes a unicast LID.
    ///
    /// # Errors
    /// Returns [`NotUnicastLid`] for zero and for anything above 49,151.
    pub fn unicast(value: u32) -> Result<Self, NotUnicastLid> {
        match u16::try_from(value) {
            Ok(lid) if (1..=Self::MAX_UNICAST).contains(&lid) => Ok(Self(lid)),
            _ => Err(NotUnicastLid { value }),
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0
    }

    /// Returns the number as an index into a forwarding table.
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

/// The LID mask control: a port answers to 2^LMC consecutive LIDs, 0 ≤ LMC ≤ 7.
///
/// IBTA volume 1, chapter 3.5.10.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lmc(u8);

/// The error of making an [`Lmc`] from a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("LMC {value} is out of range: expected 0 to 7")]
pub struct LmcOutOfRange {
    /// The number that is no LMC.
    pub value: u8,
}

impl Lmc {
    /// One LID per port.
    pub const ZERO: Self = Self(0);

    /// Makes an LMC.
    ///
    /// # Errors
    /// Returns [`LmcOutOfRange`] above 7.
    pub const fn new(value: u8) -> Result<Self, LmcOutOfRange> {
        if value <= 7 { Ok(Self(value)) } else { Err(LmcOutOfRange { value }) }
    }

    /// Returns the exponent.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the number of LIDs per port, 1 to 128.
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

#[cfg(test)]
mod tests;
