//! Capability masks of ports: PortInfo:CapabilityMask and `CapabilityMask2` of IBTA volume 1, chapter
//! 14.2.5.6.

use crate::mad::codes::masks;

masks! {
    /// PortInfo:CapabilityMask, with the bit names of smpquery.
    CapabilityMask(u32) {
        /// An SM runs at the port.
        SM = 1 "IsSM",
        /// Notices are supported.
        NOTICE = 2 "IsNoticeSupported",
        /// Traps are supported.
        TRAP = 3 "IsTrapSupported",
        /// Optional inter-packet delays (IPD) are supported.
        OPTIONAL_IPD = 4 "IsOptionalIPDSupported",
        /// Automatic path migration is supported.
        AUTOMATIC_MIGRATION = 5 "IsAutomaticMigrationSupported",
        /// SL-to-VL mapping is supported.
        SL_MAPPING = 6 "IsSLMappingSupported",
        /// The M_Key is stored in NVRAM.
        M_KEY_NVRAM = 7 "IsMKeyNVRAM",
        /// The P_Keys are stored in NVRAM.
        P_KEY_NVRAM = 8 "IsPKeyNVRAM",
        /// LedInfo is supported.
        LED_INFO = 9 "IsLedInfoSupported",
        /// The SM of the port is disabled.
        SM_DISABLED = 10 "IsSMdisabled",
        /// SystemImageGUID is supported.
        SYSTEM_IMAGE_GUID = 11 "IsSystemImageGUIDsupported",
        /// The switch sends traps for P_Key violations at external ports.
        P_KEY_SWITCH_EXTERNAL_PORT_TRAP = 12 "IsPkeySwitchExternalPortTrapSupported",
        /// CableInfo is supported.
        CABLE_INFO = 13 "IsCableInfoSupported",
        /// Extended link speeds (FDR and above) are supported.
        EXTENDED_SPEEDS = 14 "IsExtendedSpeedsSupported",
        /// [`CapabilityMask2`] is valid.
        CAPABILITY_MASK2 = 15 "IsCapabilityMask2Supported",
        /// Communication management is supported.
        COMMUNICATION_MANAGEMENT = 16 "IsCommunicatonManagementSupported",
        /// SNMP tunnelling is supported.
        SNMP_TUNNELING = 17 "IsSNMPTunnelingSupported",
        /// Reinitialization is supported.
        REINIT = 18 "IsReinitSupported",
        /// Device management is supported.
        DEVICE_MANAGEMENT = 19 "IsDeviceManagementSupported",
        /// Vendor classes are supported.
        VENDOR_CLASS = 20 "IsVendorClassSupported",
        /// Directed-route notices are supported.
        DR_NOTICE = 21 "IsDRNoticeSupported",
        /// The port reports changes of this capability mask with trap 144.
        CAPABILITY_MASK_NOTICE = 22 "IsCapabilityMaskNoticeSupported",
        /// Boot management is supported.
        BOOT_MANAGEMENT = 23 "IsBootManagementSupported",
        /// LinkRoundTripLatency is supported.
        LINK_ROUND_TRIP_LATENCY = 24 "IsLinkRoundTripLatencySupported",
        /// Client reregistration is supported.
        CLIENT_REREGISTRATION = 25 "IsClientRegistrationSupported",
        /// With trap 144, the port also reports changes of properties other than this capability mask.
        OTHER_LOCAL_CHANGES_NOTICE = 26 "IsOtherLocalChangesNoticeSupported",
        /// LinkSpeedWidthPairsTable is supported.
        LINK_SPEED_WIDTH_PAIRS = 27 "IsLinkSpeedWidthPairsTableSupported",
        /// VendorSpecificMadsTable is supported.
        VENDOR_SPECIFIC_MADS = 28 "IsVendorSpecificMadsTableSupported",
        /// Suppression of traps for P_Key violations of multicast packets is supported.
        MULTICAST_P_KEY_TRAP_SUPPRESSION = 29 "IsMcastPkeyTrapSuppressionSupported",
        /// SwitchInfo:MulticastFDBTop is supported.
        MULTICAST_FDB_TOP = 30 "IsMulticastFDBTopSupported",
        /// HierarchyInfo is supported.
        HIERARCHY_INFO = 31 "IsHierarchyInfoSupported",
    }
}

masks! {
    /// PortInfo:CapabilityMask2, with the bit names of smpquery.
    CapabilityMask2(u16) {
        /// Set of NodeDescription is supported.
        SET_NODE_DESCRIPTION = 0 "IsSetNodeDescriptionSupported",
        /// PortInfoExtended is supported.
        PORT_INFO_EXTENDED = 1 "IsPortInfoExtendedSupported",
        /// Port virtualization is supported.
        VIRTUALIZATION = 2 "IsVirtualizationSupported",
        /// SwitchPortStateTable is supported.
        SWITCH_PORT_STATE_TABLE = 3 "IsSwitchPortStateTableSupported",
        /// The link width 2x is supported.
        LINK_WIDTH_2X = 4 "IsLinkWidth2xSupported",
        /// The link speed HDR is supported.
        LINK_SPEED_HDR = 5 "IsLinkSpeedHDRSupported",
        /// The extended M_KeyProtectBits are supported.
        M_KEY_PROTECT_BITS_EXT = 6 "IsMKeyProtectBitsExtSupported",
        /// The switch supports the enhanced trap 128.
        ENHANCED_TRAP_128 = 7 "IsEnhancedTrap128Supported",
        /// PartitionTop is supported.
        PARTITION_TOP = 8 "IsPartitionTopSupported",
        /// The enhanced arbiter for quality of service is supported.
        ENHANCED_QOS_ARBITER = 9 "IsEnhancedQoSArbiterSupported",
        /// The link speed NDR is supported.
        LINK_SPEED_NDR = 10 "IsLinkSpeedNDRSupported",
    }
}
