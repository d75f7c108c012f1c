//! `TraceRecord`: a node on a path; IBTA volume 1, chapter 15.2.5.18.

use ib_types::Guid;

use super::record;
use crate::mad::sm::NodeType;

crate::layout! {
    /// A node on a path.
    ///
    /// The SA returns one record for each node of a path as the response to GetTraceTable of a
    /// [`PathRecord`](super::PathRecord). The records are in the order of the path.
    ///
    /// ```text
    ///  0 GIDPrefix (8)           8 IDGeneration (2)      10 reserved   11 NodeType
    /// 12 NodeID (8)             20 ChassisID (8)
    /// 28 EntryPortID (8)        36 ExitPortID (8)       44 EntryPort  45 ExitPort
    /// ```
    pub struct TraceRecord: 46 {
        /// The GID prefix of the ports of the node.
        pub gid_prefix: u64 = bits(0, 0, 64),
        /// A generation number, which changes if the SA reassigns node, chassis or port IDs.
        pub id_generation: u16 = bits(8, 0, 16),
        /// The type of the node.
        pub node_type: NodeType = bits(11, 0, 8),
        /// The GUID of the node, or another unique ID.
        pub node_id: Guid = bits(12, 0, 64),
        /// An ID that all nodes of a chassis share; zero if unknown.
        pub chassis_id: Guid = bits(20, 0, 64),
        /// The GUID of the ingress port; zero if the node is the source.
        pub entry_port_id: Guid = bits(28, 0, 64),
        /// The GUID of the egress port; zero if the node is the destination.
        pub exit_port_id: Guid = bits(36, 0, 64),
        /// The number of the ingress port.
        pub entry_port: u8 = bits(44, 0, 8),
        /// The number of the egress port.
        pub exit_port: u8 = bits(45, 0, 8),
    }
}

record!(TraceRecord = TRACE_RECORD, stride 48 {
    0: gid_prefix,
    1: id_generation,
    3: node_type,
    4: node_id,
    5: chassis_id,
    6: entry_port_id,
    7: exit_port_id,
    8: entry_port,
    9: exit_port,
});
