//! What came of a trace.

use std::time::Duration;

use ib_types::{Gid, Guid};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sm::PortState;

use crate::atlas::{Atlas, NodeNumber};

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
    /// After more hops than a source route has room for.
    TooFar {
        /// The last node.
        at: NodeNumber,
    },
}

/// What is known of a hop of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its agent has seen a packet come in by the port that the way enters by, over the same link.
    Validated,
    /// Its agent has seen a packet come in as the tables say, but the way to the hop's own LID enters
    /// by another link than the traced way.
    OwnRouteOnly {
        /// The port by which the way to the own LID enters.
        enters: u8,
        /// Whether subnet management that the switch before has sent to the hop's own LID by the link
        /// of the traced way came in by it.
        seen: bool,
    },
    /// What is sent from the own port to the hop's own LID does not come in as the tables say, or its
    /// answer gets lost; that is not the fault of this link, by which the switch before sends right.
    OwnRouteAstray,
    /// Nothing answers at its LID, and packets get lost here and there: that proves nothing.
    Unanswered,
    /// The switch before sends otherwise than its table says: subnet management that it was to send by
    /// the link of the traced way came in by another port, or got lost.
    Misdirected {
        /// The port of the hop that it came in by; `None` when it got lost, or to another node.
        actual: Option<u8>,
        /// The other node that it came to.
        elsewhere: Option<Guid>,
        /// Where the switch before counts it; `None` when its counters do not tell. Then, where it got
        /// lost, it may also be the node behind that sends the answer otherwise than its table says.
        left: Option<Left>,
    },
    /// The switch before sends otherwise than its table says, and it arrives at the end of the way
    /// nevertheless.
    Detour {
        /// The port that the switch before sends by, as its counters tell.
        by: u8,
    },
    /// The link is not the one that subnet administration believes.
    OtherLink {
        /// What is there, in words about the port before.
        what: String,
    },
    /// The table of the switch before is not what subnet administration believes.
    OtherTable {
        /// The port that the switch has for the LID.
        holds: u8,
    },
    /// Its agent has seen a packet come in by another port than the tables say.
    Mismatch {
        /// The port that the tables of the way to the hop's own LID say.
        expected: u8,
        /// The port that it was.
        actual: u8,
        /// Whether the traced way enters by the same link as the way to the hop's own LID.
        same_link: bool,
    },
    /// Nothing that is sent to its LID gets there.
    Lost,
    /// What is sent to its LID gets to another node.
    Elsewhere {
        /// The GUID of the node that answered.
        guid: Guid,
    },
    /// The tables do not lead to its own LID.
    NoRoute,
    /// It has no agent; it answers subnet management that is sent to its LID.
    NoAgent,
    /// Somebody answers on service level 0, and not on the one that was asked on.
    OtherLevel,
    /// Its agent has answered that it is there, and not by which port a request came in.
    Silent,
    /// Its agent does not know by which port packets come in.
    CannotTell,
    /// Its agent answers what no agent may.
    Absurd {
        /// What it says.
        what: String,
    },
    /// Its agent answers with this status.
    Refused {
        /// The status.
        status: MadStatus,
    },
    /// It is the own port: nothing has to be sent to it.
    Own,
    /// It was not asked: agents are not wanted, or the way ended before.
    NotAsked,
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
    /// Returns true when the fabric does not do what its tables say.
    #[must_use]
    pub const fn is_bad(&self) -> bool {
        matches!(
            self,
            Self::Mismatch { .. }
                | Self::Misdirected { .. }
                | Self::Detour { .. }
                | Self::OtherTable { .. }
                | Self::OtherLink { .. }
                | Self::Lost
                | Self::Elsewhere { .. }
                | Self::Absurd { .. }
        )
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
    /// Returns true when the way leads to its destination and nothing contradicts it.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.stop == Stop::Arrived && self.hops.iter().all(|(_, verdict)| !verdict.is_bad())
    }

    /// Returns the first hop that is not what the tables say.
    #[must_use]
    pub fn first_bad(&self) -> Option<&(Hop, Verdict)> {
        self.hops.iter().find(|(_, verdict)| verdict.is_bad())
    }

    /// Returns true when it is good and its last hop has an agent that was asked by the same link.
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
            Self::Unlinked { at, port, why } => {
                format!("nobody answers behind port {port} of {}: {why}", name(*at))
            }
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
