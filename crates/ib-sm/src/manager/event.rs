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
    /// A fault was found.
    Fault(Fault),
    /// There is no plan, or no plan that may be written; no tables were written.
    NoPlan(String),
    /// The plan is written, with a warning.
    Warning(String),
    /// An alarm is raised, or a raised one has changed.
    AlarmRaised(Box<Alarm>),
    /// The alarm of this kind is cleared.
    AlarmCleared(AlarmKind),
    /// The subnet is up.
    SubnetUp(Box<SweepReport>),
    /// The state of the SM has changed.
    State(SmState),
    /// A trap was received.
    Trap(Box<Notice>),
    /// A discovery has started.
    Exploration(Exploration),
    /// A port with LIDs has appeared or disappeared, as of the last time the subnet came up.
    Port(Box<PortChange>),
    /// A link has appeared or disappeared in a subnet that was up before.
    Link(Box<LinkChange>),
}

/// Counters of the SM since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmCounters {
    /// Heavy sweeps that have brought the subnet up.
    pub sweeps: u64,
    /// Partial discoveries, which query only nodes that have reported changes.
    pub followed: u64,
    /// Light sweeps.
    pub looks: u64,
    /// Number of route computations.
    pub routings: u64,
    /// Number of times that cached routes were used instead.
    pub cached: u64,
    /// Traps received.
    pub traps: u64,
}

/// Report of a sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// The plan that was written.
    pub plan: Arc<Plan>,
    /// Numbers of written attributes.
    pub written: Written,
    /// Number of discovered nodes.
    pub nodes: usize,
    /// Duration of the discovery.
    pub discover: Duration,
    /// Duration of planning, including the check.
    pub plan_time: Duration,
    /// Duration of writing.
    pub program: Duration,
    /// Number of SMPs sent.
    pub smps: u64,
    /// Number of retransmitted SMPs.
    pub retries: u64,
    /// Number of faults.
    pub faults: usize,
    /// True if the plan is from the cache.
    pub cached: bool,
    /// Quality of the forwarding tables in the switches. This equals the quality of the plan unless tables could
    /// not be written. `None` if it is not known.
    pub quality: Option<TableQuality>,
}

/// A port with LIDs that is there and was not, or is not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortChange {
    /// The port's GUID.
    pub guid: Guid,
    /// Its first and its last LID.
    pub lids: (u16, u16),
    /// Its node and its number, and the way to it.
    pub at: PortName,
    /// Whether it is there now.
    pub is_new: bool,
    /// Whether nothing was known before.
    pub is_first: bool,
}

/// A link that is there and was not, or is not there any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkChange {
    /// Both ends.
    pub ends: (PortName, PortName),
    /// Whether it is there now.
    pub is_new: bool,
}

/// Why a subnet is explored, and how much of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exploration {
    /// Why, in words.
    pub why: String,
    /// Whether all of it is; otherwise only what has told of changes.
    pub is_whole: bool,
}

/// A port as of the last discovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatus {
    /// The GUID of the node.
    pub node_guid: Guid,
    /// The port's GUID; of a switch that of port 0.
    pub guid: Guid,
    /// The node description.
    pub description: String,
    /// The node type.
    pub kind: NodeKind,
    /// The number of the port on its node.
    pub number: u8,
    /// The base LID; of a switch port, that of port 0; 0 if there is none.
    pub lid: u16,
    /// The last PortInfo, if the port responds.
    pub info: Option<PortInfo>,
}
