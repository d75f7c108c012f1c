//! SwitchInfo (IBTA volume 1, chapter 14.2.5.4), and blocks of the forwarding tables (chapters
//! 14.2.5.10 to 14.2.5.12).

use crate::mad::attribute;

crate::layout! {
    /// Capabilities and settings of a switch.
    pub struct SwitchInfo: 20 {
        /// The capacity of the LFT in entries.
        pub linear_fdb_cap: u16 = bits(0, 0, 16),
        /// The capacity of the random forwarding table in entries.
        pub random_fdb_cap: u16 = bits(2, 0, 16),
        /// The capacity of the MFT in entries.
        pub multicast_fdb_cap: u16 = bits(4, 0, 16),
        /// The highest LID whose LFT entry is used.
        pub linear_fdb_top: u16 = bits(6, 0, 16),
        /// The egress port for LIDs that have no entry in the random forwarding table.
        pub default_port: u8 = bits(8, 0, 8),
        /// The primary port: the egress port of multicast packets that have no MFT entry and were not
        /// received at this port.
        pub default_multicast_primary_port: u8 = bits(9, 0, 8),
        /// The egress port of multicast packets that have no MFT entry and were received at the
        /// primary port.
        pub default_multicast_not_primary_port: u8 = bits(10, 0, 8),
        /// The maximum life time of a packet in the switch: 4.096 µs × 2^value. Values above 19
        /// mean unlimited.
        pub life_time: u8 = bits(11, 0, 5),
        /// True if a port has changed its state since the bit was cleared. A Set with true clears
        /// the bit.
        pub port_state_change: bool = bits(11, 5, 1),
        /// Nonzero if one Set can program the SL-to-VL mapping of several ports
        /// (`OptimizedSLtoVLMappingProgramming`).
        pub optimized_sl_to_vl: u8 = bits(11, 6, 2),
        /// The number of LID/LMC combinations that the SM can assign to an external port. Only for switches
        /// with a random forwarding table.
        pub lids_per_port: u16 = bits(12, 0, 16),
        /// The number of entries in the P_Key table of an external port.
        pub partition_enforcement_cap: u16 = bits(14, 0, 16),
        /// True if the switch can check the P_Keys of packets that it receives.
        pub inbound_enforcement_cap: bool = bits(16, 0, 1),
        /// True if the switch can check the P_Keys of packets that it transmits.
        pub outbound_enforcement_cap: bool = bits(16, 1, 1),
        /// True if the switch can filter received raw packets.
        pub filter_raw_inbound_cap: bool = bits(16, 2, 1),
        /// True if the switch can filter transmitted raw packets.
        pub filter_raw_outbound_cap: bool = bits(16, 3, 1),
        /// True if port 0 is an enhanced port 0.
        pub enhanced_port0: bool = bits(16, 4, 1),
        /// The highest LID whose MFT entry is used; zero if the switch does not support this field.
        pub multicast_fdb_top: u16 = bits(18, 0, 16),
    }
}

attribute!(SwitchInfo = SWITCH_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

crate::layout! {
    /// A block of 64 entries of the linear forwarding table (LFT). The attribute modifier is the
    /// index of the block.
    pub struct LinearForwardingBlock: 64 {
        /// The egress port for each LID; [`LinearForwardingBlock::NO_ROUTE`] if the LID has no route.
        pub ports: [u8; 64] = bits(0, 0, 512),
    }
}

attribute!(LinearForwardingBlock = LINEAR_FORWARDING in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl LinearForwardingBlock {
    /// The entry for LIDs that have no route. The switch drops packets to them.
    pub const NO_ROUTE: u8 = 0xff;

    /// The number of LIDs in a block of the LFT.
    pub const LIDS: u16 = 64;
}

crate::layout! {
    /// A block of the multicast forwarding table (MFT), for 32 LIDs and 16 ports.
    ///
    /// Bits 0 to 8 of the attribute modifier are the index of the block of 32 LIDs, counted from
    /// LID 0xc000. Bits 28 to 31 are the position: the index of the block of 16 ports.
    pub struct MulticastForwardingBlock: 64 {
        /// The egress ports for each LID. Bit k stands for port 16 × position + k.
        pub masks: [u16; 32] = bits(0, 0, 512),
    }
}

attribute!(MulticastForwardingBlock = MULTICAST_FORWARDING in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl MulticastForwardingBlock {
    /// The first multicast LID.
    pub const FIRST_LID: u16 = 0xc000;

    /// The number of LIDs in a block of the MFT.
    pub const LIDS: u16 = 32;

    /// Returns the attribute modifier of a block.
    ///
    /// `block` is the index of the block of 32 LIDs. `position` is the index of the block of 16 ports.
    #[must_use]
    pub const fn modifier(block: u16, position: u8) -> u32 {
        block as u32 & 0x1ff | (position as u32 & 0xf) << 28
    }

    /// Decodes an attribute modifier: returns the index of the block of 32 LIDs, and the index of the block of 16
    /// ports.
    #[must_use]
    pub const fn from_modifier(modifier: u32) -> (u16, u8) {
        ((modifier & 0x1ff) as u16, (modifier >> 28) as u8)
    }
}
