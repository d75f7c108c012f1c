//! What a class can do at a port and where its manager is; IBTA volume 1, chapter 13.4.8.1.

use ib_types::{Gid, PKey, QKey, Qpn};

use crate::mad::codes::masks;
use crate::mad::{Attribute, AttributeId, MgmtClass};

crate::layout! {
    /// The abilities of a class, and where its requests and its traps go.
    pub struct ClassPortInfo: 72 {
        /// The version of the common header: 1.
        pub base_version: u8 = bits(0, 0, 8),
        /// The version of the class.
        pub class_version: u8 = bits(1, 0, 8),
        /// What the class can do; bit 0 traps, bit 1 Get and Set of notices, others by class.
        pub capability_mask: u16 = bits(2, 0, 16),
        /// What else the class can do.
        pub capability_mask2: u32 = bits(4, 0, 27),
        /// The longest time until the class responds: 4.096 µs × 2^value.
        pub resp_time_value: u8 = bits(7, 3, 5),
        /// Where requests shall go; zero when they may come here.
        pub redirect_gid: Gid = bits(8, 0, 128),
        /// The traffic class of redirected requests.
        pub redirect_traffic_class: u8 = bits(24, 0, 8),
        /// The service level of redirected requests.
        pub redirect_sl: u8 = bits(25, 0, 4),
        /// The flow label of redirected requests.
        pub redirect_flow_label: u32 = bits(25, 4, 20),
        /// The LID that requests shall go to; zero when the GID tells.
        pub redirect_lid: u16 = bits(28, 0, 16),
        /// The P_Key of redirected requests.
        pub redirect_p_key: PKey = bits(30, 0, 16),
        /// The queue pair that requests shall go to.
        pub redirect_qp: Qpn = bits(33, 0, 24),
        /// The Q_Key of redirected requests.
        pub redirect_q_key: QKey = bits(36, 0, 32),
        /// Where traps go; zero when none are sent.
        pub trap_gid: Gid = bits(40, 0, 128),
        /// The traffic class of traps.
        pub trap_traffic_class: u8 = bits(56, 0, 8),
        /// The service level of traps.
        pub trap_sl: u8 = bits(57, 0, 4),
        /// The flow label of traps.
        pub trap_flow_label: u32 = bits(57, 4, 20),
        /// The LID that traps go to.
        pub trap_lid: u16 = bits(60, 0, 16),
        /// The P_Key of traps.
        pub trap_p_key: PKey = bits(62, 0, 16),
        /// The hop limit of traps.
        pub trap_hop_limit: u8 = bits(64, 0, 8),
        /// The queue pair that traps go to.
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
        Self::parse(bytes.first_chunk().expect("the attribute has its length"))
    }

    fn write(&self, bytes: &mut [u8]) {
        self.emit(bytes.first_chunk_mut().expect("the attribute has its length"));
    }
}

masks! {
    /// ClassPortInfo:CapabilityMask of subnet administration; IBTA volume 1, table 184.
    SaCapabilityMask(u16) {
        /// Traps are sent.
        TRAPS = 0 "Traps",
        /// Notices can be read and written.
        NOTICES = 1 "Notices",
        /// The optional records are supported.
        OPTIONAL_RECORDS = 8 "OptionalRecords",
        /// Multicast is supported.
        UD_MULTICAST = 9 "UDMulticast",
        /// MultiPathRecord is supported.
        MULTI_PATH = 10 "MultiPath",
        /// Reinitialisation is supported.
        REINIT = 11 "Reinit",
        /// PortInfoRecords can be selected by bits of the capability mask.
        PORT_INFO_CAPABILITY_MATCH = 13 "PortInfoCapMaskMatch",
        /// LinkSpeedWidthPairsTableRecord is supported.
        LINK_SPEED_WIDTH_PAIRS = 14 "LinkSpeedWidthPairs",
        /// The service of performance administration is supported.
        PA_SERVICE = 15 "PAService",
    }
}

masks! {
    /// ClassPortInfo:CapabilityMask2 of subnet administration.
    SaCapabilityMask2(u32) {
        /// Traps of paths are sent.
        UNPATH_REPATH = 0 "UnpathRepath",
        /// Quality of service is supported.
        QOS = 1 "QoS",
        /// P_Keys of the way back are checked.
        REVERSE_PATH_P_KEY = 2 "ReversePathPKey",
        /// The highest multicast LID is told to switches.
        MULTICAST_FDB_TOP = 3 "MulticastFDBTop",
        /// Hierarchies are supported.
        HIERARCHY_INFO = 4 "HierarchyInfo",
        /// Further GUIDs of a port are supported.
        ALIAS_GUIDS = 5 "AliasGUIDs",
        /// PortInfoRecords are complete.
        FULL_PORT_INFO = 6 "FullPortInfo",
        /// Extended speeds are supported.
        EXTENDED_SPEEDS = 7 "ExtendedSpeeds",
        /// ServiceRecords of multicast are supported.
        MULTICAST_SERVICE_RECORD = 8 "MulticastServiceRecord",
        /// CableInfoRecord is supported.
        CABLE_INFO = 9 "CableInfo",
        /// PortInfoRecords can be selected by bits of the second capability mask.
        PORT_INFO_CAPABILITY2_MATCH = 10 "PortInfoCapMask2Match",
        /// PortInfoExtendedRecord is supported.
        PORT_INFO_EXTENDED = 11 "PortInfoExtended",
        /// Groups can be joined for sending only with the rights of a full member.
        SEND_ONLY_FULL_MEMBER = 12 "SendOnlyFullMember",
        /// Links of two lanes are supported.
        LINK_WIDTH_2X = 13 "LinkWidth2x",
        /// HDR is supported.
        LINK_SPEED_HDR = 15 "LinkSpeedHDR",
        /// NDR is supported.
        LINK_SPEED_NDR = 17 "LinkSpeedNDR",
    }
}
