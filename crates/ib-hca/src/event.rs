//! Events of an HCA.

use ib_link::Route;
use ib_types::Qpn;
use ib_wire::mad::Mad;

use crate::id::{CqId, QpId, SrqId};

/// Asynchronous events (`ibv_event_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsyncEvent {
    /// CQ overrun: a completion queue was full; its queue pairs have failed.
    CqError(CqId),
    /// A queue pair has failed for a reason that no completion reports. For example, its CQ was full.
    QpFatal(QpId),
    /// The peer has sent an invalid request, and the queue pair has failed (`IBV_EVENT_QP_REQ_ERR`).
    QpRequestError(QpId),
    /// The peer has violated access rights, and the queue pair has failed (`IBV_EVENT_QP_ACCESS_ERR`).
    QpAccessError(QpId),
    /// The send queue of a queue pair in state `Sqd` is drained.
    SqDrained(QpId),
    /// A failed queue pair no longer takes receives from its SRQ (last WQE reached).
    QpLastWqeReached(QpId),
    /// A shared receive queue has fewer receives than the limit set for it.
    SrqLimitReached(SrqId),
    /// The port has become Active (`IBV_EVENT_PORT_ACTIVE`).
    PortActive,
    /// The port has lost its link, or is no longer Active (`IBV_EVENT_PORT_ERR`).
    PortError,
}

/// An event of an HCA.
#[derive(Clone, Debug)]
pub enum HcaEvent {
    /// The completion queue has received a completion for which [`Hca::req_notify_cq`](crate::Hca::req_notify_cq)
    /// requested an event.
    Completion(CqId),
    /// An asynchronous event.
    Async(AsyncEvent),
    /// A MAD has arrived at queue pair 1.
    Mad {
        /// Route to the sender, for the response.
        route: Route,
        /// Queue pair that sent the MAD, nearly always 1.
        source: Qpn,
        /// The MAD.
        mad: Box<Mad>,
    },
}
