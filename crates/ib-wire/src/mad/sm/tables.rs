//! Tables of a port: P_Keys, SL-to-VL mapping, VL arbitration; IBTA volume 1, chapters 14.2.5.7 to
//! 14.2.5.9.

use ib_types::{PKey, ServiceLevel, VirtualLane};

use crate::mad::attribute;

crate::layout! {
    /// A block of the P_Key table of a port.
    ///
    /// Attribute modifier: the index of the block in the lower half, the port of a switch in the
    /// upper half.
    pub struct PKeyTable: 64 {
        /// 32 P_Keys. An entry is empty if its lower 15 bits are zero.
        pub keys: [PKey; 32] = bits(0, 0, 512),
    }
}

attribute!(PKeyTable = P_KEY_TABLE in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// The SL-to-VL mapping from an ingress port to an egress port.
    ///
    /// Attribute modifier: ingress port × 256 + egress port for switches, 0 for other nodes.
    pub struct SlToVl: 8 {
        /// The VL of each SL. Packets mapped to VL15 are dropped.
        pub lanes: [VirtualLane; 16] = bits(0, 0, 64),
    }
}

attribute!(SlToVl = SL_TO_VL in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl SlToVl {
    /// Returns the VL of an SL.
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
        /// The weight: the data that the VL may send in its turn, in units of 64 bytes; 0 skips the
        /// entry.
        pub weight: u8 = bits(1, 0, 8),
    }
}

crate::layout! {
    /// Half of a VL arbitration table.
    ///
    /// Attribute modifier: the port in the lower half; in the upper half 1 and 2 for the halves of
    /// the low-priority table, 3 and 4 for those of the high-priority table.
    pub struct VlArbitration: 64 {
        /// The entries, in the order of arbitration.
        pub entries: [VlArbitrationEntry; 32] = bits(0, 0, 512),
    }
}

attribute!(VlArbitration = VL_ARBITRATION in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);
