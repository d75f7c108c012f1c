//! Messages of several segments, as the Linux kernel sends and receives them for its users; IBTA
//! volume 1, chapter 13.6. Sans-IO: datagrams and the time go in, datagrams come out.

use ib_wire::mad::rmpp::{RmppStatus, RmppType};
use ib_wire::mad::{Mad, Method};

mod receive;
mod send;

pub(crate) use receive::{Receiver, Step};
pub(crate) use send::{Acknowledged, Sender};

/// Returns a datagram about a transfer that answers one of its segments or acknowledgements.
fn answer(to: &Mad, kind: RmppType, status: RmppStatus, segment: u32, window: u32) -> Mad {
    let mut mad = *to;
    mad.set_method(Method(mad.method().0 ^ Method::RESPONSE_BIT));
    let mut header = mad.rmpp();
    header.rmpp_type = kind;
    header.flags = ib_wire::mad::rmpp::RmppFlags::ACTIVE;
    header.status = status;
    header.segment = segment;
    header.length_or_window = window;
    mad.set_rmpp(&header);
    let data = mad.class().data_offset();
    mad.0[data..].fill(0);
    mad
}

/// Returns the datagram that ends a transfer because of an error in one of its datagrams.
pub(crate) fn abort(to: &Mad, status: RmppStatus) -> Mad {
    answer(to, RmppType::ABORT, status, 0, 0)
}

/// Returns the datagram that ends a transfer because there is no room for its message.
pub(crate) fn stop(to: &Mad) -> Mad {
    answer(to, RmppType::STOP, RmppStatus::RESOURCES_EXHAUSTED, 0, 0)
}

/// Returns the datagram that turns a transfer round: after a request of several segments, the answer
/// may come.
pub(crate) fn turn(last_ack: &Mad) -> Mad {
    answer(last_ack, RmppType::ACK, RmppStatus::NORMAL, 0, 1)
}

#[cfg(test)]
mod tests;
