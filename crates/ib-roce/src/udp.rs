//! The UDP socket and its options.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use ib_link::Route;

use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::poll;
use ib_os::sockopt::{attach_filter, buffer, set};
use ib_types::Instant;

use crate::control::{Control, SocketAddress, v4};
use crate::error::RoceError;
use crate::interface::RoceInterface;
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
