//! QP context: the state that the requester and the responder of a queue pair share.

use std::time::Duration;

use ib_types::Qpn;

use super::attr::{QpAttributes, QpInitAttr, QpState, QpType};
use crate::completion::{Wc, WcOpcode};
use crate::id::{PdId, QpId};
use crate::trace::{MessageLog, Selection};

/// Identity, attributes and state of a queue pair.
#[derive(Debug)]
pub(crate) struct QpContext {
    pub(crate) id: QpId,
    pub(crate) number: Qpn,
    pub(crate) pd: PdId,
    pub(crate) init: QpInitAttr,
    pub(crate) state: QpState,
    pub(crate) attributes: QpAttributes,
    /// Maximum number of packets in flight.
    pub(crate) window: u32,
    /// Records of the last completed messages.
    pub(crate) messages: MessageLog,
    /// Service ID of the connection, if the connection manager has set it.
    pub(crate) service: Option<u64>,
}

impl QpContext {
    /// Returns the protection domain and the ID of the queue pair. Both decide which keys the queue pair may use.
    pub(crate) const fn owner(&self) -> (PdId, QpId) {
        (self.pd, self.id)
    }

    /// Returns the maximum payload of a packet in bytes.
    pub(crate) const fn mtu(&self) -> usize {
        self.attributes.path_mtu.bytes()
    }

    /// Returns the ACK timeout, if any.
    pub(crate) fn ack_timeout(&self) -> Option<Duration> {
        let exponent = self.attributes.timeout;
        (exponent != 0).then(|| Duration::from_nanos(4096 << exponent))
    }

    /// Returns the number of READs and atomics that the peer may have outstanding, rounded up to a power of two as in
    /// Linux.
    pub(crate) fn responder_resources(&self) -> usize {
        match self.attributes.max_dest_rd_atomic {
            0 => 0,
            most => usize::from(most).next_power_of_two(),
        }
    }

    /// Returns true if the queue pair sends packets in its current state.
    pub(crate) const fn sends(&self) -> bool {
        matches!(self.state, QpState::Rts | QpState::Sqd)
    }

    /// Returns true if the queue pair receives packets in its current state.
    pub(crate) const fn receives(&self) -> bool {
        matches!(self.state, QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe)
    }

    /// Returns a successful completion for a work request of this queue pair.
    pub(crate) const fn completion(&self, wr_id: u64, opcode: WcOpcode) -> Wc {
        Wc::new(wr_id, opcode, self.number)
    }

    /// Returns true if a selection includes the queue pair in its current state.
    pub(crate) fn is_in(&self, selection: &Selection) -> bool {
        let Selection { qpns, peers, services, .. } = selection;
        let is_connected = matches!(self.state, QpState::Rtr | QpState::Rts | QpState::Sqd);
        let route = &self.attributes.route;
        let is_datagram = self.init.qp_type == QpType::Ud;
        (qpns.is_empty() || qpns.contains(&self.number))
            && (services.is_empty() || self.service.is_some_and(|it| services.contains(&it)))
            && (peers.is_empty()
                || is_datagram
                || is_connected && peers.iter().any(|peer| peer.is_at(route)))
    }
}
