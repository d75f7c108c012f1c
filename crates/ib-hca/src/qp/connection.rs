//! The attributes that connect an RC queue pair.

use ib_link::Route;
use ib_types::{Mtu, PKey, Psn, Qpn};

use super::attr::{QpAttr, QpState};
use crate::region::AccessFlags;

/// The attributes of a reliable connection, for its transitions from Reset to RTS (IBTA 10.3.1, `ibv_modify_qp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpConnection {
    /// P_Key of the partition.
    pub pkey: PKey,
    /// Operations that the peer may request.
    pub access: AccessFlags,
    /// Path to the peer.
    pub route: Route,
    /// Maximum payload of a packet (path MTU).
    pub path_mtu: Mtu,
    /// Queue pair number of the peer.
    pub dest_qp_num: Qpn,
    /// PSN of the first received packet.
    pub rq_psn: Psn,
    /// PSN of the first sent packet.
    pub sq_psn: Psn,
    /// Maximum number of READs and atomics that the peer may have outstanding, 0 to 128.
    pub max_dest_rd_atomic: u8,
    /// Maximum number of READs and atomics that the queue pair may have outstanding, 0 to 128.
    pub max_rd_atomic: u8,
    /// Code of the RNR timer, 0 to 31. RNR NAKs carry it to the peer if no receive is posted.
    pub min_rnr_timer: u8,
    /// Exponent of the ACK timeout: 4.096 µs × 2^value, 1 to 31; 0 for no timeout.
    pub timeout: u8,
    /// Maximum number of retries after timeouts and NAKs, 0 to 7.
    pub retry_cnt: u8,
    /// Maximum number of retries after RNR NAKs, 0 to 6; 7 for no limit.
    pub rnr_retry: u8,
}

impl QpConnection {
    /// Returns the attributes of the transition from Reset to Init.
    #[must_use]
    pub fn to_init(&self) -> QpAttr {
        QpAttr {
            qp_state: Some(QpState::Init),
            pkey: Some(self.pkey),
            qp_access_flags: Some(self.access),
            ..QpAttr::default()
        }
    }

    /// Returns the attributes of the transition from Init to RTR (ready to receive).
    #[must_use]
    pub fn to_rtr(&self) -> QpAttr {
        QpAttr {
            qp_state: Some(QpState::Rtr),
            pkey: Some(self.pkey),
            qp_access_flags: Some(self.access),
            route: Some(self.route),
            path_mtu: Some(self.path_mtu),
            dest_qp_num: Some(self.dest_qp_num),
            rq_psn: Some(self.rq_psn),
            max_dest_rd_atomic: Some(self.max_dest_rd_atomic),
            min_rnr_timer: Some(self.min_rnr_timer),
            ..QpAttr::default()
        }
    }

    /// Returns the attributes of the transition from RTR to RTS (ready to send).
    #[must_use]
    pub fn to_rts(&self) -> QpAttr {
        QpAttr {
            qp_state: Some(QpState::Rts),
            sq_psn: Some(self.sq_psn),
            timeout: Some(self.timeout),
            retry_cnt: Some(self.retry_cnt),
            rnr_retry: Some(self.rnr_retry),
            max_rd_atomic: Some(self.max_rd_atomic),
            ..QpAttr::default()
        }
    }
}
