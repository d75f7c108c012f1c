//! A software host channel adapter (HCA): the semantics of verbs over any link.
//!
//! It owns no socket, thread or clock: packets and the time come in, packets, completions and the next
//! deadline come out. Names are those of libibverbs.
//!
//! | module | holds |
//! |---|---|
//! | [`hca`] | [`Hca`]: the HCA, its objects, the dispatch of packets to and from them |
//! | [`objects`] | work requests and completions |
//! | [`qp`] | queue pairs: states, attributes, both halves |
//! | [`region`], [`memory`] | memory regions and what they open |
//! | [`trace`] | what is noted of each message, and of packets where that is wanted |
//! | [`counters`] | what was done, and what was dropped and why |

pub mod counters;
pub mod error;
pub mod hca;
pub mod memory;
pub mod objects;
pub mod qp;
pub mod region;
pub mod trace;

mod completion;
mod numbers;
mod packet;
mod table;

pub use counters::{Counters, Drop};
pub use error::{CreateError, DestroyError, GroupError};
pub use hca::{AsyncEvent, Hca, HcaConfig, HcaEvent, QpnBlock, Transmit};
pub use memory::Memory;
pub use objects::{
    AhId, CqId, Data, PdId, PostError, QpId, RecvWr, RemoteAddress, SendFlags, SendOp, SendWr, Sge,
    SrqId, UdDestination, Wc, WcOpcode, WcStatus,
};
pub use packet::MAX_PACKET;
pub use qp::{ModifyError, QpAttr, QpAttributes, QpCap, QpConnection, QpInitAttr, QpState, QpType};
pub use region::{AccessFlags, KeyError, MrId, RegionError, Registration};
