//! What came of a trace.

use std::time::Duration;

use ib_types::Gid;
use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::PortState;

use crate::atlas::{Atlas, NodeNumber};
use crate::observation::Witness;

/// One end of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A LID.
    Lid(u16),
    /// A GID, which subnet administration knows the LID of.
    Gid(Gid),
}

/// A step of a way: over one link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The node that the way leaves.
    pub from: NodeNumber,
    /// By this port.
    pub out: u8,
    /// The node that it enters.
    pub node: NodeNumber,
    /// By this port.
    pub enters: u8,
}

/// Where a way ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// At the port that has the LID.
    Arrived,
    /// At a switch that has no entry for the LID.
    NoEntry {
        /// The switch.
        at: NodeNumber,
    },
    /// At a switch that takes the LID for its own, which it is not.
    NotHere {
        /// The switch.
        at: NodeNumber,
    },
    /// At a switch whose entry is beyond its ports.
    NoSuchPort {
        /// The switch.
        at: NodeNumber,
        /// The entry.
        port: u8,
    },
    /// At a port behind which nobody answers.
    Unlinked {
        /// The node.
        at: NodeNumber,
        /// Its port.
        port: u8,
        /// What was seen.
        why: String,
        /// True if the port reports that its link is down. Else the node behind it may only be silent.
        is_down: bool,
    },
    /// At a port whose link carries subnet management only.
    NotActive {
        /// The node.
        at: NodeNumber,
        /// Its port.
        port: u8,
        /// The state of the port.
        state: PortState,
    },
    /// At a switch whose table cannot be read.
    NoTable {
        /// The switch.
        at: NodeNumber,
        /// What was seen.
        why: String,
    },
    /// At a port of an adapter or router that has other LIDs.
    WrongPort {
        /// The node.
        node: NodeNumber,
        /// Its port.
        port: u8,
    },
    /// Never: it goes round.
    Loop {
        /// The hop, counted from 0, that leaves the switch which the last hop enters again.
        first: usize,
    },
    /// Not known: the table of a switch has changed since it was read.
    Changed {
        /// The switch.
        at: NodeNumber,
    },
    /// Subnet administration and the nodes could not be compared further on.
    Uncompared {
        /// Why.
        why: String,
    },
    /// After more hops than a source route has room for.
    TooFar {
        /// The last node.
        at: NodeNumber,
    },
}

/// What an agent has answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentState {
    /// The port by which the request arrived.
    Port(u8),
    /// It does not know the port.
    CannotTell,
    /// It answered ClassPortInfo and not SourceRoute.
    Silent,
    /// It answers on service level 0, and not on the wanted one.
    OtherLevel,
    /// It answers with this status.
    Refused(MadStatus),
    /// Its response contradicts the request or itself.
    Inconsistent(String),
    /// No agent answers.
    None,
    /// No request was sent.
    NotAsked,
}

/// What is known of a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Proven good: the agent behind the link has seen a packet arrive over it.
    Validated,
    /// Proven good without an agent.
    Seen {
        /// What proves it.
        by: Witness,
    },
    /// The own port, which receives the responses of all probes.
    Own,
    /// Proven bad: the switch before forwards differently from its table.
    Misdirected {
        /// The port of the hop by which a probe arrived; `None` if it did not arrive.
        actual: Option<u8>,
        /// Where the counters show that the switch before sends; `None` if they do not tell.
        left: Option<Left>,
    },
    /// Proven bad: the switch before sends by another port, and packets arrive nevertheless.
    Detour {
        /// The port that the switch before sends by.
        by: u8,
    },
    /// Proven bad: the link is not the one in the records of subnet administration.
    OtherLink {
        /// What is behind the port.
        what: String,
    },
    /// Proven bad: the table of the switch before is not the one in the records of subnet administration.
    OtherTable {
        /// The entry of the switch, 255 for none.
        holds: u8,
    },
    /// Proven bad: the responses of the node contradict each other.
    Inconsistent {
        /// How.
        what: String,
    },
    /// Proven bad: two nodes report one GUID or one LID.
    Duplicate {
        /// Which.
        what: String,
    },
    /// Not proven.
    Suspected(Box<Suspicion>),
    /// Not proven: no probe was sent, because agents are not wanted or the path ended before.
    NotAsked,
}

/// Why nothing is proven of a hop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The reason.
    pub reason: Reason,
    /// The components of which at least one is faulty, if the reason is a fault.
    pub suspects: Vec<Component>,
    /// The smallest sets of faults that explain all probes without an answer.
    pub candidates: Vec<Vec<Component>>,
    /// The probe that would tell the suspects apart and that cannot be sent from here.
    pub apart: Option<String>,
}

/// Why nothing is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Probes are not answered, and more than one component can be the cause.
    Unanswered,
    /// Probes are not answered; the cables lose so many packets that this may be chance.
    Lossy,
    /// No switch passes on launches, and no other probe shows the arrival port.
    NoLaunch,
    /// A launch cannot test this link alone, and counters do not tell.
    NoCounters,
    /// The answers of probes are lost elsewhere, at a fault that is reported.
    AnswersLost,
    /// The node answers, but not on the wanted service level.
    OtherLevel,
    /// The node has no LID to be probed by.
    NoLid,
    /// A table that the verdict rests on has changed since it was read.
    TableChanged,
}

