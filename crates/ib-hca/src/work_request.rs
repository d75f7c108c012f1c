//! Work requests, named as in libibverbs.

use ib_types::{QKey, Qpn};

use crate::completion::WcOpcode;
use crate::error::PostError;
use crate::id::{AhId, PdId};
use crate::region::{AccessFlags, Regions, Registration, Sge, WindowBinding};

/// Maximum message size in bytes: 2^30.
pub const MAX_MESSAGE: u64 = 1 << 30;

/// The data of a work request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Data {
    /// No data.
    #[default]
    None,
    /// One SGE, the common case.
    One(Sge),
    /// Two SGEs, such as data followed by a message header.
    Two([Sge; 2]),
    /// Any number of SGEs, in the order of their data in the message.
    Many(Box<[Sge]>),
    /// Inline data, copied when the request is posted (`IBV_SEND_INLINE`).
    Inline(Box<[u8]>),
}

impl Data {
    /// Returns the SGEs.
    #[must_use]
    pub fn sges(&self) -> &[Sge] {
        match self {
            Self::None | Self::Inline(_) => &[],
            Self::One(sge) => std::slice::from_ref(sge),
            Self::Two(sges) => sges,
            Self::Many(sges) => sges,
        }
    }

    /// Returns the total length in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        match self {
            Self::Inline(bytes) => bytes.len() as u64,
            data => data.sges().iter().map(|sge| u64::from(sge.length)).sum(),
        }
    }

    /// Checks the number of SGEs.
    pub(crate) fn check_count(&self, most: u32) -> Result<(), PostError> {
        let found = self.sges().len();
        if found > most as usize { Err(PostError::TooManySges { found, most }) } else { Ok(()) }
    }

    /// Checks that the keys of the SGEs permit an access.
    pub(crate) fn check_keys(
        &self,
        regions: &Regions,
        pd: PdId,
        access: AccessFlags,
    ) -> Result<(), PostError> {
        for (index, sge) in self.sges().iter().enumerate().filter(|(_, sge)| sge.length > 0) {
            let opened = regions.open(pd, sge.lkey, sge.addr, sge.length as usize, access);
            opened.map_err(|why| PostError::Sge { index, why })?;
        }
        Ok(())
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

/// The target of an RDMA operation: an address in the peer's memory and its remote key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteAddress {
    /// The address.
    pub addr: u64,
    /// The key.
    pub rkey: u32,
}

/// Destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdDestination {
    /// Address handle of the path to the destination.
    pub ah: AhId,
    /// Number of the destination queue pair; [`Qpn::MULTICAST`] for multicast groups.
    pub remote_qpn: Qpn,
    /// Q_Key of the destination queue pair. If this is a controlled Q_Key, that of the sending queue pair is sent
    /// instead.
    pub remote_qkey: QKey,
}

/// Operation of a send request (`ibv_wr_opcode`).
#[derive(Clone, Debug)]
pub enum SendOp {
    /// SEND, with optional immediate data.
    Send {
        /// The immediate data.
        imm: Option<u32>,
    },
    /// SEND that invalidates a key of the peer.
    SendInvalidate {
        /// The key.
        rkey: u32,
    },
    /// A datagram.
    SendDatagram {
        /// Destination.
        to: UdDestination,
        /// The immediate data.
        imm: Option<u32>,
    },
    /// RDMA WRITE. With immediate data, it consumes a receive of the peer.
    Write {
        /// Target.
        to: RemoteAddress,
        /// The immediate data.
        imm: Option<u32>,
    },
    /// RDMA READ into the memory of the SGEs.
    Read {
        /// Source.
        from: RemoteAddress,
    },
    /// Compares 8 bytes of the peer's memory with a value, and replaces them if they are equal. Returns the original
    /// value.
    CompareSwap {
        /// Target.
        at: RemoteAddress,
        /// Expected value.
        compare: u64,
        /// New value.
        swap: u64,
    },
    /// Adds a value to 8 bytes of the peer's memory. Returns the original value.
    FetchAdd {
        /// Target.
        at: RemoteAddress,
        /// Summand.
        add: u64,
    },
    /// Binds a memory window to a part of a region, or unbinds it.
    BindWindow(Box<WindowBinding>),
    /// Invalidates the key of a local fast-registration region or type 2 memory window.
    LocalInvalidate {
        /// The key.
        rkey: u32,
    },
    /// Assigns memory and a new key to a fast-registration region.
    Register(Box<Registration>),
}

impl SendOp {
    /// Returns the opcode of the operation's completion.
    pub(crate) const fn completion_opcode(&self) -> WcOpcode {
        match self {
            Self::Send { .. } | Self::SendInvalidate { .. } | Self::SendDatagram { .. } => {
                WcOpcode::Send
            }
            Self::Write { .. } => WcOpcode::RdmaWrite,
            Self::Read { .. } => WcOpcode::RdmaRead,
            Self::CompareSwap { .. } => WcOpcode::CompSwap,
            Self::FetchAdd { .. } => WcOpcode::FetchAdd,
            Self::BindWindow(_) => WcOpcode::BindMw,
            Self::LocalInvalidate { .. } => WcOpcode::LocalInv,
            Self::Register(_) => WcOpcode::RegMr,
        }
    }
}

/// Flags of a send request (`ibv_send_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags {
    /// True if a success generates a completion. A failure always does.
    pub signaled: bool,
    /// True if the receiver's completion is solicited, so that it raises an event.
    pub solicited: bool,
    /// True if the request waits until all READs and atomics before it have completed.
    pub fence: bool,
}

/// A work request for a send queue (`ibv_send_wr`).
#[derive(Clone, Debug)]
pub struct SendWr {
    /// ID for the completion of the request.
    pub wr_id: u64,
    /// Operation.
    pub op: SendOp,
    /// Data to send, or the buffer of response data.
    pub data: Data,
    /// Flags.
    pub flags: SendFlags,
}

/// A work request for a receive queue (`ibv_recv_wr`).
#[derive(Clone, Debug)]
pub struct RecvWr {
    /// ID for the completion of the request.
    pub wr_id: u64,
    /// Buffer of a message. For a datagram, the first 40 bytes receive its GRH.
    pub data: Data,
}

impl RecvWr {
    /// Checks that a receive has no inline data, at most `max_sge` SGEs, and a total length of less than 4 GiB. The
    /// keys of the SGEs are checked when a message takes the receive (IBTA volume 1, 9.9.6).
    pub(crate) fn check(&self, max_sge: u32) -> Result<(), PostError> {
        if let Data::Inline(bytes) = &self.data {
            return Err(PostError::TooMuchInline { found: bytes.len(), most: 0 });
        }
        self.data.check_count(max_sge)?;
        let length = self.data.length();
        if length > u64::from(u32::MAX) {
            return Err(PostError::TooLong { found: length, most: u32::MAX.into() });
        }
        Ok(())
    }
}
