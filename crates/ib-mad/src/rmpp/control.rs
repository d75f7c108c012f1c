//! The datagrams of a transfer that carry no data, and what a received one is for.

use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppStatus, RmppType, VERSION};
use ib_wire::mad::{Mad, Method};

use super::Acknowledgement;

/// The response time that says "not known".
pub(crate) const NO_RESPONSE_TIME: u8 = 31;

/// What a received datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No part of a transfer: all there is.
    Plain,
    /// A segment.
    Data,
    /// An acknowledgement.
    Acknowledgement,
    /// The other end gives up: STOP or ABORT.
    End(RmppStatus),
    /// It breaks the rules in this way.
    Bad(RmppStatus),
}

/// Tells what a datagram is for.
///
/// OpenSM sets the Active flag and leaves the rest to the kernel, which is missing under ibsim: what
/// says Active but has neither a segment number nor an end of a message is plain, too.
pub(crate) fn classify(mad: &Mad) -> Kind {
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

/// Returns the ACK of a segment.
pub(crate) fn acknowledge(segment: &Mad, acknowledgement: Acknowledgement) -> Mad {
    let Acknowledgement { segment: number, window_last } = acknowledgement;
    let reply = turned(segment);
    headed(&reply, RmppType::ACK, RmppStatus::NORMAL, (number, window_last))
}

/// Returns the datagram that refuses a received one: STOP for want of resources, else ABORT.
pub(crate) fn refuse(received: &Mad, status: RmppStatus) -> Mad {
    end(&turned(received), status)
}

/// Returns the datagram by which a sender gives up its own message.
pub(crate) fn end(header: &Mad, status: RmppStatus) -> Mad {
    let stop = status == RmppStatus::RESOURCES_EXHAUSTED;
    headed(header, if stop { RmppType::STOP } else { RmppType::ABORT }, status, (0, 0))
}

/// Returns the ACK by which the requester of a double-sided transfer lets the answer come.
pub(crate) fn open(request: &Mad) -> Mad {
    headed(request, RmppType::ACK, RmppStatus::NORMAL, (0, 1))
}

/// Returns the method of what goes the other way: with the response bit turned.
pub(crate) const fn turned_method(method: Method) -> Method {
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

/// Returns the headers of a datagram with another RMPP header and no data.
fn headed(mad: &Mad, rmpp_type: RmppType, status: RmppStatus, words: (u32, u32)) -> Mad {
    let mut result = *mad;
    result.data_mut().fill(0);
    result.set_rmpp(&RmppHeader {
        version: VERSION,
        rmpp_type,
        resp_time: NO_RESPONSE_TIME,
        flags: RmppFlags::ACTIVE,
        status,
        segment: words.0,
        length_or_window: words.1,
    });
    result
}
