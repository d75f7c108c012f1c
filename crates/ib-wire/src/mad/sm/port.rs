//! The state and settings of a port: PortInfo, IBTA volume 1, chapter 14.2.5.6, and what stands
//! beside it.

use super::{
    CapabilityMask, CapabilityMask2, LinkSpeedExt2Mask, LinkSpeedExtMask, LinkSpeedMask,
    LinkWidthMask, MlnxSpeedMask, MtuCode, PhysState, PortState, SpeedSet, VlCap,
};
use crate::mad::attribute;
use crate::mad::sa::RateCode;

mod display;

crate::layout! {
    /// A port; the attribute modifier is its number, 0 for the management port of a switch.
    pub struct PortInfo: 64 {
        /// The key that guards the port's attributes.
        pub m_key: u64 = bits(0, 0, 64),
        /// The upper half of the port's GIDs.
        pub gid_prefix: u64 = bits(8, 0, 64),
        /// The base LID; zero when none is assigned.
        pub lid: u16 = bits(16, 0, 16),
        /// The LID of the master subnet manager.
        pub master_sm_lid: u16 = bits(18, 0, 16),
        /// What the port can do.
        pub capability_mask: CapabilityMask = bits(20, 0, 32),
        /// A code of the vendor's diagnosis; zero when well.
        pub diag_code: u16 = bits(24, 0, 16),
        /// Seconds until the M_Key's protection ends when nobody renews it; 0 for never.
        pub m_key_lease_period: u16 = bits(26, 0, 16),
        /// The port that the request arrived on.
        pub local_port: u8 = bits(28, 0, 8),
        /// The widths that the link may take.
        pub link_width_enabled: LinkWidthMask = bits(29, 0, 8),
        /// The widths that the port can take.
        pub link_width_supported: LinkWidthMask = bits(30, 0, 8),
        /// The width that the link has.
        pub link_width_active: LinkWidthMask = bits(31, 0, 8),
        /// The speeds up to QDR that the port can take.
        pub link_speed_supported: LinkSpeedMask = bits(32, 0, 4),
        /// The state of the port.
        pub port_state: PortState = bits(32, 4, 4),
        /// The state of its physical layer.
        pub phys_state: PhysState = bits(33, 0, 4),
        /// What the physical layer does when the link is down: sleep or poll.
        pub link_down_default_state: PhysState = bits(33, 4, 4),
        /// How much the M_Key protects, 0 to 3.
        pub m_key_protect: u8 = bits(34, 0, 2),
        /// The LID mask control, 0 to 7.
        pub lmc: u8 = bits(34, 5, 3),
        /// The speed up to QDR that the link has; 0 when only another field tells.
        pub link_speed_active: LinkSpeedMask = bits(35, 0, 4),
        /// The speeds up to QDR that the link may take.
        pub link_speed_enabled: LinkSpeedMask = bits(35, 4, 4),
        /// The MTU of the link.
        pub neighbor_mtu: MtuCode = bits(36, 0, 4),
        /// The service level to the master subnet manager.
        pub master_sm_sl: u8 = bits(36, 4, 4),
        /// The data lanes that the port has.
        pub vl_cap: VlCap = bits(37, 0, 4),
        /// The initialisation that the port asks for.
        pub init_type: u8 = bits(37, 4, 4),
        /// How much high-priority traffic may pass before low-priority traffic: 4 KiB units, 255 no
        /// limit.
        pub vl_high_limit: u8 = bits(38, 0, 8),
        /// The number of entries of the high-priority arbitration table.
        pub vl_arbitration_high_cap: u8 = bits(39, 0, 8),
        /// The number of entries of the low-priority arbitration table.
        pub vl_arbitration_low_cap: u8 = bits(40, 0, 8),
        /// The initialisation that was done.
        pub init_type_reply: u8 = bits(41, 0, 4),
        /// The MTU that the port can take.
        pub mtu_cap: MtuCode = bits(41, 4, 4),
        /// After how many packets dropped in sequence a lane stalls.
        pub vl_stall_count: u8 = bits(42, 0, 3),
        /// How long a packet may stand at the head of a queue: 4.096 µs × 2^value; above 19 for ever.
        pub hoq_life: u8 = bits(42, 3, 5),
        /// The data lanes in use.
        pub operational_vls: VlCap = bits(43, 0, 4),
        /// P_Keys of packets that come in are enforced.
        pub partition_enforcement_inbound: bool = bits(43, 4, 1),
        /// P_Keys of packets that go out are enforced.
        pub partition_enforcement_outbound: bool = bits(43, 5, 1),
        /// Raw packets that come in are dropped.
        pub filter_raw_inbound: bool = bits(43, 6, 1),
        /// Raw packets that go out are dropped.
        pub filter_raw_outbound: bool = bits(43, 7, 1),
        /// SMPs with a wrong M_Key.
        pub m_key_violations: u16 = bits(44, 0, 16),
        /// Packets with a wrong P_Key.
        pub p_key_violations: u16 = bits(46, 0, 16),
        /// Packets with a wrong Q_Key.
        pub q_key_violations: u16 = bits(48, 0, 16),
        /// The number of GUIDs that the port can hold.
        pub guid_cap: u8 = bits(50, 0, 8),
        /// The clients of subnet administration shall register again.
        pub client_reregister: bool = bits(51, 0, 1),
        /// Traps about P_Keys of multicast are suppressed.
        pub multicast_p_key_trap_suppression: u8 = bits(51, 1, 2),
        /// The longest trip through the subnet: 4.096 µs × 2^value.
        pub subnet_timeout: u8 = bits(51, 3, 5),
        /// The longest time until the port responds: 4.096 µs × 2^value.
        pub resp_time_value: u8 = bits(52, 3, 5),
        /// How many local physical errors make a trap.
        pub local_phy_errors: u8 = bits(53, 0, 4),
        /// How many overruns make a trap.
        pub overrun_errors: u8 = bits(53, 4, 4),
        /// A hint about credits for round trips.
        pub max_credit_hint: u16 = bits(54, 0, 16),
        /// The XDR speed that the link has.
        pub link_speed_ext2_active: LinkSpeedExt2Mask = bits(56, 1, 2),
        /// The XDR speeds that the port can take.
        pub link_speed_ext2_supported: LinkSpeedExt2Mask = bits(56, 3, 2),
        /// The XDR speeds that the link may take.
        pub link_speed_ext2_enabled: LinkSpeedExt2Mask = bits(56, 5, 3),
        /// The round trip of the link in units of 4 ns; all ones when unknown.
        pub link_round_trip_latency: u32 = bits(57, 0, 24),
        /// What else the port can do.
        pub capability_mask2: CapabilityMask2 = bits(60, 0, 16),
        /// The speed of FDR to NDR that the link has.
        pub link_speed_ext_active: LinkSpeedExtMask = bits(62, 0, 4),
        /// The speeds of FDR to NDR that the port can take.
        pub link_speed_ext_supported: LinkSpeedExtMask = bits(62, 4, 4),
        /// The speeds of FDR to NDR that the link may take.
        pub link_speed_ext_enabled: LinkSpeedExtMask = bits(63, 3, 5),
    }
}

