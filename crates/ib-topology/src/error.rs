//! What can be wrong with a fabric and with the file that describes it.

use std::fmt;

use ib_types::Guid;

/// A contradiction within a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A node or port GUID is zero.
    #[error("node \"{node}\" has GUID zero: expected a GUID that names it")]
    ZeroGuid {
        /// The node's name.
        node: String,
    },
    /// A node has no ports, or more than an InfiniBand node can have.
    #[error("node \"{node}\" has {ports} ports: expected 1 to 254")]
    PortCount {
        /// The node's name.
        node: String,
        /// The count that was asked for.
        ports: u32,
    },
    /// Two nodes have one name.
    #[error("node \"{node}\" stands twice in the fabric")]
    DuplicateName {
        /// The name.
        node: String,
    },
    /// Two nodes, or two ports, have one GUID.
    #[error("GUID {guid} of node \"{node}\" belongs to node \"{other}\" already")]
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// The node that came second.
        node: String,
        /// The node that came first.
        other: String,
    },
    /// A port number is beyond the node's ports.
    #[error("node \"{node}\" has no port {port}: expected 1 to {ports}")]
    NoSuchPort {
        /// The node's name.
        node: String,
        /// The number.
        port: u32,
        /// The node's highest port.
        ports: u8,
    },
    /// A link ends in a port 0.
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
        /// The port.
        port: u8,
    },
    /// A port has two links.
    #[error("port {port} of node \"{node}\" is linked to \"{peer}\" port {peer_port} already")]
    PortInUse {
        /// The node's name.
        node: String,
        /// The port.
        port: u8,
        /// The node that the port is linked to.
        peer: String,
        /// The port there.
        peer_port: u8,
    },
}

/// An error of reading a file: where it is, and what was found and expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The file's name as the caller gave it.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in bytes.
    pub column: usize,
    /// What was found there and what was expected instead.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}
