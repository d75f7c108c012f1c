//! Paths: nodes, hops and the end of a path.

use ib_wire::mad::sm::PortState;

/// The port number that an agent reports if it does not know the port.
pub const UNKNOWN_PORT: u8 = 255;

/// Maximum number of hops of a path: the size of a source route.
pub const MAX_HOPS: usize = 64;

/// Index of a node, in the order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(pub(crate) u32);

/// A hop of a path: one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node before the link.
    pub from: NodeNumber,
    /// The port by which the path leaves that node.
    pub out: u8,
    /// The node behind the link.
    pub node: NodeNumber,
    /// The port by which the path enters that node.
    pub enters: u8,
}

/// The end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At the port that has the LID.
    Arrived,
    /// At a switch that has no entry for the LID.
    NoEntry {
        /// The switch.
        at: NodeNumber,
    },
    /// At a switch whose table sends the LID to port 0, although the switch has another LID.
    NotHere {
        /// The switch.
        at: NodeNumber,
    },
    /// At a switch whose entry is beyond its ports.
    NoSuchPort {
        /// The switch.
        at: NodeNumber,
        /// The entry.
        port: u8,
    },
    /// At a port behind which no node responds.
    Unlinked {
        /// The node.
        at: NodeNumber,
        /// Its port.
        port: u8,
        /// The observation, as a text.
        why: String,
        /// True if the port reports that its link is down. Otherwise the node behind it may only be silent.
        is_down: bool,
    },
    /// At a port whose link carries SMPs only.
    NotActive {
        /// The node.
        at: NodeNumber,
        /// Its port.
        port: u8,
        /// The state of the port.
        state: PortState,
    },
    /// At a switch whose table cannot be read.
    NoTable {
        /// The switch.
        at: NodeNumber,
        /// The observation, as a text.
        why: String,
    },
    /// At a port of an HCA or router that has other LIDs.
    WrongPort {
        /// The node.
        node: NodeNumber,
        /// Its port.
        port: u8,
    },
    /// Nowhere: the path is a forwarding loop.
    Loop {
        /// The hop, counted from 0, that leaves the switch which the last hop enters again.
        first: usize,
    },
    /// Not known: the table of a switch has changed since it was read.
    Changed {
        /// The switch.
        at: NodeNumber,
    },
    /// The SA and the nodes could not be compared further on.
    Uncompared {
        /// The reason.
        why: String,
    },
    /// After more hops than a source route has room for.
    TooFar {
        /// The last node.
        at: NodeNumber,
    },
}

/// Fate of packets in a switch, by the counters of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Sent by this port (`PortXmitPkts`).
    By(u8),
    /// Discarded at this port before they were sent (`PortXmitDiscards`).
    Discarded(u8),
    /// Received by this port and not relayed (`PortRcvSwitchRelayErrors`).
    Dropped(u8),
}
