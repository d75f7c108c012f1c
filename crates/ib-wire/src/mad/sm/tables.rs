//! Tables of a port: `P_Keys`, service levels to virtual lanes, arbitration of lanes; IBTA volume 1,
//! chapters 14.2.5.7 to 14.2.5.9.

use ib_types::{PKey, ServiceLevel, VirtualLane};

use crate::mad::attribute;

crate::layout! {
    /// One block of a port's P_Keys.
    ///
    /// The low half of the attribute modifier counts blocks, the high half is the port of a switch.
    pub struct PKeyTable: 64 {
        /// 32 keys; those whose lower 15 bits are zero are empty.
        pub keys: [PKey; 32] = bits(0, 0, 512),
    }
}

attribute!(PKeyTable = P_KEY_TABLE in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// The virtual lane of each service level, on the way from one port to another.
    ///
    /// The attribute modifier of a switch is arrival port × 256 + leaving port, 0 elsewhere.
    pub struct SlToVl: 8 {
        /// The lane of each service level; lane 15 drops.
        pub lanes: [VirtualLane; 16] = bits(0, 0, 64),
    }
}

attribute!(SlToVl = SL_TO_VL in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl SlToVl {
    /// Returns the lane of a service level.
    #[must_use]
    pub const fn lane(&self, level: ServiceLevel) -> VirtualLane {
        self.lanes[level.get() as usize]
    }

    /// Returns the modifier for the way from one port of a switch to another.
    #[must_use]
    pub const fn modifier(arrival_port: u8, leaving_port: u8) -> u32 {
        (arrival_port as u32) << 8 | leaving_port as u32
    }
}

crate::layout! {
    /// A lane's turn.
    pub struct VlArbitrationEntry: 2 {
        /// The lane.
        pub lane: VirtualLane = bits(0, 4, 4),
        /// How much it may send in its turn, in units of 64 bytes; 0 skips it.
        pub weight: u8 = bits(1, 0, 8),
    }
}

crate::layout! {
    /// Half of a table of lanes' turns.
    ///
    /// The low half of the attribute modifier is the port, the high half 1 or 2 for the halves of the
    /// low-priority table, 3 or 4 for those of the high-priority table.
    pub struct VlArbitration: 64 {
        /// The turns in order.
        pub entries: [VlArbitrationEntry; 32] = bits(0, 0, 512),
    }
}

attribute!(VlArbitration = VL_ARBITRATION in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);
