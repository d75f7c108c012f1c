//! Control datagrams of a transfer (ACK, STOP, ABORT), and classification of received datagrams.

use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppStatus, RmppType, VERSION};
use ib_wire::mad::{Mad, Method};

/// The value of `RRespTime` that means "no response time".
pub(super) const NO_RESPONSE_TIME: u8 = 31;

/// State of a receiver, as reported in an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Number of the last segment before the first missing one.
    pub segment: u32,
    /// Number of the last segment that the sender may send.
    pub window_last: u32,
}

/// The kind of a received datagram: a single MAD, or a type of RMPP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Not an RMPP datagram: a single MAD.
    Plain,
    /// A segment of a message.
    Data,
    /// An acknowledgement.
    Acknowledgement,
    /// STOP or ABORT, sent by the peer.
    End(RmppStatus),
    /// A datagram that violates the RMPP protocol, and the RMPP status that names the violation.
    Bad(RmppStatus),
}

/// Returns the kind of a received datagram.
///
/// OpenSM sets only the Active flag and expects the kernel to fill in the other RMPP fields. Under ibsim, no kernel
/// does so. Therefore a datagram with the Active flag but without segment number, First flag and Last flag is also
/// plain.
#[must_use]
pub fn classify(mad: &Mad) -> Kind {
    if !mad.is_rmpp() {
        return Kind::Plain;
    }
    let header = mad.rmpp();
    let ends = RmppFlags(header.flags.0 & (RmppFlags::FIRST | RmppFlags::LAST).0);
    let untouched = header.segment == 0 && ends.0 == 0;
    match header.rmpp_type {
        RmppType::NONE | RmppType::DATA if untouched => Kind::Plain,
        _ if header.version != VERSION => Kind::Bad(RmppStatus::BAD_VERSION),
        RmppType::DATA => Kind::Data,
        RmppType::ACK => Kind::Acknowledgement,
        RmppType::STOP if header.status == RmppStatus::RESOURCES_EXHAUSTED => {
            Kind::End(header.status)
        }
        RmppType::ABORT if is_abort(header.status) => Kind::End(header.status),
        RmppType::STOP | RmppType::ABORT => Kind::Bad(RmppStatus::ILLEGAL_STATUS),
        _ => Kind::Bad(RmppStatus::BAD_TYPE),
    }
}

/// Returns an ACK to the sender of `segment`. The ACK reports the receiver's state `acknowledgement`.
#[must_use]
pub fn acknowledge(segment: &Mad, acknowledgement: Acknowledgement) -> Mad {
    let Acknowledgement { segment: number, window_last } = acknowledgement;
    let reply = turned(segment);
    with_header(&reply, RmppType::ACK, RmppStatus::NORMAL, number, window_last)
}

/// Returns the reply to `received` that ends the transfer: STOP if resources are exhausted, else ABORT.
#[must_use]
pub fn refuse(received: &Mad, status: RmppStatus) -> Mad {
    end(&turned(received), status)
}

/// Returns the datagram with which a sender ends the transfer of its own message.
#[must_use]
pub fn end(header: &Mad, status: RmppStatus) -> Mad {
    let stop = status == RmppStatus::RESOURCES_EXHAUSTED;
    with_header(header, if stop { RmppType::STOP } else { RmppType::ABORT }, status, 0, 0)
}

/// Returns the ACK with which the requester of a double-sided transfer permits the response.
#[must_use]
pub fn open(request: &Mad) -> Mad {
    with_header(request, RmppType::ACK, RmppStatus::NORMAL, 0, 1)
}

/// Returns the method that datagrams in the opposite direction have: the response bit is flipped.
#[must_use]
pub const fn turned_method(method: Method) -> Method {
    Method(method.0 ^ Method::RESPONSE_BIT)
}

fn is_abort(status: RmppStatus) -> bool {
    (RmppStatus::TIME_TOO_LONG..=RmppStatus::UNSPECIFIED).contains(&status)
}

fn turned(mad: &Mad) -> Mad {
    let mut turned = *mad;
    turned.set_method(turned_method(mad.method()));
    turned
}

/// Returns a datagram with the given MAD headers, the given RMPP header and no data.
fn with_header(
    mad: &Mad,
    rmpp_type: RmppType,
    status: RmppStatus,
    segment: u32,
    length_or_window: u32,
) -> Mad {
    let mut result = *mad;
    result.data_mut().fill(0);
    result.set_rmpp(&RmppHeader {
        version: VERSION,
        rmpp_type,
        resp_time: NO_RESPONSE_TIME,
        flags: RmppFlags::ACTIVE,
        status,
        segment,
        length_or_window,
    });
    result
}
