//! Events of a connection manager (CM).

use ib_link::Route;
use ib_types::{Mtu, PKey, QKey, Qpn};
use ib_wire::mad::cm::{CmaHeader, ReferencedMessage, RejectReason, Rep, Req, SidrStatus};

use crate::id::{ConnectionId, ListenerId, ServiceId, SidrId, SidrRequestId};

/// An event of a CM.
///
/// A connection begins with a call of [`Cm::connect`](super::Cm::connect) or with [`CmEvent::Requested`].
/// Its last event is always [`CmEvent::TimeWaitExited`]. Private data in events has the full size of the
/// message field, with zeros at its end, because messages do not contain the size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CmEvent {
    /// A REQ was received. The consumer has to accept or reject it.
    Requested(Box<Requested>),
    /// A REP was received. The consumer has to program the queue pair and call
    /// [`established`](super::Cm::established), or to reject the REP.
    Connected(Box<Connected>),
    /// The peer of an accepted connection is ready.
    Established {
        /// The connection.
        id: ConnectionId,
        /// Private data of the RTU, 224 bytes; `None` if a packet arrived before the RTU.
        private_data: Option<Vec<u8>>,
    },
    /// A REJ was received before the connection was established.
    Rejected {
        /// The connection.
        id: ConnectionId,
        /// The type of the message that the REJ rejects.
        message: ReferencedMessage,
        /// The reason.
        reason: RejectReason,
        /// Additional information of the REJ, up to 72 bytes. Its meaning depends on the reason.
        info: Vec<u8>,
        /// Private data of the REJ, 148 bytes.
        private_data: Vec<u8>,
    },
    /// The connection was not established.
    Failed {
        /// The connection.
        id: ConnectionId,
        /// The reason.
        why: Failure,
    },
    /// An accepted connection has ended: no more packets may be sent. On the passive side, this event comes without
    /// [`CmEvent::Established`] if a DREQ arrives before the RTU.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// The reason why the connection has ended.
        cause: Cause,
        /// Private data of the received DREQ (220 bytes), DREP (224 bytes) or REJ (148 bytes). Empty if no such message
        /// was received.
        private_data: Vec<u8>,
    },
    /// Time-wait has ended, and no packet of the connection is in flight. The queue pair may be
    /// reused, and the connection ID is removed.
    TimeWaitExited {
        /// The connection.
        id: ConnectionId,
    },
    /// A `SIDR_REQ` was received. The consumer has to respond to it or reject it.
    SidrRequested(Box<SidrRequested>),
    /// A `SIDR_REP` was received.
    SidrResolved(Box<SidrResolved>),
    /// The peer did not respond to a `SIDR_REQ` after all attempts.
    SidrFailed {
        /// ID of the request.
        id: SidrId,
    },
}

/// The reason why a connection was not established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer did not respond to a REQ or REP after all attempts.
    Unreachable,
    /// The consumer did not respond to a REQ or REP within
    /// [`CmConfig::consumer_timeout`](super::CmConfig::consumer_timeout), so the CM has sent a REJ.
    Silent,
    /// The peer uses its queue pair for another connection.
    Stale,
    /// The connection waited for its RTU, and the CM ended it to make room for another request; see
    /// [`CmConfig::max_half_open`](super::CmConfig::max_half_open).
    Evicted,
}

/// The reason why an established connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The consumer of this CM has disconnected, and the peer has responded.
    Local,
    /// The consumer of this CM has disconnected, and the peer did not respond.
    Unanswered,
    /// The peer has disconnected.
    Remote,
    /// The peer has sent a REJ, because the connection was not established on its side.
    Rejected(RejectReason),
    /// The connection was stale: the peer uses its queue pair for another connection (IBTA volume 1, chapter 12.9.8.3).
    /// The CM identifies the peer by its HCA and queue pair.
    Stale,
}

/// A received connection request (REQ).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The connection.
    pub id: ConnectionId,
    /// The listener.
    pub listener: ListenerId,
    /// The service.
    pub service_id: ServiceId,
    /// Route of the response to the REQ.
    pub route: Route,
    /// Route of the packets to the peer, as the peer proposes it. [`Route::is_weak`] is true unless
    /// both sides have the same [`Ece`](crate::Ece).
    pub path: Route,
    /// The `rdma_cm` header, if the listener listens on an `rdma_cm` port.
    pub cma: Option<CmaHeader>,
    /// Private data of the REQ: 92 bytes, or 56 bytes after an `rdma_cm` header.
    pub private_data: Vec<u8>,
    /// The received REQ. Its fields that are called "local" describe the peer.
    pub req: Req,
}

/// A received REP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The connection.
    pub id: ConnectionId,
    /// Route of the packets to the peer, which is the route of the REQ. [`Route::is_weak`] is true
    /// unless both sides have the same [`Ece`](crate::Ece).
    pub path: Route,
    /// Private data of the REP, 196 bytes.
    pub private_data: Vec<u8>,
    /// The received REP. Its fields that are called "local" describe the peer.
    pub rep: Rep,
}

/// A received `SIDR_REQ`: a request for the queue pair of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrRequested {
    /// ID of the request.
    pub id: SidrRequestId,
    /// The listener of the service.
    pub listener: ListenerId,
    /// The service.
    pub service_id: ServiceId,
    /// Route of the response to the `SIDR_REQ`.
    pub route: Route,
    /// The P_Key.
    pub p_key: PKey,
    /// The `rdma_cm` header, if the listener listens on an `rdma_cm` port.
    pub cma: Option<CmaHeader>,
    /// Private data of the `SIDR_REQ`: 216 bytes, or 180 bytes after an `rdma_cm` header.
    pub private_data: Vec<u8>,
}

/// A received `SIDR_REP`: the response to a SIDR request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrResolved {
    /// ID of the request.
    pub id: SidrId,
    /// The status. Other fields are valid only if it is [`SidrStatus::VALID`].
    pub status: SidrStatus,
    /// The queue pair of the service.
    pub qpn: Qpn,
    /// The Q_Key of the queue pair.
    pub q_key: QKey,
    /// Additional information of the `SIDR_REP`, up to 72 bytes. Its meaning depends on the status.
    pub info: Vec<u8>,
    /// Private data of the `SIDR_REP`, 136 bytes.
    pub private_data: Vec<u8>,
}

/// Returns the largest acceptable path MTU, if the additional information `info` of a REJ contains it.
///
/// The code of the MTU is normally in the upper four bits, as in a REQ. A code in the lower bits is accepted, too.
#[must_use]
pub fn accepted_mtu(reason: RejectReason, info: &[u8]) -> Option<Mtu> {
    let &code = info.first().filter(|_| reason == RejectReason::INVALID_MTU)?;
    Mtu::from_code(code >> 4).or_else(|| Mtu::from_code(code))
}
