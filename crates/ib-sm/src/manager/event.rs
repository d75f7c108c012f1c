//! Events, counters and reports of the SM.

use std::sync::Arc;
use std::time::Duration;

use ib_types::{Guid, NodeKind};
use ib_wire::mad::sm::{Notice, PortInfo, SmState};

use crate::alarm::{Alarm, AlarmKind};
use crate::configuration::Written;
use crate::fault::{Fault, PortName};
use crate::plan::{Plan, TableQuality};

/// An event of the SM.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SmEvent {
    /// The SM has found a fault.
    Fault(Fault),
    /// The SM has no plan, and therefore has written no tables. Holds the reason.
    NoPlan(String),
    /// The SM has a plan, but warns about it. Holds the warning.
    Warning(String),
    /// An alarm was raised, or a raised alarm has changed.
    AlarmRaised(Box<Alarm>),
    /// The alarm of this kind was cleared.
    AlarmCleared(AlarmKind),
    /// The subnet is up.
    SubnetUp(Box<SweepReport>),
    /// The state of the SM has changed.
    State(SmState),
    /// A trap was received.
    Trap(Box<Notice>),
    /// A discovery has started.
    DiscoveryStart(DiscoveryStart),
    /// A port with LIDs has appeared or disappeared since the subnet was last up.
    Port(Box<PortChange>),
    /// A link has appeared or disappeared since the subnet was last up.
    Link(Box<LinkChange>),
}

/// Counters of the SM since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmCounters {
    /// Number of heavy sweeps that have brought the subnet up.
    pub sweeps: u64,
    /// Number of partial discoveries. These query only nodes that have reported changes.
    pub partial_discoveries: u64,
    /// Number of light sweeps.
    pub light_sweeps: u64,
    /// Number of route computations.
    pub routings: u64,
    /// Number of times that cached routes were used instead of computing routes.
    pub cached_plans: u64,
    /// Number of traps received.
    pub traps: u64,
}

/// Report of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The plan that was written.
    pub plan: Arc<Plan>,
    /// How many attributes of each kind were written.
    pub written: Written,
    /// Number of discovered nodes.
    pub nodes: usize,
    /// Duration of the discovery.
    pub discover: Duration,
    /// Duration of planning, including the check of the tables.
    pub plan_time: Duration,
    /// Duration of writing the plan to the nodes.
    pub program: Duration,
    /// Number of SMPs sent.
    pub smps: u64,
    /// Number of retransmitted SMPs.
    pub retries: u64,
    /// Number of faults.
    pub faults: usize,
    /// True if the plan consists of cached routes.
    pub cached: bool,
    /// Quality of the forwarding tables in the switches; `None` if it is not known. Unless some tables could not be
    /// written, this is the quality of the plan.
    pub quality: Option<TableQuality>,
}

/// A port with LIDs that has appeared or disappeared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// The port's GUID.
    pub guid: Guid,
    /// Lowest and highest LID of the port.
    pub lids: (u16, u16),
    /// Name of the port: node, port number and directed route.
    pub at: PortName,
    /// True if the port has appeared; false if it has disappeared.
    pub is_new: bool,
    /// True if the subnet came up for the first time, and all its ports therefore count as new.
    pub is_first: bool,
}

/// A link that has appeared or disappeared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// The ports at both ends of the link.
    pub ends: (PortName, PortName),
    /// True if the link has appeared; false if it has disappeared.
    pub is_new: bool,
}

/// The start of a discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscoveryStart {
    /// Reason of the discovery, as text for logs.
    pub reason: String,
    /// True for a full discovery; false if only nodes that reported changes are queried.
    pub is_full: bool,
}

/// State of a port when the subnet was last up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The port's GUID. A switch port has the GUID of port 0.
    pub guid: Guid,
    /// The node description.
    pub description: String,
    /// The node type.
    pub kind: NodeKind,
    /// The number of the port on its node.
    pub number: u8,
    /// The base LID; 0 if the port has no LID. All ports of a switch have the LID of its port 0.
    pub lid: u16,
    /// The last PortInfo, if the port has responded.
    pub info: Option<PortInfo>,
}
