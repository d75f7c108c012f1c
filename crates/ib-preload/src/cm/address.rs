//! Socket addresses of the families `AF_INET`, `AF_INET6` and `AF_IB`.
//!
//! ```text
//! AF_INET:  family:16 port:16 | address:32 | zeros (8 bytes)
//! AF_INET6: family:16 port:16 | flow info:32 | address (16 bytes) | scope:32
//! AF_IB:    family:16 P_Key:16 | flow info:32 | GID (16 bytes) | service ID:64 | mask:64 | scope:64
//! ```
//! The family and the scopes have the byte order of the machine; other numbers are big-endian.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use ib_cm::{PortSpace, ServiceId};
use ib_types::Gid;

use crate::layout::Field;

/// Address family of InfiniBand.
pub(super) const AF_IB: u16 = 27;

/// Mask of the port space in the service ID of an `rdma_cm` port.
const PORT_SPACE: u64 = 0xffff_ffff_ffff_0000;

/// An InfiniBand address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IbAddress {
    pub(super) p_key: u16,
    pub(super) flow_info: u32,
    pub(super) gid: Gid,
    pub(super) service: u64,
    pub(super) mask: u64,
    pub(super) scope: u64,
}

impl IbAddress {
    /// Returns the port space and the port that the service ID selects for an ID whose port space is `own`. Port 0
    /// stands for any free port. Returns `None` for other service IDs than those of `rdma_cm` ports, like the kernel.
    pub(super) fn port(&self, own: PortSpace) -> Option<(PortSpace, u16)> {
        let mask = self.mask & PORT_SPACE;
        let found = self.service & mask;
        let spaces: &[PortSpace] = match own {
            PortSpace::IB => &[PortSpace::IB, PortSpace::TCP, PortSpace::UDP],
            PortSpace::TCP => &[PortSpace::TCP],
            PortSpace::UDP => &[PortSpace::UDP],
            _ => &[],
        };
        let fits = |space: &&PortSpace| ServiceId::port(**space, 0).0 & mask == found;
        let space = spaces.iter().find(fits)?;
        Some((*space, (self.service & self.mask) as u16))
    }
}

/// A socket address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Ip(SocketAddr),
    Ib(IbAddress),
}

impl Address {
    /// The address 0.0.0.0 with port 0.
    pub(super) const ANY: Self = Self::Ip(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));

    /// Parses an address. Returns `None` if the family is unknown or the address is incomplete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let family = u16::from_ne_bytes(*bytes.first_chunk()?);
        let port = |bytes: &[u8]| Some(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?));
        let word = |at: usize| Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let long = |at: usize| Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?));
        let gid = || Some(*bytes.get(8..)?.first_chunk::<16>()?);
        match family {
            it if it == libc::AF_INET as u16 && bytes.len() >= 16 => {
                let address = SocketAddrV4::new(Ipv4Addr::from(word(4)?), port(bytes)?);
                Some(Self::Ip(SocketAddr::V4(address)))
            }
            it if it == libc::AF_INET6 as u16 => {
                let scope = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
                let address = Ipv6Addr::from(gid()?);
                let address = SocketAddrV6::new(address, port(bytes)?, word(4)?, scope);
                Some(Self::Ip(SocketAddr::V6(address)))
            }
            AF_IB => Some(Self::Ib(IbAddress {
                p_key: port(bytes)?,
                flow_info: word(4)?,
                gid: Gid::from_bytes(gid()?),
                service: long(24)?,
                mask: long(32)?,
                scope: u64::from_ne_bytes(*bytes.get(40..)?.first_chunk()?),
            })),
            _ => None,
        }
    }

    /// Parses an address that has to have exactly this size.
    pub(super) fn parse_sized(bytes: &[u8], size: u16) -> Option<Self> {
        Self::parse(bytes).filter(|address| address.size() == usize::from(size))
    }

    /// Returns the size of the encoded address in bytes.
    pub(super) const fn size(&self) -> usize {
        match self {
            Self::Ip(SocketAddr::V4(_)) => 16,
            Self::Ip(SocketAddr::V6(_)) => 28,
            Self::Ib(_) => 48,
        }
    }

    /// Encodes the address.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        match self {
            Self::Ip(SocketAddr::V4(it)) => {
                (libc::AF_INET as u16).write(&mut bytes);
                it.port().to_be_bytes().write(&mut bytes);
                it.ip().octets().write(&mut bytes);
                [0; 8].write(&mut bytes);
            }
            Self::Ip(SocketAddr::V6(it)) => {
                (libc::AF_INET6 as u16).write(&mut bytes);
                it.port().to_be_bytes().write(&mut bytes);
                it.flowinfo().to_be_bytes().write(&mut bytes);
                it.ip().octets().write(&mut bytes);
                it.scope_id().write(&mut bytes);
            }
            Self::Ib(it) => {
                AF_IB.write(&mut bytes);
                it.p_key.to_be_bytes().write(&mut bytes);
                it.flow_info.to_be_bytes().write(&mut bytes);
                it.gid.0.to_be_bytes().write(&mut bytes);
                it.service.to_be_bytes().write(&mut bytes);
                it.mask.to_be_bytes().write(&mut bytes);
                it.scope.write(&mut bytes);
            }
        }
        bytes
    }

    /// Returns true if the address stands for all addresses.
    pub(super) fn is_any(&self) -> bool {
        match self {
            Self::Ip(address) => address.ip().is_unspecified(),
            Self::Ib(address) => address.gid == Gid::ZERO,
        }
    }

    /// Returns true if both addresses are of one family.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip(one), Self::Ip(other)) => one.is_ipv4() == other.is_ipv4(),
            (Self::Ib(_), Self::Ib(_)) => true,
            _ => false,
        }
    }

    /// Returns true if both addresses name the same port of the fabric, whatever their port numbers are.
    pub(super) fn is_same_host(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ip(one), Self::Ip(other)) => one.ip() == other.ip(),
            (Self::Ib(one), Self::Ib(other)) => one.gid == other.gid,
            _ => false,
        }
    }

    /// Returns the address with another port; for an InfiniBand address, with the service ID of the port.
    pub(super) fn with_port(self, space: PortSpace, port: u16) -> Self {
        match self {
            Self::Ip(mut address) => {
                address.set_port(port);
                Self::Ip(address)
            }
            Self::Ib(address) => {
                let service = ServiceId::port(space, port).0;
                Self::Ib(IbAddress { service, mask: u64::MAX, ..address })
            }
        }
    }
}

#[cfg(test)]
mod tests;
