//! The writes that configure a subnet.

use crate::found::{NodeIndex, Place};

/// A write to a node, or a read that confirms one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// The settings of a port.
    Port(Place),
    /// The settings of a switch.
    Switch(NodeIndex),
    /// A block of an LFT in which entries become "no path".
    Clear { node: NodeIndex, block: u16 },
    /// A block of an LFT.
    Lft { node: NodeIndex, block: u16 },
    /// A block of the table of a switch that has ignored a write: it is read back.
    ReadBack { node: NodeIndex, block: u16 },
    /// A block of a port's P_Keys.
    PKeys { place: Place, block: u16 },
    /// A block of a multicast table, and the position of its 16 ports.
    Mft { node: NodeIndex, block: u16, position: u8 },
    /// The SL-to-VL table of an input and an output port; the input port is 0 except at switches.
    SlToVl { place: Place, input: u8 },
    /// A block of VL arbitration entries of a port.
    Arbitration { place: Place, block: u8 },
    /// A port goes into service.
    Activate(Place),
}

/// Number of writes of a configuration, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Settings of ports, and their activation.
    pub ports: u64,
    /// Settings of switches.
    pub switches: u64,
    /// Blocks of `P_Key` tables.
    pub p_key_blocks: u64,
    /// Blocks of forwarding tables.
    pub lft_blocks: u64,
    /// Blocks of multicast forwarding tables.
    pub mft_blocks: u64,
    /// Tables of VLs by service level.
    pub sl_to_vl_tables: u64,
    /// Blocks of VL arbitration entries.
    pub arbitration_blocks: u64,
    /// Entries of forwarding tables that have changed.
    pub lft_entries: u64,
    /// Entries that were "no path" temporarily, so that old and new entries formed no cycle.
    pub detoured: u64,
}
