//! Reasons for the loss of packets, and statistics of a run.

use std::collections::BTreeMap;

use ib_wire::mad::smp::DropReason;

use crate::client::MAX_OUTSTANDING;

/// The reason why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// A switch has no LFT entry for the DLID.
    #[error("no route to LID {0}")]
    NoRoute(u16),
    /// An LFT entry refers to a port that the switch does not have.
    #[error("the route to LID {lid} leaves by port {port}, which does not exist")]
    NoSuchPort {
        /// The destination LID.
        lid: u16,
        /// The port in the LFT entry.
        port: u8,
    },
    /// The egress port of the packet would be its ingress port.
    #[error("the route to LID {0} leaves through the port of arrival")]
    TurnsBack(u16),
    /// The packet would pass more than 255 switches.
    #[error("LID {0} was not reached in {hops} hops", hops = Loss::MAX_HOPS)]
    TooManyHops(u16),
    /// The packet has arrived at an end port that does not have the DLID.
    #[error("the port does not have LID {0}")]
    Misrouted(u16),
    /// The directed route of the SMP is invalid.
    #[error("{0}")]
    DirectedRoute(#[from] DropReason),
    /// The link out of the egress port is down.
    #[error("the link is down")]
    LinkDown,
    /// The link went down while the packet was on it.
    #[error("the link went down")]
    LinkWentDown,
    /// The port is not in a state in which it sends or receives data packets.
    #[error("the port is not active: expected an SM to activate it")]
    NotActive,
    /// The SL of the packet has no VL at the egress port.
    #[error("service level {0} has no VL at the egress port")]
    NoVl(u8),
    /// The packet is longer than the MTU of the link.
    #[error("the packet is longer than the MTU of the egress port")]
    TooLong,
    /// The packet is shorter than its headers, or its length is not a multiple of four bytes.
    #[error("the packet is shorter than a BTH, or its length is not a multiple of 4 bytes")]
    Malformed,
    /// The packet exceeded the head-of-queue lifetime limit.
    #[error("the packet exceeded HOQLife on VL {0}")]
    HeadOfQueue(u8),
    /// The packet exceeded the `LifeTimeValue` of a switch.
    #[error("the packet exceeded LifeTimeValue on VL {0}")]
    LifeTime(u8),
    /// The buffer for SMPs was full.
    #[error("the buffer of VL 15 is full")]
    ManagementOverflow,
    /// A fault has dropped the packet.
    #[error("lost by a fault")]
    Fault,
    /// A fault has damaged the packet.
    #[error("damaged by a fault")]
    Damaged,
    /// The port is not in the partition of the packet.
    #[error("the port is not in partition {0:#06x}")]
    Partition(u16),
    /// The M_Key of the request does not match that of the port.
    #[error("the M_Key of the request does not match that of the port")]
    MKey,
    /// No client or agent receives the class or QP of the packet.
    #[error("no client or agent receives the class or QP of the packet")]
    NoReceiver,
    /// The sending port has no LID.
    #[error("the sending port has no LID: expected an SM to assign one")]
    NoLid,
    /// The client that would receive the packet has detached.
    #[error("the client that would receive the packet is detached")]
    ClientLeft,
    /// The client that sent the request has too many outstanding requests.
    #[error("the client has {MAX_OUTSTANDING} outstanding requests, which is the maximum")]
    TooManyRequests,
    /// The request got no response in time.
    #[error("the request got no response in time")]
    NoAnswer,
    /// The node that would send the packet has no power.
    #[error("the node has no power")]
    NoPower,
}

impl Loss {
    /// Maximum number of switches that a packet passes.
    pub(crate) const MAX_HOPS: u16 = 255;
}

impl Loss {
    /// Returns the short name of the reason, which is its key in statistics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoRoute(_) => "no_route",
            Self::NoSuchPort { .. } => "no_such_port",
            Self::TurnsBack(_) => "turns_back",
            Self::TooManyHops(_) => "too_many_hops",
            Self::Misrouted(_) => "misrouted",
            Self::DirectedRoute(_) => "directed_route",
            Self::LinkDown => "link_down",
            Self::LinkWentDown => "link_went_down",
            Self::NotActive => "not_active",
            Self::NoVl(_) => "no_lane",
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::HeadOfQueue(_) => "head_of_queue",
            Self::LifeTime(_) => "life_time",
            Self::ManagementOverflow => "management_overflow",
            Self::Fault => "fault",
            Self::Damaged => "damaged",
            Self::Partition(_) => "partition",
            Self::MKey => "m_key",
            Self::NoReceiver => "no_receiver",
            Self::NoLid => "no_lid",
            Self::ClientLeft => "client_left",
            Self::TooManyRequests => "too_many_requests",
            Self::NoAnswer => "no_answer",
            Self::NoPower => "no_power",
        }
    }
}

/// Counters of packets, requests and script steps of the whole fabric since its creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of times that a packet arrived at the other end of a link.
    pub hops: u64,
    /// Packets that were delivered to agents and clients.
    pub delivered: u64,
    /// Requests that agents of nodes have responded to.
    pub answered: u64,
    /// Script steps that have failed.
    pub failed_steps: u64,
    /// Lost packets by reason.
    pub lost: BTreeMap<&'static str, u64>,
}

impl Stats {
    pub(crate) fn lose(&mut self, why: Loss) {
        *self.lost.entry(why.name()).or_default() += 1;
    }
}
