//! Notices (the data of traps) and their details; IBTA volume 1, chapters 13.4.8.2 and 14.2.5.1.
//!
//! ```text
//!  0 generic (1) | type (7)   1 producer type or vendor (3)
//!  4 trap number or device    6 issuer LID
//!  8 toggle (1) | count (15) 10 details (54)
//! ```
//!
//! Offsets and sizes are in bytes; sizes of fields separated by `|` are in bits.

use ib_types::{Gid, PKey, QKey, Qpn};

use super::{CapabilityMask, CapabilityMask2};
use crate::mad::attribute;
use crate::mad::codes::{codes, masks};

codes! {
    /// The type (severity) of a notice.
    NoticeType(u8) {
        /// Fatal.
        FATAL = 0 "fatal",
        /// Urgent.
        URGENT = 1 "urgent",
        /// Security: a key violation.
        SECURITY = 2 "security",
        /// Subnet management: the SM must react.
        SUBNET_MANAGEMENT = 3 "subnet management",
        /// Informational.
        INFORMATIONAL = 4 "informational",
        /// An empty notice.
        EMPTY = 0x7f "empty",
    }
}

codes! {
    /// The number of a generic trap.
    TrapNumber(u16) {
        /// A GID has come into service.
        GID_IN_SERVICE = 64 "GID in service",
        /// A GID has gone out of service.
        GID_OUT_OF_SERVICE = 65 "GID out of service",
        /// A multicast group was created.
        MULTICAST_GROUP_CREATED = 66 "multicast group created",
        /// A multicast group was deleted.
        MULTICAST_GROUP_DELETED = 67 "multicast group deleted",
        /// `UnPath`: paths are no longer valid.
        UNPATH = 68 "paths invalid",
        /// `RePath`: paths are valid again.
        REPATH = 69 "paths valid",
        /// A link of a switch has changed its state.
        LINK_STATE_CHANGE = 128 "link state change",
        /// The threshold of local link integrity errors was reached.
        LINK_INTEGRITY = 129 "local link integrity",
        /// The threshold of excessive buffer overruns was reached.
        BUFFER_OVERRUN = 130 "excessive buffer overrun",
        /// The flow control update watchdog timer has expired.
        FLOW_CONTROL = 131 "flow control update watchdog",
        /// The capability mask or another property of a port has changed.
        LOCAL_CHANGES = 144 "local changes",
        /// The system image GUID has changed.
        SYSTEM_IMAGE_GUID_CHANGE = 145 "system image GUID change",
        /// An SMP had a wrong M_Key.
        BAD_M_KEY = 256 "bad M_Key",
        /// A packet had a wrong P_Key.
        BAD_P_KEY = 257 "bad P_Key",
        /// A packet had a wrong Q_Key.
        BAD_Q_KEY = 258 "bad Q_Key",
        /// A packet at a switch had a wrong P_Key.
        SWITCH_BAD_P_KEY = 259 "bad P_Key at a switch",
    }
}

masks! {
    /// Mask of the changed properties that trap 144 reports in addition to the capability mask.
    LocalChanges(u16) {
        /// The node description has changed.
        NODE_DESCRIPTION = 0 "NodeDescription",
        /// The enabled link widths have changed.
        LINK_WIDTH_ENABLED = 1 "LinkWidthEnabled",
        /// The enabled link speeds have changed.
        LINK_SPEED_ENABLED = 2 "LinkSpeedEnabled",
        /// The priority of the SM has changed.
        SM_PRIORITY = 3 "SMPriority",
        /// The hierarchy information has changed.
        HIERARCHY_INFO = 4 "HierarchyInfo",
        /// `CapabilityMask2` has changed.
        CAPABILITY_MASK2 = 5 "CapabilityMask2",
    }
}

masks! {
    /// Mask of the valid fields of trap 259 ([`SwitchKeyDetails`]).
    ///
    /// The LID and the port of the switch are always valid, and have no bit. The IBTA specification does
    /// not assign bits to the other fields. The bit order is that of Omni-Path, whose trap 259 has the
    /// same format. Bits 0 to 7 are zero, as in the Linux driver of Omni-Path. OpenSM and tshark display
    /// the mask only as a number.
    SwitchKeyFields(u16) {
        /// The destination GID of the packet is valid.
        GID2 = 8 "GIDADDR2",
        /// The source GID of the packet is valid.
        GID1 = 9 "GIDADDR1",
        /// The destination QP of the packet is valid.
        QP2 = 10 "QP2",
        /// The source QP of the packet is valid.
        QP1 = 11 "QP1",
        /// The SL of the packet is valid.
        SL = 12 "SL",
        /// The P_Key of the packet is valid.
        P_KEY = 13 "PKEY",
        /// The destination LID of the packet is valid.
        LID2 = 14 "LIDADDR2",
        /// The source LID of the packet is valid.
        LID1 = 15 "LIDADDR1",
    }
}