attribute!(PortInfo = PORT_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl PortInfo {
    /// The bit of the attribute modifier by which a requester says that it knows extended speeds.
    pub const EXTENDED_SPEEDS: u32 = 1 << 31;

    /// Returns the rate of the link, which FDR10 does not show in; the lowest where the link has none.
    #[must_use]
    pub fn rate(&self) -> RateCode {
        let (width, speed) = (self.link_width_active.active(), self.active_speeds(None).active());
        let code = width.zip(speed).and_then(|(width, speed)| RateCode::of_link(speed, width));
        code.unwrap_or(RateCode::GBPS_2_5)
    }

    /// Returns the speed of the link; FDR10 shows only when the Mellanox attribute is given.
    #[must_use]
    pub fn active_speeds(&self, mellanox: Option<&MlnxExtPortInfo>) -> SpeedSet {
        SpeedSet {
            speed: self.link_speed_active,
            extended: self.link_speed_ext_active,
            extended2: self.link_speed_ext2_active,
            mellanox: mellanox.map_or(MlnxSpeedMask(0), |info| info.link_speed_active),
        }
    }

    /// Returns the speeds that the port can take.
    #[must_use]
    pub fn supported_speeds(&self, mellanox: Option<&MlnxExtPortInfo>) -> SpeedSet {
        SpeedSet {
            speed: self.link_speed_supported,
            extended: self.link_speed_ext_supported,
            extended2: self.link_speed_ext2_supported,
            mellanox: mellanox.map_or(MlnxSpeedMask(0), |info| info.link_speed_supported),
        }
    }

    /// Returns the speeds that the link may take.
    #[must_use]
    pub fn enabled_speeds(&self, mellanox: Option<&MlnxExtPortInfo>) -> SpeedSet {
        SpeedSet {
            speed: self.link_speed_enabled,
            extended: self.link_speed_ext_enabled,
            extended2: self.link_speed_ext2_enabled,
            mellanox: mellanox.map_or(MlnxSpeedMask(0), |info| info.link_speed_enabled),
        }
    }

    /// Stores the speed of the link; FDR10 goes into the Mellanox attribute.
    pub const fn set_active_speeds(&mut self, set: SpeedSet) {
        self.link_speed_active = set.speed;
        self.link_speed_ext_active = set.extended;
        self.link_speed_ext2_active = set.extended2;
    }

    /// Stores the speeds that the port can take; FDR10 goes into the Mellanox attribute.
    pub const fn set_supported_speeds(&mut self, set: SpeedSet) {
        self.link_speed_supported = set.speed;
        self.link_speed_ext_supported = set.extended;
        self.link_speed_ext2_supported = set.extended2;
    }

    /// Stores the speeds that the link may take; FDR10 goes into the Mellanox attribute.
    pub const fn set_enabled_speeds(&mut self, set: SpeedSet) {
        self.link_speed_enabled = set.speed;
        self.link_speed_ext_enabled = set.extended;
        self.link_speed_ext2_enabled = set.extended2;
    }
}

crate::layout! {
    /// Mellanox' extension of PortInfo, which knows FDR10; the attribute modifier is the port.
    pub struct MlnxExtPortInfo: 64 {
        /// Which of the speeds a Set changes.
        pub state_change_enable: u8 = bits(3, 0, 8),
        /// The speeds that the port can take.
        pub link_speed_supported: MlnxSpeedMask = bits(7, 0, 8),
        /// The speeds that the link may take.
        pub link_speed_enabled: MlnxSpeedMask = bits(11, 0, 8),
        /// The speed that the link has.
        pub link_speed_active: MlnxSpeedMask = bits(15, 0, 8),
    }
}

attribute!(MlnxExtPortInfo = MLNX_EXT_PORT_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// The forward error correction of a port; the attribute modifier is the port.
    ///
    /// Each mask has bit 0 for none, further bits for codes by speed.
    pub struct PortInfoExtended: 64 {
        /// Which of the fields mean something.
        pub capability_mask: u32 = bits(0, 0, 32),
        /// The code that the link uses.
        pub fec_mode_active: u16 = bits(4, 0, 16),
        /// The codes that the port can use at FDR.
        pub fdr_fec_mode_supported: u16 = bits(6, 0, 16),
        /// The codes that the link may use at FDR.
        pub fdr_fec_mode_enabled: u16 = bits(8, 0, 16),
        /// The codes that the port can use at EDR.
        pub edr_fec_mode_supported: u16 = bits(10, 0, 16),
        /// The codes that the link may use at EDR.
        pub edr_fec_mode_enabled: u16 = bits(12, 0, 16),
        /// The codes that the port can use at HDR.
        pub hdr_fec_mode_supported: u16 = bits(14, 0, 16),
        /// The codes that the link may use at HDR.
        pub hdr_fec_mode_enabled: u16 = bits(16, 0, 16),
        /// The codes that the port can use at NDR.
        pub ndr_fec_mode_supported: u16 = bits(18, 0, 16),
        /// The codes that the link may use at NDR.
        pub ndr_fec_mode_enabled: u16 = bits(20, 0, 16),
    }
}

attribute!(PortInfoExtended = PORT_INFO_EXTENDED in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);
