//! Text form of path addresses: `ip:192.168.77.1`, `ip:fd00::1`, `gid:fe80::2:c903:0:1`.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use ib_types::Gid;

/// The address of one end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IPv4 or IPv6 address.
    Ip(IpAddr),
    /// An InfiniBand GID.
    Gid(Gid),
}

/// Error of parsing an [`Address`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text starts with neither `ip:` nor `gid:`.
    #[error("`{0}`: expected ip:ADDRESS or gid:GID")]
    Kind(String),
    /// The text is an iWARP address.
    #[error("`{0}`: paths over iWARP are not supported, only over RoCEv2 and InfiniBand")]
    Iwarp(String),
    /// The part behind the prefix is invalid.
    #[error("`{text}`: expected {expected} after `{kind}:`")]
    Value {
        /// The whole text.
        text: String,
        /// The prefix, `ip` or `gid`.
        kind: &'static str,
        /// The syntax expected behind the prefix.
        expected: &'static str,
    },
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |kind, expected| AddressError::Value { text: text.to_owned(), kind, expected };
        let unknown = || AddressError::Kind(text.to_owned());
        let (kind, rest) = text.split_once(':').ok_or_else(unknown)?;
        match kind {
            "ip" => rest.parse().map(Self::Ip).map_err(|_| wrong("ip", "an IP address")),
            "gid" => {
                let gid: Result<Ipv6Addr, _> = rest.parse();
                gid.map(|gid| Self::Gid(Gid(u128::from(gid))))
                    .map_err(|_| wrong("gid", "a GID in IPv6 notation"))
            }
            "iw" | "iwarp" => Err(AddressError::Iwarp(text.to_owned())),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "ip:{address}"),
            Self::Gid(gid) => write!(f, "gid:{}", Ipv6Addr::from(gid.0)),
        }
    }
}

/// The addresses of both ends of a path; the text form is `SOURCE@DESTINATION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathAddress {
    /// The client's address; `None` to let the connecting program choose it.
    pub source: Option<Address>,
    /// The server's address.
    pub destination: Address,
}

impl FromStr for PathAddress {
    type Err = AddressError;

    /// Parses `DESTINATION`, `SOURCE,DESTINATION` or `SOURCE@DESTINATION`.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        match text.split_once([',', '@']) {
            None => Ok(Self { source: None, destination: text.parse()? }),
            Some((source, destination)) => {
                Ok(Self { source: Some(source.parse()?), destination: destination.parse()? })
            }
        }
    }
}

impl fmt::Display for PathAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(source) = self.source {
            write!(f, "{source}@")?;
        }
        write!(f, "{}", self.destination)
    }
}

#[cfg(test)]
mod tests;
