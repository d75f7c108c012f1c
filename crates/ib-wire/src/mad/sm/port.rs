//! PortInfo (IBTA volume 1, chapter 14.2.5.6), PortInfoExtended, and Mellanox's `MlnxExtPortInfo`.

use super::{
    CapabilityMask, CapabilityMask2, LinkSpeedExt2Mask, LinkSpeedExtMask, LinkSpeedMask,
    LinkWidthMask, MlnxSpeedMask, MtuCode, PhysState, PortState, SpeedSet, VlCap,
};
use crate::mad::attribute;
use crate::mad::sa::RateCode;

crate::layout! {
    /// State, capabilities and settings of a port.
    ///
    /// The attribute modifier is the port number. It is 0 for the management port of a switch.
    pub struct PortInfo: 64 {
        /// The M_Key.
        pub m_key: u64 = bits(0, 0, 64),
        /// The GID prefix of the port.
        pub gid_prefix: u64 = bits(8, 0, 64),
        /// The base LID; zero if none is assigned.
        pub lid: u16 = bits(16, 0, 16),
        /// The LID of the master SM.
        pub master_sm_lid: u16 = bits(18, 0, 16),
        /// The capabilities of the port.
        pub capability_mask: CapabilityMask = bits(20, 0, 32),
        /// A vendor-specific diagnostic code; zero if there is no problem.
        pub diag_code: u16 = bits(24, 0, 16),
        /// The M_Key lease period in seconds, after which the M_Key protection ends. 0 means that the
        /// protection never ends.
        pub m_key_lease_period: u16 = bits(26, 0, 16),
        /// The number of the port that has received the request.
        pub local_port: u8 = bits(28, 0, 8),
        /// The enabled link widths.
        pub link_width_enabled: LinkWidthMask = bits(29, 0, 8),
        /// The supported link widths.
        pub link_width_supported: LinkWidthMask = bits(30, 0, 8),
        /// The active link width.
        pub link_width_active: LinkWidthMask = bits(31, 0, 8),
        /// The supported link speeds up to QDR.
        pub link_speed_supported: LinkSpeedMask = bits(32, 0, 4),
        /// The state of the port.
        pub port_state: PortState = bits(32, 4, 4),
        /// The state of the physical port.
        pub phys_state: PhysState = bits(33, 0, 4),
        /// The default state of the physical port if the link is down: sleep or polling.
        pub link_down_default_state: PhysState = bits(33, 4, 4),
        /// The M_Key protection level, 0 to 3.
        pub m_key_protect: u8 = bits(34, 0, 2),
        /// The LMC, 0 to 7.
        pub lmc: u8 = bits(34, 5, 3),
        /// The active link speed up to QDR; 0 if only `link_speed_ext_active` or `link_speed_ext2_active`
        /// reports the speed.
        pub link_speed_active: LinkSpeedMask = bits(35, 0, 4),
        /// The enabled link speeds up to QDR.
        pub link_speed_enabled: LinkSpeedMask = bits(35, 4, 4),
        /// The MTU of the link.
        pub neighbor_mtu: MtuCode = bits(36, 0, 4),
        /// The SL of packets to the master SM.
        pub master_sm_sl: u8 = bits(36, 4, 4),
        /// The data VLs that the port supports.
        pub vl_cap: VlCap = bits(37, 0, 4),
        /// The type of initialization that the port requests.
        pub init_type: u8 = bits(37, 4, 4),
        /// The maximum amount of high-priority data that is sent before a low-priority packet, in
        /// units of 4 KiB. 255 means unlimited.
        pub vl_high_limit: u8 = bits(38, 0, 8),
        /// The number of entries in the high-priority VL arbitration table.
        pub vl_arbitration_high_cap: u8 = bits(39, 0, 8),
        /// The number of entries in the low-priority VL arbitration table.
        pub vl_arbitration_low_cap: u8 = bits(40, 0, 8),
        /// The type of initialization that the SM has performed.
        pub init_type_reply: u8 = bits(41, 0, 4),
        /// The maximum MTU that the port supports.
        pub mtu_cap: MtuCode = bits(41, 4, 4),
        /// The number of packets dropped in sequence after which a VL is stalled.
        pub vl_stall_count: u8 = bits(42, 0, 3),
        /// The head-of-queue (HOQ) life time of packets: 4.096 µs × 2^value. Values above 19 mean
        /// unlimited.
        pub hoq_life: u8 = bits(42, 3, 5),
        /// The data VLs in use.
        pub operational_vls: VlCap = bits(43, 0, 4),
        /// True if the port checks the P_Keys of packets that it receives.
        pub partition_enforcement_inbound: bool = bits(43, 4, 1),
        /// True if the port checks the P_Keys of packets that it transmits.
        pub partition_enforcement_outbound: bool = bits(43, 5, 1),
        /// True if the port drops received raw packets.
        pub filter_raw_inbound: bool = bits(43, 6, 1),
        /// True if the port does not transmit raw packets.
        pub filter_raw_outbound: bool = bits(43, 7, 1),
        /// The number of received SMPs with a wrong M_Key.
        pub m_key_violations: u16 = bits(44, 0, 16),
        /// The number of received packets with a wrong P_Key.
        pub p_key_violations: u16 = bits(46, 0, 16),
        /// The number of received packets with a wrong Q_Key.
        pub q_key_violations: u16 = bits(48, 0, 16),
        /// The number of entries in the GUIDInfo table of the port.
        pub guid_cap: u8 = bits(50, 0, 8),
        /// True if the SM requests that the SA clients at the port renew their multicast group memberships,
        /// service records and event subscriptions.
        pub client_reregister: bool = bits(51, 0, 1),
        /// The mode in which the port suppresses traps for P_Key violations of multicast packets; 0 if it
        /// sends all these traps.
        pub multicast_p_key_trap_suppression: u8 = bits(51, 1, 2),
        /// The maximum propagation delay of the subnet: 4.096 µs × 2^value.
        pub subnet_timeout: u8 = bits(51, 3, 5),
        /// The maximum response time of the port: 4.096 µs × 2^value.
        pub resp_time_value: u8 = bits(52, 3, 5),
        /// The number of local physical errors at which the port sends a trap.
        pub local_phy_errors: u8 = bits(53, 0, 4),
        /// The number of buffer overruns at which the port sends a trap.
        pub overrun_errors: u8 = bits(53, 4, 4),
        /// A hint at the maximum number of credits of the link.
        pub max_credit_hint: u16 = bits(54, 0, 16),
        /// The active link speed if it is XDR or above.
        pub link_speed_ext2_active: LinkSpeedExt2Mask = bits(56, 1, 2),
        /// The supported link speeds of XDR and above.
        pub link_speed_ext2_supported: LinkSpeedExt2Mask = bits(56, 3, 2),
        /// The enabled link speeds of XDR and above.
        pub link_speed_ext2_enabled: LinkSpeedExt2Mask = bits(56, 5, 3),
        /// The round-trip latency of the link in units of 4 ns; all ones if unknown.
        pub link_round_trip_latency: u32 = bits(57, 0, 24),
        /// More capabilities of the port, in addition to `capability_mask`.
        pub capability_mask2: CapabilityMask2 = bits(60, 0, 16),
        /// The active link speed if it is FDR, EDR, HDR or NDR.
        pub link_speed_ext_active: LinkSpeedExtMask = bits(62, 0, 4),
        /// The supported link speeds, FDR to NDR.
        pub link_speed_ext_supported: LinkSpeedExtMask = bits(62, 4, 4),
        /// The enabled link speeds, FDR to NDR.
        pub link_speed_ext_enabled: LinkSpeedExtMask = bits(63, 3, 5),
    }
}