crate::layout! {
    /// A notice: the report of an event, such as the data of a trap.
    pub struct Notice: 64 {
        /// True for a generic trap, false for a vendor-specific trap.
        pub is_generic: bool = bits(0, 0, 1),
        /// The type (severity) of the notice.
        pub notice_type: NoticeType = bits(0, 1, 7),
        /// Generic traps: the producer type (1 channel adapter, 2 switch, 3 router, 4 class
        /// manager). Vendor-specific traps: the vendor ID.
        pub producer: u32 = bits(1, 0, 24),
        /// Generic traps: the trap number. Vendor-specific traps: the device ID.
        pub trap: TrapNumber = bits(4, 0, 16),
        /// The LID of the issuer.
        pub issuer_lid: u16 = bits(6, 0, 16),
        /// The notice toggle bit, which alternates between successive notices in the queue of the issuer.
        pub toggle: bool = bits(8, 0, 1),
        /// The number of notices in the queue of the issuer.
        pub count: u16 = bits(8, 1, 15),
        /// The encoded details; see [`Notice::details`].
        pub data: [u8; 54] = bits(10, 0, 432),
    }
}

attribute!(Notice = NOTICE in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// Details of traps 64 to 67, which report that GIDs or multicast groups appear or disappear.
    pub struct GidDetails: 54 {
        /// Traps 64 and 65: the GID that has come into service or gone out of service. Traps 66 and 67: the
        /// GID of the multicast group.
        pub gid: Gid = bits(6, 0, 128),
    }
}

crate::layout! {
    /// Details of trap 128: a link of a switch has changed its state.
    pub struct LinkStateDetails: 54 {
        /// The LID of the switch whose link has changed.
        pub lid: u16 = bits(0, 0, 16),
    }
}

crate::layout! {
    /// Details of traps 129 to 131, which report errors of a port or its link.
    pub struct PortDetails: 54 {
        /// The LID of the port with the errors.
        pub lid: u16 = bits(2, 0, 16),
        /// The number of the port with the errors.
        pub port: u8 = bits(4, 0, 8),
    }
}

crate::layout! {
    /// Details of trap 144: the capability mask or another property of a port has changed.
    pub struct LocalChangeDetails: 54 {
        /// The LID of the changed port.
        pub lid: u16 = bits(2, 0, 16),
        /// True if `changes` reports changed properties other than the capability mask.
        pub other_changes: bool = bits(5, 7, 1),
        /// The capability mask of the port after the change.
        pub capability_mask: CapabilityMask = bits(6, 0, 32),
        /// Mask of the changed properties other than the capability mask.
        pub changes: LocalChanges = bits(10, 0, 16),
        /// `CapabilityMask2` of the port after the change.
        pub capability_mask2: CapabilityMask2 = bits(12, 0, 16),
    }
}

crate::layout! {
    /// Details of trap 145: the system image GUID has changed.
    pub struct SystemImageDetails: 54 {
        /// The LID of a port of the node whose system image GUID has changed.
        pub lid: u16 = bits(2, 0, 16),
        /// The new system image GUID.
        pub system_image_guid: ib_types::Guid = bits(6, 0, 64),
    }
}

crate::layout! {
    /// Details of trap 256: an SMP had a wrong M_Key.
    pub struct MKeyDetails: 54 {
        /// The source LID of the SMP; 0xffff if the SMP had only a directed route.
        pub lid: u16 = bits(2, 0, 16),
        /// The `DrSLID` of a directed-route SMP; zero for a LID-routed SMP.
        pub dr_slid: u16 = bits(4, 0, 16),
        /// The method of the SMP.
        pub method: crate::mad::Method = bits(6, 0, 8),
        /// The attribute ID of the SMP.
        pub attribute_id: crate::mad::AttributeId = bits(8, 0, 16),
        /// The attribute modifier of the SMP.
        pub attribute_modifier: u32 = bits(10, 0, 32),
        /// The M_Key of the SMP.
        pub m_key: u64 = bits(14, 0, 64),
        /// True for a directed-route SMP.
        pub is_directed: bool = bits(23, 0, 1),
        /// True if the SMP's return path has more hops than `return_path` can hold.
        pub path_truncated: bool = bits(23, 1, 1),
        /// The number of hops in `return_path`.
        pub hops: u8 = bits(23, 2, 6),
        /// The return path of the SMP, from the first hop on.
        pub return_path: [u8; 30] = bits(24, 0, 240),
    }
}

