//! The objects of verbs, and what is posted and completed: names as in libibverbs.

use ib_types::{QKey, Qpn};

use crate::region::Registration;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(crate) u32);
    };
}

id!(/// The number of a protection domain: what belongs to one works together.
    PdId);
id!(/// The number of a completion queue.
    CqId);
id!(/// The number of a shared receive queue.
    SrqId);
id!(/// The number of an address handle.
    AhId);
id!(/// The number of a queue pair of this adapter; on the wire it has a [`Qpn`].
    QpId);

/// A piece of memory that is gathered from or scattered to (`ibv_sge`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// The address of its first byte, by the region's addresses.
    pub addr: u64,
    /// Its length in bytes.
    pub length: u32,
    /// The key of its region.
    pub lkey: u32,
}

/// The data of a work request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// No byte.
    #[default]
    None,
    /// One piece of memory, the common case.
    One(Sge),
    /// Two pieces of memory, such as data and a header behind it.
    Two([Sge; 2]),
    /// Pieces of memory, in order.
    Many(Box<[Sge]>),
    /// The bytes themselves, copied when they are posted (`IBV_SEND_INLINE`).
    Inline(Box<[u8]>),
}

impl Data {
    /// Returns the pieces.
    #[must_use]
    pub fn sges(&self) -> &[Sge] {
        match self {
            Self::None | Self::Inline(_) => &[],
            Self::One(sge) => std::slice::from_ref(sge),
            Self::Two(sges) => sges,
            Self::Many(sges) => sges,
        }
    }

    /// Returns the length of all pieces in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            data => data.sges().iter().map(|sge| u64::from(sge.length)).sum(),
        }
    }
}

impl From<&[Sge]> for Data {
    fn from(sges: &[Sge]) -> Self {
        match sges {
            [] => Self::None,
            [sge] => Self::One(*sge),
            [one, two] => Self::Two([*one, *two]),
            sges => Self::Many(sges.into()),
        }
    }
}

/// Where RDMA goes to: an address of the other side's memory and the key to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The address.
    pub addr: u64,
    /// The key.
    pub rkey: u32,
}

/// Where a datagram goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdDestination {
    /// The way to it.
    pub ah: AhId,
    /// The queue pair there; [`Qpn::MULTICAST`] for groups.
    pub remote_qpn: Qpn,
    /// The key that it must have; of a controlled one the own key is sent instead.
    pub remote_qkey: QKey,
}

/// What a work request does (`ibv_wr_opcode`).
#[derive(Clone, Debug)]
pub enum SendOp {
    /// SEND, with immediate data perhaps.
    Send {
        /// The immediate data.
        imm: Option<u32>,
    },
    /// SEND that invalidates a key of the other side.
    SendInvalidate {
        /// The key.
        rkey: u32,
    },
    /// A datagram.
    SendDatagram {
        /// Where it goes to.
        to: UdDestination,
        /// The immediate data.
        imm: Option<u32>,
    },
    /// RDMA WRITE; with immediate data it takes a receive of the other side.
    Write {
        /// Where to.
        to: RemoteAddress,
        /// The immediate data.
        imm: Option<u32>,
    },
    /// RDMA READ into the pieces of memory.
    Read {
        /// Where from.
        from: RemoteAddress,
    },
    /// Compares 8 bytes and replaces them when they are equal; those before come back.
    CompareSwap {
        /// Where.
        at: RemoteAddress,
        /// What is compared with.
        compare: u64,
        /// What replaces them.
        swap: u64,
    },
    /// Adds to a number of 8 bytes; the one before comes back.
    FetchAdd {
        /// Where.
        at: RemoteAddress,
        /// What is added.
        add: u64,
    },
    /// Has a key of the own memory open nothing any more.
    LocalInvalidate {
        /// The key.
        rkey: u32,
    },
    /// Gives a region of fast registration memory and a new key.
    Register(Box<Registration>),
}

/// How a work request is carried out (`ibv_send_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags {
    /// Whether success makes a completion; failure always does.
    pub signaled: bool,
    /// Whether the receiver's completion queue is to raise an event.
    pub solicited: bool,
    /// Whether it waits for all READs and atomics before it.
    pub fence: bool,
}

/// A work request for a send queue (`ibv_send_wr`).
#[derive(Clone, Debug)]
pub struct SendWr {
    /// What the completion is told by.
    pub wr_id: u64,
    /// What it does.
    pub op: SendOp,
    /// What it sends, or where it puts what comes back.
    pub data: Data,
    /// How.
    pub flags: SendFlags,
}

/// A work request for a receive queue (`ibv_recv_wr`).
#[derive(Clone, Debug)]
pub struct RecvWr {
    /// What the completion is told by.
    pub wr_id: u64,
    /// Where a message goes; datagrams are preceded by 40 bytes for the header of their route.
    pub data: Data,
}

/// How a work request ended (`ibv_wc_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WcStatus {
    /// Well.
    Success,
    /// The message is longer than what it was to be put in.
    LocLenErr,
    /// The queue pair was in no state or shape for it.
    LocQpOpErr,
    /// A key does not open the own memory.
    LocProtErr,
    /// The queue pair had failed before.
    WrFlushErr,
    /// Binding or invalidating a key failed.
    MwBindErr,
    /// The other side has sent what nobody asked for.
    BadRespErr,
    /// The own memory was closed while packets came in.
    LocAccessErr,
    /// The other side takes the request for invalid.
    RemInvReqErr,
    /// A key does not open the other side's memory.
    RemAccessErr,
    /// The other side has failed.
    RemOpErr,
    /// The other side has not answered after all retries.
    RetryExcErr,
    /// The other side was not ready after all retries.
    RnrRetryExcErr,
}

