//! ClassPortInfo: the capabilities of a management class at a port, and the addresses to which
//! requests are redirected and traps are sent; IBTA volume 1, chapter 13.4.8.1.

use ib_types::{Gid, PKey, QKey, Qpn};

use crate::mad::codes::masks;
use crate::mad::{Attribute, AttributeId, MgmtClass};

crate::layout! {
    /// The capabilities of a management class at a port, and the addresses to which requests are
    /// redirected and traps are sent.
    pub struct ClassPortInfo: 72 {
        /// The base version: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The version of the management class.
        pub class_version: u8 = bits(1, 0, 8),
        /// The capabilities. Bit 0: the agent sends traps. Bit 1: the agent supports Get and Set of
        /// notices. Other bits are class specific.
        pub capability_mask: u16 = bits(2, 0, 16),
        /// More capabilities of the agent. All bits are class specific.
        pub capability_mask2: u32 = bits(4, 0, 27),
        /// The maximum response time of the agent: 4.096 µs × 2^value.
        pub resp_time_value: u8 = bits(7, 3, 5),
        /// The GID to which requests are redirected; zero if they are not redirected.
        pub redirect_gid: Gid = bits(8, 0, 128),
        /// The traffic class of redirected requests.
        pub redirect_traffic_class: u8 = bits(24, 0, 8),
        /// The SL of redirected requests.
        pub redirect_sl: u8 = bits(25, 0, 4),
        /// The flow label of redirected requests.
        pub redirect_flow_label: u32 = bits(25, 4, 20),
        /// The LID to which requests are redirected; zero if the requester must use the GID.
        pub redirect_lid: u16 = bits(28, 0, 16),
        /// The P_Key of redirected requests.
        pub redirect_p_key: PKey = bits(30, 0, 16),
        /// The QPN to which requests are redirected.
        pub redirect_qp: Qpn = bits(33, 0, 24),
        /// The Q_Key of redirected requests.
        pub redirect_q_key: QKey = bits(36, 0, 32),
        /// The GID to which traps are sent; zero if no traps are sent.
        pub trap_gid: Gid = bits(40, 0, 128),
        /// The traffic class of traps.
        pub trap_traffic_class: u8 = bits(56, 0, 8),
        /// The SL of traps.
        pub trap_sl: u8 = bits(57, 0, 4),
        /// The flow label of traps.
        pub trap_flow_label: u32 = bits(57, 4, 20),
        /// The LID to which traps are sent.
        pub trap_lid: u16 = bits(60, 0, 16),
        /// The P_Key of traps.
        pub trap_p_key: PKey = bits(62, 0, 16),
        /// The hop limit of traps.
        pub trap_hop_limit: u8 = bits(64, 0, 8),
        /// The QPN to which traps are sent.
        pub trap_qp: Qpn = bits(65, 0, 24),
        /// The Q_Key of traps.
        pub trap_q_key: QKey = bits(68, 0, 32),
    }
}

impl Attribute for ClassPortInfo {
    const ID: AttributeId = AttributeId::CLASS_PORT_INFO;
    const LENGTH: usize = Self::LENGTH;

    #[inline]
    fn belongs_to(class: MgmtClass) -> bool {
        !class.is_smp() && class != MgmtClass::ACM
    }

    fn read(bytes: &[u8]) -> Self {
        Self::parse(bytes.first_chunk().expect("the data is at least as long as the attribute"))
    }

    fn write(&self, bytes: &mut [u8]) {
        self.emit(bytes.first_chunk_mut().expect("the data is at least as long as the attribute"));
    }
}

masks! {
    /// ClassPortInfo:CapabilityMask of the SA; IBTA volume 1, table 184.
    SaCapabilityMask(u16) {
        /// Traps are supported.
        TRAPS = 0 "Traps",
        /// Get and Set of notices are supported.
        NOTICES = 1 "Notices",
        /// The optional SA records are supported.
        OPTIONAL_RECORDS = 8 "OptionalRecords",
        /// Multicast is supported.
        UD_MULTICAST = 9 "UDMulticast",
        /// MultiPathRecord is supported.
        MULTI_PATH = 10 "MultiPath",
        /// Reinitialisation is supported.
        REINIT = 11 "Reinit",
        /// A query can select PortInfoRecords by single bits of PortInfo:CapabilityMask.
        PORT_INFO_CAPABILITY_MATCH = 13 "PortInfoCapMaskMatch",
        /// LinkSpeedWidthPairsTableRecord is supported.
        LINK_SPEED_WIDTH_PAIRS = 14 "LinkSpeedWidthPairs",
        /// The performance administration service is supported.
        PA_SERVICE = 15 "PAService",
    }
}

masks! {
    /// ClassPortInfo:CapabilityMask2 of the SA.
    SaCapabilityMask2(u32) {
        /// The traps `UnPath` and `RePath` are supported.
        UNPATH_REPATH = 0 "UnpathRepath",
        /// Quality of service is supported.
        QOS = 1 "QoS",
        /// P_Keys of the reverse path are supported.
        REVERSE_PATH_P_KEY = 2 "ReversePathPKey",
        /// SwitchInfo:MulticastFDBTop is supported.
        MULTICAST_FDB_TOP = 3 "MulticastFDBTop",
        /// HierarchyInfo is supported.
        HIERARCHY_INFO = 4 "HierarchyInfo",
        /// Alias GUIDs are supported.
        ALIAS_GUIDS = 5 "AliasGUIDs",
        /// PortInfoRecords contain all fields of PortInfo.
        FULL_PORT_INFO = 6 "FullPortInfo",
        /// Extended link speeds are supported.
        EXTENDED_SPEEDS = 7 "ExtendedSpeeds",
        /// Multicast ServiceRecords are supported.
        MULTICAST_SERVICE_RECORD = 8 "MulticastServiceRecord",
        /// CableInfoRecord is supported.
        CABLE_INFO = 9 "CableInfo",
        /// A query can select PortInfoRecords by single bits of PortInfo:CapabilityMask2.
        PORT_INFO_CAPABILITY2_MATCH = 10 "PortInfoCapMask2Match",
        /// PortInfoExtendedRecord is supported.
        PORT_INFO_EXTENDED = 11 "PortInfoExtended",
        /// Ports can join multicast groups as send-only full members.
        SEND_ONLY_FULL_MEMBER = 12 "SendOnlyFullMember",
        /// The link width 2x is supported.
        LINK_WIDTH_2X = 13 "LinkWidth2x",
        /// The link speed HDR is supported.
        LINK_SPEED_HDR = 15 "LinkSpeedHDR",
        /// The link speed NDR is supported.
        LINK_SPEED_NDR = 17 "LinkSpeedNDR",
    }
}
