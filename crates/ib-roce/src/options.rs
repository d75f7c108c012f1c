//! Options of a [`RoceSocket`](super::RoceSocket).

use std::net::IpAddr;

use ib_wire::packet::RoceNetwork;

/// How a [`RoceSocket`](super::RoceSocket) is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoceOptions {
    /// The own address. With an unspecified one, `0.0.0.0` or `::`, the routes say which of the
    /// machine's addresses of that family packets leave from, and packets to all of them come in.
    pub address: IpAddr,
    /// The own port: 4791; 0 for any that is free.
    pub port: u16,
    /// The port that packets are sent to: 4791. Another one only makes sense between tests.
    pub peer_port: u16,
    /// How many bytes the system shall keep of what has arrived, its own bookkeeping included.
    pub receive_buffer: usize,
    /// How many bytes the system shall take before what is sent has left.
    pub send_buffer: usize,
    /// Whether several packets are handed to the system as one (`UDP_SEGMENT`, Linux 4.18). Where the
    /// system refuses that it is given up.
    pub gso: bool,
    /// Whether several packets are taken from the system as one (`UDP_GRO`, Linux 5.0). Where the
    /// system refuses that it is given up.
    pub gro: bool,
    /// Whether the ICRC is made and checked, as RoCEv2 wants it. Without, the four bytes are zero
    /// and are ignored, which only shows what the ICRC costs.
    pub icrc: bool,
    /// True if IPv4 packets with a UDP checksum of zero are accepted, which hardware and Linux soft RoCE send. Only
    /// the ICRC then detects corruptions, and only in part ([`IcrcCheck`](super::IcrcCheck)).
    pub allow_zero_checksum: bool,
}

impl RoceOptions {
    /// Asks for an address, with 4 MiB of buffer in each direction and all else as RoCEv2 and speed
    /// want it.
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
