//! Identifiers of connections, SIDR requests, services and listeners.

use std::fmt;

/// ID of a connection. It is the local communication ID, which is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub(crate) u32);

impl ConnectionId {
    /// Returns the communication ID as messages contain it.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for ConnectionId {
    /// Writes `0x` and eight hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08x}", self.0)
    }
}

/// ID of a SIDR request that this CM has sent. The ID is random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SidrId(pub(crate) u32);

/// ID of a SIDR request that a peer has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SidrRequestId(pub(crate) u64);

/// Service ID; IBTA volume 1, annex A3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u64);

impl ServiceId {
    /// Returns the service ID of an `rdma_cm` port. Its upper bits are the port space, and its lower
    /// 16 bits are the port.
    #[must_use]
    pub const fn port(space: PortSpace, port: u16) -> Self {
        Self((space.0 as u64) << 16 | port as u64)
    }

    /// Returns the port space and the port of an `rdma_cm` service ID; `None` for other service
    /// IDs.
    #[must_use]
    pub fn to_port(self) -> Option<(PortSpace, u16)> {
        let space = PortSpace(u16::try_from(self.0 >> 16).ok()?);
        let known = matches!(space, PortSpace::TCP | PortSpace::UDP | PortSpace::IB);
        known.then_some((space, self.0 as u16))
    }
}

impl fmt::Display for ServiceId {
    /// Writes `0x` and sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

/// A port space of `rdma_cm`; IBTA volume 1, annex A11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSpace(pub u16);

impl PortSpace {
    /// `RDMA_PS_TCP`: connections.
    pub const TCP: Self = Self(0x0106);
    /// `RDMA_PS_UDP`: UD services, resolved by SIDR.
    pub const UDP: Self = Self(0x0111);
    /// `RDMA_PS_IB`: native InfiniBand service IDs with IP addresses.
    pub const IB: Self = Self(0x013f);
}

/// ID of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(crate) u64);
