//! What connections are asked for by.

use std::collections::BTreeMap;
use std::fmt;

use super::CmError;

/// The number of a service; IBTA volume 1, annex A3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u64);

impl ServiceId {
    /// Returns the service of a port of `rdma_cm`: the port space above 16 bits of port.
    #[must_use]
    pub const fn port(space: PortSpace, port: u16) -> Self {
        Self((space.0 as u64) << 16 | port as u64)
    }

    /// Returns the port space and the port of a service of `rdma_cm`; `None` for any other one.
    #[must_use]
    pub fn to_port(self) -> Option<(PortSpace, u16)> {
        let space = PortSpace(u16::try_from(self.0 >> 16).ok()?);
        let known = matches!(space, PortSpace::TCP | PortSpace::UDP | PortSpace::IB);
        known.then_some((space, self.0 as u16))
    }
}

impl fmt::Display for ServiceId {
    /// Writes sixteen hexadecimal digits after 0x.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.0)
    }
}

/// A space of ports of `rdma_cm`; IBTA volume 1, annex A11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortSpace(pub u16);

impl PortSpace {
    /// Connections.
    pub const TCP: Self = Self(0x0106);
    /// Datagrams, found by SIDR.
    pub const UDP: Self = Self(0x0111);
    /// Services of InfiniBand's own numbering, with the addresses of IP.
    pub const IB: Self = Self(0x013f);
}

/// Somebody who listens for a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(u64);

/// One who listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listener {
    pub(super) id: ListenerId,
    /// Private data starts with the header of `rdma_cm`.
    pub(super) has_header: bool,
}

/// Who listens for what.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    by_service: BTreeMap<ServiceId, Listener>,
    by_id: BTreeMap<ListenerId, ServiceId>,
    next: u64,
}

impl Listeners {
    pub(super) fn add(
        &mut self,
        service: ServiceId,
        has_header: bool,
    ) -> Result<ListenerId, CmError> {
        if self.by_service.contains_key(&service) {
            return Err(CmError::ServiceInUse { service });
        }
        let id = ListenerId(self.next);
        self.next += 1;
        self.by_service.insert(service, Listener { id, has_header });
        self.by_id.insert(id, service);
        Ok(id)
    }

    pub(super) fn remove(&mut self, id: ListenerId) -> bool {
        let Some(service) = self.by_id.remove(&id) else { return false };
        self.by_service.remove(&service).is_some()
    }

    pub(super) fn get(&self, service: ServiceId) -> Option<Listener> {
        self.by_service.get(&service).copied()
    }
}
