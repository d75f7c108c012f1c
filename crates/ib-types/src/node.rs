//! Node types: channel adapter, switch, router.

use std::fmt;

/// The type of a node, as in NodeInfo:NodeType (IBTA volume 1, chapter 14.2.5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// A channel adapter of a host or of a storage target.
    ChannelAdapter,
    /// A switch.
    Switch,
    /// A router to another subnet.
    Router,
}

impl NodeKind {
    /// Returns true if the node is a switch.
    #[must_use]
    pub const fn is_switch(self) -> bool {
        matches!(self, Self::Switch)
    }
}

impl fmt::Display for NodeKind {
    /// Writes the name that the node type has in OpenSM's dump files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChannelAdapter => "Channel Adapter",
            Self::Switch => "Switch",
            Self::Router => "Router",
        })
    }
}
