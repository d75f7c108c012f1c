//! The attributes of queue pairs, and which of them a change of state needs.

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
    /// New: nothing can be posted.
    #[default]
    Reset,
    /// Receives can be posted; what comes in is dropped.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send as well.
    Rts,
    /// No work request is begun any more.
    Sqd,
    /// The send queue of an unreliable queue pair has failed.
    Sqe,
    /// It has failed, or was told to: all work requests are flushed.
    Err,
}

impl QpState {
    /// All states.
    pub const ALL: [Self; 7] =
        [Self::Reset, Self::Init, Self::Rtr, Self::Rts, Self::Sqd, Self::Sqe, Self::Err];
}

/// What a queue pair is made of (`ibv_qp_init_attr`).
#[derive(Clone, Copy, Debug)]
pub struct QpInitAttr {
    /// Its transport.
    pub qp_type: QpType,
    /// Where completions of its send queue go.
    pub send_cq: CqId,
    /// Where completions of its receives go.
    pub recv_cq: CqId,
    /// The shared receive queue that it takes its receives from.
    pub srq: Option<SrqId>,
    /// How much it takes.
    pub cap: QpCap,
}

/// How much a queue pair takes (`ibv_qp_cap`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpCap {
    /// Work requests of the send queue.
    pub max_send_wr: u32,
    /// Work requests of the receive queue.
    pub max_recv_wr: u32,
    /// Pieces of memory of a request to send.
    pub max_send_sge: u32,
    /// Pieces of memory of a receive.
    pub max_recv_sge: u32,
    /// Bytes in a request to send itself.
    pub max_inline_data: u32,
}

impl Default for QpCap {
    /// 64 requests each way, of up to 4 pieces and 256 bytes inline.
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
        /// A change of a queue pair (`ibv_qp_attr` with its mask): what is `None` stays as it is.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct QpAttr {
            /// The state that it goes to.
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
            /// Takes over what a change has.
            pub(crate) const fn apply(&mut self, attr: &QpAttr) {
                $(if let Some(value) = attr.$name { self.$name = value; })+
            }
        }

        /// The name of an attribute.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(non_camel_case_types, reason = "they are the names of fields")]
        pub enum QpAttrName { $(#[doc = concat!("`", stringify!($name), "`")] $name,)+ }

        impl QpAttr {
            /// Returns the attributes that the change has.
            fn names(&self) -> impl Iterator<Item = QpAttrName> {
                [$(self.$name.is_some().then_some(QpAttrName::$name),)+].into_iter().flatten()
            }
        }
    };
}

attributes! {
    /// The partition.
    pkey: PKey = PKey::DEFAULT,
    /// The key that datagrams must have.
    qkey: QKey = QKey(0),
    /// What the other side may do.
    qp_access_flags: AccessFlags = AccessFlags::default(),
    /// The most payload of a packet.
    path_mtu: Mtu = Mtu::B1024,
    /// The way to the other side (`ah_attr`).
    route: Route = Route::default(),
    /// The queue pair of the other side.
    dest_qp_num: Qpn = Qpn::SMI,
    /// The first sequence number that is received.
    rq_psn: Psn = Psn::truncated(0),
    /// The first sequence number that is sent.
    sq_psn: Psn = Psn::truncated(0),
    /// How many READs and atomics may be under way to the other side, 0 to 128.
    max_rd_atomic: u8 = 0,
    /// How many of them the other side may have under way, 0 to 128.
    max_dest_rd_atomic: u8 = 0,
    /// The code of the time that the other side waits when there is no receive, 0 to 31.
    min_rnr_timer: u8 = 0,
    /// The time until a packet is sent again: 4.096 µs × 2^value, 1 to 31; 0 for never.
    timeout: u8 = 0,
    /// How often packets are sent again, 0 to 7.
    retry_cnt: u8 = 0,
    /// How often they are when the other side has no receive, 0 to 6; 7 for any number of times.
    rnr_retry: u8 = 0,
}

/// Why a queue pair cannot be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModifyError {
    /// The queue pair is not there.
    #[error("there is no such queue pair")]
    NoSuchQp,
    /// No change leads from the one state to the other.
    #[error("a queue pair of type {qp_type:?} cannot go from {from:?} to {to:?}")]
    Transition {
        /// The transport.
        qp_type: QpType,
        /// The state.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
    },
    /// An attribute is missing.
    #[error("from {from:?} to {to:?} needs {missing:?}")]
    Missing {
        /// The state.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
        /// The attribute.
        missing: QpAttrName,
    },
    /// An attribute cannot be changed then.
    #[error("from {from:?} to {to:?} cannot change {attribute:?}")]
    Forbidden {
        /// The state.
        from: QpState,
        /// The state that was asked for.
        to: QpState,
        /// The attribute.
        attribute: QpAttrName,
    },
    /// An attribute has a value that it cannot have.
    #[error("{attribute:?} is {found}: expected at most {most}")]
    Value {
        /// The attribute.
        attribute: QpAttrName,
        /// Its value.
        found: u32,
        /// The highest one.
        most: u32,
    },
    /// The path is not from this port.
    #[error("the path starts at GID {0}: expected one of the port's own")]
    Source(Gid),
    /// The path's packets are longer than the port carries.
    #[error("path_mtu is {found:?}: the port carries {most:?}")]
    Mtu {
        /// The MTU.
        found: Mtu,
        /// The port's.
        most: Mtu,
    },
}

/// Returns the attributes that a change of state needs, and those that it may have besides; `None` when
/// there is no such change. IBTA volume 1, chapter 11.2.5.2.
#[expect(clippy::match_same_arms, reason = "it is a table with a row for each change")]
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

/// Checks a change of a queue pair that has the one state; returns the state that it goes to.
pub(crate) fn check(qp_type: QpType, from: QpState, attr: &QpAttr) -> Result<QpState, ModifyError> {
    let to = attr.qp_state.unwrap_or(from);
    let (needed, optional) =
        transition(qp_type, from, to).ok_or(ModifyError::Transition { qp_type, from, to })?;
    let names: Vec<QpAttrName> = attr.names().collect();
    if let Some(&missing) = needed.iter().find(|name| !names.contains(name)) {
        return Err(ModifyError::Missing { from, to, missing });
    }
    let allowed = |name: &QpAttrName| needed.contains(name) || optional.contains(name);
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