crate::layout! {
    /// Details of traps 257 and 258: a packet had a wrong P_Key or Q_Key.
    pub struct KeyDetails: 54 {
        /// The source LID of the packet.
        pub lid1: u16 = bits(2, 0, 16),
        /// The destination LID of the packet.
        pub lid2: u16 = bits(4, 0, 16),
        /// The wrong key: a P_Key in the lower 16 bits, or a Q_Key.
        pub key: QKey = bits(6, 0, 32),
        /// The SL of the packet.
        pub sl: u8 = bits(10, 0, 4),
        /// The source QP of the packet.
        pub qp1: Qpn = bits(11, 0, 24),
        /// The destination QP of the packet.
        pub qp2: Qpn = bits(15, 0, 24),
        /// The source GID of the packet.
        pub gid1: Gid = bits(18, 0, 128),
        /// The destination GID of the packet.
        pub gid2: Gid = bits(34, 0, 128),
    }
}

crate::layout! {
    /// Details of trap 259: a packet at a switch had a wrong P_Key.
    pub struct SwitchKeyDetails: 54 {
        /// Mask of the fields of this struct that are valid.
        pub valid: SwitchKeyFields = bits(0, 0, 16),
        /// The source LID of the packet.
        pub lid1: u16 = bits(2, 0, 16),
        /// The destination LID of the packet.
        pub lid2: u16 = bits(4, 0, 16),
        /// The P_Key of the packet.
        pub p_key: PKey = bits(6, 0, 16),
        /// The SL of the packet.
        pub sl: u8 = bits(8, 0, 4),
        /// The source QP of the packet.
        pub qp1: Qpn = bits(9, 0, 24),
        /// The destination QP of the packet.
        pub qp2: Qpn = bits(13, 0, 24),
        /// The source GID of the packet.
        pub gid1: Gid = bits(16, 0, 128),
        /// The destination GID of the packet.
        pub gid2: Gid = bits(32, 0, 128),
        /// The LID of the switch that has found the wrong P_Key.
        pub switch_lid: u16 = bits(48, 0, 16),
        /// The number of the switch port at which the packet had the wrong P_Key.
        pub port: u8 = bits(50, 0, 8),
    }
}

/// The decoded details of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeDetails {
    /// Traps 64 to 67: GIDs or multicast groups appear or disappear.
    Gid(GidDetails),
    /// Trap 128: a link of a switch has changed its state.
    LinkState(LinkStateDetails),
    /// Traps 129 to 131: errors of a port or its link.
    Port(PortDetails),
    /// Trap 144: the capability mask or another property of a port has changed.
    LocalChange(LocalChangeDetails),
    /// Trap 145: the system image GUID has changed.
    SystemImage(SystemImageDetails),
    /// Trap 256: an SMP had a wrong M_Key.
    MKey(MKeyDetails),
    /// Traps 257 and 258: a packet had a wrong P_Key or Q_Key.
    Key(KeyDetails),
    /// Trap 259: a packet at a switch had a wrong P_Key.
    SwitchKey(SwitchKeyDetails),
    /// Undecoded details of other generic traps and of vendor-specific traps.
    Raw([u8; 54]),
}

impl Notice {
    /// Decodes the details according to the trap number.
    #[must_use]
    pub fn details(&self) -> NoticeDetails {
        let data = &self.data;
        if !self.is_generic {
            return NoticeDetails::Raw(*data);
        }
        match self.trap.0 {
            64..=67 => NoticeDetails::Gid(GidDetails::parse(data)),
            128 => NoticeDetails::LinkState(LinkStateDetails::parse(data)),
            129..=131 => NoticeDetails::Port(PortDetails::parse(data)),
            144 => NoticeDetails::LocalChange(LocalChangeDetails::parse(data)),
            145 => NoticeDetails::SystemImage(SystemImageDetails::parse(data)),
            256 => NoticeDetails::MKey(MKeyDetails::parse(data)),
            257 | 258 => NoticeDetails::Key(KeyDetails::parse(data)),
            259 => NoticeDetails::SwitchKey(SwitchKeyDetails::parse(data)),
            _ => NoticeDetails::Raw(*data),
        }
    }

    /// Encodes the details in `data`. Does not change the bits of `data` that belong to no field of the details.
    pub fn set_details(&mut self, details: &NoticeDetails) {
        let data = &mut self.data;
        match details {
            NoticeDetails::Gid(details) => details.emit(data),
            NoticeDetails::LinkState(details) => details.emit(data),
            NoticeDetails::Port(details) => details.emit(data),
            NoticeDetails::LocalChange(details) => details.emit(data),
            NoticeDetails::SystemImage(details) => details.emit(data),
            NoticeDetails::MKey(details) => details.emit(data),
            NoticeDetails::Key(details) => details.emit(data),
            NoticeDetails::SwitchKey(details) => details.emit(data),
            NoticeDetails::Raw(details) => *data = *details,
        }
    }
}
