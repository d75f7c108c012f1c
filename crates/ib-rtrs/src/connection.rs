//! One connection of a path: a queue pair, and what the connection manager calls it.

use ib_cm::{Cm, ConnectionId};
use ib_hca::{
    AccessFlags, CqId, CreateError, Data, Hca, ModifyError, PdId, PostError, QpAttr, QpCap,
    QpConnection, QpId, QpInitAttr, QpState, QpType, RecvWr, SendFlags, SendOp, SendWr, Sge,
};
use ib_link::Route;
use ib_types::{Instant, Mtu, PKey, Psn, Qpn};

use crate::Transport;

/// The code of the time after which the peer tries again when there is no receive: 0.64 ms.
const MIN_RNR_TIMER: u8 = 12;

/// The most that is sent from within a work request: an info request.
const MAX_INLINE: u32 = 512;

/// A connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    pub(crate) qp: QpId,
    pub(crate) id: ConnectionId,
}

/// Where a connection leads to.
pub(crate) struct Peer {
    pub(crate) route: Route,
    pub(crate) mtu: Mtu,
    pub(crate) p_key: PKey,
    pub(crate) qpn: Qpn,
    /// The first sequence number of what comes in, and of what goes out.
    pub(crate) receives: Psn,
    pub(crate) sends: Psn,
    pub(crate) rnr_retry: u8,
}

/// Makes a queue pair that takes receives, of so many work requests each way.
pub(crate) fn create(
    hca: &mut Hca,
    now: Instant,
    (pd, cq): (PdId, CqId),
    (sends, receives): (u32, u32),
) -> Result<QpId, SetupError> {
    let most = hca.config().max_qp_wr;
    let cap = QpCap {
        max_send_wr: sends.min(most),
        max_recv_wr: receives.min(most),
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

/// All that a peer may do: no READ, no atomics.
const ACCESS: AccessFlags = AccessFlags(AccessFlags::LOCAL_WRITE.0 | AccessFlags::REMOTE_WRITE.0);

/// Brings a queue pair into service.
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
        rq_psn: peer.receives,
        sq_psn: peer.sends,
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

/// Ends a connection: nothing that comes over it has an effect any more, and the peer is told. Returns whether the
/// connection manager still has something to do with it.
pub(crate) fn end(hca: &mut Hca, cm: &mut Cm, now: Instant, connection: Connection) -> bool {
    // What is not there any more needs no more to go, and it is in no group.
    hca.destroy_qp(connection.qp).ok();
    let state = cm.state(connection.id);
    cm.close(now, connection.id).ok();
    matches!(state, Some(ib_cm::State::Established | ib_cm::State::DreqSent))
}

/// Posts a request that makes no completion unless it fails.
pub(crate) fn send(
    hca: &mut Hca,
    now: Instant,
    qp: QpId,
    op: SendOp,
    data: Data,
) -> Result<(), PostError> {
    hca.post_send(now, qp, SendWr { wr_id: SENT, op, data, flags: SendFlags::default() })
}

/// Posts a receive of a number for a piece of memory.
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

/// The number of all that is sent.
const SENT: u64 = u64::MAX;

/// What a receive is told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkId {
    /// Which connection of its path.
    pub(crate) connection: u16,
    /// Which of its receives.
    pub(crate) index: u32,
}

impl WorkId {
    pub(crate) const fn to_wr_id(self) -> u64 {
        (self.connection as u64) << 32 | self.index as u64
    }

    /// Returns what a completion is of; `None` for what was sent.
    pub(crate) const fn of(wr_id: u64) -> Option<Self> {
        if wr_id == SENT {
            return None;
        }
        Some(Self { connection: (wr_id >> 32) as u16, index: wr_id as u32 })
    }
}

/// Why what a path needs of an HCA cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The HCA is not there.
    #[error("the adapter is gone")]
    NoAdapter,
    /// Something cannot be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// A queue pair cannot be changed.
    #[error(transparent)]
    Modify(#[from] ModifyError),
    /// Something cannot be posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Memory cannot be registered.
    #[error(transparent)]
    Region(#[from] ib_hca::RegionError),
    /// There is no memory.
    #[error(transparent)]
    Memory(#[from] ib_hca::memory::OutOfMemory),
    /// The connection manager does not take it.
    #[error(transparent)]
    Cm(#[from] ib_cm::CmError),
}
