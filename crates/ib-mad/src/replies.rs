//! Control datagrams on their way out.

use std::collections::VecDeque;

use ib_link::{Datagram, Remote};
use ib_types::Qpn;
use ib_wire::mad::{MAD_LENGTH, Mad};

/// Acknowledgements and the like, in order.
///
/// A flood of duplicates asks for one each. When nobody takes them, the oldest ones go: a lost
/// acknowledgement does no harm.
#[derive(Debug, Default)]
pub(crate) struct Replies(VecDeque<Datagram>);

impl Replies {
    /// How many wait at most.
    pub(crate) const CAPACITY: usize = 1024;

    pub(crate) fn push(&mut self, datagram: Datagram) {
        if self.0.len() == Self::CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back(datagram);
    }

    /// Returns the oldest one.
    pub(crate) fn pop(&mut self) -> Option<Datagram> {
        self.0.pop_front()
    }
}

/// Returns a datagram from the queue pair of its class, which the other end need not share: a class
/// may be redirected to any.
pub(crate) const fn outgoing(remote: Remote, mad: Mad) -> Datagram {
    let local_qpn = if mad.class().is_smp() { Qpn::SMI } else { Qpn::GSI };
    Datagram { remote, local_qpn, length: MAD_LENGTH as u16, mad }
}
