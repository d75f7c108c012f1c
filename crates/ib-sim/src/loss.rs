//! Why a packet is lost.

use ib_wire::mad::smp::DropReason;

/// Why a packet is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// A switch has no entry for its LID.
    #[error("no route to LID {0}")]
    NoRoute(u16),
    /// An entry names a port that the switch does not have.
    #[error("the route to LID {lid} leaves by port {port}, which does not exist")]
    NoSuchPort {
        /// The destination.
        lid: u16,
        /// The port.
        port: u8,
    },
    /// It would leave by the port that it arrived by.
    #[error("the route to LID {0} leaves by the port of arrival")]
    TurnsBack(u16),
    /// It passed more switches than any route does.
    #[error("LID {0} was not reached in {hops} hops", hops = Loss::MOST_HOPS)]
    TooManyHops(u16),
    /// It arrived at an end port that does not have its LID.
    #[error("the port does not have LID {0}")]
    Misrouted(u16),
    /// The directed route is wrong.
    #[error("{0}")]
    DirectedRoute(#[from] DropReason),
    /// The link that it was to take is down.
    #[error("the link is down")]
    LinkDown,
    /// The link went down while it was under way.
    #[error("the link went down")]
    LinkWentDown,
    /// The port is not yet in a state in which data passes.
    #[error("the port is not active")]
    NotActive,
    /// Its service level has no VL here.
    #[error("service level {0} has no VL")]
    NoVl(u8),
    /// It is longer than the MTU of the link.
    #[error("it is longer than the link's MTU")]
    TooLong,
    /// It is shorter than its headers, or no multiple of four bytes.
    #[error("it is no packet")]
    Malformed,
    /// It stood at the head of its queue for too long.
    #[error("it waited too long at the head of VL {0}")]
    HeadOfQueue(u8),
    /// It was in a switch for longer than the switch's `LifeTimeValue` allows.
    #[error("it was in the switch for too long, on VL {0}")]
    LifeTime(u8),
    /// The buffer for subnet management was full.
    #[error("the buffer of VL 15 is full")]
    ManagementOverflow,
    /// A fault swallowed it.
    #[error("lost by a fault")]
    Fault,
    /// A fault damaged it.
    #[error("damaged by a fault")]
    Damaged,
    /// The receiver is not in its partition.
    #[error("the port is not in partition {0:#06x}")]
    Partition(u16),
    /// The key that guards the port does not match.
    #[error("the M_Key does not match")]
    MKey,
    /// Nobody takes its class or queue pair.
    #[error("nobody takes it")]
    NoReceiver,
    /// The port that it was to be sent from has no LID.
    #[error("the sender has no LID")]
    NoLid,
    /// The client that it was for has left.
    #[error("the client has left")]
    ClientLeft,
    /// Its client waits for the answers to too many others.
    #[error("the client waits for too many answers")]
    TooManyRequests,
    /// Nobody answered in time.
    #[error("no answer in time")]
    NoAnswer,
    /// The node has no power.
    #[error("the node has no power")]
    NoPower,
}

impl Loss {
    /// How many switches a packet passes at most.
    pub(crate) const MOST_HOPS: u16 = 255;
}

impl Loss {
    /// Returns a short name that stays the same whatever the values, as keys of statistics need it.
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
