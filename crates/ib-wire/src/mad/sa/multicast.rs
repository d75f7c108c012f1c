//! MCMemberRecord: membership in multicast groups; IBTA volume 1, chapter 15.2.5.17.

use ib_types::{Gid, PKey, QKey};

use super::{LifeTimeCode, RateCode, Selector, record};
use crate::mad::codes::masks;
use crate::mad::sm::MtuCode;

masks! {
    /// The kind of membership of a port in a multicast group.
    JoinState(u8) {
        /// The port sends and receives, and its membership keeps the group in existence.
        FULL_MEMBER = 0 "FullMember",
        /// The port sends and receives, but its membership does not keep the group in existence.
        NON_MEMBER = 1 "NonMember",
        /// The port only sends, and its membership does not keep the group in existence.
        SEND_ONLY_NON_MEMBER = 2 "SendOnlyNonMember",
        /// The port only sends, and its membership keeps the group in existence.
        SEND_ONLY_FULL_MEMBER = 3 "SendOnlyFullMember",
    }
}

crate::layout! {
    /// The membership of a port in a multicast group.
    ///
    /// Fields with their byte offset. Sizes in parentheses are in bytes, other sizes in bits:
    ///
    /// ```text
    ///  0 MGID (16)              16 PortGID (16)
    /// 32 Q_Key (4)              36 MLID (2)
    /// 38 MTU: selector 2 | value 6                      39 TClass
    /// 40 P_Key (2)              42 Rate, 43 PacketLifeTime: selector 2 | value 6
    /// 44 SL 4 | FlowLabel 20 | HopLimit 8
    /// 48 Scope 4 | JoinState 4  49 ProxyJoin 1          50 reserved (2)
    /// ```
    pub struct MCMemberRecord: 52 {
        /// The GID of the group; zero if the SA must assign a GID.
        pub mgid: Gid = bits(0, 0, 128),
        /// The GID of the port.
        pub port_gid: Gid = bits(16, 0, 128),
        /// The Q_Key of the group.
        pub q_key: QKey = bits(32, 0, 32),
        /// The multicast LID of the group, 0xc000 or above.
        pub mlid: u16 = bits(36, 0, 16),
        /// In a request: how `mtu` is compared with the MTU of a group.
        pub mtu_selector: Selector = bits(38, 0, 2),
        /// The MTU of the group.
        pub mtu: MtuCode = bits(38, 2, 6),
        /// The traffic class of the GRH.
        pub traffic_class: u8 = bits(39, 0, 8),
        /// The P_Key.
        pub p_key: PKey = bits(40, 0, 16),
        /// In a request: how `rate` is compared with the rate of a group.
        pub rate_selector: Selector = bits(42, 0, 2),
        /// The rate of the group.
        pub rate: RateCode = bits(42, 2, 6),
        /// In a request: how `life_time` is compared with the life time of a group.
        pub life_time_selector: Selector = bits(43, 0, 2),
        /// The life time of packets to the group.
        pub life_time: LifeTimeCode = bits(43, 2, 6),
        /// The SL.
        pub sl: u8 = bits(44, 0, 4),
        /// The flow label of the GRH.
        pub flow_label: u32 = bits(44, 4, 20),
        /// The hop limit of the GRH.
        pub hop_limit: u8 = bits(47, 0, 8),
        /// The scope of the group: 2 link-local, 5 site-local, 8 organization-local, 14 global.
        pub scope: u8 = bits(48, 0, 4),
        /// The kind of membership.
        pub join_state: JoinState = bits(48, 4, 4),
        /// True if another port has joined the group on behalf of this port.
        pub proxy_join: bool = bits(49, 0, 1),
    }
}

record!(MCMemberRecord = MC_MEMBER_RECORD, stride 56 {
    0: mgid,
    1: port_gid,
    2: q_key,
    3: mlid,
    4: mtu_selector,
    5: mtu,
    6: traffic_class,
    7: p_key,
    8: rate_selector,
    9: rate,
    10: life_time_selector,
    11: life_time,
    12: sl,
    13: flow_label,
    14: hop_limit,
    15: scope,
    16: join_state,
    17: proxy_join,
});
