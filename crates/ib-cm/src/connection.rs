//! One connection: its state, and the messages that need nothing else.

use std::fmt;
use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Guid, Psn, Qpn};
use ib_wire::mad::cm::{Drep, Mra, Refused, Rej, RejectReason};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};

use crate::id::ConnectionId;

/// The state of a connection; IBTA volume 1, chapter 12.9.7.
///
/// A wait that a MRA extends is no state of its own, nor is a DREQ that came: it is answered at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A REQ is sent; waits for the peer.
    ReqSent,
    /// A REP came; waits for the consumer.
    RepReceived,
    /// A REQ came; waits for the consumer.
    ReqReceived,
    /// A REP is sent; waits for the peer.
    RepSent,
    /// Both sides may send.
    Established,
    /// A DREQ is sent; waits for the peer.
    DreqSent,
    /// It has ended, with or without having been established; late messages may come.
    TimeWait,
}

impl State {
    /// The name of the state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReqSent => "REQ sent",
            Self::RepReceived => "REP received",
            Self::ReqReceived => "REQ received",
            Self::RepSent => "REP sent",
            Self::Established => "established",
            Self::DreqSent => "DREQ sent",
            Self::TimeWait => "time-wait",
        }
    }

    /// Returns true for what counts against the limit of half-open requests of others.
    pub(crate) const fn is_half_open(self) -> bool {
        matches!(self, Self::ReqReceived | Self::RepSent)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which side asked for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Active,
    Passive,
}

/// Address of a peer: its GID, or its LID if its messages have no GRH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    Gid(Gid),
    Lid(u16),
}

impl Address {
    /// Returns the address to which a route leads.
    pub(crate) const fn of(route: &Route) -> Self {
        if route.is_global { Self::Gid(route.destination) } else { Self::Lid(route.dlid) }
    }
}

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) id: ConnectionId,
    pub(crate) role: Role,
    pub(crate) state: State,
    /// Position in the order in which connections were created.
    pub(crate) serial: u64,
    /// How messages travel.
    pub(crate) route: Route,
    /// True while the peer is not known to be an HCA of this project: its messages may be weak.
    pub(crate) accepts_weak: bool,
    /// The transaction of the REQ, which all messages repeat but DREQ and DREP.
    pub(crate) transaction_id: TransactionId,
    /// The own queue pair; 0 until there is one.
    pub(crate) local_qpn: Qpn,
    /// The peer's HCA, number and queue pair; the active side learns them from the REP.
    pub(crate) remote: Option<RemoteEnd>,
    /// How long the answer to a message is awaited.
    pub(crate) interval: Duration,
    /// How often a message is sent again, and how often it may still be.
    pub(crate) retries: u8,
    pub(crate) left: u8,
    /// A MRA has extended the wait for the answer to what was sent last.
    pub(crate) is_extended: bool,
    /// What was sent last, for when it is needed again.
    pub(crate) last: Option<Mad>,
    /// The peer knows the own number.
    pub(crate) is_announced: bool,
    /// The REQ proposes an alternate path.
    pub(crate) has_alternate: bool,
    pub(crate) time_wait: Duration,
    /// How long the peer was last asked to be patient.
    pub(crate) patience: Duration,
}

/// What the peer calls its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteEnd {
    pub(crate) ca_guid: Guid,
    pub(crate) comm_id: u32,
    pub(crate) qpn: Qpn,
    pub(crate) starting_psn: Psn,
}

impl Connection {
    /// Returns whether a message comes from where the peer is.
    pub(crate) fn comes_from(&self, route: &Route) -> bool {
        Address::of(&self.route) == Address::of(route)
    }

    /// Returns the peer's number; 0 while it is not known.
    pub(crate) fn remote_comm_id(&self) -> u32 {
        self.remote.map_or(0, |remote| remote.comm_id)
    }

    /// Returns the own number, or 0 where the peer does not know it: in the refusal of a REQ.
    fn announced_id(&self) -> u32 {
        if self.role == Role::Active || self.is_announced { self.id.0 } else { 0 }
    }

    /// Returns the transaction of what is no answer to the peer: DREQ.
    pub(crate) fn own_transaction(&self) -> TransactionId {
        TransactionId(self.id.0.into())
    }

    /// Returns what was last said by the peer, as REJ and MRA name it.
    pub(crate) const fn received(&self) -> Refused {
        match self.role {
            Role::Active => Refused::REP,
            Role::Passive => Refused::REQ,
        }
    }

    /// Returns the refusal of what was last said by the peer.
    ///
    /// # Panics
    /// Panics if there is more additional information than 72 bytes.
    pub(crate) fn rej(&self, reason: RejectReason, info: &[u8], private_data: [u8; 148]) -> Mad {
        let mut rej = Rej {
            local_comm_id: self.announced_id(),
            remote_comm_id: self.remote_comm_id(),
            message: self.received(),
            reason,
            info_length: info.len() as u8,
            private_data,
            ..Rej::zeroed()
        };
        rej.info[..info.len()].copy_from_slice(info);
        message(self.transaction_id, &rej)
    }

    /// Returns the message that the answer to what was sent did not come in time. The peer may not
    /// know the own number from it but by the HCA.
    pub(crate) fn timeout_rej(&self, ca_guid: Guid) -> Mad {
        let mut rej = Rej {
            local_comm_id: self.id.0,
            remote_comm_id: self.remote_comm_id(),
            message: match self.role {
                Role::Active => Refused::REQ,
                Role::Passive => Refused::REP,
            },
            info_length: 8,
            reason: RejectReason::TIMEOUT,
            ..Rej::zeroed()
        };
        rej.info[..8].copy_from_slice(&ca_guid.0.to_be_bytes());
        message(self.transaction_id, &rej)
    }

    /// Returns the acknowledgement of what was last said by the peer.
    pub(crate) fn mra(&self, service_timeout: u8, private_data: [u8; 222]) -> Mad {
        let mra = Mra {
            local_comm_id: self.id.0,
            remote_comm_id: self.remote_comm_id(),
            message: self.received(),
            service_timeout,
            private_data,
        };
        message(self.transaction_id, &mra)
    }
}

/// Returns a message of the class.
pub(crate) fn message<A: Attribute>(transaction_id: TransactionId, attribute: &A) -> Mad {
    let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, transaction_id);
    mad.set_attribute(attribute);
    mad
}

/// Returns the answer to a DREQ.
pub(crate) fn drep(dreq: &Mad, local_comm_id: u32, remote_comm_id: u32) -> Mad {
    message(dreq.transaction_id(), &Drep { local_comm_id, remote_comm_id, ..Drep::zeroed() })
}

/// Returns the refusal of a message that belongs to no connection.
pub(crate) fn refusal(
    refused: &Mad,
    (local_comm_id, remote_comm_id): (u32, u32),
    what: Refused,
    reason: RejectReason,
) -> Mad {
    let rej = Rej { local_comm_id, remote_comm_id, message: what, reason, ..Rej::zeroed() };
    message(refused.transaction_id(), &rej)
}

/// Returns true for the queue pairs of management and for that of multicast, which cannot be
/// connected.
pub(crate) fn is_special(qpn: Qpn) -> bool {
    qpn <= Qpn::GSI || qpn == Qpn::MULTICAST
}
