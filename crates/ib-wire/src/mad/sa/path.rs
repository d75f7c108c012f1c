//! Paths between two ports or two sets of ports; IBTA volume 1, chapters 15.2.5.16 and 15.2.5.20.

use ib_types::{Gid, PKey};

use super::{LifeTimeCode, RateCode, Selector, record};
use crate::mad::attribute;
use crate::mad::sm::MtuCode;

crate::layout! {
    /// A path from a source to a destination.
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
        /// The service that the path is for.
        pub service_id: u64 = bits(0, 0, 64),
        /// The destination's GID.
        pub dgid: Gid = bits(8, 0, 128),
        /// The source's GID.
        pub sgid: Gid = bits(24, 0, 128),
        /// The destination's LID.
        pub dlid: u16 = bits(40, 0, 16),
        /// The source's LID.
        pub slid: u16 = bits(42, 0, 16),
        /// The path is for raw packets.
        pub raw_traffic: bool = bits(44, 0, 1),
        /// The flow label of the global route header.
        pub flow_label: u32 = bits(44, 4, 20),
        /// The hop limit of the global route header.
        pub hop_limit: u8 = bits(47, 0, 8),
        /// The traffic class of the global route header.
        pub traffic_class: u8 = bits(48, 0, 8),
        /// The path works in both directions.
        pub reversible: bool = bits(49, 0, 1),
        /// The most paths that a request wants, 0 to 127.
        pub numb_path: u8 = bits(49, 1, 7),
        /// The partition.
        pub p_key: PKey = bits(50, 0, 16),
        /// The class of quality of service, 0 to 4095.
        pub qos_class: u16 = bits(52, 0, 12),
        /// The service level.
        pub sl: u8 = bits(53, 4, 4),
        /// How the MTU is compared.
        pub mtu_selector: Selector = bits(54, 0, 2),
        /// The MTU.
        pub mtu: MtuCode = bits(54, 2, 6),
        /// How the rate is compared.
        pub rate_selector: Selector = bits(55, 0, 2),
        /// The rate.
        pub rate: RateCode = bits(55, 2, 6),
        /// How the life time is compared.
        pub life_time_selector: Selector = bits(56, 0, 2),
        /// The life time of packets on the path.
        pub life_time: LifeTimeCode = bits(56, 2, 6),
        /// The order among the paths of a response, 0 first.
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
    /// A request for paths between two sets of ports; PathRecords answer it.
    ///
    /// The GIDs of the sources and then those of the destinations follow: see
    /// [`MultiPathRecord::gids`].
    pub struct MultiPathRecord: 24 {
        /// The paths are for raw packets.
        pub raw_traffic: bool = bits(0, 0, 1),
        /// The flow label of the global route header.
        pub flow_label: u32 = bits(0, 4, 20),
        /// The hop limit of the global route header.
        pub hop_limit: u8 = bits(3, 0, 8),
        /// The traffic class of the global route header.
        pub traffic_class: u8 = bits(4, 0, 8),
        /// The paths work in both directions.
        pub reversible: bool = bits(5, 0, 1),
        /// The most paths that the request wants, 0 to 127.
        pub numb_path: u8 = bits(5, 1, 7),
        /// The partition.
        pub p_key: PKey = bits(6, 0, 16),
        /// The class of quality of service, 0 to 4095.
        pub qos_class: u16 = bits(8, 0, 12),
        /// The service level.
        pub sl: u8 = bits(9, 4, 4),
        /// How the MTU is compared.
        pub mtu_selector: Selector = bits(10, 0, 2),
        /// The MTU.
        pub mtu: MtuCode = bits(10, 2, 6),
        /// How the rate is compared.
        pub rate_selector: Selector = bits(11, 0, 2),
        /// The rate.
        pub rate: RateCode = bits(11, 2, 6),
        /// How the life time is compared.
        pub life_time_selector: Selector = bits(12, 0, 2),
        /// The life time of packets on the path.
        pub life_time: LifeTimeCode = bits(12, 2, 6),
        /// The highest byte of the service's ID.
        pub service_id_msb: u8 = bits(13, 0, 8),
        /// The paths shall share as little as possible: 1.
        pub independence: u8 = bits(14, 6, 2),
        /// The number of sources.
        pub sgid_count: u8 = bits(15, 0, 8),
        /// The number of destinations.
        pub dgid_count: u8 = bits(16, 0, 8),
        /// The lower seven bytes of the service's ID.
        pub service_id_lsb: u64 = bits(17, 0, 56),
    }
}

attribute!(MultiPathRecord = MULTI_PATH_RECORD in SUBN_ADM);

/// Bits of the component mask of a [`MultiPathRecord`].
impl MultiPathRecord {
    /// The components, by bit of the mask and name of the field.
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

    /// Returns the sources and the destinations of a request's data.
    ///
    /// `None` when the data is too short for their counts.
    #[must_use]
    pub fn gids(&self, data: &[u8]) -> Option<(Vec<Gid>, Vec<Gid>)> {
        let (sources, destinations) = (usize::from(self.sgid_count), usize::from(self.dgid_count));
        let bytes = data.get(Self::LENGTH..Self::LENGTH + 16 * (sources + destinations))?;
        let (gids, _) = bytes.as_chunks::<16>();
        let gids = gids.iter().map(|&gid| Gid::from_bytes(gid));
        Some((gids.clone().take(sources).collect(), gids.skip(sources).collect()))
    }
}
