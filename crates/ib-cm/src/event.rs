//! Events of a connection manager (CM).

use ib_link::Route;
use ib_types::{Mtu, PKey, QKey, Qpn};
use ib_wire::mad::cm::{CmaHeader, Refused, RejectReason, Rep, Req, SidrStatus};

use crate::id::{ConnectionId, ListenerId, ServiceId, SidrId, SidrRequestId};

/// An event of a CM.
///
/// Events of a connection begin with `connect` or [`CmEvent::Requested`]. The last event is always
/// [`CmEvent::TimeWaitExited`]. Private data has the full size of its message field, padded with
/// zeros, because its size is not transmitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CmEvent {
    /// A REQ was received: accept or reject it.
    Requested(Box<Requested>),
    /// A REP was received: program the queue pair, then call
    /// [`established`](super::Cm::established), or reject.
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
        /// The rejected message.
        message: Refused,
        /// The reason.
        reason: RejectReason,
        /// Further information by reason, up to 72 bytes.
        info: Vec<u8>,
        /// Private data, 148 bytes.
        private_data: Vec<u8>,
    },
    /// The connection was not established.
    Failed {
        /// The connection.
        id: ConnectionId,
        /// The reason.
        why: Failure,
    },
    /// An accepted connection has ended: no more packets may be sent. On the passive side this may come without
    /// [`CmEvent::Established`], if a DREQ arrives before the RTU.
    Disconnected {
        /// The connection.
        id: ConnectionId,
        /// The side that ended it.
        cause: Cause,
        /// Private data of the DREQ (220 bytes), DREP (224) or REJ (148); else empty.
        private_data: Vec<u8>,
    },
    /// Time-wait is over, and no packet of the connection is in flight: the queue pair may be reused, and the ID is
    /// removed.
    TimeWaitExited {
        /// The connection.
        id: ConnectionId,
    },
    /// A `SIDR_REQ` was received: answer or reject it.
    SidrRequested(Box<SidrRequested>),
    /// A `SIDR_REP` was received.
    SidrResolved(Box<SidrResolved>),
    /// A `SIDR_REQ` had no response after all attempts.
    SidrFailed {
        /// The request.
        id: SidrId,
    },
}

/// The reason why a connection was not established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A REQ or REP had no response after all attempts.
    Unreachable,
    /// The consumer did not answer a REQ or REP within
    /// [`CmConfig::consumer_timeout`](super::CmConfig::consumer_timeout); the peer was rejected.
    Silent,
    /// The peer uses its queue pair for another connection.
    Stale,
    /// The connection waited for its RTU, and another request needed its place: see
    /// [`CmConfig::max_half_open`](super::CmConfig::max_half_open).
    Evicted,
}

/// The cause of the end of an established connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The own side; the peer has confirmed.
    Local,
    /// The own side; the peer did not respond.
    Unanswered,
    /// The peer.
    Remote,
    /// The peer, by a REJ: to it, the connection was never established.
    Rejected(RejectReason),
    /// Stale connection: the peer uses its queue pair for another connection (IBTA volume 1, chapter 12.9.8.3). The CM
    /// identifies the peer by HCA and queue pair.
    Stale,
}

/// A request for a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requested {
    /// The connection.
    pub id: ConnectionId,
    /// The listener.
    pub listener: ListenerId,
    /// The service.
    pub service_id: ServiceId,
    /// Route of the response.
    pub route: Route,
    /// Route of the connection's packets from the own side, as proposed by the peer; weak unless both sides have the
    /// same vendor.
    pub path: Route,
    /// The `rdma_cm` header, if the listener is one of `rdma_cm`.
    pub cma: Option<CmaHeader>,
    /// Private data: 92 bytes, or 56 behind a header.
    pub private_data: Vec<u8>,
    /// The whole message. Its "local" is the peer.
    pub req: Req,
}

/// The acceptance of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    /// The connection.
    pub id: ConnectionId,
    /// Route of the connection's packets: that of the REQ, weak unless both sides have the same vendor.
    pub path: Route,
    /// Private data, 196 bytes.
    pub private_data: Vec<u8>,
    /// The whole message. Its "local" is the peer.
    pub rep: Rep,
}

/// A SIDR request for the queue pair of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrRequested {
    /// The request.
    pub id: SidrRequestId,
    /// The listener of the service.
    pub listener: ListenerId,
    /// The service.
    pub service_id: ServiceId,
    /// Route of the response.
    pub route: Route,
    /// The partition.
    pub p_key: PKey,
    /// The `rdma_cm` header, if the listener is one of `rdma_cm`.
    pub cma: Option<CmaHeader>,
    /// Private data: 216 bytes, or 180 behind a header.
    pub private_data: Vec<u8>,
}

/// The response to a SIDR request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidrResolved {
    /// The request.
    pub id: SidrId,
    /// Status, including whether the queue pair is valid.
    pub status: SidrStatus,
    /// The queue pair.
    pub qpn: Qpn,
    /// The key of the queue pair.
    pub q_key: QKey,
    /// Further information by status, up to 72 bytes.
    pub info: Vec<u8>,
    /// Private data, 136 bytes.
    pub private_data: Vec<u8>,
}

/// Returns the largest path MTU that the additional information of a REJ accepts, if it names one. The code is in the
/// bits in which a REQ has it; some peers may write it as a number.
#[must_use]
pub fn accepted_mtu(reason: RejectReason, info: &[u8]) -> Option<Mtu> {
    let &code = info.first().filter(|_| reason == RejectReason::INVALID_MTU)?;
    Mtu::from_code(code >> 4).or_else(|| Mtu::from_code(code))
}
