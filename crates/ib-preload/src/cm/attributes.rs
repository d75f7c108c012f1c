//! Attributes of queue pairs and address vectors for connections.

use ib_device::route_of;
use ib_link::Route;
use ib_wire::mad::sa::PathRecord;

use super::abi::{AddressVector, InitQpAttr, QpAttributes};
use super::ids::{CmId, Exchange, Peer, QpKind};
use super::port::{CmPort, PortView};
use super::{FileId, Manager};
use crate::errno::Errno;
use crate::layout::bytes_of;

/// Q_Key of UD queue pairs whose program specifies none (`RDMA_UDP_QKEY`).
pub(super) const UDP_Q_KEY: u32 = 0x0123_4567;

/// Code of the RNR NAK timer: 12 means 0.64 ms.
const MIN_RNR_TIMER: u8 = 12;

/// ACK timeout of queue pairs without the option `RDMA_OPTION_ID_ACK_TIMEOUT`: 4.096 µs × 2^14 = 67 ms.
const ACK_TIMEOUT: u8 = 14;

/// Maximum number of READs and atomics of a queue pair in flight in each direction.
const MAX_RD_ATOMIC: u8 = 128;

/// States of queue pairs (`ib_qp_state`).
mod state {
    pub(super) const INIT: u32 = 1;
    pub(super) const RTR: u32 = 2;
    pub(super) const RTS: u32 = 3;
    pub(super) const ERR: u32 = 6;
}

/// Bits of the attribute mask (`ib_qp_attr_mask`).
mod mask {
    pub(super) const STATE: u32 = 1;
    pub(super) const ACCESS_FLAGS: u32 = 1 << 3;
    pub(super) const PKEY_INDEX: u32 = 1 << 4;
    pub(super) const PORT: u32 = 1 << 5;
    pub(super) const QKEY: u32 = 1 << 6;
    pub(super) const AV: u32 = 1 << 7;
    pub(super) const PATH_MTU: u32 = 1 << 8;
    pub(super) const TIMEOUT: u32 = 1 << 9;
    pub(super) const RETRY_CNT: u32 = 1 << 10;
    pub(super) const RNR_RETRY: u32 = 1 << 11;
    pub(super) const RQ_PSN: u32 = 1 << 12;
    pub(super) const MAX_QP_RD_ATOMIC: u32 = 1 << 13;
    pub(super) const MIN_RNR_TIMER: u32 = 1 << 15;
    pub(super) const SQ_PSN: u32 = 1 << 16;
    pub(super) const MAX_DEST_RD_ATOMIC: u32 = 1 << 17;
    pub(super) const DEST_QPN: u32 = 1 << 20;
}

/// Operations that a peer may request (`ib_access_flags`).
mod access {
    pub(super) const REMOTE_WRITE: u32 = 1 << 1;
    pub(super) const REMOTE_READ: u32 = 1 << 2;
    pub(super) const REMOTE_ATOMIC: u32 = 1 << 3;
}

impl Manager {
    /// Returns the attributes with which the program changes the state of its queue pair.
    pub(super) fn init_qp_attr(
        &mut self,
        channel: FileId,
        init: &InitQpAttr,
        port: &mut impl CmPort,
    ) -> Result<Vec<u8>, Errno> {
        let id = self.ids.of(channel, init.id)?;
        if init.qp_state > state::ERR || !id.has_device {
            return Err(Errno::INVALID);
        }
        let attributes = match (id.exchange, id.kind) {
            (Exchange::Connection { peer, .. }, QpKind::Rc | QpKind::Uc) => {
                connected(id, &peer, init.qp_state, &port.view())?
            }
            _ if init.qp_state == state::INIT => unconnected(id, &port.view())?,
            _ => return Err(Errno::INVALID),
        };
        Ok(bytes_of(&attributes))
    }
}

