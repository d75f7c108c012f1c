//! Paths: nodes, hops and the end of a path.

use ib_wire::mad::sm::PortState;

/// Arrival port in the response of an agent that does not know the arrival port.
pub const UNKNOWN_PORT: u8 = 255;

/// Maximum number of hops of a path. It is the maximum number of hops in a source route.
pub const MAX_HOPS: usize = 64;

/// Index of a node. Nodes are numbered in the order of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(pub(crate) u32);

/// A hop of a path: one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node from which the link leads.
    pub from: NodeNumber,
    /// Egress port: the number of the port of `from` at which the link starts.
    pub out: u8,
    /// The node to which the link leads.
    pub node: NodeNumber,
    /// Ingress port: the number of the port of `node` at which the link ends.
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
    /// The table of a switch delivers packets with the LID to the switch itself (port 0), but the switch has another
    /// LID.
    NotHere {
        /// The switch.
        at: NodeNumber,
    },
    /// The table entry of a switch is a port that the switch does not have.
    NoSuchPort {
        /// The switch.
        at: NodeNumber,
        /// The port number in the table entry.
        port: u8,
    },
    /// No node responds at the other end of a port's link.
    Unlinked {
        /// The node at the near end of the link.
        at: NodeNumber,
        /// The port at the near end of the link.
        port: u8,
        /// Message text: why no node responds.
        why: String,
        /// True if the port reports that its link is down. If false, an unresponsive
        /// node may be connected.
        is_down: bool,
    },
    /// The link of a port is not Active, so it carries only SMPs.
    NotActive {
        /// The node that has the port.
        at: NodeNumber,
        /// Number of the port that is not Active.
        port: u8,
        /// The state of the port.
        state: PortState,
    },
    /// The table of a switch cannot be read.
    NoTable {
        /// The switch.
        at: NodeNumber,
        /// Message text: why the table cannot be read.
        why: String,
    },
    /// The path arrives at a port of an HCA or router that does not have the LID.
    WrongPort {
        /// The HCA or router.
        node: NodeNumber,
        /// The port at which the path arrives.
        port: u8,
    },
    /// The path is a forwarding loop.
    Loop {
        /// Index of the first hop of the loop.
        first: usize,
    },
    /// The end of the path is unknown, because the table of a switch has changed since it was read.
    Changed {
        /// The switch.
        at: NodeNumber,
    },
    /// The client does not compare the rest of the path with the SA records.
    Uncompared {
        /// Message text: why the path is not compared further.
        why: String,
    },
    /// The path has more hops than a source route or a directed route can hold.
    TooFar {
        /// The node up to which the path was followed.
        at: NodeNumber,
    },
}

/// Fate of packets in a switch, as its port counters show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketFate {
    /// The packets were sent out of this port (`PortXmitPkts`).
    Sent(u8),
    /// The packets were discarded before they were sent out of this port (`PortXmitDiscards`).
    Discarded(u8),
    /// The packets were received at this port, but not relayed (`PortRcvSwitchRelayErrors`).
    Dropped(u8),
}
