//! Completions and completion queues, named as in libibverbs.

use std::collections::VecDeque;

use ib_types::Qpn;

/// Status of a completed work request (`ibv_wc_status`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WcStatus {
    /// Success.
    Success,
    /// The message is longer than its buffer.
    LocLenErr,
    /// The queue pair cannot execute the operation.
    LocQpOpErr,
    /// A local key does not allow the access.
    LocProtErr,
    /// The work request was flushed, because its queue pair has entered an error state.
    WrFlushErr,
    /// A fast registration, a binding of a memory window or a local invalidation has failed.
    MwBindErr,
    /// The responder has sent an unexpected response.
    BadRespErr,
    /// A local buffer could not be accessed for a received RDMA WRITE with immediate data. This HCA never reports this
    /// status.
    LocAccessErr,
    /// The responder reports an invalid request.
    RemInvReqErr,
    /// The remote key does not allow the access.
    RemAccessErr,
    /// The responder has reported an operational error.
    RemOpErr,
    /// All retries after ACK timeouts and NAKs are used up.
    RetryExcErr,
    /// The responder was not ready after all RNR retries.
    RnrRetryExcErr,
}

impl WcStatus {
    /// All statuses.
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

    /// Returns the name of the status in libibverbs, in lower case and without the prefix `IBV_WC_`.
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

/// Operation of a completed work request (`ibv_wc_opcode`).
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
    /// A binding of a memory window.
    BindMw,
    /// A local invalidation.
    LocalInv,
    /// A fast registration.
    RegMr,
    /// A receive.
    Recv,
    /// A receive that an RDMA WRITE with immediate data has consumed.
    RecvRdmaWithImm,
}

impl WcOpcode {
    /// All opcodes.
    pub const ALL: [Self; 10] = [
        Self::Send,
        Self::RdmaWrite,
        Self::RdmaRead,
        Self::CompSwap,
        Self::FetchAdd,
        Self::BindMw,
        Self::LocalInv,
        Self::RegMr,
        Self::Recv,
        Self::RecvRdmaWithImm,
    ];

    /// Returns the name of the opcode in libibverbs, in lower case and without the prefix `IBV_WC_`. The name `reg_mr`
    /// is that of the kernel's `IB_WC_REG_MR`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::RdmaWrite => "rdma_write",
            Self::RdmaRead => "rdma_read",
            Self::CompSwap => "comp_swap",
            Self::FetchAdd => "fetch_add",
            Self::BindMw => "bind_mw",
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
    /// ID of the work request.
    pub wr_id: u64,
    /// Status.
    pub status: WcStatus,
    /// Operation; undefined unless the status is success.
    pub opcode: WcOpcode,
    /// Size of the sent or received message in bytes. For a received datagram, it includes the 40 bytes of the GRH.
    pub byte_len: u32,
    /// Number of the local queue pair.
    pub qp_num: Qpn,
    /// Number of the queue pair that sent the received message; 0 if the work request is a send request.
    pub src_qp: Qpn,
    /// Received immediate data.
    pub imm_data: Option<u32>,
    /// R_Key of this HCA that the received SEND has invalidated; `None` if it has invalidated no key.
    pub invalidated_rkey: Option<u32>,
    /// True if the first 40 bytes of the receive buffer hold the GRH of the datagram.
    pub grh: bool,
    /// Source LID of a datagram.
    pub slid: u16,
    /// Service level of a datagram.
    pub sl: u8,
}

impl Wc {
    /// Returns a successful completion of 0 bytes, for struct update syntax.
    #[must_use]
    pub const fn new(wr_id: u64, opcode: WcOpcode, qp_num: Qpn) -> Self {
        Self {
            wr_id,
            status: WcStatus::Success,
            opcode,
            byte_len: 0,
            qp_num,
            src_qp: Qpn::SMI,
            imm_data: None,
            invalidated_rkey: None,
            grh: false,
            slid: 0,
            sl: 0,
        }
    }
}

/// The kind of completion for which the application has requested an event (`ibv_req_notify_cq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NotifyRequest {
    #[default]
    None,
    /// An event is requested for the next solicited or failed completion.
    Solicited,
    /// An event is requested for the next completion of any kind.
    Any,
}

/// A completion queue.
#[derive(Debug)]
pub(crate) struct Cq {
    queue: VecDeque<Wc>,
    most: usize,
    armed: NotifyRequest,
    /// True if the queue was full when a completion was added.
    overrun: bool,
    /// Number of send and receive queues that use the CQ.
    pub(crate) users: u32,
}

/// Result of [`Cq::push`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushOutcome {
    /// The completion was queued, and no notification is due.
    Queued,
    /// The completion was queued, and the requested notification is due.
    Notify,
    /// The completion was lost, because the queue was full. It is the first completion that this queue has lost.
    Overrun,
    /// The completion was lost, because the queue was full. The queue has lost completions before.
    Lost,
}

impl Cq {
    pub(crate) fn new(most: usize) -> Self {
        Self { queue: VecDeque::new(), most, armed: NotifyRequest::None, overrun: false, users: 0 }
    }

    /// Sets the size. Fails with the number of queued completions if this exceeds the size.
    pub(crate) fn resize(&mut self, most: u32) -> Result<(), usize> {
        if self.queue.len() > most as usize {
            return Err(self.queue.len());
        }
        self.most = most as usize;
        Ok(())
    }

    pub(crate) fn arm(&mut self, solicited_only: bool) {
        self.armed = match (solicited_only, self.armed) {
            (true, NotifyRequest::None | NotifyRequest::Solicited) => NotifyRequest::Solicited,
            _ => NotifyRequest::Any,
        };
    }

    pub(crate) fn push(&mut self, wc: Wc, solicited: bool) -> PushOutcome {
        if self.overrun {
            return PushOutcome::Lost;
        }
        if self.queue.len() >= self.most {
            self.overrun = true;
            return PushOutcome::Overrun;
        }
        self.queue.push_back(wc);
        let notify = match self.armed {
            NotifyRequest::None => false,
            NotifyRequest::Solicited => solicited,
            NotifyRequest::Any => true,
        };
        if notify {
            self.armed = NotifyRequest::None;
            return PushOutcome::Notify;
        }
        PushOutcome::Queued
    }

    pub(crate) fn poll(&mut self) -> Option<Wc> {
        self.queue.pop_front()
    }

    /// Removes the completions of a destroyed queue pair.
    pub(crate) fn remove(&mut self, qp_num: Qpn) {
        self.queue.retain(|wc| wc.qp_num != qp_num);
    }
}
