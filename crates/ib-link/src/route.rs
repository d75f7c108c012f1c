//! How packets of queue pairs travel between two ports.

use ib_types::{Gid, ServiceLevel};

/// The addresses of packets between two ports, seen from one of them.
///
/// On Ethernet (RoCEv2) the GIDs are the addresses: `::ffff:a.b.c.d` stands for the IPv4 address a.b.c.d; the
/// LIDs and the service level mean nothing there. On InfiniBand the GIDs are on the wire only where
/// the route is global.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The own GID.
    pub source: Gid,
    /// The GID of the other end.
    pub destination: Gid,
    /// The own LID; 0 on Ethernet.
    pub slid: u16,
    /// The LID of the other end, or of a group; 0 on Ethernet.
    pub dlid: u16,
    /// The service level.
    pub sl: ServiceLevel,
    /// Whether packets have a global route header; on Ethernet always.
    pub is_global: bool,
    /// The traffic class (IPv4: type of service).
    pub traffic_class: u8,
    /// The flow label, 20 bits.
    pub flow_label: u32,
    /// The hop limit (IPv4: time to live).
    pub hop_limit: u8,
    /// The UDP port that packets leave from on Ethernet, 49152 to 65535: it spreads flows.
    pub source_port: u16,
    /// True if the ICRC of a received packet was checked only in part. Over IPv4 the ICRC matches an identification
    /// that senders of this project do not use, and the system does not report the real one. A connected queue pair
    /// whose route is not weak drops weak packets.
    pub is_weak: bool,
}

impl Default for Route {
    /// Nowhere: all zero, but a hop limit of 64 and the lowest source port.
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
