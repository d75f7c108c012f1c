//! A software host channel adapter (HCA): the semantics of verbs over any link.
//!
//! The HCA owns no socket, thread or clock. Its owner passes received packets and the time to the HCA, and polls
//! packets to send, completions, events and the next deadline. Names are those of libibverbs.
//!
//! | module | holds |
//! |---|---|
//! | `hca` | [`Hca`]: dispatches packets, timers and work requests |
//! | `qp` | queue pairs: states, attributes, requester and responder |
//! | `resources` | the objects that queue pairs share |
//! | `completion`, `srq` | completion queues, shared receive queues |
//! | `work_request` | work requests |
//! | `region`, [`memory`] | memory regions and windows, and the memory that they cover |
//! | [`trace`] | records of completed messages, and packet traces |
//! | `counters` | packets, retransmissions, and dropped packets by reason |
//! | `packet`, `table`, `id`, `event`, `error` | packets, tables of objects, IDs, events and errors |
//!
//! # Example
//! Two HCAs are connected in memory, and one writes to the memory of the other by RDMA:
//! ```
//! use ib_hca::*;
//! use ib_link::Route;
//! use ib_types::{Gid, Guid, Instant, Mtu, PKey, Psn};
//!
//! let now = Instant::ZERO;
//! let gids = [Gid(0xffff_0a00_0001), Gid(0xffff_0a00_0002)];
//! let route = |from: usize| {
//!     let (source, destination) = (gids[from], gids[1 - from]);
//!     Route { source, destination, is_global: true, ..Route::default() }
//! };
//!
//! // Each HCA has a CQ, a queue pair and a registered memory of 4096 bytes.
//! let mut sides = [0, 1].map(|side: usize| {
//!     // Outside of examples the seed is random.
//!     let mut hca = Hca::new(HcaConfig::new(Guid(side as u64), vec![gids[side]]), [7; 32]);
//!     let pd = hca.alloc_pd().unwrap();
//!     let cq = hca.create_cq(16).unwrap();
//!     let cap = QpCap::default();
//!     let init = QpInitAttr { qp_type: QpType::Rc, send_cq: cq, recv_cq: cq, srq: None, cap };
//!     let qp = hca.create_qp(pd, &init).unwrap();
//!     let memory = Memory::zeroed(4096).unwrap();
//!     let mr = hca.reg_mr(pd, (&memory, 0, 4096), 0, AccessFlags::ALL).unwrap();
//!     let key = hca.key(mr).unwrap();
//!     (hca, cq, qp, memory, key)
//! });
//! let numbers = [0, 1].map(|side: usize| sides[side].0.query_qp(sides[side].2).unwrap().0);
//! for (side, (hca, _, qp, ..)) in sides.iter_mut().enumerate() {
//!     let connection = QpConnection {
//!         pkey: PKey::DEFAULT,
//!         access: AccessFlags::ALL,
//!         route: route(side),
//!         path_mtu: Mtu::B1024,
//!         dest_qp_num: numbers[1 - side],
//!         rq_psn: Psn::truncated(0),
//!         sq_psn: Psn::truncated(0),
//!         max_dest_rd_atomic: 1,
//!         max_rd_atomic: 1,
//!         min_rnr_timer: 12,
//!         timeout: 14,
//!         retry_cnt: 7,
//!         rnr_retry: 7,
//!     };
//!     for attr in [connection.to_init(), connection.to_rtr(), connection.to_rts()] {
//!         hca.modify_qp(now, *qp, &attr).unwrap();
//!     }
//! }
//!
//! // Side 0 posts an RDMA WRITE of 3000 bytes, which takes three packets.
//! let to = RemoteAddress { addr: 0, rkey: sides[1].4 };
//! let (hca, cq, qp, memory, key) = &mut sides[0];
//! memory.fill(0, 3000, 0xab).unwrap();
//! let sge = Sge { addr: 0, length: 3000, lkey: *key };
//! let flags = SendFlags { signaled: true, ..SendFlags::default() };
//! let op = SendOp::Write { to, imm: None };
//! hca.post_send(now, *qp, SendWr { wr_id: 1, op, data: Data::One(sge), flags }).unwrap();
//! let cq = *cq;
//!
//! // Packets are exchanged until side 0 has its completion.
//! let mut buffer = [0; MAX_PACKET];
//! let wc = loop {
//!     for from in [0, 1] {
//!         while let Some(sent) = sides[from].0.poll_transmit(now, &mut buffer) {
//!             sides[1 - from].0.handle(now, &route(1 - from), &buffer[..sent.length]);
//!         }
//!     }
//!     if let Some(wc) = sides[0].0.poll_cq(cq) {
//!         break wc;
//!     }
//! };
//! assert_eq!(wc.status, WcStatus::Success);
//! assert_eq!(sides[1].3.to_vec(0, 3000).unwrap(), [0xab; 3000]);
//! ```

pub mod memory;
pub mod trace;

mod completion;
mod counters;
mod error;
mod event;
mod hca;
mod id;
mod packet;
mod qp;
mod region;
mod resources;
mod srq;
mod table;
mod work_request;

pub use completion::{Wc, WcOpcode, WcStatus};
pub use counters::{Counters, DropReason};
pub use error::{CreateError, DestroyError, GroupError, PostError, ResizeError};
pub use event::{AsyncEvent, HcaEvent};
pub use hca::{Hca, HcaConfig, QpnBlock, Transmit};
pub use id::{AhId, CqId, MrId, MwId, PdId, QpId, SrqId};
pub use memory::Memory;
pub use packet::MAX_PACKET;
pub use qp::QpConnection;
pub use qp::attr::{
    ModifyError, QpAttr, QpAttrName, QpAttributes, QpCap, QpInitAttr, QpState, QpType,
};
pub use region::{
    AccessFlags, KeyError, MwType, RegionError, Registration, Reregistration, Sge, WindowBinding,
};
pub use work_request::{
    Data, MAX_MESSAGE, RecvWr, RemoteAddress, SendFlags, SendOp, SendWr, UdDestination,
};
