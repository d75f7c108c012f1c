//! Control messages (`cmsg(3)`) and socket addresses of datagrams; conversion between IP addresses
//! and GIDs.

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
    /// Size in bytes. It suffices for all control messages that a [`super::udp::UdpSocket`] sends
    /// or receives with one datagram.
    const CAPACITY: usize = 208;

    const HEADER: usize = size_of::<libc::cmsghdr>();

    pub(super) const fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0 }
    }

    /// Appends a control message.
    ///
    /// # Panics
    /// Panics if the buffer is full.
    pub(super) fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let (at, next) = (self.length, self.length + Self::padded(Self::HEADER + data.len()));
        let message = &mut self.bytes[at..next];
        // SAFETY: all bits zero are a valid header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (Self::HEADER + data.len()) as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        message[Self::HEADER..][..data.len()].copy_from_slice(data);
        // SAFETY: the slice has room for a header, as the indexing above has checked. The write needs no alignment.
        unsafe { message.as_mut_ptr().cast::<libc::cmsghdr>().write_unaligned(header) };
        self.length = next;
    }

    /// Iterates over the control messages that a system call has written into the first `length`
    /// bytes. Returns their level, type and data.
    pub(super) fn messages(&self, length: usize) -> impl Iterator<Item = (i32, i32, &[u8])> {
        let mut rest = &self.bytes[..length.min(Self::CAPACITY)];
        std::iter::from_fn(move || {
            let message = rest.get(..Self::HEADER)?;
            // SAFETY: the slice has the size of a header, and any bytes are a valid header.
            let header: libc::cmsghdr =
                unsafe { message.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
            // The type of `cmsg_len` differs between C libraries.
            let length: usize = header.cmsg_len as _;
            let data = rest.get(Self::HEADER..length)?;
            rest = rest.get(Self::padded(length)..).unwrap_or_default();
            Some((header.cmsg_level, header.cmsg_type, data))
        })
    }

    /// Sets the control fields of a `msghdr` for sending.
    pub(super) fn attach(&mut self, header: &mut libc::msghdr) {
        if self.length != 0 {
            header.msg_control = self.bytes.as_mut_ptr().cast();
            header.msg_controllen = self.length as _;
        }
    }

    /// Sets the control fields of a `msghdr` for receiving.
    pub(super) fn attach_whole(&mut self, header: &mut libc::msghdr) {
        header.msg_control = self.bytes.as_mut_ptr().cast();
        header.msg_controllen = Self::CAPACITY as _;
    }

    /// Returns the aligned size of a control message (`CMSG_ALIGN`).
    const fn padded(length: usize) -> usize {
        length.next_multiple_of(size_of::<libc::size_t>())
    }
}

/// An IP address and port as `sockaddr_in` or `sockaddr_in6`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) union SocketAddress {
    family: libc::sa_family_t,
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl SocketAddress {
    /// Creates a socket address. `scope` is the interface index of a link-local IPv6 address;
    /// otherwise it is 0.
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

    /// Creates a socket address that the system will overwrite.
    pub(super) fn empty() -> Self {
        Self::new(Ipv6Addr::UNSPECIFIED.into(), 0, 0)
    }

    /// Returns the size in bytes of the socket address structure for the address family.
    pub(super) fn length(&self) -> libc::socklen_t {
        // SAFETY: every variant starts with the address family.
        let is_v4 = i32::from(unsafe { self.family }) == libc::AF_INET;
        let length =
            if is_v4 { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() };
        length as libc::socklen_t
    }

    /// Returns the address and the port.
    pub(super) fn get(&self) -> (IpAddr, u16) {
        // SAFETY: every variant starts with the address family.
        if i32::from(unsafe { self.family }) == libc::AF_INET {
            let address = self.as_v4();
            (from_v4(address.sin_addr).into(), u16::from_be(address.sin_port))
        } else {
            let address = self.as_v6();
            (Ipv6Addr::from(address.sin6_addr.s6_addr).into(), u16::from_be(address.sin6_port))
        }
    }

    fn as_v4(&self) -> libc::sockaddr_in {
        // SAFETY: the caller has checked the address family. `new` or the system has set the union's field for this
        // family.
        unsafe { self.v4 }
    }

    fn as_v6(&self) -> libc::sockaddr_in6 {
        // SAFETY: for the same reason as in `SocketAddress::as_v4`.
        unsafe { self.v6 }
    }
}

/// Converts an IPv4 address to `in_addr`.
pub(super) fn v4(address: Ipv4Addr) -> libc::in_addr {
    libc::in_addr { s_addr: u32::from_ne_bytes(address.octets()) }
}

/// Converts `in_addr` to an IPv4 address.
pub(super) fn from_v4(address: libc::in_addr) -> Ipv4Addr {
    Ipv4Addr::from(address.s_addr.to_ne_bytes())
}

/// Returns the RoCEv2 GID of an IP address: the IPv6 address, or the IPv4-mapped IPv6 address.
#[must_use]
pub fn gid_of(address: IpAddr) -> Gid {
    match address {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => address.into(),
    }
}

/// Returns the IP address of a RoCEv2 GID.
#[must_use]
pub fn address_of(gid: Gid) -> IpAddr {
    gid.to_ipv4().map_or_else(|| Ipv6Addr::from(gid).into(), IpAddr::from)
}