impl WcStatus {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::LocLenErr,
        Self::LocQpOpErr,
        Self::LocProtErr,
        Self::WrFlushErr,
        Self::MwBindErr,
        Self::BadRespErr,
        Self::LocAccessErr,
        Self::RemInvReqErr,
        Self::RemAccessErr,
        Self::RemOpErr,
        Self::RetryExcErr,
        Self::RnrRetryExcErr,
    ];

    /// Returns the name that libibverbs has for it, in lower case and without its beginning.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::LocLenErr => "loc_len_err",
            Self::LocQpOpErr => "loc_qp_op_err",
            Self::LocProtErr => "loc_prot_err",
            Self::WrFlushErr => "wr_flush_err",
            Self::MwBindErr => "mw_bind_err",
            Self::BadRespErr => "bad_resp_err",
            Self::LocAccessErr => "loc_access_err",
            Self::RemInvReqErr => "rem_inv_req_err",
            Self::RemAccessErr => "rem_access_err",
            Self::RemOpErr => "rem_op_err",
            Self::RetryExcErr => "retry_exc_err",
            Self::RnrRetryExcErr => "rnr_retry_exc_err",
        }
    }
}

/// What has ended (`ibv_wc_opcode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WcOpcode {
    /// A SEND.
    Send,
    /// An RDMA WRITE.
    RdmaWrite,
    /// An RDMA READ.
    RdmaRead,
    /// A compare and swap.
    CompSwap,
    /// A fetch and add.
    FetchAdd,
    /// A local invalidation.
    LocalInv,
    /// A fast registration.
    RegMr,
    /// A receive.
    Recv,
    /// A receive that an RDMA WRITE with immediate data took.
    RecvRdmaWithImm,
}

impl WcOpcode {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Send,
        Self::RdmaWrite,
        Self::RdmaRead,
        Self::CompSwap,
        Self::FetchAdd,
        Self::LocalInv,
        Self::RegMr,
        Self::Recv,
        Self::RecvRdmaWithImm,
    ];

    /// Returns the name that libibverbs has for it, in lower case and without its beginning.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::RdmaWrite => "rdma_write",
            Self::RdmaRead => "rdma_read",
            Self::CompSwap => "comp_swap",
            Self::FetchAdd => "fetch_add",
            Self::LocalInv => "local_inv",
            Self::RegMr => "reg_mr",
            Self::Recv => "recv",
            Self::RecvRdmaWithImm => "recv_rdma_with_imm",
        }
    }
}

/// A completion (`ibv_wc`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wc {
    /// What the work request was told by.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// What ended; of no meaning unless it ended well.
    pub opcode: WcOpcode,
    /// How many bytes came in.
    pub byte_len: u32,
    /// The own queue pair.
    pub qp_num: Qpn,
    /// The queue pair of a datagram's sender.
    pub src_qp: Qpn,
    /// The immediate data that came.
    pub imm_data: Option<u32>,
    /// The key of the own memory that a SEND has invalidated.
    pub invalidated_rkey: Option<u32>,
    /// Whether the first 40 bytes of a datagram hold the header of its route.
    pub grh: bool,
    /// The LID of a datagram's sender, and its service level.
    pub slid: u16,
    /// The service level.
    pub sl: u8,
}

/// Why a work request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The queue pair or shared receive queue is not there.
    #[error("there is no such queue")]
    NoSuchQueue,
    /// The queue pair is in a state in which none can be posted.
    #[error("the queue pair is in state {found:?}: expected {expected}")]
    State {
        /// The state.
        found: crate::qp::QpState,
        /// Those in which it can.
        expected: &'static str,
    },
    /// The queue is full.
    #[error("the queue holds {0} work requests and no more")]
    Full(u32),
    /// There are more pieces of memory than the queue takes.
    #[error("{found} pieces of memory: expected at most {most}")]
    TooManySges {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: u32,
    },
    /// There are more bytes in the request itself than the queue takes.
    #[error("{found} bytes inline: expected at most {most}")]
    TooMuchInline {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: u32,
    },
    /// A piece of memory is not open to it.
    #[error("piece {index} of memory: {why}")]
    Sge {
        /// Which one, counted from 0.
        index: usize,
        /// Why.
        why: crate::region::KeyError,
    },
    /// The message is longer than the transport can carry.
    #[error("a message of {found} bytes: expected at most {most}")]
    TooLong {
        /// Its length.
        found: u64,
        /// The longest.
        most: u64,
    },
    /// The transport does not have the operation.
    #[error("a queue pair of type {0:?} has no such operation")]
    Operation(crate::qp::QpType),
    /// What comes back from an atomic operation is 8 bytes.
    #[error("{0} bytes for what an atomic operation returns: expected 8")]
    AtomicLength(u64),
    /// The address handle is not there, or of another protection domain.
    #[error("there is no such address handle in the protection domain")]
    NoSuchAh,
    /// The queue pair takes its receives from a shared queue.
    #[error("the queue pair takes its receives from a shared receive queue")]
    Shared,
    /// READs and atomics are not possible: the queue pair may have none under way.
    #[error("max_rd_atomic is 0: expected 1 or more for READs and atomics")]
    NoReads,
}
