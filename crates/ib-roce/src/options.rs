//! Options of a [`RoceSocket`](super::RoceSocket).

use std::net::IpAddr;

use ib_wire::packet::RoceNetwork;

/// Options of a [`RoceSocket`](super::RoceSocket).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoceOptions {
    /// Local IP address. With an unspecified address, `0.0.0.0` or `::`, the socket receives
    /// packets to all addresses of that family, and routes determine the source addresses of sent
    /// packets.
    pub address: IpAddr,
    /// Local port: 4791, or 0 for any free port.
    pub port: u16,
    /// Destination port of packets: 4791, except in tests.
    pub peer_port: u16,
    /// Size of the socket's receive buffer in bytes (`SO_RCVBUF`).
    pub receive_buffer: usize,
    /// Size of the socket's send buffer in bytes (`SO_SNDBUF`).
    pub send_buffer: usize,
    /// True if several packets are sent as one datagram (`UDP_SEGMENT`, Linux 4.18). It is disabled
    /// if the system does not support it.
    pub gso: bool,
    /// True if several packets may be received as one datagram (`UDP_GRO`, Linux 5.0). It is
    /// disabled if the system does not support it.
    pub gro: bool,
    /// True if the ICRC is computed and checked, as RoCEv2 requires. False, which sends zeros and
    /// ignores received ICRCs, is only for measurements.
    pub icrc: bool,
    /// True if IPv4 packets with a UDP checksum of zero are accepted, which hardware and Linux soft RoCE send. Only
    /// the ICRC then detects corruptions, and only in part ([`IcrcCheck`](super::IcrcCheck)).
    pub allow_zero_checksum: bool,
}

impl RoceOptions {
    /// Returns the options for an address: the port of RoCEv2, buffers of 4 MiB, GSO, GRO and ICRC.
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
