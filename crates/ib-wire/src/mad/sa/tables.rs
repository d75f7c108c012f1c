//! LinkRecord, and the records that consist of a subnet management attribute and the LID of the
//! described port or switch; IBTA volume 1, chapter 15.2.5.

use super::record;
use crate::mad::sm::{
    GuidInfo, LinearForwardingBlock, MulticastForwardingBlock, NodeDescription, NodeInfo,
    PKeyTable, SlToVl, SmInfo, SwitchInfo, VlArbitration,
};

crate::layout! {
    /// NodeInfo and NodeDescription of a node, for one of its ports.
    pub struct NodeRecord: 108 {
        /// The LID of the port; for a switch, the LID of port 0.
        pub lid: u16 = bits(0, 0, 16),
        /// The NodeInfo attribute.
        pub node_info: NodeInfo = bits(4, 0, 320),
        /// The NodeDescription attribute.
        pub node_description: NodeDescription = bits(44, 0, 512),
    }
}

record!(NodeRecord = NODE_RECORD, stride 112 {
    0: lid,
    2: [node_info NodeInfo base_version],
    3: [node_info NodeInfo class_version],
    4: [node_info NodeInfo node_type],
    5: [node_info NodeInfo num_ports],
    6: [node_info NodeInfo system_image_guid],
    7: [node_info NodeInfo node_guid],
    8: [node_info NodeInfo port_guid],
    9: [node_info NodeInfo partition_cap],
    10: [node_info NodeInfo device_id],
    11: [node_info NodeInfo revision],
    12: [node_info NodeInfo local_port],
    13: [node_info NodeInfo vendor_id],
    14: node_description,
});

crate::layout! {
    /// The SL-to-VL mapping from an ingress port to an egress port of a node.
    pub struct SlToVlRecord: 16 {
        /// The LID of the port; for a port of a switch, the LID of port 0.
        pub lid: u16 = bits(0, 0, 16),
        /// The ingress port.
        pub input_port: u8 = bits(2, 0, 8),
        /// The egress port.
        pub output_port: u8 = bits(3, 0, 8),
        /// The SL-to-VL mapping table.
        pub table: SlToVl = bits(8, 0, 64),
    }
}

record!(SlToVlRecord = SL_TO_VL_RECORD, stride 16 { 0: lid, 1: input_port, 2: output_port });

crate::layout! {
    /// The SwitchInfo of a switch.
    pub struct SwitchInfoRecord: 24 {
        /// The LID of the switch.
        pub lid: u16 = bits(0, 0, 16),
        /// The SwitchInfo attribute.
        pub switch_info: SwitchInfo = bits(4, 0, 160),
    }
}

record!(SwitchInfoRecord = SWITCH_INFO_RECORD, stride 24 { 0: lid });

crate::layout! {
    /// A block of 64 entries of a linear forwarding table (LFT).
    pub struct LinearForwardingRecord: 72 {
        /// The LID of the switch.
        pub lid: u16 = bits(0, 0, 16),
        /// The index of the block of 64 LIDs.
        pub block: u16 = bits(2, 0, 16),
        /// The entries.
        pub entries: LinearForwardingBlock = bits(8, 0, 512),
    }
}

record!(LinearForwardingRecord = LINEAR_FORWARDING_RECORD, stride 72 { 0: lid, 1: block });

crate::layout! {
    /// A block of a multicast forwarding table (MFT): the entries of 32 LIDs for 16 egress ports.
    pub struct MulticastForwardingRecord: 72 {
        /// The LID of the switch.
        pub lid: u16 = bits(0, 0, 16),
        /// The index of the block of 16 ports.
        pub position: u8 = bits(2, 0, 4),
        /// The index of the block of 32 LIDs.
        pub block: u16 = bits(2, 4, 12),
        /// The entries.
        pub entries: MulticastForwardingBlock = bits(8, 0, 512),
    }
}

record!(MulticastForwardingRecord = MULTICAST_FORWARDING_RECORD, stride 72 {
    0: lid,
    1: position,
    3: block,
});

crate::layout! {
    /// The SMInfo of a subnet manager.
    pub struct SmInfoRecord: 25 {
        /// The LID of the port of the SM.
        pub lid: u16 = bits(0, 0, 16),
        /// The SMInfo attribute.
        pub sm_info: SmInfo = bits(4, 0, 168),
    }
}

record!(SmInfoRecord = SM_INFO_RECORD, stride 32 {
    0: lid,
    2: [sm_info SmInfo guid],
    3: [sm_info SmInfo sm_key],
    4: [sm_info SmInfo act_count],
    5: [sm_info SmInfo priority],
    6: [sm_info SmInfo state],
});

crate::layout! {
    /// One direction of a link.
    pub struct LinkRecord: 6 {
        /// The LID of the port at the start of the link.
        pub from_lid: u16 = bits(0, 0, 16),
        /// The port number at the start of the link.
        pub from_port: u8 = bits(2, 0, 8),
        /// The port number at the end of the link.
        pub to_port: u8 = bits(3, 0, 8),
        /// The LID of the port at the end of the link.
        pub to_lid: u16 = bits(4, 0, 16),
    }
}

record!(LinkRecord = LINK_RECORD, stride 8 { 0: from_lid, 1: from_port, 2: to_port, 3: to_lid });

crate::layout! {
    /// A block of eight GUIDs of a port.
    pub struct GuidInfoRecord: 72 {
        /// The LID of the port.
        pub lid: u16 = bits(0, 0, 16),
        /// The index of the block of eight GUIDs.
        pub block: u8 = bits(2, 0, 8),
        /// The GUIDs.
        pub guid_info: GuidInfo = bits(8, 0, 512),
    }
}

record!(GuidInfoRecord = GUID_INFO_RECORD, stride 72 {
    0: lid,
    1: block,
    4: (8 0 64),
    5: (16 0 64),
    6: (24 0 64),
    7: (32 0 64),
    8: (40 0 64),
    9: (48 0 64),
    10: (56 0 64),
    11: (64 0 64),
});

crate::layout! {
    /// A block of 32 P_Keys of a port.
    pub struct PKeyTableRecord: 72 {
        /// The LID of the port; for a port of a switch, the LID of port 0.
        pub lid: u16 = bits(0, 0, 16),
        /// The index of the block of 32 P_Keys.
        pub block: u16 = bits(2, 0, 16),
        /// The port number, if the node is a switch.
        pub port: u8 = bits(4, 0, 8),
        /// The P_Keys.
        pub table: PKeyTable = bits(8, 0, 512),
    }
}

record!(PKeyTableRecord = P_KEY_TABLE_RECORD, stride 72 { 0: lid, 1: block, 2: port });

crate::layout! {
    /// Half of a VL arbitration table of a port.
    pub struct VlArbitrationRecord: 72 {
        /// The LID of the port; for a port of a switch, the LID of port 0.
        pub lid: u16 = bits(0, 0, 16),
        /// The egress port.
        pub port: u8 = bits(2, 0, 8),
        /// The number of the half: 1 and 2 are the halves of the low-priority table, 3 and 4 those
        /// of the high-priority table.
        pub block: u8 = bits(3, 0, 8),
        /// The VL arbitration entries.
        pub table: VlArbitration = bits(8, 0, 512),
    }
}

record!(VlArbitrationRecord = VL_ARBITRATION_RECORD, stride 72 { 0: lid, 1: port, 2: block });
