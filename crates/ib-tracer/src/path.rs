//! Paths: nodes, hops and the end of a path.

use ib_wire::mad::sm::PortState;

/// Arrival port in the response of an agent that does not know it.
pub const UNKNOWN_PORT: u8 = 255;

/// Maximum number of hops of a path: the capacity of a source route.
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
    /// The path arrives at the port with the LID.
    Arrived,
    /// A switch has no entry for the LID.
    NoEntry {
        /// The switch.
        at: NodeNumber,
    },
    /// A switch sends the LID to its port 0, but has another LID.
    NotHere {
        /// The switch.
        at: NodeNumber,
    },
    /// The table entry of a switch exceeds its number of ports.
    NoSuchPort {
        /// The switch.
        at: NodeNumber,
        /// The entry.
        port: u8,
    },
    /// No node responds behind a port.
    Unlinked {
        /// The node.
        at: NodeNumber,
        /// Its port.
        port: u8,
        /// The observation, for messages.
        why: String,
        /// True if the port reports that its link is down; false if the node behind it may only
        /// fail to respond.
        is_down: bool,
    },
    /// The link of a port is not Active: it carries SMPs only.
    NotActive {
        /// The node.
        at: NodeNumber,
        /// Its port.
        port: u8,
        /// The state of the port.
        state: PortState,
    },
    /// The table of a switch cannot be read.
    NoTable {
        /// The switch.
        at: NodeNumber,
        /// The reason, for messages.
        why: String,
    },
    /// The path enters an HCA or router by a port that does not have the LID.
    WrongPort {
        /// The node.
        node: NodeNumber,
        /// Its port.
        port: u8,
    },
    /// The path is a forwarding loop.
    Loop {
        /// Index of the first hop of the loop.
        first: usize,
    },
    /// The end is unknown, because the table of a switch has changed since it was read.
    Changed {
        /// The switch.
        at: NodeNumber,
    },
    /// The comparison with the SA records ends here.
    Uncompared {
        /// The reason.
        why: String,
    },
    /// The path has more hops than a source route can hold.
    TooFar {
        /// The last node.
        at: NodeNumber,
    },
}

/// Fate of packets in a switch, by its port counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// Sent by this port (`PortXmitPkts`).
    Sent(u8),
    /// Discarded at this port before they were sent (`PortXmitDiscards`).
    Discarded(u8),
    /// Received by this port, but not relayed (`PortRcvSwitchRelayErrors`).
    Dropped(u8),
}
