//! The kinds of writes with which the SM configures the subnet.

use crate::discovered_subnet::{NodeIndex, PortIndex};

/// A write to a node, or a read that checks an earlier write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Write {
    /// PortInfo of a port.
    Port(PortIndex),
    /// SwitchInfo of a switch.
    Switch(NodeIndex),
    /// An LFT block in which entries are temporarily set to "no path".
    Clear { node: NodeIndex, block: u16 },
    /// A block of an LFT.
    Lft { node: NodeIndex, block: u16 },
    /// A read of an LFT block that was just written. Only for switches whose LFT once differed from the written blocks.
    ReadBack { node: NodeIndex, block: u16 },
    /// A block of a P_Key table.
    PKeys { port_index: PortIndex, block: u16 },
    /// A block of a multicast table. `position` n covers the 16 ports from port 16 × n on.
    Mft { node: NodeIndex, block: u16, position: u8 },
    /// An SL-to-VL table of a port. At a switch, each pair of an input port and an output port (`port_index`) has a
    /// table. `input` is 0 at other nodes.
    SlToVl { port_index: PortIndex, input: u8 },
    /// A block of a VL arbitration table.
    Arbitration { port_index: PortIndex, block: u8 },
    /// PortInfo that makes the port Active.
    Activate(PortIndex),
}

/// Counts of written attributes, tables and blocks, and of changed LFT entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Number of writes of PortInfo, including those that activate ports.
    pub ports: u64,
    /// Number of writes of SwitchInfo.
    pub switches: u64,
    /// Number of written blocks of `P_Key` tables.
    pub p_key_blocks: u64,
    /// Number of written blocks of linear forwarding tables.
    pub lft_blocks: u64,
    /// Number of written blocks of multicast forwarding tables.
    pub mft_blocks: u64,
    /// Number of written SL-to-VL tables.
    pub sl_to_vl_tables: u64,
    /// Number of written blocks of VL arbitration tables.
    pub arbitration_blocks: u64,
    /// Number of LFT entries that were changed.
    pub lft_entries: u64,
    /// Number of LFT entries that were temporarily set to "no path", so that old and new entries formed no cycle.
    pub cleared: u64,
}
