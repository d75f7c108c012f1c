//! Access to HCAs; one connection of a path: its queue pair, its ID at the connection manager, and its heartbeats.

use ib_cm::{Cm, ConnectionId};
use ib_hca::{
    AccessFlags, CqId, CreateError, Data, Hca, ModifyError, PdId, PostError, QpAttr, QpCap,
    QpConnection, QpId, QpInitAttr, QpState, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge,
};
use ib_link::Route;
use ib_types::{Instant, Mtu, PKey, Psn, Qpn};

use crate::Transport;

/// Code of the RNR NAK timer: if no receive is posted, the peer retries after 0.64 ms.
const MIN_RNR_TIMER: u8 = 12;

/// Maximum length of inline data in bytes. It suffices for an info request.
const MAX_INLINE: u32 = 512;

/// A connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) qp: QpId,
    pub(crate) id: ConnectionId,
}

/// The peer of a connection, as described in the REQ or REP.
pub(crate) struct Peer {
    pub(crate) route: Route,
    pub(crate) mtu: Mtu,
    pub(crate) p_key: PKey,
    pub(crate) qpn: Qpn,
    /// First PSN of the packets from the peer.
    pub(crate) rq_psn: Psn,
    /// First PSN of the packets to the peer.
    pub(crate) sq_psn: Psn,
    pub(crate) rnr_retry: u8,
}

/// Creates an RC queue pair in the state INIT. The queues have the maximum size that the HCA supports.
pub(crate) fn create(hca: &mut Hca, now: Instant, pd: PdId, cq: CqId) -> Result<QpId, SetupError> {
    let most = hca.config().max_qp_wr;
    let cap = QpCap {
        max_send_wr: most,
        max_recv_wr: most,
        max_send_sge: hca.config().max_sge,
        max_recv_sge: 1,
        max_inline_data: MAX_INLINE.min(hca.config().max_inline_data),
    };
    let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
    let qp = hca.create_qp(pd, &init)?;
    let attr = QpAttr {
        qp_state: Some(QpState::Init),
        pkey: Some(PKey::DEFAULT),
        qp_access_flags: Some(ACCESS),
        ..QpAttr::default()
    };
    hca.modify_qp(now, qp, &attr)?;
    Ok(qp)
}

/// Operations that the peer may execute: RDMA WRITE, but neither READ nor atomics.
const ACCESS: AccessFlags = AccessFlags(AccessFlags::LOCAL_WRITE.0 | AccessFlags::REMOTE_WRITE.0);

/// Changes a queue pair to RTR and then to RTS.
pub(crate) fn program(
    hca: &mut Hca,
    now: Instant,
    qp: QpId,
    peer: &Peer,
    transport: &Transport,
) -> Result<(), ModifyError> {
    let connection = QpConnection {
        pkey: peer.p_key,
        access: ACCESS,
        route: peer.route,
        path_mtu: peer.mtu,
        dest_qp_num: peer.qpn,
        rq_psn: peer.rq_psn,
        sq_psn: peer.sq_psn,
        max_dest_rd_atomic: 0,
        max_rd_atomic: 0,
        min_rnr_timer: MIN_RNR_TIMER,
        timeout: transport.ack_timeout,
        retry_cnt: transport.retry_count,
        rnr_retry: peer.rnr_retry,
    };
    hca.modify_qp(now, qp, &connection.to_rtr())?;
    hca.modify_qp(now, qp, &connection.to_rts())
}

/// Closes a connection: destroys the queue pair and sends a DREQ. Returns true if the connection manager still waits
/// for the DREP.
pub(crate) fn end(hca: &mut Hca, cm: &mut Cm, now: Instant, connection: Connection) -> bool {
    // The queue pair is in no multicast group. So `destroy_qp` fails only if the queue pair was removed together with
    // its HCA.
    hca.destroy_qp(connection.qp).ok();
    let state = cm.state(connection.id);
    cm.close(now, connection.id).ok();
    matches!(state, Some(ib_cm::State::Established | ib_cm::State::DreqSent))
}

