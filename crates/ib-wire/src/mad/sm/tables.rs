//! Tables of a port: P_Keys, SL-to-VL mapping, VL arbitration; IBTA volume 1, chapters 14.2.5.7 to
//! 14.2.5.9.

use ib_types::{PKey, ServiceLevel, VirtualLane};

use crate::mad::attribute;

crate::layout! {
    /// A block of the P_Key table of a port.
    ///
    /// The lower 16 bits of the attribute modifier are the index of the block. For switches, the upper
    /// 16 bits are the port number.
    pub struct PKeyTable: 64 {
        /// 32 P_Keys. An entry is empty if its lower 15 bits are zero.
        pub keys: [PKey; 32] = bits(0, 0, 512),
    }
}

attribute!(PKeyTable = P_KEY_TABLE in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// The SL-to-VL mapping for packets from an ingress port to an egress port.
    ///
    /// For switches, the attribute modifier is ingress port × 256 + egress port. For other nodes it
    /// is 0.
    pub struct SlToVl: 8 {
        /// The VL of each SL. Packets mapped to VL15 are dropped.
        pub lanes: [VirtualLane; 16] = bits(0, 0, 64),
    }
}

attribute!(SlToVl = SL_TO_VL in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl SlToVl {
    /// Returns the VL to which an SL is mapped.
    #[must_use]
    pub const fn lane(&self, level: ServiceLevel) -> VirtualLane {
        self.lanes[level.get() as usize]
    }

    /// Returns the attribute modifier for an ingress port and an egress port of a switch.
    #[must_use]
    pub const fn modifier(ingress_port: u8, egress_port: u8) -> u32 {
        (ingress_port as u32) << 8 | egress_port as u32
    }
}

crate::layout! {
    /// A VL arbitration entry.
    pub struct VlArbitrationEntry: 2 {
        /// The VL.
        pub lane: VirtualLane = bits(0, 4, 4),
        /// The weight: how much data the VL may send in its turn, in units of 64 bytes. An entry
        /// with weight 0 is skipped.
        pub weight: u8 = bits(1, 0, 8),
    }
}

crate::layout! {
    /// Half of a VL arbitration table.
    ///
    /// The lower 16 bits of the attribute modifier are the port number. The upper 16 bits select
    /// half of a table: 1 and 2 are the halves of the low-priority table, 3 and 4 those of the
    /// high-priority table.
    pub struct VlArbitration: 64 {
        /// The entries, in the order in which the arbiter uses them.
        pub entries: [VlArbitrationEntry; 32] = bits(0, 0, 512),
    }
}

attribute!(VlArbitration = VL_ARBITRATION in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);
