//! What `sendmsg(2)` and `recvmsg(2)` carry beside a datagram: control messages and addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ib_types::Gid;

/// A buffer of control messages.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Control {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl Control {
    /// Has room for all that a [`super::udp::UdpSocket`] asks for or is told.
    const CAPACITY: usize = 208;

    const HEADER: usize = size_of::<libc::cmsghdr>();

    pub(super) const fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0 }
    }

    /// Adds a message.
    ///
    /// # Panics
    /// Panics when there is no room.
    pub(super) fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let (at, next) = (self.length, self.length + Self::padded(Self::HEADER + data.len()));
        let message = &mut self.bytes[at..next];
        // SAFETY: all bits zero are a valid header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (Self::HEADER + data.len()) as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        message[Self::HEADER..][..data.len()].copy_from_slice(data);
        // SAFETY: the slice was just found to have room for a header; it needs no alignment.
        unsafe { message.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header) };
        self.length = next;
    }

    /// Returns the messages that a system call has written into the first bytes: level, kind, data.
    pub(super) fn messages(&self, length: usize) -> impl Iterator<Item = (i32, i32, &[u8])> {
        let mut rest = &self.bytes[..length.min(Self::CAPACITY)];
        std::iter::from_fn(move || {
            let message = rest.get(..Self::HEADER)?;
            // SAFETY: the slice has as many bytes as a header, of which any are valid.
            let header: libc::cmsghdr =
                unsafe { message.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
            // Its type differs between C libraries.
            let length: usize = header.cmsg_len as _;
            let data = rest.get(Self::HEADER..length)?;
            rest = rest.get(Self::padded(length)..).unwrap_or_default();
            Some((header.cmsg_level, header.cmsg_type, data))
        })
    }

    /// Sets the fields of a message's header for sending.
    pub(super) fn attach(&mut self, header: &mut libc::msghdr) {
        if self.length != 0 {
            header.msg_control = self.bytes.as_mut_ptr().cast();
            header.msg_controllen = self.length as _;
        }
    }

    /// Sets the fields of a message's header for receiving.
    pub(super) fn attach_whole(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.bytes.as_mut_ptr().cast();
        header.msg_controllen = Self::CAPACITY as _;
    }

    /// Control messages start at multiples of the size of a length field.
    const fn padded(length: usize) -> usize {
        length.next_multiple_of(size_of::<libc::size_t>())
    }
}

/// An address and port as the system takes them.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union SocketAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl SocketAddress {
    /// Makes one; the scope is the number of the interface of a link-local IPv6 address.
    pub(super) fn new(address: IpAddr, port: u16, scope: u32) -> Self {
        match address {
            IpAddr::V4(address) => Self {
                v4: libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: port.to_be(),
                    sin_addr: v4(address),
                    sin_zero: [0; 8],
                },
            },
            IpAddr::V6(address) => Self {
                v6: libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: port.to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: address.octets() },
                    sin6_scope_id: scope,
                },
            },
        }
    }

    /// Returns one for the system to fill in.
    pub(super) fn empty() -> Self {
        Self::new(Ipv6Addr::UNSPECIFIED.into(), 0, 0)
    }

    /// Returns how many bytes the system takes it to have.
    pub(super) fn length(&self) -> libc::socklen_t {
        // SAFETY: every variant starts with the family.
        let is_v4 = i32::from(unsafe { self.family }) == libc::AF_INET;
        let length =
            if is_v4 { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() };
        length as libc::socklen_t
    }

    /// Returns the address and the port.
    pub(super) fn get(&self) -> (IpAddr, u16) {
        // SAFETY: every variant starts with the family.
        if i32::from(unsafe { self.family }) == libc::AF_INET {
            let address = self.as_v4();
            (from_v4(address.sin_addr).into(), u16::from_be(address.sin_port))
        } else {
            let address = self.as_v6();
            (Ipv6Addr::from(address.sin6_addr.s6_addr).into(), u16::from_be(address.sin6_port))
        }
    }

    fn as_v4(&self) -> libc::sockaddr_in {
        // SAFETY: the family says so, so that this variant was made or the system wrote as much.
        unsafe { self.v4 }
    }

    fn as_v6(&self) -> libc::sockaddr_in6 {
        // SAFETY: as of `SocketAddress::as_v4`.
        unsafe { self.v6 }
    }
}

/// Returns an address as the system has it.
pub(super) fn v4(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) }
}

/// Returns the address that the system means.
pub(super) fn from_v4(address: libc::in_addr) -> Ipv4Addr {
    Ipv4Addr::from(address.s_addr.to_ne_bytes())
}

/// Returns the GID of an address under RoCEv2.
#[must_use]
pub fn gid_of(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Returns the address of a GID under RoCEv2.
#[must_use]
pub fn address_of(gid: Gid) -> IpAddr {
    gid.to_ipv4().map_or_else(|| Ipv6Addr::from(gid).into(), IpAddr::from)
}
