//! A connection: its state, and the construction of its messages.

use std::fmt;
use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Guid, Psn, Qpn};
use ib_wire::mad::cm::{Drep, Mra, ReferencedMessage, Rej, RejectReason};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};

use crate::id::ConnectionId;

/// The state of a connection; IBTA volume 1, chapter 12.9.7.
///
/// The states "MRA sent" and "MRA received" are merged with those before the MRA. "DREQ received"
/// does not exist, because the DREP is sent immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A REQ was sent; waits for the peer.
    ReqSent,
    /// A REP was received; waits for the consumer.
    RepReceived,
    /// A REQ was received; waits for the consumer.
    ReqReceived,
    /// A REP was sent; waits for the peer.
    RepSent,
    /// The connection is established.
    Established,
    /// A DREQ was sent; waits for the peer.
    DreqSent,
    /// The connection has ended or was never established. Late messages and packets may arrive.
    TimeWait,
}

impl State {
    /// Returns the name of the state.
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

    /// Returns true for half-open connections, which [`CmConfig::max_half_open`](crate::CmConfig)
    /// limits.
    pub(crate) const fn is_half_open(self) -> bool {
        matches!(self, Self::ReqReceived | Self::RepSent)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The side of a connection.
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
    /// The QPN of the local queue pair; 0 if there is none yet.
    pub(crate) local_qpn: Qpn,
    /// HCA, communication ID and queue pair of the peer; on the active side unknown before the REP.
    pub(crate) remote: Option<RemoteEnd>,
    /// The retransmission timeout.
    pub(crate) interval: Duration,
    /// The number of retransmissions of each message.
    pub(crate) retries: u8,
    /// The number of retransmissions left for the last message.
    pub(crate) retries_left: u8,
    /// True if an MRA has extended the timeout of the last message.
    pub(crate) is_extended: bool,
    /// The last message, for retransmission.
    pub(crate) last: Option<Mad>,
    /// True if the peer knows the local communication ID.
    pub(crate) peer_knows_id: bool,
    /// True if the REQ has an alternate path.
    pub(crate) has_alternate: bool,
    pub(crate) time_wait: Duration,
    /// The service timeout of the last MRA sent to the peer.
    pub(crate) mra_timeout: Duration,
}

/// The peer's end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteEnd {
    pub(crate) ca_guid: Guid,
    pub(crate) comm_id: u32,
    pub(crate) qpn: Qpn,
    pub(crate) starting_psn: Psn,
}

impl Connection {
    /// Returns true if a message was received from the address of the peer.
    pub(crate) fn comes_from(&self, route: &Route) -> bool {
        Address::of(&self.route) == Address::of(route)
    }

    /// Returns the peer's communication ID; 0 if unknown.
    pub(crate) fn remote_comm_id(&self) -> u32 {
        self.remote.map_or(0, |remote| remote.comm_id)
    }

    /// Returns the local communication ID; 0 if the peer does not know it, as in the REJ of a REQ.
    fn announced_id(&self) -> u32 {
        if self.role == Role::Active || self.peer_knows_id { self.id.0 } else { 0 }
    }

    /// Returns the transaction ID of a DREQ, which is not a response to the peer.
    pub(crate) fn own_transaction(&self) -> TransactionId {
        TransactionId(self.id.0.into())
    }

    /// Returns the last message of the peer, for REJ and MRA.
    pub(crate) const fn received(&self) -> ReferencedMessage {
        match self.role {
            Role::Active => ReferencedMessage::REP,
            Role::Passive => ReferencedMessage::REQ,
        }
    }

    /// Returns the REJ of the last message of the peer.
    ///
    /// # Panics
    /// Panics if `info` is longer than 72 bytes.
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

    /// Returns the REJ with reason timeout: the peer has not responded in time.
    ///
    /// It contains the GUID of the local HCA, because the peer may not know the local communication ID.
    pub(crate) fn timeout_rej(&self, ca_guid: Guid) -> Mad {
        let mut rej = Rej {
            local_comm_id: self.id.0,
            remote_comm_id: self.remote_comm_id(),
            message: match self.role {
                Role::Active => ReferencedMessage::REQ,
                Role::Passive => ReferencedMessage::REP,
            },
            info_length: 8,
            reason: RejectReason::TIMEOUT,
            ..Rej::zeroed()
        };
        rej.info[..8].copy_from_slice(&ca_guid.0.to_be_bytes());
        message(self.transaction_id, &rej)
    }

    /// Returns the MRA of the last message of the peer.
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

/// Returns a CM message.
pub(crate) fn message<A: Attribute>(transaction_id: TransactionId, attribute: &A) -> Mad {
    let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, transaction_id);
    mad.set_attribute(attribute);
    mad
}

/// Returns the DREP of a DREQ.
pub(crate) fn drep(dreq: &Mad, local_comm_id: u32, remote_comm_id: u32) -> Mad {
    message(dreq.transaction_id(), &Drep { local_comm_id, remote_comm_id, ..Drep::zeroed() })
}

/// Returns the REJ of a message without a connection.
pub(crate) fn rejection(
    refused: &Mad,
    local_comm_id: u32,
    remote_comm_id: u32,
    what: ReferencedMessage,
    reason: RejectReason,
) -> Mad {
    let rej = Rej { local_comm_id, remote_comm_id, message: what, reason, ..Rej::zeroed() };
    message(refused.transaction_id(), &rej)
}

/// Returns true for QP0, QP1 and the multicast QP, which cannot be connected.
pub(crate) fn is_special(qpn: Qpn) -> bool {
    qpn <= Qpn::GSI || qpn == Qpn::MULTICAST
}
