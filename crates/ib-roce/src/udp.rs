//! The UDP socket, control messages (`cmsg(3)`), and conversion between IP addresses and GIDs.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use ib_link::Route;
use ib_os::alarm::Alarm;
use ib_os::sockopt::{attach_filter, buffer, set};
use ib_os::{clock, poll};
use ib_types::{Gid, Instant};

use crate::interface::RoceInterface;
use crate::options::RoceError;
use crate::options::RoceOptions;

/// An unconnected UDP socket, which the sender and the receiver of a RoCEv2 socket share.
///
/// For an unconnected socket with "don't fragment", the system sends IPv4 packets with
/// identification 0, and the segments of a GSO datagram with 0, 1, 2 and so on. The sender relies on
/// these numbers, because the ICRC covers the identification.
pub(super) struct UdpSocket {
    pub(super) file: OwnedFd,
    pub(super) address: IpAddr,
    pub(super) port: u16,
    /// Index of the interface, if the socket's address is link-local; otherwise 0.
    scope: u32,
    pub(super) gso: bool,
    pub(super) gro: bool,
    pub(super) icrc: bool,
    /// True if packets with a UDP checksum of zero are truncated to [`CUT`] bytes.
    pub(super) cuts: bool,
    pub(super) receive_buffer: usize,
    pub(super) send_buffer: usize,
}

/// Default hop limit.
const HOP_LIMIT: u8 = 64;

