//! PathRecord and MultiPathRecord; IBTA volume 1, chapters 15.2.5.16 and 15.2.5.20.

use ib_types::{Gid, PKey};

use super::{LifeTimeCode, RateCode, Selector, record};
use crate::mad::attribute;
use crate::mad::sm::MtuCode;

crate::layout! {
    /// A path from a source port to a destination port.
    ///
    /// Fields with their byte offset. Sizes in parentheses are in bytes, other sizes in bits:
    ///
    /// ```text
    ///  0 ServiceID (8)           8 DGID (16)           24 SGID (16)
    /// 40 DLID (2)               42 SLID (2)
    /// 44 raw 1 | rsv 3 | FlowLabel 20 | HopLimit 8
    /// 48 TClass                 49 Reversible 1 | NumbPath 7
    /// 50 P_Key (2)              52 QoSClass 12 | SL 4
    /// 54 MTU, 55 Rate, 56 PacketLifeTime: selector 2 | value 6
    /// 57 Preference             58 reserved (6)
    /// ```
    pub struct PathRecord: 64 {
        /// The service ID of the path.
        pub service_id: u64 = bits(0, 0, 64),
        /// The GID of the destination.
        pub dgid: Gid = bits(8, 0, 128),
        /// The GID of the source.
        pub sgid: Gid = bits(24, 0, 128),
        /// The LID of the destination.
        pub dlid: u16 = bits(40, 0, 16),
        /// The LID of the source.
        pub slid: u16 = bits(42, 0, 16),
        /// True if the path is for raw packets.
        pub raw_traffic: bool = bits(44, 0, 1),
        /// The flow label of the GRH.
        pub flow_label: u32 = bits(44, 4, 20),
        /// The hop limit of the GRH.
        pub hop_limit: u8 = bits(47, 0, 8),
        /// The traffic class of the GRH.
        pub traffic_class: u8 = bits(48, 0, 8),
        /// True if the path can be used in both directions.
        pub reversible: bool = bits(49, 0, 1),
        /// In a request: the maximum number of paths, 0 to 127.
        pub numb_path: u8 = bits(49, 1, 7),
        /// The P_Key.
        pub p_key: PKey = bits(50, 0, 16),
        /// The quality-of-service (`QoS`) class, 0 to 4095.
        pub qos_class: u16 = bits(52, 0, 12),
        /// The SL.
        pub sl: u8 = bits(53, 4, 4),
        /// In a request: how `mtu` is compared with the MTU of a path.
        pub mtu_selector: Selector = bits(54, 0, 2),
        /// The MTU of the path.
        pub mtu: MtuCode = bits(54, 2, 6),
        /// In a request: how `rate` is compared with the rate of a path.
        pub rate_selector: Selector = bits(55, 0, 2),
        /// The rate of the path.
        pub rate: RateCode = bits(55, 2, 6),
        /// In a request: how `life_time` is compared with the life time of a path.
        pub life_time_selector: Selector = bits(56, 0, 2),
        /// The life time of packets on the path.
        pub life_time: LifeTimeCode = bits(56, 2, 6),
        /// In a response: the rank of the path among the returned paths; 0 is the preferred path.
        pub preference: u8 = bits(57, 0, 8),
    }
}

record!(PathRecord = PATH_RECORD, stride 64 {
    0: (0 0 8),
    1: (1 0 56),
    2: dgid,
    3: sgid,
    4: dlid,
    5: slid,
    6: raw_traffic,
    8: flow_label,
    9: hop_limit,
    10: traffic_class,
    11: reversible,
    12: numb_path,
    13: p_key,
    14: qos_class,
    15: sl,
    16: mtu_selector,
    17: mtu,
    18: rate_selector,
    19: rate,
    20: life_time_selector,
    21: life_time,
    22: preference,
});

