//! Result of a trace: hops, verdicts, and the end of the path.

use std::time::Duration;

use ib_types::Gid;
use ib_wire::mad::MadStatus;

use crate::fabric_model::FabricModel;
use crate::observation::Witness;
use crate::path::{Hop, NodeNumber, PacketFate, Stop};

/// The start or the destination of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A LID.
    Lid(u16),
    /// A GID. The client queries its LID from the SA.
    Gid(Gid),
}

/// State of the tracer agent at a probed LID, as its responses show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// The agent reports this arrival port of the request.
    Port(u8),
    /// The agent responds, but does not know the arrival port.
    UnknownPort,
    /// The agent responds to ClassPortInfo, but not to SourceRoute.
    Silent,
    /// The agent responds on service level 0, but not on the configured service level.
    OtherLevel,
    /// The agent returned this error status.
    Refused(MadStatus),
    /// The agent's response contradicts the request or itself.
    Inconsistent(String),
    /// No agent responds.
    None,
    /// No request was sent to the agent.
    NotProbed,
}

/// The verdict on a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Proven good: the agent at the far end of the link reports the expected arrival port.
    Validated,
    /// Proven good by other evidence, for example by a probe of another path over this link.
    Observed {
        /// The evidence.
        by: Witness,
    },
    /// Proven good, because the hop leads to the local port, which receives the responses to all probes.
    Own,
    /// Proven bad: the preceding switch does not forward as its table specifies.
    Misdirected {
        /// Port at which a probe arrived at the node to which the hop leads; `None` if no probe arrived.
        actual: Option<u8>,
        /// Fate of the probes in the preceding switch, as its counters show; `None` if the counters
        /// are inconclusive.
        left: Option<PacketFate>,
    },
    /// Proven bad: the preceding switch sends packets out of another port than its table specifies.
    /// The packets nevertheless arrive.
    Detour {
        /// The port out of which the preceding switch sends the packets.
        by: u8,
    },
    /// Proven bad: the link differs from the SA records.
    OtherLink {
        /// The difference, as a text: for example, the node to which the link leads.
        what: String,
    },
    /// Proven bad: the table of the preceding switch differs from the SA records.
    OtherTable {
        /// Entry for the LID in the table of the switch; 255 if the table has no entry.
        holds: u8,
    },
    /// Proven bad: the responses of the node to which the hop leads contradict each other, the counters of the
    /// preceding switch, or the SA records.
    Inconsistent {
        /// The contradiction, as a text.
        what: String,
    },
    /// Proven bad: two nodes report the same GUID or the same LID.
    Duplicate {
        /// The duplicate GUID or LID and the nodes that report it, as a text.
        what: String,
    },
    /// Not proven, with the reason and the suspects.
    Suspected(Box<Suspicion>),
    /// Not proven: no probe was sent. Either [`TracerConfig::agents`](crate::TracerConfig::agents) is false, or no
    /// packet reaches another node over the link.
    NotProbed,
}

/// The reason why a hop is not proven, with suspects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The reason.
    pub reason: Reason,
    /// The suspects: if the reason is a fault, at least one of these components is faulty.
    pub suspects: Vec<Component>,
    /// The smallest sets of faults that explain all unanswered probes.
    pub candidates: Vec<Vec<Component>>,
    /// Description of a test that would show which suspect is faulty. The client cannot perform it from the local port.
    pub apart: Option<String>,
}

/// The reason why a hop is not proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Probes are not answered, and more than one component can be the cause.
    Unanswered,
    /// Probes are not answered, but the loss rate of the cables is high enough to be the cause.
    Lossy,
    /// No switch relays combined-route probes, and other probes do not show the arrival port.
    NoRelay,
    /// Neither a combined-route probe nor counters show out of which port the preceding switch sends the packets.
    NoCounters,
    /// The responses to probes are lost at another hop, whose fault is reported.
    AnswersLost,
    /// The agent of the node responds, but not on the configured service level.
    OtherLevel,
    /// The node has no LID, so it cannot be probed.
    NoLid,
    /// A table on which the verdict depends has changed since it was read.
    TableChanged,
}

/// A function of a node, or a link, that can be faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// Forwarding by a switch: packets with this egress port in the switch's forwarding table leave by this port.
    Forwarding(NodeNumber, u8),
    /// Identity of a node: it has the LIDs that it reports.
    Identity(NodeNumber),
    /// Relaying by a switch: combined-route probes that arrive by directed route continue by LID.
    Relay(NodeNumber),
    /// Response of a node: it answers combined-route probes.
    Responder(NodeNumber),
    /// Link of a port: both directions of the cable, and the node at the other end.
    Cable(NodeNumber, u8),
}

/// A verdict on a whole path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Every hop and the end of the path are proven good.
    ProvenGood,
    /// At least one hop is not proven.
    NotProven,
    /// A fault is proven.
    ProvenBad,
}

impl Verdict {
    /// Returns the judgement on a path that contains a hop with this verdict, if all other hops are proven good.
    #[must_use]
    pub const fn judgement(&self) -> Judgement {
        match self {
            Self::Validated | Self::Observed { .. } | Self::Own => Judgement::ProvenGood,
            Self::Suspected(_) | Self::NotProbed => Judgement::NotProven,
            Self::Misdirected { .. }
            | Self::Detour { .. }
            | Self::OtherLink { .. }
            | Self::OtherTable { .. }
            | Self::Inconsistent { .. }
            | Self::Duplicate { .. } => Judgement::ProvenBad,
        }
    }

    /// Returns true if a fault is proven.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        matches!(self.judgement(), Judgement::ProvenBad)
    }
}

