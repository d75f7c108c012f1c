//! Options of a [`RoceSocket`](super::RoceSocket).

use std::net::IpAddr;

use ib_wire::packet::RoceNetwork;

/// Options of a [`RoceSocket`](super::RoceSocket).
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
    /// True if IPv4 packets with a UDP checksum of zero are accepted. Hardware and Linux soft RoCE
    /// send such packets. In them, only the ICRC detects corruptions, and not all of them
    /// ([`IcrcCheck`](super::IcrcCheck)).
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
