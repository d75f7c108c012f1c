//! Attributes of an Ethernet port: an IP address of this machine and its network interface.

use std::net::IpAddr;

use ib_roce::{RoceInterface, gid_of};
use ib_types::{Guid, Mtu};

use crate::options::{DeviceError, DeviceOptions};

/// Number of bytes of the interface's MTU that are reserved for headers. The rest limits a connection's path MTU, as
/// in Linux.
const CONNECTION_HEADERS: u32 = 96;

/// Attributes of an HCA's port on Ethernet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPort {
    /// Name of the network interface.
    pub name: String,
    /// Node GUID of the HCA. It depends on the interface and, for addresses that the interface does not list, on the
    /// address.
    pub guid: Guid,
    /// Active MTU of the port.
    pub mtu: Mtu,
    /// The path MTU that a connection proposes.
    pub connection_mtu: Mtu,
}

impl LocalPort {
    /// Returns the attributes of the port at the address in `options`, with the upper limit of the path MTU in
    /// `options`.
    ///
    /// # Errors
    /// Fails if no interface has the address, or if the interface's MTU is too small.
    pub fn of(options: &DeviceOptions) -> Result<Self, DeviceError> {
        let address = options.address;
        let failed = |source| DeviceError::Io { doing: "listing interfaces", source };
        let interfaces = RoceInterface::all().map_err(failed)?;
        // Every address in 127.0.0.0/8 is local, but the interface lists only one of them. Any loopback address
        // therefore selects this interface.
        let fits = |own: &IpAddr| *own == address || own.is_loopback() && address.is_loopback();
        let interface = interfaces.into_iter().find(|it| it.addresses.iter().any(fits));
        let interface = interface.ok_or(DeviceError::NoInterface(address))?;
        let (name, mtu) = (interface.name.clone(), interface.mtu);
        let small = || DeviceError::SmallMtu { name: name.clone(), mtu };
        let active = interface.active_mtu().ok_or_else(small)?;
        let active = Mtu::within(active.into()).ok_or_else(small)?;
        let active = options.mtu.map_or(active, |mtu| mtu.min(active));
        let connection = Mtu::within(mtu.saturating_sub(CONNECTION_HEADERS) as usize);
        let connection_mtu = connection.unwrap_or(Mtu::B256).min(active);
        let other =
            if interface.addresses.contains(&address) { 0 } else { gid_of(address).0 as u64 };
        Ok(Self { name, guid: Guid(interface.guid().0 ^ other), mtu: active, connection_mtu })
    }
}