/// Posts an unsignaled send, which generates a completion only if it fails.
pub(crate) fn send(
    hca: &mut Hca,
    now: Instant,
    qp: QpId,
    op: SendOp,
    data: Data,
) -> Result<(), PostError> {
    hca.post_send(now, qp, SendWr { wr_id: SEND_WR_ID, op, data, flags: SendFlags::default() })
}

/// Posts a receive. If the length is 0, the receive has no buffer.
pub(crate) fn receive(
    hca: &mut Hca,
    now: Instant,
    qp: QpId,
    number: WorkId,
    sge: Sge,
) -> Result<(), PostError> {
    let data = if sge.length == 0 { Data::None } else { Data::One(sge) };
    hca.post_recv(now, qp, RecvWr { wr_id: number.to_wr_id(), data })
}

/// The `wr_id` of all sends.
const SEND_WR_ID: u64 = u64::MAX;

/// Identifies a posted receive of a path. The `wr_id` of the receive encodes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkId {
    /// Index of the connection.
    pub(crate) connection: u16,
    /// Index of the receive within the connection.
    pub(crate) index: u32,
}

impl WorkId {
    pub(crate) const fn to_wr_id(self) -> u64 {
        (self.connection as u64) << 32 | self.index as u64
    }

    /// Decodes the `wr_id` of a completion; `None` if the completion is of a send.
    pub(crate) const fn of(wr_id: u64) -> Option<Self> {
        if wr_id == SEND_WR_ID {
            return None;
        }
        Some(Self { connection: (wr_id >> 32) as u16, index: wr_id as u32 })
    }
}

/// Error of creating the objects of a path at an HCA.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The HCA was removed.
    #[error("the HCA was removed")]
    NoAdapter,
    /// The HCA cannot create a queue pair, CQ or protection domain.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A queue pair cannot change its state.
    #[error(transparent)]
    Modify(#[from] ModifyError),
    /// A work request cannot be posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Memory cannot be registered.
    #[error(transparent)]
    Region(#[from] ib_hca::RegionError),
    /// The system is out of memory.
    #[error(transparent)]
    Memory(#[from] ib_hca::memory::OutOfMemory),
    /// A call of the connection manager has failed.
    #[error(transparent)]
    Cm(#[from] ib_cm::CmError),
}

/// The number of an HCA. The owner of the HCA assigns the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AdapterId(pub u32);

/// An HCA with its connection manager.
#[derive(Debug)]
pub struct Adapter<'a> {
    /// The HCA.
    pub hca: &'a mut Hca,
    /// The connection manager of the HCA.
    pub cm: &'a mut Cm,
}

/// The HCAs that a client or a server may use. The implementor of the trait owns and drives the HCAs.
pub trait Adapters {
    /// Returns an HCA; `None` if the HCA was removed.
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>>;

    /// Returns true if the port of an HCA is a member of a partition. The default implementation returns true only for
    /// the default partition.
    fn is_in_partition(&self, id: AdapterId, p_key: PKey) -> bool {
        let _ = id;
        p_key.matches(PKey::DEFAULT)
    }
}

/// The action to take at the end of a heartbeat interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeartbeatAction {
    /// No action.
    Wait,
    /// Send a heartbeat.
    Send,
    /// The peer is dead: fail the path.
    Fail,
}

/// Counts successive heartbeat intervals without a message from the peer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heartbeat {
    /// Number of intervals that have ended since the last message from the peer.
    missed: u32,
}

impl Heartbeat {
    /// Records that a message from the peer has arrived.
    pub(crate) const fn message_received(&mut self) {
        self.missed = 0;
    }

    /// Ends a heartbeat interval, and returns the action to take.
    ///
    /// A dead peer is detected at most `missed_max` + 1 intervals after its last message. Linux needs one interval
    /// more, because it counts from its first heartbeat without a response.
    pub(crate) const fn tick(&mut self, missed_max: u32) -> HeartbeatAction {
        if self.missed > 0 && self.missed >= missed_max {
            return HeartbeatAction::Fail;
        }
        self.missed += 1;
        if self.missed == 1 { HeartbeatAction::Send } else { HeartbeatAction::Wait }
    }
}

#[cfg(test)]
mod tests;
