//! Options, counters and errors of a RoCEv2 socket.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use ib_wire::packet::RoceNetwork;

use crate::icrc::MAX_PACKET;

/// Options of a [`RoceSocket`](crate::RoceSocket).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoceOptions {
    /// Local IP address. If it is unspecified (`0.0.0.0` or `::`), the socket receives packets to
    /// all addresses of this family, and routes determine the source addresses of sent packets.
    pub address: IpAddr,
    /// Local port: 4791, or 0 for any free port.
    pub port: u16,
    /// UDP port to which packets are sent: 4791, except in tests.
    pub peer_port: u16,
    /// Size of the socket's receive buffer in bytes (`SO_RCVBUF`).
    pub receive_buffer: usize,
    /// Size of the socket's send buffer in bytes (`SO_SNDBUF`).
    pub send_buffer: usize,
    /// True if several packets are sent as one datagram (`UDP_SEGMENT`, Linux 4.18). Ignored if the
    /// system does not support GSO.
    pub gso: bool,
    /// True if several packets can be received as one datagram (`UDP_GRO`, Linux 5.0). Ignored if
    /// the system does not support GRO.
    pub gro: bool,
    /// True if the ICRC is computed and checked, as RoCEv2 requires. If false, the ICRCs of sent
    /// packets are zero, and those of received packets are ignored; this is for measurements only.
    pub icrc: bool,
    /// True if IPv4 packets with a UDP checksum of zero are accepted. Hardware and Linux soft RoCE send such packets.
    /// Only the ICRC protects the data of such a packet, and it does not detect all corruptions
    /// ([`IcrcCheck`](crate::IcrcCheck)).
    pub allow_zero_checksum: bool,
}

impl RoceOptions {
    /// Returns the default options for an address: the RoCEv2 port, buffers of 4 MiB, and GSO, GRO
    /// and ICRC enabled.
    #[must_use]
    pub const fn new(address: IpAddr) -> Self {
        Self {
            address,
            port: RoceNetwork::PORT,
            peer_port: RoceNetwork::PORT,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
            gso: true,
            gro: true,
            icrc: true,
            allow_zero_checksum: false,
        }
    }
}

/// Counters of sent packets since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceSendCounters {
    /// Packets that the system has accepted.
    pub packets: u64,
    /// Bytes of the accepted packets, from the BTH to the end of the pad.
    pub bytes: u64,
    /// Datagrams that the system has accepted. With GSO, a datagram can contain several packets.
    pub batches: u64,
    /// System calls that failed because the system's buffers were full (`EAGAIN`, `ENOBUFS`). Their
    /// packets are sent later.
    pub full: u64,
    /// Packets that were lost because the system rejected them, by `errno`, such as `EMSGSIZE` or
    /// `EHOSTUNREACH`.
    pub errors: ErrorCounters,
}

/// Counters of received packets since the socket was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceReceiveCounters {
    /// Packets that [`RoceReceiver::receive`](crate::RoceReceiver::receive) has returned.
    pub packets: u64,
    /// Bytes of the packets that `packets` counts, from the BTH to the end of the pad.
    pub bytes: u64,
    /// Datagrams received from the system. With GRO, a datagram can contain several packets.
    pub batches: u64,
    /// Packets dropped because of a wrong ICRC.
    pub bad_icrc: u64,
    /// Packets dropped because of their size in bytes: it is not a multiple of 4, is less than a BTH and an ICRC, or
    /// exceeds [`MAX_PACKET`] and an ICRC.
    pub malformed: u64,
    /// IPv4 packets dropped because their UDP checksum is zero. They are accepted if
    /// [`RoceOptions::allow_zero_checksum`](crate::RoceOptions::allow_zero_checksum) is set.
    pub zero_checksum: u64,
    /// Datagrams dropped because they exceed the receiver's buffer for a datagram.
    pub truncated: u64,
    /// Returned packets whose ICRC check gave [`IcrcCheck::ConsistentWithSomeId`](crate::IcrcCheck).
    /// `packets` counts them too.
    pub unverifiable: u64,
    /// Datagrams that the system has dropped because the socket's receive buffer was full.
    pub overflows: u64,
    /// Errors that the system has reported, by `errno`, such as those from ICMP errors for sent
    /// packets.
    pub errors: ErrorCounters,
}

/// Counters of the sender and the receiver of a socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoceCounters {
    /// Sent packets.
    pub sent: RoceSendCounters,
    /// Received packets.
    pub received: RoceReceiveCounters,
}

/// Number of errors, by their `errno`.
pub type ErrorCounters = BTreeMap<i32, u64>;

/// Adds `times` to the counter of the error's `errno`.
pub(super) fn count(counters: &mut ErrorCounters, error: &io::Error, times: u64) {
    *counters.entry(error.raw_os_error().unwrap_or_default()).or_default() += times;
}

/// Error of [`RoceSender::push`](crate::RoceSender::push).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The buffers of the system and of the sender are full. The caller can push the packet again
    /// when the socket is writable.
    #[error("the send buffer is full: push again when the socket is writable")]
    Full,
    /// The size of the packet is invalid.
    #[error("the packet has {length} bytes: expected a multiple of 4 from 12 to {MAX_PACKET}")]
    Length {
        /// Size of the packet in bytes.
        length: usize,
    },
    /// The route's source address is not that of the socket, or the addresses have different
    /// families.
    #[error(
        "a socket bound to {socket} cannot send from {own} to {peer}: expected its own address, and one address family"
    )]
    Route {
        /// Source address of the route.
        own: IpAddr,
        /// Destination address of the route.
        peer: IpAddr,
        /// Address of the socket.
        socket: IpAddr,
    },
}

/// Error of opening a RoCEv2 socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoceError {
    /// The socket cannot be bound to the address and port. Port 4791 is in use if the kernel's
    /// driver `rdma_rxe` is loaded.
    #[error("cannot bind UDP port {port} of {address}: {source}{}", hint(source))]
    Bind {
        /// The local IP address.
        address: IpAddr,
        /// The local UDP port.
        port: u16,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A required socket option cannot be set.
    #[error("cannot set {option} of the UDP socket for {address}: {source}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// The local IP address.
        address: IpAddr,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The network interfaces cannot be listed.
    #[error("cannot list the network interfaces: {0}")]
    Interfaces(#[source] io::Error),
}

/// Returns the probable cause of an error of `bind`. The text of [`RoceError::Bind`] appends it.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            "; another HCA or the kernel driver rdma_rxe uses it: expected an address that no other process uses"
        }
        io::ErrorKind::AddrNotAvailable => "; no network interface has this address",
        _ => "",
    }
}