attribute!(PortInfo = PORT_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl PortInfo {
    /// The bit of the attribute modifier that the requester sets if it supports extended speeds.
    pub const EXTENDED_SPEEDS: u32 = 1 << 31;

    /// Returns the rate of the link; 2.5 Gbit/s if its width or speed is unknown. Counts FDR10 as
    /// QDR.
    #[must_use]
    pub fn rate(&self) -> RateCode {
        let (width, speed) = (self.link_width_active.active(), self.active_speeds(None).active());
        let code = width.zip(speed).and_then(|(width, speed)| RateCode::of_link(speed, width));
        code.unwrap_or(RateCode::GBPS_2_5)
    }

    /// Returns the set of speeds in the active speed masks. Call [`SpeedSet::active`] for the speed of the link.
    ///
    /// The set can contain FDR10 only if `mellanox` is given.
    #[must_use]
    pub fn active_speeds(&self, mellanox: Option<&MlnxExtPortInfo>) -> SpeedSet {
        SpeedSet {
            speed: self.link_speed_active,
            extended: self.link_speed_ext_active,
            extended2: self.link_speed_ext2_active,
            mellanox: mellanox.map_or(MlnxSpeedMask(0), |info| info.link_speed_active),
        }
    }

    /// Returns the supported speeds of the port. The set can contain FDR10 only if `mellanox` is given.
    #[must_use]
    pub fn supported_speeds(&self, mellanox: Option<&MlnxExtPortInfo>) -> SpeedSet {
        SpeedSet {
            speed: self.link_speed_supported,
            extended: self.link_speed_ext_supported,
            extended2: self.link_speed_ext2_supported,
            mellanox: mellanox.map_or(MlnxSpeedMask(0), |info| info.link_speed_supported),
        }
    }

    /// Returns the enabled speeds of the port. The set can contain FDR10 only if `mellanox` is given.
    #[must_use]
    pub fn enabled_speeds(&self, mellanox: Option<&MlnxExtPortInfo>) -> SpeedSet {
        SpeedSet {
            speed: self.link_speed_enabled,
            extended: self.link_speed_ext_enabled,
            extended2: self.link_speed_ext2_enabled,
            mellanox: mellanox.map_or(MlnxSpeedMask(0), |info| info.link_speed_enabled),
        }
    }

    /// Sets the active speed masks to the speeds of `set`. Ignores FDR10, which belongs to [`MlnxExtPortInfo`].
    pub const fn set_active_speeds(&mut self, set: SpeedSet) {
        self.link_speed_active = set.speed;
        self.link_speed_ext_active = set.extended;
        self.link_speed_ext2_active = set.extended2;
    }

    /// Sets the supported speeds. Ignores FDR10, which belongs to [`MlnxExtPortInfo`].
    pub const fn set_supported_speeds(&mut self, set: SpeedSet) {
        self.link_speed_supported = set.speed;
        self.link_speed_ext_supported = set.extended;
        self.link_speed_ext2_supported = set.extended2;
    }

    /// Sets the enabled speeds. Ignores FDR10, which belongs to [`MlnxExtPortInfo`].
    pub const fn set_enabled_speeds(&mut self, set: SpeedSet) {
        self.link_speed_enabled = set.speed;
        self.link_speed_ext_enabled = set.extended;
        self.link_speed_ext2_enabled = set.extended2;
    }
}

crate::layout! {
    /// Mellanox's extension of PortInfo, with the speed FDR10. The attribute modifier is the port
    /// number.
    pub struct MlnxExtPortInfo: 64 {
        /// Mask of the fields that a Set writes.
        pub state_change_enable: u8 = bits(3, 0, 8),
        /// The supported link speeds.
        pub link_speed_supported: MlnxSpeedMask = bits(7, 0, 8),
        /// The enabled link speeds.
        pub link_speed_enabled: MlnxSpeedMask = bits(11, 0, 8),
        /// The active link speed.
        pub link_speed_active: MlnxSpeedMask = bits(15, 0, 8),
    }
}

attribute!(MlnxExtPortInfo = MLNX_EXT_PORT_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// The forward error correction (FEC) modes of a port. The attribute modifier is the port
    /// number.
    ///
    /// In each mask of FEC modes, bit 0 means no FEC. The meaning of the other bits depends on the speed.
    pub struct PortInfoExtended: 64 {
        /// Mask of the fields of this struct that are valid.
        pub capability_mask: u32 = bits(0, 0, 32),
        /// The active FEC mode.
        pub fec_mode_active: u16 = bits(4, 0, 16),
        /// The supported FEC modes at FDR.
        pub fdr_fec_mode_supported: u16 = bits(6, 0, 16),
        /// The enabled FEC modes at FDR.
        pub fdr_fec_mode_enabled: u16 = bits(8, 0, 16),
        /// The supported FEC modes at EDR.
        pub edr_fec_mode_supported: u16 = bits(10, 0, 16),
        /// The enabled FEC modes at EDR.
        pub edr_fec_mode_enabled: u16 = bits(12, 0, 16),
        /// The supported FEC modes at HDR.
        pub hdr_fec_mode_supported: u16 = bits(14, 0, 16),
        /// The enabled FEC modes at HDR.
        pub hdr_fec_mode_enabled: u16 = bits(16, 0, 16),
        /// The supported FEC modes at NDR.
        pub ndr_fec_mode_supported: u16 = bits(18, 0, 16),
        /// The enabled FEC modes at NDR.
        pub ndr_fec_mode_enabled: u16 = bits(20, 0, 16),
    }
}

attribute!(PortInfoExtended = PORT_INFO_EXTENDED in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);
