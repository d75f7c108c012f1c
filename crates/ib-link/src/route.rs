//! [`Route`]: the addresses of packets between two ports.

use ib_types::{Gid, ServiceLevel};

/// The addresses of packets from the local port to a remote port.
///
/// On Ethernet (RoCEv2) the GIDs are IP addresses (`::ffff:a.b.c.d` for IPv4), and LIDs and SL are
/// unused. On InfiniBand the GIDs are on the wire only if the route is global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The local GID.
    pub source: Gid,
    /// The remote GID.
    pub destination: Gid,
    /// The local LID; 0 on Ethernet.
    pub slid: u16,
    /// The LID of the remote port or of a multicast group; 0 on Ethernet.
    pub dlid: u16,
    /// The SL.
    pub sl: ServiceLevel,
    /// True if packets have a GRH; always true on Ethernet.
    pub is_global: bool,
    /// The traffic class (IPv4: type of service).
    pub traffic_class: u8,
    /// The flow label, 20 bits.
    pub flow_label: u32,
    /// The hop limit (IPv4: time to live).
    pub hop_limit: u8,
    /// The UDP source port of a received RoCEv2 packet, which may have any value. It is ignored
    /// when packets are sent, because they leave from the port of the socket. It is unused on
    /// InfiniBand.
    pub source_port: u16,
    /// True if the ICRC of a received packet could be checked only in part.
    ///
    /// Over IPv4, the ICRC covers the IPv4 identification, which the kernel does not report to the
    /// receiver. A packet is weak if its ICRC only matches an identification that ibfabric's HCAs
    /// do not use. A connected queue pair drops weak packets, unless the route of its connection is
    /// weak.
    pub is_weak: bool,
}

impl Default for Route {
    /// Returns a route with hop limit 64 and UDP source port 49152. All other fields are zero.
    fn default() -> Self {
        Self {
            source: Gid::ZERO,
            destination: Gid::ZERO,
            slid: 0,
            dlid: 0,
            sl: ServiceLevel::default(),
            is_global: false,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            source_port: 0xc000,
            is_weak: false,
        }
    }
}
