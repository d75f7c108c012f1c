//! Attributes and states of queue pairs, and the attributes that each state transition requires or allows.

use ib_link::Route;
use ib_types::{Gid, Mtu, PKey, Psn, QKey, Qpn};

use crate::id::{CqId, SrqId};
use crate::region::AccessFlags;

/// The transport of a queue pair (`ibv_qp_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QpType {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

/// The state of a queue pair (`ibv_qp_state`); IBTA volume 1, chapter 10.3.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QpState {
    /// Initial state: nothing can be posted.
    #[default]
    Reset,
    /// Receives can be posted; received packets are dropped.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send and receive.
    Rts,
    /// Send queue drained: no new send request is started.
    Sqd,
    /// Send queue error: a send request of a UC or UD queue pair has failed.
    Sqe,
    /// Error: all work requests are flushed.
    Err,
}

impl QpState {
    /// All states.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];
}

/// Attributes of a new queue pair (`ibv_qp_init_attr`).
#[derive(Clone, Copy, Debug)]
pub struct QpInitAttr {
    /// Transport.
    pub qp_type: QpType,
    /// CQ of the send queue.
    pub send_cq: CqId,
    /// CQ of the receive queue.
    pub recv_cq: CqId,
    /// Shared receive queue; `None` if the queue pair has its own receive queue.
    pub srq: Option<SrqId>,
    /// Maximum numbers of work requests and SGEs, and maximum size of inline data.
    pub cap: QpCap,
}

/// Capacity of a queue pair: work requests per queue, SGEs per work request, and inline data (`ibv_qp_cap`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpCap {
    /// Maximum number of work requests in the send queue.
    pub max_send_wr: u32,
    /// Maximum number of work requests in the receive queue.
    pub max_recv_wr: u32,
    /// Maximum number of SGEs of a send request.
    pub max_send_sge: u32,
    /// Maximum number of SGEs of a receive.
    pub max_recv_sge: u32,
    /// Maximum size of the inline data of a send request in bytes.
    pub max_inline_data: u32,
}

