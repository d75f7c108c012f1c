//! Faults: inconsistencies and failures that the SM finds during a sweep.

use std::fmt;

use ib_mad::Failure;
use ib_types::Guid;
use ib_wire::mad::{AttributeId, MadStatus, MgmtClass};

/// A fault of the subnet: an inconsistency or a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A port did not respond, or responded with an error status.
    NoAnswer {
        /// The port.
        at: PortName,
        /// The requested attribute.
        attribute: AttributeId,
        /// True if the request was a Set, false if it was a Get.
        set: bool,
        /// The reason: a timeout or an error status.
        reason: Reason,
    },
    /// Two nodes or ports have the same GUID.
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// The node or port that was discovered second.
        at: PortName,
        /// Description of the conflict with the node or port that was discovered first.
        why: &'static str,
    },
    /// An LFT block in a switch differs from the block that the SM wrote to the switch.
    TableChanged {
        /// The switch.
        at: PortName,
        /// Number of the LFT block.
        block: u16,
    },
    /// A response of a port contradicts the discovered subnet, or the port cannot hold its
    /// configuration.
    Inconsistent {
        /// The port.
        at: PortName,
        /// Description of the fault.
        what: String,
    },
    /// A host port gets no LID, because all LIDs that the switches can forward are assigned.
    NoLid {
        /// The port's GUID.
        port: Guid,
        /// Description of the node.
        description: String,
        /// The highest LID of the subnet.
        max_lid: u16,
    },
    /// The subnet exceeds a limit of InfiniBand.
    TooLarge {
        /// The exceeded limit, and the consequence.
        what: String,
    },
}

/// The reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No response.
    Failure(Failure),
    /// A response with an error status.
    Status(MadStatus),
}

/// Identification of a port in messages: node description, GUID, port number and directed route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortName {
    /// Node description; empty if unknown.
    pub description: String,
    /// Node GUID; zero if unknown.
    pub node_guid: Guid,
    /// Port number; `None` if the whole node is meant.
    pub port: Option<u8>,
    /// Directed route: the egress port of each hop.
    pub route: Vec<u8>,
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.node_guid.is_zero() {
            f.write_str("a node")?;
        } else {
            write!(f, "{} ('{}')", self.node_guid, self.description)?;
        }
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        f.write_str(" at route 0")?;
        self.route.iter().try_for_each(|hop| write!(f, ",{hop}"))
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failure(failure) => failure.fmt(f),
            Self::Status(status) => write!(f, "status {status}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer { at, attribute, set, reason } => {
                let verb = if *set { "Set" } else { "Get" };
                let name = attribute.name(MgmtClass::SUBN_DIRECTED_ROUTE).unwrap_or("attribute");
                write!(f, "{at}: {verb}({name}): {reason}")
            }
            Self::DuplicateGuid { guid, at, why } => {
                write!(f, "GUID {guid} exists twice: {at}: {why}")
            }
            Self::TableChanged { at, block } => {
                write!(
                    f,
                    "{at}: block {block} of the forwarding table differs from the written one"
                )
            }
            Self::Inconsistent { at, what } => write!(f, "{at}: {what}"),
            Self::NoLid { port, description, max_lid } => write!(
                f,
                "port {port} ('{description}') gets no LID and is not configured: all LIDs up to \
                 {max_lid} are assigned, and the LinearFDBCap of the switches or the LMC allows no more"
            ),
            Self::TooLarge { what } => f.write_str(what),
        }
    }
}
