//! Errors of fabrics and of readers of fabric files.

use std::fmt;

use ib_types::Guid;

/// Error of building a [`crate::Fabric`]: the node, port or link contradicts those already in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A node or port GUID is zero.
    #[error("node \"{node}\" has GUID zero: expected another GUID")]
    ZeroGuid {
        /// The node's name.
        node: String,
    },
    /// A node has no ports, or more than an InfiniBand node can have.
    #[error("node \"{node}\" has {ports} ports: expected 1 to 254")]
    PortCount {
        /// The node's name.
        node: String,
        /// The requested number of ports.
        ports: u32,
    },
    /// Two nodes have the same name.
    #[error("node \"{node}\" exists already: expected a unique name")]
    DuplicateName {
        /// The name.
        node: String,
    },
    /// Two nodes or two ports have the same GUID.
    #[error("GUID {guid} of node \"{node}\" belongs to node \"{other}\" already")]
    DuplicateGuid {
        /// The repeated GUID.
        guid: Guid,
        /// The node that was refused.
        node: String,
        /// The node that already has the GUID.
        other: String,
    },
    /// The node has no port of this number.
    #[error("node \"{node}\" has no port {port}: expected 1 to {ports}")]
    NoSuchPort {
        /// The node's name.
        node: String,
        /// The port number.
        port: u32,
        /// The highest port number of the node.
        ports: u8,
    },
    /// A link ends at port 0.
    #[error("port 0 of node \"{node}\" cannot be linked: it is not an external port")]
    PortZeroLinked {
        /// The node's name.
        node: String,
    },
    /// A link joins a port of a channel adapter or router to itself.
    #[error(
        "port {port} of node \"{node}\" is linked to itself: only switches have loopback plugs"
    )]
    SelfLink {
        /// The node's name.
        node: String,
        /// The port number.
        port: u8,
    },
    /// The port is already linked.
    #[error("port {port} of node \"{node}\" is linked to \"{peer}\" port {peer_port} already")]
    PortInUse {
        /// The node's name.
        node: String,
        /// The port number.
        port: u8,
        /// The name of the node at the other end of the existing link.
        peer: String,
        /// The port number at the other end of the existing link.
        peer_port: u8,
    },
}

/// Error of reading a file, with its position, the text found and the text expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The name of the file, as passed by the caller.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in bytes.
    pub column: usize,
    /// The text found at this position, and the text expected.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}