/// What can be faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// What a switch does with packets that its table sends to a port.
    Forwarding(NodeNumber, u8),
    /// The LIDs that a node reports.
    Identity(NodeNumber),
    /// Whether a switch passes on by LID what came over a directed route.
    Relay(NodeNumber),
    /// Whether a node answers launches.
    Responder(NodeNumber),
    /// What is behind a port: either direction of its cable, and the node at the other end.
    Cable(NodeNumber, u8),
}

/// A verdict on a whole path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// Packets were seen at every hop and at the destination.
    ProvenGood,
    /// Something could not be proven.
    NotProven,
    /// A fault is proven.
    ProvenBad,
}

/// What has become of packets in a switch, by the counters of its ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// They were sent by this port (`PortXmitPkts`).
    By(u8),
    /// They were to be sent by this port and were discarded (`PortXmitDiscards`).
    Discarded(u8),
    /// They came in by this port and could not be relayed (`PortRcvSwitchRelayErrors`).
    Dropped(u8),
}

impl Verdict {
    /// Returns what the verdict means for a path over the hop.
    #[must_use]
    pub const fn judgement(&self) -> Judgement {
        match self {
            Self::Validated | Self::Seen { .. } | Self::Own => Judgement::ProvenGood,
            Self::Suspected(_) | Self::NotAsked => Judgement::NotProven,
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

/// What came of one trace.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Where the way starts; `None` for the own port.
    pub from: Option<Target>,
    /// Where it leads.
    pub to: Target,
    /// The LID that it leads to.
    pub lid: u16,
    /// The port that it starts at.
    pub start: (NodeNumber, u8),
    /// Its hops, and what is known of each.
    pub hops: Vec<(Hop, Verdict)>,
    /// Where it ends.
    pub stop: Stop,
    /// The time from its start to its end.
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

    /// Returns the components of which one is faulty if nothing answers behind a port with an active link.
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

    /// Returns the first hop of which nothing is proven.
    #[must_use]
    pub fn first_unproven(&self) -> Option<&(Hop, Verdict)> {
        self.hops.iter().find(|(_, verdict)| verdict.judgement() == Judgement::NotProven)
    }

    /// Returns true if the path is proven good and the agent at its end has seen a packet arrive.
    #[must_use]
    pub fn is_validated(&self) -> bool {
        let last = self.hops.last().map(|(_, verdict)| verdict);
        self.is_good() && matches!(last, None | Some(Verdict::Validated))
    }
}

/// Why a way could not be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// Subnet administration does not know the GID, or does not answer.
    #[error("no path: {why}")]
    NoPath {
        /// The GID.
        gid: Gid,
        /// What it said.
        why: String,
    },
    /// The own port does not tell of itself.
    #[error("the own port does not answer: {0}")]
    NoOwnPort(String),
    /// The start of the way is not reached.
    #[error("LID {lid}, at which the way starts, is not reached: {why}")]
    NoStart {
        /// The LID.
        lid: u16,
        /// Where the way to it ends, in a sentence.
        why: String,
        /// The hops of the way to it.
        hops: Vec<Hop>,
        /// Where it ends.
        stop: Box<Stop>,
    },
    /// It is no LID of a group.
    #[error("LID {lid:#06x} is not a multicast LID: expected 0xc000 to 0xfffe")]
    NotMulticast {
        /// The number.
        lid: u16,
    },
    /// It is no LID of a port.
    #[error("LID {lid} is not a unicast LID: expected 1 to 49151")]
    NotUnicast {
        /// The number.
        lid: u16,
    },
}

impl Stop {
    /// Returns what the end means for the path.
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

    /// Says in a sentence where the way to a LID ends and why; `name` returns what nodes are called.
    #[must_use]
    pub fn describe(
        &self,
        atlas: &Atlas,
        (lid, hops): (u16, &[Hop]),
        name: &dyn Fn(NodeNumber) -> String,
    ) -> String {
        match self {
            Self::Arrived => format!("LID {lid} is reached"),
            Self::NoEntry { at } => format!("{} has no entry for LID {lid}", name(*at)),
            Self::NotHere { at } => {
                format!("{} takes LID {lid} for its own, which it is not", name(*at))
            }
            Self::NoSuchPort { at, port } => {
                let ports = atlas.node(*at).ports;
                format!("{} sends LID {lid} to port {port}: it has {ports} ports", name(*at))
            }
            Self::Unlinked { at, port, why, .. } => {
                format!("no node answers behind port {port} of {}: {why}", name(*at))
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
                let end = atlas.end((*node, *port));
                let lids = end.map_or_else(String::new, |end| match (end.lid, end.last_lid()) {
                    (first, last) if first == last => format!(", which has LID {first}"),
                    (first, last) => format!(", which has LIDs {first} to {last}"),
                });
                format!("the way to LID {lid} ends at port {port} of {}{lids}", name(*node))
            }
            Self::Loop { first } => {
                let ring: Vec<String> = hops[*first..]
                    .iter()
                    .map(|hop| format!("{} port {}", name(hop.from), hop.out))
                    .collect();
                format!("packets to LID {lid} go round: {}", ring.join(" -> "))
            }
            Self::TooFar { at } => {
                format!(
                    "the way to LID {lid} leads further than can be followed: {} is {} hops on",
                    name(*at),
                    hops.len()
                )
            }
        }
    }
}