/// Returns the attributes of state `Init` before the peer of a connection is known, and those of UD queue pairs.
fn unconnected(id: &CmId, port: &PortView) -> Result<QpAttributes, Errno> {
    let attributes = QpAttributes {
        mask: mask::STATE | mask::PKEY_INDEX | mask::PORT,
        qp_state: state::INIT,
        p_key_index: p_key_index(id, port)?,
        port_num: 1,
        ..QpAttributes::default()
    };
    Ok(match id.kind {
        QpKind::Ud => QpAttributes {
            mask: attributes.mask | mask::QKEY,
            q_key: id.q_key.unwrap_or(UDP_Q_KEY),
            ..attributes
        },
        QpKind::Rc | QpKind::Uc => {
            QpAttributes { mask: attributes.mask | mask::ACCESS_FLAGS, ..attributes }
        }
    })
}

/// Returns the attributes with which the queue pair of a connection enters the state `qp_state`.
fn connected(
    id: &CmId,
    peer: &Peer,
    qp_state: u32,
    port: &PortView,
) -> Result<QpAttributes, Errno> {
    let is_reliable = id.kind == QpKind::Rc;
    let attributes = QpAttributes { qp_state, port_num: 1, ..QpAttributes::default() };
    match qp_state {
        state::INIT => {
            let reads = access::REMOTE_READ | access::REMOTE_ATOMIC;
            Ok(QpAttributes {
                mask: mask::STATE | mask::ACCESS_FLAGS | mask::PKEY_INDEX | mask::PORT,
                access_flags: access::REMOTE_WRITE
                    | if peer.responder_resources > 0 { reads } else { 0 },
                p_key_index: p_key_index(id, port)?,
                ..attributes
            })
        }
        state::RTR => {
            let reliable = mask::MAX_DEST_RD_ATOMIC | mask::MIN_RNR_TIMER;
            Ok(QpAttributes {
                mask: mask::STATE
                    | mask::AV
                    | mask::PATH_MTU
                    | mask::DEST_QPN
                    | mask::RQ_PSN
                    | if is_reliable { reliable } else { 0 },
                address: vector(&peer.route),
                path_mtu: peer.mtu.into(),
                dest_qp_num: peer.qpn.get(),
                rq_psn: id.psn.get(),
                max_dest_rd_atomic: peer.responder_resources.min(MAX_RD_ATOMIC),
                min_rnr_timer: MIN_RNR_TIMER,
                ..attributes
            })
        }
        state::RTS => {
            let reliable =
                mask::TIMEOUT | mask::RETRY_CNT | mask::RNR_RETRY | mask::MAX_QP_RD_ATOMIC;
            Ok(QpAttributes {
                mask: mask::STATE | mask::SQ_PSN | if is_reliable { reliable } else { 0 },
                sq_psn: peer.psn.get(),
                timeout: id.ack_timeout.unwrap_or(ACK_TIMEOUT),
                retry_cnt: peer.retry_count,
                rnr_retry: peer.rnr_retry_count,
                max_rd_atomic: peer.initiator_depth.min(MAX_RD_ATOMIC),
                ..attributes
            })
        }
        _ => Err(Errno::INVALID),
    }
}

/// Returns the index of the P_Key of an ID's path; before the path is known, that of the port's first P_Key.
fn p_key_index(id: &CmId, port: &PortView) -> Result<u16, Errno> {
    match &id.path {
        Some(path) => port.p_key_index(path.p_key).ok_or(Errno::INVALID),
        None => Ok(0),
    }
}

/// Returns the address vector of a route.
pub(super) fn vector(route: &Route) -> AddressVector {
    AddressVector {
        dgid: route.destination.0.to_be_bytes(),
        flow_label: route.flow_label,
        hop_limit: route.hop_limit,
        traffic_class: route.traffic_class,
        dlid: route.dlid,
        sl: route.sl.get(),
        is_global: route.is_global.into(),
        port_num: 1,
        ..AddressVector::default()
    }
}

/// Returns the address vector of a path.
pub(super) fn vector_of(path: &PathRecord) -> AddressVector {
    vector(&route_of(path))
}