impl Default for QpCap {
    /// The default is 64 work requests per queue, 4 SGEs per work request, and 256 bytes of inline data.
    fn default() -> Self {
        Self {
            max_send_wr: 64,
            max_recv_wr: 64,
            max_send_sge: 4,
            max_recv_sge: 4,
            max_inline_data: 256,
        }
    }
}

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $default:expr,)+) => {
        /// Changes to a queue pair (`ibv_qp_attr` with its mask). Attributes that are `None` are unchanged.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct QpAttr {
            /// New state.
            pub qp_state: Option<QpState>,
            $($(#[$doc])* pub $name: Option<$kind>,)+
        }

        /// The attributes of a queue pair.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct QpAttributes {
            $($(#[$doc])* pub $name: $kind,)+
        }

        impl Default for QpAttributes {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl QpAttributes {
            /// Sets all attributes that are present in `attr`.
            pub(crate) const fn apply(&mut self, attr: &QpAttr) {
                $(if let Some(value) = attr.$name { self.$name = value; })+
            }
        }

        /// The name of an attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(non_camel_case_types, reason = "the variants are the names of the fields")]
        pub enum QpAttrName { $(#[doc = concat!("`", stringify!($name), "`")] $name,)+ }

        impl QpAttr {
            /// Returns the names of the attributes that are set in this change.
            fn names(&self) -> impl Iterator<Item = QpAttrName> {
                [$(self.$name.is_some().then_some(QpAttrName::$name),)+].into_iter().flatten()
            }
        }
    };
}

attributes! {
    /// P_Key of the partition.
    pkey: PKey = PKey::DEFAULT,
    /// Q_Key that received datagrams must have.
    qkey: QKey = QKey(0),
    /// Operations that the peer may request.
    qp_access_flags: AccessFlags = AccessFlags::default(),
    /// Maximum payload of a packet (path MTU).
    path_mtu: Mtu = Mtu::B1024,
    /// Path to the peer (`ah_attr`).
    route: Route = Route::default(),
    /// Queue pair number of the peer.
    dest_qp_num: Qpn = Qpn::SMI,
    /// PSN of the first received packet.
    rq_psn: Psn = Psn::truncated(0),
    /// PSN of the first sent packet.
    sq_psn: Psn = Psn::truncated(0),
    /// Maximum number of READs and atomics that the queue pair may have outstanding, 0 to 128.
    max_rd_atomic: u8 = 0,
    /// Maximum number of READs and atomics that the peer may have outstanding, 0 to 128.
    max_dest_rd_atomic: u8 = 0,
    /// Code of the RNR timer, 0 to 31. RNR NAKs carry it to the peer if no receive is posted.
    min_rnr_timer: u8 = 0,
    /// Exponent of the ACK timeout: 4.096 µs × 2^value, 1 to 31; 0 for no timeout.
    timeout: u8 = 0,
    /// Maximum number of retries after timeouts and NAKs, 0 to 7.
    retry_cnt: u8 = 0,
    /// Maximum number of retries after RNR NAKs, 0 to 6; 7 for no limit.
    rnr_retry: u8 = 0,
}

/// Error of [`Hca::modify_qp`](crate::Hca::modify_qp).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModifyError {
    /// The queue pair does not exist.
    #[error("the queue pair does not exist")]
    NoSuchQp,
    /// The state transition is invalid.
    #[error("a queue pair of type {qp_type:?} has no transition from {from:?} to {to:?}")]
    Transition {
        /// Transport.
        qp_type: QpType,
        /// Current state.
        from: QpState,
        /// Requested state.
        to: QpState,
    },
    /// A required attribute is missing.
    #[error("the transition from {from:?} to {to:?} requires {missing:?}")]
    Missing {
        /// Current state.
        from: QpState,
        /// Requested state.
        to: QpState,
        /// Missing attribute.
        missing: QpAttrName,
    },
    /// The attribute cannot be changed by this transition.
    #[error("the transition from {from:?} to {to:?} does not allow {attribute:?}")]
    Forbidden {
        /// Current state.
        from: QpState,
        /// Requested state.
        to: QpState,
        /// Attribute that the transition does not allow.
        attribute: QpAttrName,
    },
    /// An attribute exceeds its maximum, or `dest_qp_num` is 0.
    #[error("{attribute:?} is {found}: expected {} to {most}", u8::from(*attribute == QpAttrName::dest_qp_num))]
    Value {
        /// Attribute with the invalid value.
        attribute: QpAttrName,
        /// Requested value.
        found: u32,
        /// Maximum value.
        most: u32,
    },
    /// The source GID of the route is not a GID of the port.
    #[error("the source GID of the route is {0}: expected a GID of the port")]
    Source(Gid),
    /// The path MTU exceeds the active MTU of the port.
    #[error("path_mtu is {found:?}: expected at most {most:?}, the active MTU of the port")]
    Mtu {
        /// Requested MTU.
        found: Mtu,
        /// Active MTU of the port.
        most: Mtu,
    },
}

/// Returns the attributes that a state transition requires, and the optional attributes of the transition. Returns
/// `None` if the transition is invalid. IBTA volume 1, chapter 11.2.5.2.
#[expect(clippy::match_same_arms, reason = "the table has a row for each transition")]
fn transition(
    qp_type: QpType,
    from: QpState,
    to: QpState,
) -> Option<(&'static [QpAttrName], &'static [QpAttrName])> {
    use QpAttrName as A;
    use QpState as S;
    use QpType as T;
    Some(match (from, to, qp_type) {
        (_, S::Reset | S::Err, _) => (&[], &[]),
        (S::Reset, S::Init, T::Rc | T::Uc) => (&[A::pkey, A::qp_access_flags], &[]),
        (S::Reset, S::Init, T::Ud) => (&[A::pkey, A::qkey], &[]),
        (S::Init, S::Init, T::Rc | T::Uc) => (&[], &[A::pkey, A::qp_access_flags]),
        (S::Init, S::Init, T::Ud) => (&[], &[A::pkey, A::qkey]),
        (S::Init, S::Rtr, T::Rc) => (
            &[
                A::route,
                A::path_mtu,
                A::dest_qp_num,
                A::rq_psn,
                A::max_dest_rd_atomic,
                A::min_rnr_timer,
            ],
            &[A::pkey, A::qp_access_flags],
        ),
        (S::Init, S::Rtr, T::Uc) => {
            (&[A::route, A::path_mtu, A::dest_qp_num, A::rq_psn], &[A::pkey, A::qp_access_flags])
        }
        (S::Init, S::Rtr, T::Ud) => (&[], &[A::pkey, A::qkey]),
        (S::Rtr, S::Rts, T::Rc) => (
            &[A::sq_psn, A::timeout, A::retry_cnt, A::rnr_retry, A::max_rd_atomic],
            &[A::qp_access_flags, A::min_rnr_timer],
        ),
        (S::Rtr, S::Rts, T::Uc) => (&[A::sq_psn], &[A::qp_access_flags]),
        (S::Rtr, S::Rts, T::Ud) => (&[A::sq_psn], &[A::qkey]),
        (S::Rts | S::Sqd, S::Rts, T::Rc) => (&[], &[A::qp_access_flags, A::min_rnr_timer]),
        (S::Rts | S::Sqd | S::Sqe, S::Rts, T::Uc) => (&[], &[A::qp_access_flags]),
        (S::Rts | S::Sqd | S::Sqe, S::Rts, T::Ud) => (&[], &[A::qkey]),
        (S::Rts, S::Sqd, _) => (&[], &[]),
        (S::Sqd, S::Sqd, T::Rc) => (
            &[],
            &[
                A::pkey,
                A::route,
                A::max_rd_atomic,
                A::max_dest_rd_atomic,
                A::qp_access_flags,
                A::timeout,
                A::retry_cnt,
                A::rnr_retry,
                A::min_rnr_timer,
            ],
        ),
        (S::Sqd, S::Sqd, T::Uc) => (&[], &[A::pkey, A::route, A::qp_access_flags]),
        (S::Sqd, S::Sqd, T::Ud) => (&[], &[A::pkey, A::qkey]),
        _ => return None,
    })
}

/// Checks changes to a queue pair in state `from`, and returns the new state.
pub(crate) fn check(qp_type: QpType, from: QpState, attr: &QpAttr) -> Result<QpState, ModifyError> {
    let to = attr.qp_state.unwrap_or(from);
    let (required, optional) =
        transition(qp_type, from, to).ok_or(ModifyError::Transition { qp_type, from, to })?;
    let names: Vec<QpAttrName> = attr.names().collect();
    if let Some(&missing) = required.iter().find(|name| !names.contains(name)) {
        return Err(ModifyError::Missing { from, to, missing });
    }
    let allowed = |name: &QpAttrName| required.contains(name) || optional.contains(name);
    if let Some(&attribute) = names.iter().find(|name| !allowed(name)) {
        return Err(ModifyError::Forbidden { from, to, attribute });
    }
    for (attribute, value, most) in [
        (QpAttrName::timeout, attr.timeout, 31),
        (QpAttrName::retry_cnt, attr.retry_cnt, 7),
        (QpAttrName::rnr_retry, attr.rnr_retry, 7),
        (QpAttrName::min_rnr_timer, attr.min_rnr_timer, 31),
        (QpAttrName::max_rd_atomic, attr.max_rd_atomic, 128),
        (QpAttrName::max_dest_rd_atomic, attr.max_dest_rd_atomic, 128),
    ] {
        if let Some(value) = value.filter(|&value| value > most) {
            let (found, most) = (value.into(), most.into());
            return Err(ModifyError::Value { attribute, found, most });
        }
    }
    Ok(to)
}