crate::layout! {
    /// A request for paths between two sets of ports. The response is a table of PathRecords.
    ///
    /// In the MAD, this struct is followed by the GIDs of the sources, then by the GIDs of the
    /// destinations. [`MultiPathRecord::gids`] reads them.
    pub struct MultiPathRecord: 24 {
        /// True if the paths are for raw packets.
        pub raw_traffic: bool = bits(0, 0, 1),
        /// The flow label of the GRH.
        pub flow_label: u32 = bits(0, 4, 20),
        /// The hop limit of the GRH.
        pub hop_limit: u8 = bits(3, 0, 8),
        /// The traffic class of the GRH.
        pub traffic_class: u8 = bits(4, 0, 8),
        /// True if the paths must be usable in both directions.
        pub reversible: bool = bits(5, 0, 1),
        /// The maximum number of paths, 0 to 127.
        pub numb_path: u8 = bits(5, 1, 7),
        /// The P_Key.
        pub p_key: PKey = bits(6, 0, 16),
        /// The quality-of-service (`QoS`) class, 0 to 4095.
        pub qos_class: u16 = bits(8, 0, 12),
        /// The SL.
        pub sl: u8 = bits(9, 4, 4),
        /// In a request: how `mtu` is compared with the MTU of a path.
        pub mtu_selector: Selector = bits(10, 0, 2),
        /// The MTU of the path.
        pub mtu: MtuCode = bits(10, 2, 6),
        /// In a request: how `rate` is compared with the rate of a path.
        pub rate_selector: Selector = bits(11, 0, 2),
        /// The rate of the path.
        pub rate: RateCode = bits(11, 2, 6),
        /// In a request: how `life_time` is compared with the life time of a path.
        pub life_time_selector: Selector = bits(12, 0, 2),
        /// The life time of packets on the path.
        pub life_time: LifeTimeCode = bits(12, 2, 6),
        /// The most significant byte of the service ID.
        pub service_id_msb: u8 = bits(13, 0, 8),
        /// 1 if the paths must have as few links and switches in common as possible.
        pub independence: u8 = bits(14, 6, 2),
        /// The number of source GIDs.
        pub sgid_count: u8 = bits(15, 0, 8),
        /// The number of destination GIDs.
        pub dgid_count: u8 = bits(16, 0, 8),
        /// The lower seven bytes of the service ID.
        pub service_id_lsb: u64 = bits(17, 0, 56),
    }
}

attribute!(MultiPathRecord = MULTI_PATH_RECORD in SUBN_ADM);

/// Component mask bits, and access to the GIDs that follow the struct in the MAD.
impl MultiPathRecord {
    /// For each component: the bit in the component mask, and the name of the struct field.
    pub const COMPONENTS: [(u8, &'static str); 20] = [
        (0, "raw_traffic"),
        (2, "flow_label"),
        (3, "hop_limit"),
        (4, "traffic_class"),
        (5, "reversible"),
        (6, "numb_path"),
        (7, "p_key"),
        (8, "qos_class"),
        (9, "sl"),
        (10, "mtu_selector"),
        (11, "mtu"),
        (12, "rate_selector"),
        (13, "rate"),
        (14, "life_time_selector"),
        (15, "life_time"),
        (16, "service_id_msb"),
        (17, "independence"),
        (19, "sgid_count"),
        (20, "dgid_count"),
        (21, "service_id_lsb"),
    ];

    /// Returns the GIDs of the sources and the GIDs of the destinations. `data` is the data of the
    /// request: this struct and then the GIDs.
    ///
    /// Returns `None` if `data` has fewer than `sgid_count` + `dgid_count` GIDs.
    #[must_use]
    pub fn gids(&self, data: &[u8]) -> Option<(Vec<Gid>, Vec<Gid>)> {
        let (sources, destinations) = (usize::from(self.sgid_count), usize::from(self.dgid_count));
        let bytes = data.get(Self::LENGTH..Self::LENGTH + 16 * (sources + destinations))?;
        let (gids, _) = bytes.as_chunks::<16>();
        let gids = gids.iter().map(|&gid| Gid::from_bytes(gid));
        Some((gids.clone().take(sources).collect(), gids.skip(sources).collect()))
    }
}