impl UdpSocket {
    pub(super) fn bind(options: &RoceOptions) -> Result<Self, RoceError> {
        let &RoceOptions { address, port, .. } = options;
        // Accepts IPv4-mapped IPv6 addresses, because IPv4 addresses have this form in GIDs.
        let address = address.to_canonical();
        let failed = |source| RoceError::Bind { address, port, source };
        let scope = scope(address).map_err(RoceError::Interfaces)?;
        let family = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: the call accesses no memory of this process.
        let file = unsafe { libc::socket(family, kind, libc::IPPROTO_UDP) };
        if file < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        for (option, level, name, value) in required_options(address) {
            set(file.as_fd(), level, name, value).map_err(|source| RoceError::Option {
                option,
                address,
                source,
            })?;
        }
        let cuts = address.is_ipv4() && !options.allow_zero_checksum;
        if cuts {
            attach_filter(file.as_fd(), &CUTS_ZERO_CHECKSUM).map_err(|source| {
                RoceError::Option { option: "SO_ATTACH_FILTER", address, source }
            })?;
        }
        // Errors of the following options are ignored, because old systems do not support these
        // options.
        let _ = set(file.as_fd(), libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
        let may =
            |wanted, name, value| wanted && set(file.as_fd(), libc::SOL_UDP, name, value).is_ok();
        let gso = may(options.gso, libc::UDP_SEGMENT, 0);
        let gro = may(options.gro, libc::UDP_GRO, 1);
        let own = SocketAddress::new(address, port, scope);
        // SAFETY: the address is live and has the given length.
        if unsafe { libc::bind(file.as_raw_fd(), (&raw const own).cast(), own.length()) } < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        let mut own = SocketAddress::empty();
        let mut length = size_of_val(&own) as libc::socklen_t;
        // SAFETY: the call writes at most `length` bytes of the live address.
        let result =
            unsafe { libc::getsockname(file.as_raw_fd(), (&raw mut own).cast(), &raw mut length) };
        if result < 0 {
            return Err(failed(io::Error::last_os_error()));
        }
        let (receive, send) = (
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, options.receive_buffer),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, options.send_buffer),
        );
        let sized = |option, what| {
            buffer(file.as_fd(), what).map_err(|source| RoceError::Option {
                option,
                address,
                source,
            })
        };
        Ok(Self {
            receive_buffer: sized("SO_RCVBUF", receive)?,
            send_buffer: sized("SO_SNDBUF", send)?,
            address,
            port: own.get().1,
            scope,
            gso,
            gro,
            icrc: options.icrc,
            cuts,
            file,
        })
    }

    /// Waits until one of the events of `poll(2)` occurs at the socket, the time `until` has come,
    /// or `alarm` is rung.
    pub(super) fn wait(
        &self,
        events: libc::c_short,
        until: Instant,
        alarm: Option<&Alarm>,
    ) -> io::Result<()> {
        let socket = libc::pollfd { fd: self.file.as_raw_fd(), events, revents: 0 };
        // If there is no alarm, descriptor -1 is passed, which `poll` ignores.
        let never = libc::pollfd { fd: -1, events: 0, revents: 0 };
        let alarm = alarm.map_or(never, |alarm| poll::watched(alarm.as_fd(), false));
        poll::wait_any_for(&mut [socket, alarm], until.since(clock::now()))
    }

    /// Returns true if the local address is unspecified, so that routes determine the source address.
    pub(super) const fn is_unspecified(&self) -> bool {
        self.address.is_unspecified()
    }

    /// Returns the socket address to which packets for a peer are sent.
    pub(super) fn destination(&self, own: IpAddr, peer: IpAddr, port: u16) -> SocketAddress {
        let is_local = matches!(peer, IpAddr::V6(peer) if is_link_local(peer));
        let scope = match (is_local, self.scope) {
            (false, _) => 0,
            // If the interface of the source address is unknown, the system rejects the packets,
            // and the sender counts them.
            (true, 0) => scope(own).unwrap_or(0),
            (true, scope) => scope,
        };
        SocketAddress::new(peer, port, scope)
    }

    /// Returns the control messages for the packets of a route. They contain the source address, if
    /// the socket's address is unspecified, and the traffic class and hop limit, if they differ
    /// from the defaults.
    pub(super) fn control(&self, own: IpAddr, peer: IpAddr, route: &Route) -> Control {
        let &Route { traffic_class, hop_limit, .. } = route;
        let hop_limit = if hop_limit == 0 { HOP_LIMIT } else { hop_limit };
        let mut control = Control::new();
        let is_open = self.is_unspecified();
        let class = i32::from(traffic_class).to_ne_bytes();
        let limit = i32::from(hop_limit).to_ne_bytes();
        let (level, class_kind, limit_kind) = match own {
            IpAddr::V4(own) => {
                if is_open {
                    let mut data = [0; size_of::<libc::in_pktinfo>()];
                    let at = std::mem::offset_of!(libc::in_pktinfo, ipi_spec_dst);
                    data[at..at + 4].copy_from_slice(&v4(own).s_addr.to_ne_bytes());
                    control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &data);
                }
                (libc::IPPROTO_IP, libc::IP_TOS, libc::IP_TTL)
            }
            IpAddr::V6(own) => {
                if is_open {
                    let mut data = [0; size_of::<libc::in6_pktinfo>()];
                    let at = std::mem::offset_of!(libc::in6_pktinfo, ipi6_addr);
                    data[at..at + 16].copy_from_slice(&own.octets());
                    control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &data);
                }
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::IPV6_HOPLIMIT)
            }
        };
        if traffic_class != 0 {
            control.push(level, class_kind, &class);
        }
        // The socket's hop limit does not apply to multicast packets, so a control message sets
        // theirs.
        if hop_limit != HOP_LIMIT || peer.is_multicast() {
            control.push(level, limit_kind, &limit);
        }
        control
    }

    /// Joins or leaves a multicast group on the interface with this index.
    pub(super) fn set_member(
        &self,
        group: IpAddr,
        interface: u32,
        is_member: bool,
    ) -> io::Result<()> {
        match group {
            IpAddr::V4(group) => {
                let request = libc::ip_mreqn {
                    imr_multiaddr: v4(group),
                    imr_address: v4(Ipv4Addr::UNSPECIFIED),
                    imr_ifindex: i32::try_from(interface)
                        .map_err(|_| io::ErrorKind::InvalidInput)?,
                };
                let [join, leave] = [libc::IP_ADD_MEMBERSHIP, libc::IP_DROP_MEMBERSHIP];
                let name = if is_member { join } else { leave };
                set(self.as_fd(), libc::IPPROTO_IP, name, request)
            }
            IpAddr::V6(group) => {
                let request = libc::ipv6_mreq {
                    ipv6mr_multiaddr: libc::in6_addr { s6_addr: group.octets() },
                    ipv6mr_interface: interface,
                };
                let [join, leave] = [libc::IPV6_ADD_MEMBERSHIP, libc::IPV6_DROP_MEMBERSHIP];
                let name = if is_member { join } else { leave };
                set(self.as_fd(), libc::IPPROTO_IPV6, name, request)
            }
        }
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Number of payload bytes that [`CUTS_ZERO_CHECKSUM`] keeps of a datagram with a UDP checksum of
/// zero. No valid packet is that short.
pub(super) const CUT: usize = 1;

/// BPF program that truncates datagrams with a UDP checksum of zero to [`CUT`] bytes. The receiver recognizes them by
/// this length, because a socket does not report the checksum. The program does not drop these datagrams, because the
/// system would count each drop as an overflow of the receive buffer. The system itself verifies other checksums.
const CUTS_ZERO_CHECKSUM: [libc::sock_filter; 4] = {
    const UDP_HEADER: u32 = 8;
    const CHECKSUM: u32 = 6;
    const fn step(code: u32, jf: u8, k: u32) -> libc::sock_filter {
        libc::sock_filter { code: code as u16, jt: 0, jf, k }
    }
    [
        step(libc::BPF_LD | libc::BPF_H | libc::BPF_ABS, 0, CHECKSUM),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0),
        step(libc::BPF_RET | libc::BPF_K, 0, UDP_HEADER + CUT as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, u32::MAX),
    ]
};

