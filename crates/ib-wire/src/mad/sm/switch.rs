//! What switches have: SwitchInfo, IBTA volume 1, chapter 14.2.5.4, and the forwarding tables,
//! chapters 14.2.5.10 to 14.2.5.12.

use std::fmt;

use crate::mad::attribute;
use crate::mad::dump::{Hex, line};

crate::layout! {
    /// A switch's abilities and settings.
    pub struct SwitchInfo: 20 {
        /// The number of entries of the linear forwarding table.
        pub linear_fdb_cap: u16 = bits(0, 0, 16),
        /// The number of entries of the random forwarding table.
        pub random_fdb_cap: u16 = bits(2, 0, 16),
        /// The number of entries of the multicast forwarding table.
        pub multicast_fdb_cap: u16 = bits(4, 0, 16),
        /// The highest LID of the linear forwarding table in use.
        pub linear_fdb_top: u16 = bits(6, 0, 16),
        /// The port of LIDs without entry in the random forwarding table.
        pub default_port: u8 = bits(8, 0, 8),
        /// The port of multicast from all others but itself.
        pub default_multicast_primary_port: u8 = bits(9, 0, 8),
        /// The port of multicast from the primary port.
        pub default_multicast_not_primary_port: u8 = bits(10, 0, 8),
        /// How long a packet may stay: 4.096 µs × 2^value; above 19 for ever.
        pub life_time: u8 = bits(11, 0, 5),
        /// A port has changed its state since this was cleared; writing true clears it.
        pub port_state_change: bool = bits(11, 5, 1),
        /// How SL-to-VL tables may be written at once: 0 singly.
        pub optimized_sl_to_vl: u8 = bits(11, 6, 2),
        /// The number of LIDs per port of a switch with a random forwarding table.
        pub lids_per_port: u16 = bits(12, 0, 16),
        /// The number of entries of an external port's P_Key table.
        pub partition_enforcement_cap: u16 = bits(14, 0, 16),
        /// P_Keys can be enforced on packets that come in.
        pub inbound_enforcement_cap: bool = bits(16, 0, 1),
        /// P_Keys can be enforced on packets that go out.
        pub outbound_enforcement_cap: bool = bits(16, 1, 1),
        /// Raw packets that come in can be filtered.
        pub filter_raw_inbound_cap: bool = bits(16, 2, 1),
        /// Raw packets that go out can be filtered.
        pub filter_raw_outbound_cap: bool = bits(16, 3, 1),
        /// Port 0 is a full end port.
        pub enhanced_port0: bool = bits(16, 4, 1),
        /// The highest LID of the multicast forwarding table in use; zero when not supported.
        pub multicast_fdb_top: u16 = bits(18, 0, 16),
    }
}

attribute!(SwitchInfo = SWITCH_INFO in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl fmt::Display for SwitchInfo {
    /// Writes the lines of `smpquery switchinfo`, each with its end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "LinearFdbCap", self.linear_fdb_cap)?;
        line(f, "RandomFdbCap", self.random_fdb_cap)?;
        line(f, "McastFdbCap", self.multicast_fdb_cap)?;
        line(f, "LinearFdbTop", self.linear_fdb_top)?;
        line(f, "DefPort", self.default_port)?;
        line(f, "DefMcastPrimPort", self.default_multicast_primary_port)?;
        line(f, "DefMcastNotPrimPort", self.default_multicast_not_primary_port)?;
        line(f, "LifeTime", self.life_time)?;
        line(f, "StateChange", u8::from(self.port_state_change))?;
        line(f, "OptSLtoVLMapping", self.optimized_sl_to_vl)?;
        line(f, "LidsPerPort", self.lids_per_port)?;
        line(f, "PartEnforceCap", self.partition_enforcement_cap)?;
        line(f, "InboundPartEnf", u8::from(self.inbound_enforcement_cap))?;
        line(f, "OutboundPartEnf", u8::from(self.outbound_enforcement_cap))?;
        line(f, "FilterRawInbound", u8::from(self.filter_raw_inbound_cap))?;
        line(f, "FilterRawOutbound", u8::from(self.filter_raw_outbound_cap))?;
        line(f, "EnhancedPort0", u8::from(self.enhanced_port0))?;
        line(f, "MulticastFDBTop", Hex(self.multicast_fdb_top.into(), 4))
    }
}

crate::layout! {
    /// 64 entries of the linear forwarding table; the attribute modifier counts blocks from LID 0.
    pub struct LinearForwardingBlock: 64 {
        /// The port that each LID leaves by; [`LinearForwardingBlock::NO_ROUTE`] for none.
        pub ports: [u8; 64] = bits(0, 0, 512),
    }
}

attribute!(LinearForwardingBlock = LINEAR_FORWARDING in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl LinearForwardingBlock {
    /// The port of a LID that packets are dropped for.
    pub const NO_ROUTE: u8 = 0xff;

    /// The number of LIDs of a block.
    pub const LIDS: u16 = 64;
}

crate::layout! {
    /// 32 entries of the multicast forwarding table for 16 ports.
    ///
    /// Bits 0 to 8 of the attribute modifier count blocks of LIDs from 0xc000, bits 28 to 31
    /// positions: blocks of 16 ports.
    pub struct MulticastForwardingBlock: 64 {
        /// The ports of each LID: bit k stands for port 16 × position + k.
        pub masks: [u16; 32] = bits(0, 0, 512),
    }
}

attribute!(MulticastForwardingBlock = MULTICAST_FORWARDING in SUBN_LID_ROUTED | SUBN_DIRECTED_ROUTE);

impl MulticastForwardingBlock {
    /// The first multicast LID.
    pub const FIRST_LID: u16 = 0xc000;

    /// The number of LIDs of a block.
    pub const LIDS: u16 = 32;

    /// Returns the modifier for a block of LIDs and a block of ports.
    #[must_use]
    pub const fn modifier(block: u16, position: u8) -> u32 {
        block as u32 & 0x1ff | (position as u32 & 0xf) << 28
    }

    /// Returns the block of LIDs and the block of ports that a modifier names.
    #[must_use]
    pub const fn from_modifier(modifier: u32) -> (u16, u8) {
        ((modifier & 0x1ff) as u16, (modifier >> 28) as u8)
    }
}
