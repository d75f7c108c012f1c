//! Attribute IDs and their names by class.

use std::fmt;

use crate::mad::MgmtClass;

/// An attribute ID. Its meaning depends on the class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttributeId(pub u16);

crate::field!(AttributeId(u16));

macro_rules! attributes {
    ($(
        $(#[$table_attribute:meta])*
        $table:ident { $( $constant:ident = $value:literal $text:literal ),+ $(,)? }
    )+) => {
        impl AttributeId {
            $($(
                #[doc = concat!("`", $text, "`, ", stringify!($value), ".")]
                pub const $constant: Self = Self($value);
            )+)+
        }

        $(
            $(#[$table_attribute])*
            const $table: &[(u16, &str)] = &[ $( ($value, $text) ),+ ];
        )+
    };
}

attributes! {
    /// Attributes that every class except subnet management defines.
    COMMON {
        CLASS_PORT_INFO = 0x0001 "ClassPortInfo",
        NOTICE = 0x0002 "Notice",
        INFORM_INFO = 0x0003 "InformInfo",
    }
    /// Attributes of subnet management; IBTA volume 1, chapter 14.2.5.
    SUBNET_MANAGEMENT {
        NODE_DESCRIPTION = 0x0010 "NodeDescription",
        NODE_INFO = 0x0011 "NodeInfo",
        SWITCH_INFO = 0x0012 "SwitchInfo",
        GUID_INFO = 0x0014 "GUIDInfo",
        PORT_INFO = 0x0015 "PortInfo",
        P_KEY_TABLE = 0x0016 "P_KeyTable",
        SL_TO_VL = 0x0017 "SLtoVLMappingTable",
        VL_ARBITRATION = 0x0018 "VLArbitrationTable",
        LINEAR_FORWARDING = 0x0019 "LinearForwardingTable",
        RANDOM_FORWARDING = 0x001a "RandomForwardingTable",
        MULTICAST_FORWARDING = 0x001b "MulticastForwardingTable",
        LINK_SPEED_WIDTH_PAIRS = 0x001c "LinkSpeedWidthPairsTable",
        VENDOR_MADS = 0x001d "VendorSpecificMadsTable",
        HIERARCHY_INFO = 0x001e "HierarchyInfo",
        SM_INFO = 0x0020 "SMInfo",
        VENDOR_DIAG = 0x0030 "VendorDiag",
        LED_INFO = 0x0031 "LedInfo",
        CABLE_INFO = 0x0032 "CableInfo",
        PORT_INFO_EXTENDED = 0x0033 "PortInfoExtended",
        MLNX_EXT_PORT_INFO = 0xff90 "MlnxExtPortInfo",
    }
    /// Attributes of subnet administration (SA); IBTA volume 1, chapter 15.2.5.
    SUBNET_ADMINISTRATION {
        NODE_RECORD = 0x0011 "NodeRecord",
        PORT_INFO_RECORD = 0x0012 "PortInfoRecord",
        SL_TO_VL_RECORD = 0x0013 "SLtoVLMappingTableRecord",
        SWITCH_INFO_RECORD = 0x0014 "SwitchInfoRecord",
        LINEAR_FORWARDING_RECORD = 0x0015 "LinearForwardingTableRecord",
        RANDOM_FORWARDING_RECORD = 0x0016 "RandomForwardingTableRecord",
        MULTICAST_FORWARDING_RECORD = 0x0017 "MulticastForwardingTableRecord",
        SM_INFO_RECORD = 0x0018 "SMInfoRecord",
        LINK_SPEED_WIDTH_PAIRS_RECORD = 0x0019 "LinkSpeedWidthPairsTableRecord",
        LINK_RECORD = 0x0020 "LinkRecord",
        GUID_INFO_RECORD = 0x0030 "GuidInfoRecord",
        SERVICE_RECORD = 0x0031 "ServiceRecord",
        P_KEY_TABLE_RECORD = 0x0033 "P_KeyTableRecord",
        PATH_RECORD = 0x0035 "PathRecord",
        VL_ARBITRATION_RECORD = 0x0036 "VLArbitrationTableRecord",
        MC_MEMBER_RECORD = 0x0038 "MCMemberRecord",
        TRACE_RECORD = 0x0039 "TraceRecord",
        MULTI_PATH_RECORD = 0x003a "MultiPathRecord",
        SERVICE_ASSOCIATION_RECORD = 0x003b "ServiceAssociationRecord",
        HIERARCHY_INFO_RECORD = 0x003c "HierarchyInfoRecord",
        CABLE_INFO_RECORD = 0x003d "CableInfoRecord",
        PORT_INFO_EXTENDED_RECORD = 0x003e "PortInfoExtendedRecord",
        INFORM_INFO_RECORD = 0x00f3 "InformInfoRecord",
    }
    /// Attributes of performance management; IBTA volume 1, chapter 16.1.3 and annex A13.
    PERFORMANCE {
        PORT_SAMPLES_CONTROL = 0x0010 "PortSamplesControl",
        PORT_SAMPLES_RESULT = 0x0011 "PortSamplesResult",
        PORT_COUNTERS = 0x0012 "PortCounters",
        PORT_RCV_ERROR_DETAILS = 0x0015 "PortRcvErrorDetails",
        PORT_XMIT_DISCARD_DETAILS = 0x0016 "PortXmitDiscardDetails",
        PORT_OP_RCV_COUNTERS = 0x0017 "PortOpRcvCounters",
        PORT_FLOW_CTL_COUNTERS = 0x0018 "PortFlowCtlCounters",
        PORT_VL_OP_PACKETS = 0x0019 "PortVLOpPackets",
        PORT_VL_OP_DATA = 0x001a "PortVLOpData",
        PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS = 0x001b "PortVLXmitFlowCtlUpdateErrors",
        PORT_VL_XMIT_WAIT_COUNTERS = 0x001c "PortVLXmitWaitCounters",
        PORT_COUNTERS_EXTENDED = 0x001d "PortCountersExtended",
        PORT_EXT_SPEEDS_COUNTERS = 0x001f "PortExtendedSpeedsCounters",
    }
    /// Attributes of communication management; IBTA volume 1, chapter 12.6.
    COMMUNICATION {
        CM_REQ = 0x0010 "ConnectRequest",
        CM_MRA = 0x0011 "MsgRcptAck",
        CM_REJ = 0x0012 "ConnectReject",
        CM_REP = 0x0013 "ConnectReply",
        CM_RTU = 0x0014 "ReadyToUse",
        CM_DREQ = 0x0015 "DisconnectRequest",
        CM_DREP = 0x0016 "DisconnectReply",
        CM_SIDR_REQ = 0x0017 "ServiceIDResReq",
        CM_SIDR_REP = 0x0018 "ServiceIDResReqResp",
        CM_LAP = 0x0019 "LoadAlternatePath",
        CM_APR = 0x001a "AlternatePathResponse",
        CM_SAP = 0x001b "SuggestAlternatePath",
        CM_SPR = 0x001c "SuggestAlternatePathResponse",
    }
    /// Attributes of ibtracer's vendor class.
    TRACER {
        SOURCE_ROUTE = 0x0010 "SourceRoute",
    }
}

impl AttributeId {
    /// Returns the name of the attribute in this class; `None` if the ID is unknown.
    #[must_use]
    pub fn name(self, class: MgmtClass) -> Option<&'static str> {
        let of = |table: &'static [(u16, &str)]| {
            table.iter().find(|(id, _)| *id == self.0).map(|&(_, name)| name)
        };
        of(names(class)).or_else(|| of(COMMON))
    }

    /// Returns the attribute that has this name in the class, ignoring case.
    #[must_use]
    pub fn by_name(name: &str, class: MgmtClass) -> Option<Self> {
        let mut all = names(class).iter().chain(COMMON);
        all.find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|&(id, _)| Self(id))
    }
}

/// Returns the attributes of a class, without those in `COMMON`.
const fn names(class: MgmtClass) -> &'static [(u16, &'static str)] {
    match class {
        MgmtClass::SUBN_LID_ROUTED | MgmtClass::SUBN_DIRECTED_ROUTE => SUBNET_MANAGEMENT,
        MgmtClass::SUBN_ADM => SUBNET_ADMINISTRATION,
        MgmtClass::PERFORMANCE => PERFORMANCE,
        MgmtClass::COMMUNICATION => COMMUNICATION,
        MgmtClass::TRACER => TRACER,
        _ => &[],
    }
}

impl fmt::Display for AttributeId {
    /// Writes the number in hexadecimal; for the name, see [`AttributeId::name`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}