/// The result of one trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The start of the path; `None` for the local port.
    pub from: Option<Target>,
    /// The destination.
    pub to: Target,
    /// The destination's LID.
    pub lid: u16,
    /// The port at which the path starts.
    pub start: (NodeNumber, u8),
    /// The hops, each with its verdict.
    pub hops: Vec<(Hop, Verdict)>,
    /// The end of the path.
    pub stop: Stop,
    /// Duration of the trace.
    pub elapsed: Duration,
}

impl Trace {
    /// Returns the verdict on the whole path.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        let hops = self.hops.iter().map(|(_, verdict)| verdict.judgement());
        hops.chain([self.stop.judgement()]).max().unwrap_or(Judgement::ProvenGood)
    }

    /// Returns true if every hop and the destination are proven good.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.judgement() == Judgement::ProvenGood
    }

    /// Returns the link at the end of the path as a suspect if it is up, but no node responds at its far end. Returns
    /// no suspects in other cases.
    #[must_use]
    pub fn suspects_at_end(&self) -> Vec<Component> {
        match self.stop {
            Stop::Unlinked { at, port, is_down: false, .. } => vec![Component::Cable(at, port)],
            _ => Vec::new(),
        }
    }

    /// Returns the first hop with a proven fault.
    #[must_use]
    pub fn first_bad(&self) -> Option<&(Hop, Verdict)> {
        self.hops.iter().find(|(_, verdict)| verdict.is_bad())
    }

    /// Returns true if the path is proven good, and the agent at its end reports the expected arrival port.
    #[must_use]
    pub fn is_validated(&self) -> bool {
        let last = self.hops.last().map(|(_, verdict)| verdict);
        self.is_good() && matches!(last, None | Some(Verdict::Validated))
    }
}

/// The reason why a path could not be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The SA has no record of the GID, or does not respond.
    #[error("no path to GID {gid}: {why}")]
    NoPath {
        /// The GID.
        gid: Gid,
        /// The error of the SA query.
        why: String,
    },
    /// The local port does not respond.
    #[error("the local port does not respond: {0}")]
    NoOwnPort(String),
    /// The path from the local port to the start of the traced path does not arrive.
    #[error("LID {lid}, at which the path starts, is not reached: {why}")]
    NoStart {
        /// The LID of the start.
        lid: u16,
        /// Message text: why the path from the local port does not arrive at the start.
        why: String,
        /// The hops of the path from the local port to the start.
        hops: Vec<Hop>,
        /// The end of the path from the local port to the start.
        stop: Box<Stop>,
    },
    /// The LID of the requested tree is not a multicast LID.
    #[error("LID {lid:#06x} is not a multicast LID: expected 0xc000 to 0xfffe")]
    NotMulticast {
        /// The LID of the requested tree.
        lid: u16,
    },
    /// The LID of the requested start or destination is not a unicast LID.
    #[error("LID {lid} is not a unicast LID: expected 1 to 49151")]
    NotUnicast {
        /// The LID of the requested start or destination.
        lid: u16,
    },
}

impl Stop {
    /// Returns the judgement on a path with this end, if all hops are proven good.
    #[must_use]
    pub const fn judgement(&self) -> Judgement {
        match self {
            Self::Arrived => Judgement::ProvenGood,
            Self::NoTable { .. }
            | Self::Uncompared { .. }
            | Self::Changed { .. }
            | Self::TooFar { .. }
            | Self::Unlinked { is_down: false, .. } => Judgement::NotProven,
            Self::NoEntry { .. }
            | Self::NotHere { .. }
            | Self::NoSuchPort { .. }
            | Self::Unlinked { .. }
            | Self::NotActive { .. }
            | Self::WrongPort { .. }
            | Self::Loop { .. } => Judgement::ProvenBad,
        }
    }

    /// Describes the end of a path to a LID. `name` returns the name of a node.
    #[must_use]
    pub fn describe(
        &self,
        model: &FabricModel,
        (lid, hops): (u16, &[Hop]),
        name: &dyn Fn(NodeNumber) -> String,
    ) -> String {
        match self {
            Self::Arrived => format!("LID {lid} is reached"),
            Self::NoEntry { at } => format!("{} has no entry for LID {lid}", name(*at)),
            Self::NotHere { at } => {
                format!("{} sends LID {lid} to its port 0, but has another LID", name(*at))
            }
            Self::NoSuchPort { at, port } => {
                let ports = model.node(*at).ports;
                format!("{} sends LID {lid} to port {port}: it has {ports} ports", name(*at))
            }
            Self::Unlinked { at, port, why, .. } => {
                format!("no node responds behind port {port} of {}: {why}", name(*at))
            }
            Self::Changed { at } => {
                format!("the table of {} has changed while the path was traced", name(*at))
            }
            Self::Uncompared { why } => why.clone(),
            Self::NotActive { at, port, state } => {
                format!("port {port} of {} is in state {state}: expected Active", name(*at))
            }
            Self::NoTable { at, why } => {
                format!("the table of {} cannot be read: {why}", name(*at))
            }
            Self::WrongPort { node, port } => {
                let end = model.end((*node, *port));
                let lids = end.map_or_else(String::new, |end| match (end.lid, end.last_lid()) {
                    (first, last) if first == last => format!(", which has LID {first}"),
                    (first, last) => format!(", which has LIDs {first} to {last}"),
                });
                format!("the path to LID {lid} ends at port {port} of {}{lids}", name(*node))
            }
            Self::Loop { first } => {
                let ring: Vec<String> = hops[*first..]
                    .iter()
                    .map(|hop| format!("{} port {}", name(hop.from), hop.out))
                    .collect();
                format!("packets to LID {lid} loop: {}", ring.join(" -> "))
            }
            Self::TooFar { at } => {
                format!(
                    "the path to LID {lid} is longer than a source route: {} is at hop {}",
                    name(*at),
                    hops.len()
                )
            }
        }
    }
}
