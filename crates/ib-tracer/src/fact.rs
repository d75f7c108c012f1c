//! Facts that paths depend on, and their source.

use crate::path::NodeNumber;

/// The source of a client's facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactSource {
    /// From the nodes themselves, over directed routes.
    #[default]
    DirectedRoutes,
    /// SA records of links, ports and tables, compared with the reports of the nodes.
    SaRecords,
}

/// A fact that a trace depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fact {
    /// The local node and port.
    Own,
    /// The node behind a port.
    Link { node: NodeNumber, port: u8 },
    /// A block of a forwarding table.
    Block { node: NodeNumber, block: u16 },
    /// The same block, read a second time to detect changes.
    Reread { node: NodeNumber, block: u16 },
    /// A block of a multicast table, and its position: a group of 16 ports.
    Multicast { node: NodeNumber, block: u16, position: u8 },
}
