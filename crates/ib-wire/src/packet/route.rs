//! The route headers: LRH (within a subnet) and GRH (between subnets).

use ib_types::{Gid, ServiceLevel, VirtualLane};

crate::layout! {
    /// The local route header (LRH): the first 8 bytes of every native packet.
    ///
    /// ```text
    ///  0      4      8      12   14  16                              32
    /// +------+------+------+----+---+-------------------------------+
    /// |  VL  | LVer |  SL  |rsvd|LNH|              DLID             |
    /// +------+------+------+----+---+-------------------------------+
    /// |   rsvd   |   packet length  |              SLID             |
    /// +----------+------------------+-------------------------------+
    /// ```
    ///
    /// IBTA volume 1, chapter 7.7.
    pub struct Lrh: 8 {
        /// The virtual lane on this link.
        pub vl: VirtualLane = bits(0, 0, 4),
        /// The version of the link layer, 0.
        pub link_version: u8 = bits(0, 4, 4),
        /// The service level.
        pub sl: ServiceLevel = bits(1, 0, 4),
        /// LNH: the kind of header that follows the LRH.
        pub next_header: LinkNextHeader = bits(1, 6, 2),
        /// The destination LID: 1 to 0xBFFF unicast, 0xC000 to 0xFFFE multicast, 0xFFFF permissive.
        pub dlid: u16 = bits(2, 0, 16),
        /// The length from the start of the LRH to the end of the ICRC, in words of four bytes; 0 to 2,047.
        pub length: u16 = bits(4, 5, 11),
        /// The source LID, 1 to 0xBFFF; 0xFFFF if the sending port has no LID.
        pub slid: u16 = bits(6, 0, 16),
    }
}

/// The link next header field (LNH) of the LRH, two bits. Source: IBTA volume 1, chapter 7.7.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkNextHeader(pub u8);

impl LinkNextHeader {
    /// A raw packet with an Ethertype.
    pub const RAW: Self = Self(0);
    /// A raw packet with an IPv6 header.
    pub const IP: Self = Self(1);
    /// A BTH: the packet stays within the subnet.
    pub const LOCAL: Self = Self(2);
    /// A GRH, followed by a BTH.
    pub const GLOBAL: Self = Self(3);
}

crate::field!(LinkNextHeader(u8));

impl Default for Lrh {
    /// Returns a header with LNH [`LinkNextHeader::LOCAL`]. VL, SL, DLID, SLID and length are 0.
    fn default() -> Self {
        Self {
            vl: VirtualLane::default(),
            link_version: 0,
            sl: ServiceLevel::default(),
            next_header: LinkNextHeader::LOCAL,
            dlid: 0,
            length: 0,
            slid: 0,
        }
    }
}

crate::layout! {
    /// The global route header (GRH): 40 bytes in the format of an IPv6 header.
    ///
    /// ```text
    ///  0      4              12                      32
    /// +------+--------------+-----------------------+
    /// |  6   |traffic class |      flow label       |
    /// +------+--------------+-------+---------------+
    /// |   payload length    | next  |   hop limit   |
    /// +---------------------+-------+---------------+
    /// |          source GID, four words             |
    /// |        destination GID, four words          |
    /// +---------------------------------------------+
    /// ```
    ///
    /// IBTA volume 1, chapter 8.3.
    pub struct Grh: 40 {
        /// The IP version, 6.
        pub ip_version: u8 = bits(0, 0, 4),
        /// The traffic class.
        pub traffic_class: u8 = bits(0, 4, 8),
        /// The flow label, 20 bits.
        pub flow_label: u32 = bits(1, 4, 20),
        /// The length in bytes from the end of the GRH to the end of the ICRC.
        pub payload_length: u16 = bits(4, 0, 16),
        /// The type of the next header; [`Grh::NEXT_IS_BTH`] if it is a BTH.
        pub next_header: u8 = bits(6, 0, 8),
        /// The maximum number of routers that the packet can still pass.
        pub hop_limit: u8 = bits(7, 0, 8),
        /// The source GID.
        pub source: Gid = bits(8, 0, 128),
        /// The destination GID.
        pub destination: Gid = bits(24, 0, 128),
    }
}

impl Grh {
    /// The value of the next header field if a BTH follows the GRH.
    pub const NEXT_IS_BTH: u8 = 0x1b;
}

impl Default for Grh {
    /// Returns a header with IP version 6, next header BTH, and hop limit 64. All other fields are
    /// zero.
    fn default() -> Self {
        Self {
            ip_version: 6,
            traffic_class: 0,
            flow_label: 0,
            payload_length: 0,
            next_header: Self::NEXT_IS_BTH,
            hop_limit: 64,
            source: Gid::ZERO,
            destination: Gid::ZERO,
        }
    }
}
