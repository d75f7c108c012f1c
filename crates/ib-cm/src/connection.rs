//! State of a connection, and construction of its messages.

use std::fmt;
use std::time::Duration;

use ib_link::Route;
use ib_types::{Gid, Guid, Psn, Qpn};
use ib_wire::mad::cm::{Drep, Mra, ReferencedMessage, Rej, RejectReason};
use ib_wire::mad::{Attribute, Mad, Method, MgmtClass, TransactionId};

use crate::id::ConnectionId;

/// The state of a connection; IBTA volume 1, chapter 12.9.7.
///
/// The states "MRA sent" and "MRA received" do not exist: an MRA does not change the state. "DREQ received" does not
/// exist, because the CM sends the DREP immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A REQ was sent. The CM waits for the peer's response.
    ReqSent,
    /// A REP was received. The CM waits for the consumer's response.
    RepReceived,
    /// A REQ was received. The CM waits for the consumer's response.
    ReqReceived,
    /// A REP was sent. The CM waits for the peer's RTU.
    RepSent,
    /// The connection is established.
    Established,
    /// A DREQ was sent. The CM waits for the peer's DREP.
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

    /// Returns true if a connection in this state is half-open. [`CmConfig::max_half_open`](crate::CmConfig) limits the
    /// number of these connections.
    pub(crate) const fn is_half_open(self) -> bool {
        matches!(self, Self::ReqReceived | Self::RepSent)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The side of a connection on which this CM is.
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
    /// Returns the address of the peer to which a route leads.
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
    /// Serial number of the connection. Connections are numbered in the order in which they were created.
    pub(crate) serial: u64,
    /// Route of the messages to the peer.
    pub(crate) route: Route,
    /// True while the peer is not known to be an HCA of ibfabric. Its messages are then accepted even if their ICRC
    /// could be checked only in part.
    pub(crate) accepts_weak: bool,
    /// The transaction ID of the REQ. All messages of the connection except DREQ and DREP have the same one.
    pub(crate) transaction_id: TransactionId,
    /// The QPN of the local queue pair; 0 if there is none yet.
    pub(crate) local_qpn: Qpn,
    /// HCA, communication ID and queue pair of the peer; `None` on the active side before the REP.
    pub(crate) remote: Option<RemoteEnd>,
    /// The retransmission timeout of the connection's messages.
    pub(crate) interval: Duration,
    /// The maximum number of retransmissions of a message.
    pub(crate) retries: u8,
    /// The number of retransmissions left for the last message.
    pub(crate) retries_left: u8,
    /// True if an MRA has extended the timeout of the last message.
    pub(crate) is_extended: bool,
    /// The message that this CM has sent last for the connection, for retransmission.
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
    /// Returns true if a message with this route comes from the address of the peer.
    pub(crate) fn comes_from(&self, route: &Route) -> bool {
        Address::of(&self.route) == Address::of(route)
    }

    /// Returns the peer's communication ID; 0 if unknown.
    pub(crate) fn remote_comm_id(&self) -> u32 {
        self.remote.map_or(0, |remote| remote.comm_id)
    }

    /// Returns the local communication ID, or 0 if the peer does not know it. For example, the REJ of a REQ contains 0.
    fn announced_id(&self) -> u32 {
        if self.role == Role::Active || self.peer_knows_id { self.id.0 } else { 0 }
    }

    /// Returns the transaction ID for a DREQ. A DREQ starts a new transaction, so it does not use the transaction ID of
    /// the REQ.
    pub(crate) fn own_transaction(&self) -> TransactionId {
        TransactionId(self.id.0.into())
    }

    /// Returns the type of the peer's last message, to which a REJ or MRA refers.
    pub(crate) const fn received(&self) -> ReferencedMessage {
        match self.role {
            Role::Active => ReferencedMessage::REP,
            Role::Passive => ReferencedMessage::REQ,
        }
    }

    /// Returns a REJ of the peer's last message.
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

    /// Returns a REJ with reason timeout, for a peer that has not responded in time.
    ///
    /// The REJ contains the GUID of the local HCA, because the peer may not know the local communication ID.
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

    /// Returns an MRA for the peer's last message.
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

/// Returns a CM message with the given transaction ID and contents.
pub(crate) fn message<A: Attribute>(transaction_id: TransactionId, attribute: &A) -> Mad {
    let mut mad = Mad::new(MgmtClass::COMMUNICATION, Method::SEND, transaction_id);
    mad.set_attribute(attribute);
    mad
}

/// Returns the DREP to a DREQ.
pub(crate) fn drep(dreq: &Mad, local_comm_id: u32, remote_comm_id: u32) -> Mad {
    message(dreq.transaction_id(), &Drep { local_comm_id, remote_comm_id, ..Drep::zeroed() })
}

/// Returns a REJ of a message that does not belong to a connection.
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
