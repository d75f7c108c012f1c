//! What a port can do; PortInfo:CapabilityMask of IBTA volume 1, chapter 14.2.5.6.

use crate::mad::codes::masks;

masks! {
    /// PortInfo:CapabilityMask, named as smpquery names the bits.
    CapabilityMask(u32) {
        /// A subnet manager runs at the port.
        SM = 1 "IsSM",
        /// Notices are supported.
        NOTICE = 2 "IsNoticeSupported",
        /// Traps are supported.
        TRAP = 3 "IsTrapSupported",
        /// Inter-packet delays are supported beyond the mandatory ones.
        OPTIONAL_IPD = 4 "IsOptionalIPDSupported",
        /// Paths can migrate automatically.
        AUTOMATIC_MIGRATION = 5 "IsAutomaticMigrationSupported",
        /// SL-to-VL tables are supported.
        SL_MAPPING = 6 "IsSLMappingSupported",
        /// The M_Key survives power cycles.
        M_KEY_NVRAM = 7 "IsMKeyNVRAM",
        /// The P_Keys survive power cycles.
        P_KEY_NVRAM = 8 "IsPKeyNVRAM",
        /// LedInfo is supported.
        LED_INFO = 9 "IsLedInfoSupported",
        /// The subnet manager of the port is disabled.
        SM_DISABLED = 10 "IsSMdisabled",
        /// SystemImageGUID is supported.
        SYSTEM_IMAGE_GUID = 11 "IsSystemImageGUIDsupported",
        /// A switch reports P_Key violations of its external ports.
        P_KEY_SWITCH_EXTERNAL_PORT_TRAP = 12 "IsPkeySwitchExternalPortTrapSupported",
        /// CableInfo is supported.
        CABLE_INFO = 13 "IsCableInfoSupported",
        /// Speeds of FDR and above are supported.
        EXTENDED_SPEEDS = 14 "IsExtendedSpeedsSupported",
        /// [`CapabilityMask2`] means something.
        CAPABILITY_MASK2 = 15 "IsCapabilityMask2Supported",
        /// Communication management is supported.
        COMMUNICATION_MANAGEMENT = 16 "IsCommunicatonManagementSupported",
        /// SNMP tunnelling is supported.
        SNMP_TUNNELING = 17 "IsSNMPTunnelingSupported",
        /// The port can be reinitialised.
        REINIT = 18 "IsReinitSupported",
        /// Device management is supported.
        DEVICE_MANAGEMENT = 19 "IsDeviceManagementSupported",
        /// A vendor class is supported.
        VENDOR_CLASS = 20 "IsVendorClassSupported",
        /// Notices by directed route are supported.
        DR_NOTICE = 21 "IsDRNoticeSupported",
        /// Changes of this mask are noticed.
        CAPABILITY_MASK_NOTICE = 22 "IsCapabilityMaskNoticeSupported",
        /// Boot management is supported.
        BOOT_MANAGEMENT = 23 "IsBootManagementSupported",
        /// LinkRoundTripLatency is supported.
        LINK_ROUND_TRIP_LATENCY = 24 "IsLinkRoundTripLatencySupported",
        /// The port can ask its clients to register again.
        CLIENT_REREGISTRATION = 25 "IsClientRegistrationSupported",
        /// Other local changes are noticed.
        OTHER_LOCAL_CHANGES_NOTICE = 26 "IsOtherLocalChangesNoticeSupported",
        /// LinkSpeedWidthPairsTable is supported.
        LINK_SPEED_WIDTH_PAIRS = 27 "IsLinkSpeedWidthPairsTableSupported",
        /// VendorSpecificMadsTable is supported.
        VENDOR_SPECIFIC_MADS = 28 "IsVendorSpecificMadsTableSupported",
        /// Traps about P_Keys of multicast can be suppressed.
        MULTICAST_P_KEY_TRAP_SUPPRESSION = 29 "IsMcastPkeyTrapSuppressionSupported",
        /// SwitchInfo:MulticastFDBTop is supported.
        MULTICAST_FDB_TOP = 30 "IsMulticastFDBTopSupported",
        /// HierarchyInfo is supported.
        HIERARCHY_INFO = 31 "IsHierarchyInfoSupported",
    }
}

masks! {
    /// PortInfo:CapabilityMask2, named as smpquery names the bits.
    CapabilityMask2(u16) {
        /// NodeDescription can be written.
        SET_NODE_DESCRIPTION = 0 "IsSetNodeDescriptionSupported",
        /// PortInfoExtended is supported.
        PORT_INFO_EXTENDED = 1 "IsPortInfoExtendedSupported",
        /// Virtual ports are supported.
        VIRTUALIZATION = 2 "IsVirtualizationSupported",
        /// SwitchPortStateTable is supported.
        SWITCH_PORT_STATE_TABLE = 3 "IsSwitchPortStateTableSupported",
        /// Links of two lanes are supported.
        LINK_WIDTH_2X = 4 "IsLinkWidth2xSupported",
        /// HDR is supported.
        LINK_SPEED_HDR = 5 "IsLinkSpeedHDRSupported",
        /// A further bit of M_KeyProtectBits is supported.
        M_KEY_PROTECT_BITS_EXT = 6 "IsMKeyProtectBitsExtSupported",
        /// Trap 128 carries more details.
        ENHANCED_TRAP_128 = 7 "IsEnhancedTrap128Supported",
        /// PartitionTop is supported.
        PARTITION_TOP = 8 "IsPartitionTopSupported",
        /// The enhanced arbiter of lanes is supported.
        ENHANCED_QOS_ARBITER = 9 "IsEnhancedQoSArbiterSupported",
        /// NDR is supported.
        LINK_SPEED_NDR = 10 "IsLinkSpeedNDRSupported",
    }
}
