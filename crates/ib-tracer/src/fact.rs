//! Facts about the fabric that paths depend on (nodes, links, blocks of tables), and the source of these facts.

use crate::path::NodeNumber;

/// The source from which a client queries facts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactSource {
    /// The nodes themselves, over directed routes.
    #[default]
    DirectedRoutes,
    /// SA records of links, ports and tables. The client compares them with the reports of the nodes.
    SaRecords,
}

/// A fact about the fabric that a trace depends on: a node, a link, or a block of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fact {
    /// The local node and port.
    Own,
    /// The node at the other end of a port's link.
    Link { node: NodeNumber, port: u8 },
    /// A block of a forwarding table.
    Block { node: NodeNumber, block: u16 },
    /// A block of a forwarding table, which is read a second time to detect changes.
    Reread { node: NodeNumber, block: u16 },
    /// A block of a multicast table. `position` selects a group of 16 ports.
    Multicast { node: NodeNumber, block: u16, position: u8 },
}
