//! A software host channel adapter (HCA): the semantics of verbs over any link.
//!
//! It owns no socket, thread or clock: packets and the time come in, packets, completions and the next
//! deadline come out. Names are those of libibverbs.
//!
//! | module | holds |
//! |---|---|
//! | `hca` | [`Hca`]: the HCA and its dispatch of packets, timers and work requests |
//! | `qp` | queue pairs: states, attributes, requester and responder |
//! | `resources` | the objects that queue pairs share |
//! | `completion`, `srq` | completion queues, shared receive queues |
//! | `work_request` | work requests |
//! | `region`, [`memory`] | memory regions and their memory |
//! | [`trace`] | command blocks of messages, and packet traces |
//! | `counters` | packets, retransmissions, and dropped packets by reason |
//! | `packet`, `table`, `id`, `event`, `error` | packets, tables, and plain types |

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
pub use counters::{Counters, Drop};
pub use error::{CreateError, DestroyError, GroupError, PostError};
pub use event::{AsyncEvent, HcaEvent};
pub use hca::{Hca, HcaConfig, QpnBlock, Transmit};
pub use id::{AhId, CqId, MrId, PdId, QpId, SrqId};
pub use memory::Memory;
pub use packet::MAX_PACKET;
pub use qp::QpConnection;
pub use qp::attr::{
    ModifyError, QpAttr, QpAttrName, QpAttributes, QpCap, QpInitAttr, QpState, QpType,
};
pub use region::{AccessFlags, KeyError, RegionError, Registration, Sge};
pub use work_request::{
    Data, MAX_MESSAGE, RecvWr, RemoteAddress, SendFlags, SendOp, SendWr, UdDestination,
};
