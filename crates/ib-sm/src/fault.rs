//! What is wrong with a subnet, as its manager sees it.

use std::fmt;

use ib_mad::Failure;
use ib_types::Guid;
use ib_wire::mad::{AttributeId, MadStatus, MgmtClass};

/// Something wrong that a sweep met.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A port did not answer, or answered with an error.
    NoAnswer {
        /// Which port.
        at: PortName,
        /// What it was asked for.
        attribute: AttributeId,
        /// Whether it was to be changed.
        set: bool,
        /// What came instead of an answer.
        reason: Reason,
    },
    /// Two nodes or ports have the same GUID.
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
        /// How the second one was reached.
        at: PortName,
        /// What does not fit together.
        why: &'static str,
    },
    /// A switch does not hold what was written to it.
    TableChanged {
        /// The switch.
        at: PortName,
        /// The block of its linear forwarding table.
        block: u16,
    },
    /// A port or its tables contradict what is known of the subnet, or cannot hold what is configured.
    Inconsistent {
        /// The port.
        at: PortName,
        /// What is wrong with it.
        what: String,
    },
    /// A host port gets no LID: the LIDs that all switches can forward are assigned.
    NoLid {
        /// The port's GUID.
        port: Guid,
        /// The description of its node.
        description: String,
        /// The highest LID of the subnet.
        max_lid: u16,
    },
    /// Something is beyond what a subnet can have.
    TooLarge {
        /// What.
        what: String,
    },
}

/// What came instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing.
    Failure(Failure),
    /// An error.
    Status(MadStatus),
}

/// A port as it is named to people: what is known of it, and the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortName {
    /// The description of the node; empty while unknown.
    pub description: String,
    /// The GUID of the node; zero while unknown.
    pub node_guid: Guid,
    /// The number of the port; `None` for a node as a whole.
    pub port: Option<u8>,
    /// The ports that the directed route to it leaves by.
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
                write!(f, "GUID {guid} is there twice: {at}: {why}")
            }
            Self::TableChanged { at, block } => {
                write!(f, "{at}: block {block} of the forwarding table is not what was written")
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
