//! Endpoints of paths, and networks, in the notation of command line options and control files.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ib_rtrs::Address;
use ib_types::Gid;

/// A path that the user has specified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedPath {
    /// The client's endpoint; `None` if the user has not specified it.
    pub source: Option<Endpoint>,
    /// The server's endpoint.
    pub server: Endpoint,
}

/// An endpoint of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An IP address.
    Ip(IpAddr),
    /// A GID.
    Gid(Gid),
    /// A name that has to be resolved to an address.
    Name(String),
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Ip(address));
        }
        refuse_iwarp(text)?;
        match text.split_once(':') {
            Some(("ip" | "gid", _)) => {
                Ok(text.parse::<Address>().map_err(|error| error.to_string())?.into())
            }
            _ if text.is_empty() => Err("expected an address".to_owned()),
            _ => Ok(Self::Name(text.to_owned())),
        }
    }
}

impl From<Address> for Endpoint {
    fn from(address: Address) -> Self {
        match address {
            Address::Ip(address) => Self::Ip(address),
            Address::Gid(gid) => Self::Gid(gid),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => write!(f, "{address}"),
            Self::Gid(gid) => write!(f, "{}", Address::Gid(*gid)),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Fails if the text is an iWARP address or device in the notation of the kernel or of rdma-core.
fn refuse_iwarp(text: &str) -> Result<(), String> {
    let behind = |start: &str| text.strip_prefix(start).and_then(|rest| rest.chars().next());
    let is_number = |found: Option<char>| found.is_some_and(|found| found.is_ascii_digit());
    let is_device = ["siw", "iwp", "cxgb"].into_iter().any(|start| is_number(behind(start)))
        || ["siw_", "iw_"].into_iter().any(|start| behind(start).is_some());
    if is_device || text.starts_with("iw:") || text.starts_with("iwarp:") {
        return Err(format!(
            "{text:?} belongs to iWARP, which is not supported: expected RoCEv2 (an IP address) or InfiniBand (--attach)"
        ));
    }
    Ok(())
}

impl FromStr for RequestedPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((source, server)) = text.split_once(['@', ',']) else {
            return Ok(Self { source: None, server: text.parse()? });
        };
        let (source, server): (Endpoint, Endpoint) = (source.parse()?, server.parse()?);
        if let (Endpoint::Ip(source), Endpoint::Ip(server)) = (&source, &server)
            && source.is_ipv4() != server.is_ipv4()
        {
            return Err(
                "both ends of a path need addresses of the same family, IPv4 or IPv6".into()
            );
        }
        Ok(Self { source: Some(source), server })
    }
}

/// An IP network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: expected an address, or ADDR/BITS");
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(wrong)?,
            None => most,
        };
        Ok(Self { address, bits })
    }
}

impl Network {
    /// Returns true if the network contains the address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, other, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (u128::from(own.to_bits()), u128::from(other.to_bits()), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), 128),
            _ => return false,
        };
        // The host bits of the network's address are ignored.
        (own ^ other).checked_shr(width - u32::from(self.bits)).unwrap_or(0) == 0
    }
}

#[cfg(test)]
mod tests;
