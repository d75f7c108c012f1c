//! Notices: what an agent tells a manager unasked; IBTA volume 1, chapter 13.4.8.2, traps of chapter
//! 14.2.5.1.
//!
//! ```text
//!  0 generic (1) | type (7)   1 producer type or vendor (3)
//!  4 trap number or device    6 issuer LID
//!  8 toggle (1) | count (15) 10 details (54)
//! ```

use ib_types::{Gid, PKey, QKey, Qpn};

use super::{CapabilityMask, CapabilityMask2};
use crate::mad::attribute;
use crate::mad::codes::{codes, masks};

codes! {
    /// How grave a notice is.
    NoticeType(u8) {
        /// Something failed for good.
        FATAL = 0 "fatal",
        /// Something needs attention.
        URGENT = 1 "urgent",
        /// A key was violated.
        SECURITY = 2 "security",
        /// The subnet manager shall look.
        SUBNET_MANAGEMENT = 3 "subnet management",
        /// For information.
        INFORMATIONAL = 4 "informational",
        /// An empty notice.
        EMPTY = 0x7f "empty",
    }
}

codes! {
    /// The number of a generic trap.
    TrapNumber(u16) {
        /// A GID is in service.
        GID_IN_SERVICE = 64 "GID in service",
        /// A GID is out of service.
        GID_OUT_OF_SERVICE = 65 "GID out of service",
        /// A multicast group was created.
        MULTICAST_GROUP_CREATED = 66 "multicast group created",
        /// A multicast group was deleted.
        MULTICAST_GROUP_DELETED = 67 "multicast group deleted",
        /// Paths are no longer valid.
        UNPATH = 68 "paths invalid",
        /// Paths are valid again.
        REPATH = 69 "paths valid",
        /// A link of a switch changed its state.
        LINK_STATE_CHANGE = 128 "link state change",
        /// Local link integrity threshold reached.
        LINK_INTEGRITY = 129 "local link integrity",
        /// Excessive buffer overrun threshold reached.
        BUFFER_OVERRUN = 130 "excessive buffer overrun",
        /// The flow control watchdog ran out.
        FLOW_CONTROL = 131 "flow control update watchdog",
        /// Something of a port changed.
        LOCAL_CHANGES = 144 "local changes",
        /// The system image GUID changed.
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
    /// What else changed when trap 144 says so.
    LocalChanges(u16) {
        /// The node description.
        NODE_DESCRIPTION = 0 "NodeDescription",
        /// The enabled widths of a link.
        LINK_WIDTH_ENABLED = 1 "LinkWidthEnabled",
        /// The enabled speeds of a link.
        LINK_SPEED_ENABLED = 2 "LinkSpeedEnabled",
        /// The priority of the subnet manager.
        SM_PRIORITY = 3 "SMPriority",
        /// The hierarchy information.
        HIERARCHY_INFO = 4 "HierarchyInfo",
        /// The second capability mask.
        CAPABILITY_MASK2 = 5 "CapabilityMask2",
    }
}

masks! {
    /// Which details of trap 259 mean something: a bit for each that may be missing, that of the first
    /// one being the highest.
    ///
    /// The LID and the port of the switch are always there. Managers of Omni-Path, whose trap 259 is made
    /// after this one, read the bits in this order, and Linux's adapters of Omni-Path leave the lower
    /// half to zeros as well; OpenSM and tshark show the number and look at no bit of it.
    SwitchKeyFields(u16) {
        /// The GID that the packet went to.
        GID2 = 8 "GIDADDR2",
        /// The GID that it came from.
        GID1 = 9 "GIDADDR1",
        /// The queue pair that it went to.
        QP2 = 10 "QP2",
        /// The queue pair that it came from.
        QP1 = 11 "QP1",
        /// The service level.
        SL = 12 "SL",
        /// The P_Key.
        P_KEY = 13 "PKEY",
        /// The LID that it went to.
        LID2 = 14 "LIDADDR2",
        /// The LID that it came from.
        LID1 = 15 "LIDADDR1",
    }
}

crate::layout! {
    /// A notice.
    pub struct Notice: 64 {
        /// The trap is one of the specification, not a vendor's.
        pub is_generic: bool = bits(0, 0, 1),
        /// How grave it is.
        pub notice_type: NoticeType = bits(0, 1, 7),
        /// Generic: 1 channel adapter, 2 switch, 3 router, 4 class manager; else the vendor.
        pub producer: u32 = bits(1, 0, 24),
        /// Generic: the trap; else the device.
        pub trap: TrapNumber = bits(4, 0, 16),
        /// The LID of the port that it is about.
        pub issuer_lid: u16 = bits(6, 0, 16),
        /// Changes with each notice of a queue.
        pub toggle: bool = bits(8, 0, 1),
        /// How many notices wait.
        pub count: u16 = bits(8, 1, 15),
        /// The details; see [`Notice::details`].
        pub data: [u8; 54] = bits(10, 0, 432),
    }
}

attribute!(Notice = NOTICE in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// Details of traps 64 to 67.
    pub struct GidDetails: 54 {
        /// The GID, or the multicast GID of the group.
        pub gid: Gid = bits(6, 0, 128),
    }
}

crate::layout! {
    /// Details of trap 128.
    pub struct LinkStateDetails: 54 {
        /// The LID of the switch.
        pub lid: u16 = bits(0, 0, 16),
    }
}

crate::layout! {
    /// Details of traps 129 to 131.
    pub struct PortDetails: 54 {
        /// The LID of the port.
        pub lid: u16 = bits(2, 0, 16),
        /// The number of the port.
        pub port: u8 = bits(4, 0, 8),
    }
}

crate::layout! {
    /// Details of trap 144.
    pub struct LocalChangeDetails: 54 {
        /// The LID of the port.
        pub lid: u16 = bits(2, 0, 16),
        /// Something besides the capability mask changed.
        pub other_changes: bool = bits(5, 7, 1),
        /// The capability mask.
        pub capability_mask: CapabilityMask = bits(6, 0, 32),
        /// What else changed.
        pub changes: LocalChanges = bits(10, 0, 16),
        /// The second capability mask.
        pub capability_mask2: CapabilityMask2 = bits(12, 0, 16),
    }
}

crate::layout! {
    /// Details of trap 145.
    pub struct SystemImageDetails: 54 {
        /// The LID of the port.
        pub lid: u16 = bits(2, 0, 16),
        /// The new system image GUID.
        pub system_image_guid: ib_types::Guid = bits(6, 0, 64),
    }
}

crate::layout! {
    /// Details of trap 256.
    pub struct MKeyDetails: 54 {
        /// The LID that the SMP came from; 0xffff when it came by directed route alone.
        pub lid: u16 = bits(2, 0, 16),
        /// The `DrSLID` of a directed-route SMP, else zero.
        pub dr_slid: u16 = bits(4, 0, 16),
        /// Its method.
        pub method: crate::mad::Method = bits(6, 0, 8),
        /// Its attribute.
        pub attribute_id: crate::mad::AttributeId = bits(8, 0, 16),
        /// Its attribute modifier.
        pub attribute_modifier: u32 = bits(10, 0, 32),
        /// The key it had.
        pub m_key: u64 = bits(14, 0, 64),
        /// It was a directed-route SMP.
        pub is_directed: bool = bits(23, 0, 1),
        /// Its return path did not fit.
        pub path_truncated: bool = bits(23, 1, 1),
        /// The number of hops of its return path that are here.
        pub hops: u8 = bits(23, 2, 6),
        /// Its return path from the first hop on.
        pub return_path: [u8; 30] = bits(24, 0, 240),
    }
}

crate::layout! {
    /// Details of traps 257 and 258.
    pub struct KeyDetails: 54 {
        /// The LID that the packet came from.
        pub lid1: u16 = bits(2, 0, 16),
        /// The LID that it went to.
        pub lid2: u16 = bits(4, 0, 16),
        /// The key: a P_Key in the lower half, or a Q_Key.
        pub key: QKey = bits(6, 0, 32),
        /// The service level.
        pub sl: u8 = bits(10, 0, 4),
        /// The queue pair that it came from.
        pub qp1: Qpn = bits(11, 0, 24),
        /// The queue pair that it went to.
        pub qp2: Qpn = bits(15, 0, 24),
        /// The GID that it came from.
        pub gid1: Gid = bits(18, 0, 128),
        /// The GID that it went to.
        pub gid2: Gid = bits(34, 0, 128),
    }
}

crate::layout! {
    /// Details of trap 259.
    pub struct SwitchKeyDetails: 54 {
        /// Which of the following fields mean something.
        pub valid: SwitchKeyFields = bits(0, 0, 16),
        /// The LID that the packet came from.
        pub lid1: u16 = bits(2, 0, 16),
        /// The LID that it went to.
        pub lid2: u16 = bits(4, 0, 16),
        /// The P_Key.
        pub p_key: PKey = bits(6, 0, 16),
        /// The service level.
        pub sl: u8 = bits(8, 0, 4),
        /// The queue pair that it came from.
        pub qp1: Qpn = bits(9, 0, 24),
        /// The queue pair that it went to.
        pub qp2: Qpn = bits(13, 0, 24),
        /// The GID that it came from.
        pub gid1: Gid = bits(16, 0, 128),
        /// The GID that it went to.
        pub gid2: Gid = bits(32, 0, 128),
        /// The LID of the switch.
        pub switch_lid: u16 = bits(48, 0, 16),
        /// The port of the switch.
        pub port: u8 = bits(50, 0, 8),
    }
}

/// What a notice is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeDetails {
    /// Traps 64 to 67.
    Gid(GidDetails),
    /// Trap 128.
    LinkState(LinkStateDetails),
    /// Traps 129 to 131.
    Port(PortDetails),
    /// Trap 144.
    LocalChange(LocalChangeDetails),
    /// Trap 145.
    SystemImage(SystemImageDetails),
    /// Trap 256.
    MKey(MKeyDetails),
    /// Traps 257 and 258.
    Key(KeyDetails),
    /// Trap 259.
    SwitchKey(SwitchKeyDetails),
    /// Other traps, and those of vendors.
    Raw([u8; 54]),
}

impl Notice {
    /// Returns the details as the trap number says.
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

    /// Stores the details; bits that they do not have stay as they are.
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
