//! Errors of building a fabric, and of reading fabric files.

use std::fmt;

use ib_types::Guid;

/// Error of adding a node or link to a [`crate::Fabric`], or of setting an attribute of a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A node or port GUID is zero.
    #[error("node \"{node}\" has GUID zero: expected another GUID")]
    ZeroGuid {
        /// The node's name.
        node: String,
    },
    /// A node would have no external ports, or more than 254.
    #[error("node \"{node}\" has {ports} ports: expected 1 to 254")]
    PortCount {
        /// The node's name.
        node: String,
        /// The requested number of external ports.
        ports: u32,
    },
    /// The fabric already has a node with this name.
    #[error("node \"{node}\" exists already: expected a unique name")]
    DuplicateName {
        /// The repeated name.
        node: String,
    },
    /// The fabric already has a node or port with this GUID.
    #[error("GUID {guid} of node \"{node}\" belongs to node \"{other}\" already")]
    DuplicateGuid {
        /// The repeated GUID.
        guid: Guid,
        /// The name of the node that was to be added or changed.
        node: String,
        /// The name of the node that already has the GUID as its node GUID or as a port GUID.
        other: String,
    },
    /// The node has no port with this number.
    #[error("node \"{node}\" has no port {port}: expected 1 to {ports}")]
    NoSuchPort {
        /// The node's name.
        node: String,
        /// The port number.
        port: u32,
        /// The highest port number of the node.
        ports: u8,
    },
    /// A link would end at port 0 of a node.
    #[error("port 0 of node \"{node}\" cannot be linked: it is not an external port")]
    PortZeroLinked {
        /// The node's name.
        node: String,
    },
    /// A link would join a port of a channel adapter or router to itself.
    #[error(
        "port {port} of node \"{node}\" is linked to itself: only switches have loopback plugs"
    )]
    SelfLink {
        /// The node's name.
        node: String,
        /// The port number.
        port: u8,
    },
    /// The port to be linked already has a link.
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

/// Error of reading a file: the position, the text found there, and the text expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The name of the file that the caller gave.
    pub file: String,
    /// The line number, from 1.
    pub line: usize,
    /// The column in bytes, from 1.
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
