//! The network interfaces of the machine as ports of a RoCEv2 HCA.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use ib_types::{Gid, Guid};

use crate::udp::{from_v4, gid_of};

/// Bytes of an interface's MTU that are reserved for packet headers.
const HEADERS: u32 = 80;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoceInterface {
    /// Name of the interface, such as `eth0`.
    pub name: String,
    /// Interface index of the system.
    pub index: u32,
    /// MTU: maximum size of an IP packet in bytes.
    pub mtu: u32,
    /// MAC address; `None` for the loopback device and tunnels.
    pub mac: Option<[u8; 6]>,
    /// IP addresses, in the order in which the system lists them.
    pub addresses: Vec<IpAddr>,
}

impl RoceInterface {
    /// Returns the interfaces of the network namespace, in the order of their indices.
    ///
    /// # Errors
    /// Fails with the error of `getifaddrs`.
    pub fn all() -> io::Result<Vec<Self>> {
        let mut interfaces: BTreeMap<u32, Self> = BTreeMap::new();
        let list = List::get()?;
        let mut entry = list.0;
        // SAFETY: an entry lives as long as the list; `ifa_next` of the last entry is null.
        while let Some(interface) = unsafe { entry.as_ref() } {
            entry = interface.ifa_next;
            // SAFETY: the name is a string that lives as long as the list.
            let name = unsafe { CStr::from_ptr(interface.ifa_name) };
            // SAFETY: the call reads the name, a string that lives as long as the list.
            let index = unsafe { libc::if_nametoindex(interface.ifa_name) };
            // An interface that was removed or renamed after the list was read is skipped.
            let Ok(mtu) = mtu(name) else { continue };
            let this = interfaces.entry(index).or_insert_with(|| Self {
                name: name.to_string_lossy().into_owned(),
                index,
                mtu,
                mac: None,
                addresses: Vec::new(),
            });
            // SAFETY: the address of an entry is null, or has the size of its address family.
            unsafe { this.add(interface.ifa_addr) };
        }
        Ok(interfaces.into_values().collect())
    }

    /// Returns the interface that has the address; `None` if no interface has it.
    ///
    /// # Errors
    /// Fails with the error of `getifaddrs`.
    pub fn holding(address: IpAddr) -> io::Result<Option<Self>> {
        let interfaces = Self::all()?;
        Ok(interfaces.into_iter().find(|interface| interface.addresses.contains(&address)))
    }

    /// Returns the GIDs of the port, one for each address.
    pub fn gids(&self) -> impl Iterator<Item = Gid> {
        self.addresses.iter().map(|&address| gid_of(address))
    }

    /// Returns the active MTU of the port in bytes, as [`active_mtu`] computes it.
    #[must_use]
    pub const fn active_mtu(&self) -> Option<u16> {
        active_mtu(self.mtu)
    }

    /// Returns the GUID of an HCA at this port, as the kernel's driver `rdma_rxe` derives it. The
    /// GUID is the MAC address as EUI-64, with an inverted universal/local bit. Without a MAC
    /// address, it is the lower half of the first GID, or 0 if there is no GID.
    #[must_use]
    pub fn guid(&self) -> Guid {
        match self.mac {
            Some([a, b, c, d, e, f]) => {
                Guid(u64::from_be_bytes([a ^ 2, b, c, 0xff, 0xfe, d, e, f]))
            }
            None => self.gids().next().unwrap_or_default().guid(),
        }
    }

    /// Adds an IP or MAC address; ignores other addresses.
    ///
    /// # Safety
    /// The pointer has to be null, or to point to an address with the size of its address family.
    unsafe fn add(&mut self, address: *const libc::sockaddr) {
        // SAFETY: the caller guarantees a valid address; every address starts with the address
        // family.
        let Some(family) = (unsafe { address.as_ref() }).map(|address| address.sa_family) else {
            return;
        };
        match i32::from(family) {
            libc::AF_INET => {
                // SAFETY: the address family determines the type.
                let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
                self.addresses.push(from_v4(address.sin_addr).into());
            }
            libc::AF_INET6 => {
                // SAFETY: the address family determines the type.
                let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
                self.addresses.push(Ipv6Addr::from(address.sin6_addr.s6_addr).into());
            }
            libc::AF_PACKET => {
                // SAFETY: the address family determines the type.
                let address = unsafe { address.cast::<libc::sockaddr_ll>().read_unaligned() };
                let mac = address.sll_addr.first_chunk::<6>();
                self.mac = mac.copied().filter(|mac| address.sll_halen == 6 && mac != &[0; 6]);
            }
            _ => {}
        }
    }
}

/// Returns the active MTU of a RoCEv2 port in bytes. It is the largest of 256, 512, 1024, 2048 and
/// 4096 that leaves 80 bytes of the interface's MTU for headers. Returns `None` if the interface's
/// MTU is below 336 bytes.
///
/// The kernel's driver `rdma_rxe` computes the same values, such as 1024 for an Ethernet MTU of 1500.
#[must_use]
pub const fn active_mtu(interface_mtu: u32) -> Option<u16> {
    let mut mtu = 4096;
    while mtu >= 256 {
        if mtu as u32 + HEADERS <= interface_mtu {
            return Some(mtu);
        }
        mtu /= 2;
    }
    None
}

/// List of interfaces and addresses from `getifaddrs`.
struct List(*mut libc::ifaddrs);

impl List {
    fn get() -> io::Result<Self> {
        let mut list = std::ptr::null_mut();
        // SAFETY: the call writes the pointer, which is live.
        let result = unsafe { libc::getifaddrs(&raw mut list) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(list)) }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: `getifaddrs` has allocated the list, and no other code frees it.
        unsafe { libc::freeifaddrs(self.0) };
    }
}

/// Queries the MTU of an interface in bytes.
fn mtu(name: &CStr) -> io::Result<u32> {
    // SAFETY: all bits zero are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte of the name remains zero, as its terminator.
    let room = request.ifr_name.len() - 1;
    for (to, &from) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the call accesses no memory of this process.
    let file = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just opened and has no other owner.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    // SAFETY: the request is live and has a name; the call writes only its union.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written this variant of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as u32)
}

#[cfg(test)]
mod tests;