/// Returns the socket options that [`UdpSocket::bind`] requires the system to support: name, level,
/// number and value.
fn required_options(address: IpAddr) -> Vec<(&'static str, i32, i32, i32)> {
    use libc::{IPPROTO_IP, IPPROTO_IPV6};
    let open = i32::from(address.is_unspecified());
    if address.is_ipv4() {
        vec![
            // Fragmentation is disabled. Path MTU discovery is disabled, too, because its ICMP
            // messages can be forged. The path MTU was negotiated when the queue pair was
            // connected.
            ("IP_MTU_DISCOVER", IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
            ("IP_TTL", IPPROTO_IP, libc::IP_TTL, HOP_LIMIT.into()),
            ("IP_PKTINFO", IPPROTO_IP, libc::IP_PKTINFO, open),
            ("IP_RECVTOS", IPPROTO_IP, libc::IP_RECVTOS, 1),
            ("IP_RECVTTL", IPPROTO_IP, libc::IP_RECVTTL, 1),
        ]
    } else {
        let discover = libc::IPV6_MTU_DISCOVER;
        vec![
            ("IPV6_V6ONLY", IPPROTO_IPV6, libc::IPV6_V6ONLY, 1),
            ("IPV6_MTU_DISCOVER", IPPROTO_IPV6, discover, libc::IPV6_PMTUDISC_PROBE),
            ("IPV6_DONTFRAG", IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1),
            ("IPV6_UNICAST_HOPS", IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, HOP_LIMIT.into()),
            ("IPV6_RECVPKTINFO", IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, open),
            ("IPV6_RECVTCLASS", IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            ("IPV6_RECVHOPLIMIT", IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
            // Accepts packets without a UDP checksum: other implementations send none, because of
            // the ICRC. This socket sends checksums, which are cheap with hardware offload and
            // required for GSO.
            ("UDP_NO_CHECK6_RX", libc::SOL_UDP, libc::UDP_NO_CHECK6_RX, 1),
        ]
    }
}

/// Returns the index of the interface that has a link-local address; 0 for other addresses.
fn scope(address: IpAddr) -> io::Result<u32> {
    match address {
        IpAddr::V6(local) if is_link_local(local) => {
            let interface = RoceInterface::holding(address)?;
            Ok(interface.map_or(0, |interface| interface.index))
        }
        _ => Ok(0),
    }
}

const fn is_link_local(address: Ipv6Addr) -> bool {
    address.segments()[0] & 0xffc0 == 0xfe80
}

/// A buffer of control messages.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(super) struct Control {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl Control {
    /// Size of the buffer in bytes. The buffer can hold all control messages that a [`UdpSocket`] sends or receives
    /// with one datagram.
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
        // SAFETY: every field of the union starts with the address family.
        let is_v4 = i32::from(unsafe { self.family }) == libc::AF_INET;
        let length =
            if is_v4 { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() };
        length as libc::socklen_t
    }

    /// Returns the address and the port.
    pub(super) fn get(&self) -> (IpAddr, u16) {
        // SAFETY: every field of the union starts with the address family.
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
