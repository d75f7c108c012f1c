//! What a connection manager tells its owner.

use ib_link::Route;
use ib_types::{Mtu, PKey, QKey, Qpn};
use ib_wire::mad::cm::{Refused, RejectReason, Rep, Req, SidrStatus};

use super::{CmaHeader, ConnectionId, ListenerId, ServiceId, SidrId, SidrRequestId};

/// What has happened.
///
/// A connection is told of from `connect` or [`CmEvent::Requested`] on; its last event is always
/// [`CmEvent::TimeWaitExited`]. Private data comes in the full length of its message, padded with
/// zeros, for its length does not travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CmEvent {
    /// A peer asks for a connection: accept or reject it.
    Requested(Box<Requested>),
    /// A peer accepts: program the queue pair, then call
    /// [`established`](super::Cm::established), or reject.
    Connected(Box<Connected>),
    /// The peer of an accepted connection is ready.
    Established {
        /// The connection.
        id: ConnectionId,
        /// What the peer says in its RTU, 224 bytes; `None` when a packet was faster than the RTU.
        private_data: Option<Vec<u8>>,
    },
    /// The peer refuses what was last said, before the connection was established.
    Rejected {
        /// The connection.
        id: ConnectionId,
        /// What the peer refuses.
        message: Refused,
        /// Why.
        reason: RejectReason,
        /// Further information by reason, up to 72 bytes.
        info: Vec<u8>,
        /// What the peer says, 148 bytes.
        private_data: Vec<u8>,
    },
    /// The connection was not established.
    Failed {
        /// The connection.
        id: ConnectionId,
        /// Why.
        why: Failure,
    },
    /// The connection was accepted and has ended: no more packets may be sent. For one that a peer
    /// asked for this may come without [`CmEvent::Established`], when a DREQ is faster than the RTU.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// Who ended it.
        cause: Cause,
        /// What the peer says in its DREQ (220 bytes), DREP (224) or REJ (148); else empty.
        private_data: Vec<u8>,
    },
    /// No packet of the connection is on its way any more: the queue pair may be used again, and the
    /// number is forgotten.
    TimeWaitExited {
        /// The connection.
        id: ConnectionId,
    },
    /// A peer asks for the queue pair of a service of datagrams: answer or refuse.
    SidrRequested(Box<SidrRequested>),
    /// A peer has answered for a service of datagrams.
    SidrResolved(Box<SidrResolved>),
    /// A question for a service of datagrams had no answer after all attempts.
    SidrFailed {
        /// The question.
        id: SidrId,
    },
}

/// Why a connection was not established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A REQ or REP had no answer after all attempts.
    Unreachable,
    /// The consumer did not answer a REQ or REP within
    /// [`CmConfig::consumer_timeout`](super::CmConfig::consumer_timeout); the peer was refused.
    Silent,
    /// The peer uses its queue pair for another connection.
    Stale,
}

/// What ended an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The own side; the peer knows.
    Local,
    /// The own side; the peer did not answer.
    Unanswered,
    /// The peer.
    Remote,
    /// The peer, by a REJ: to it, the connection was never established.
    Rejected(RejectReason),
    /// The peer uses its queue pair for another connection: it has forgotten this one. IBTA volume 1,
    /// chapter 12.9.8.3. That is believed to whoever names the HCA and the queue pair.
    Stale,
}

/// A request for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The connection.
    pub id: ConnectionId,
    /// Who listens for it.
    pub listener: ListenerId,
    /// The service.
    pub service_id: ServiceId,
    /// How the answer travels.
    pub route: Route,
    /// How the packets of the connection travel, seen from here, as the peer proposes; weak unless the vendor of the
    /// peer is the own one.
    pub path: Route,
    /// The header of `rdma_cm`, when the listener is one of `rdma_cm`.
    pub cma: Option<CmaHeader>,
    /// What the peer says: 92 bytes, behind a header 56.
    pub private_data: Vec<u8>,
    /// The whole message. Its "local" is the peer.
    pub req: Req,
}

/// The acceptance of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The connection.
    pub id: ConnectionId,
    /// How the packets of the connection travel: as the REQ did, weak unless the vendor of the peer is the own one.
    pub path: Route,
    /// What the peer says, 196 bytes.
    pub private_data: Vec<u8>,
    /// The whole message. Its "local" is the peer.
    pub rep: Rep,
}

/// A question for the queue pair of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrRequested {
    /// The question.
    pub id: SidrRequestId,
    /// Who listens for the service.
    pub listener: ListenerId,
    /// The service.
    pub service_id: ServiceId,
    /// How the answer travels.
    pub route: Route,
    /// The partition.
    pub p_key: PKey,
    /// The header of `rdma_cm`, when the listener is one of `rdma_cm`.
    pub cma: Option<CmaHeader>,
    /// What the peer says: 216 bytes, behind a header 180.
    pub private_data: Vec<u8>,
}

/// The answer to a question for the queue pair of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrResolved {
    /// The question.
    pub id: SidrId,
    /// Whether the queue pair is valid.
    pub status: SidrStatus,
    /// The queue pair.
    pub qpn: Qpn,
    /// The key of the queue pair.
    pub q_key: QKey,
    /// Further information by status, up to 72 bytes.
    pub info: Vec<u8>,
    /// What the peer says, 136 bytes.
    pub private_data: Vec<u8>,
}

/// Returns the largest path MTU that the additional information of a REJ accepts, if it names one. The code is in the
/// bits in which a REQ has it; some peers may write it as a number.
#[must_use]
pub fn accepted_mtu(reason: RejectReason, info: &[u8]) -> Option<Mtu> {
    let &code = info.first().filter(|_| reason == RejectReason::INVALID_MTU)?;
    Mtu::from_code(code >> 4).or_else(|| Mtu::from_code(code))
}
