//! The queue of outgoing RMPP control MADs.

use std::collections::VecDeque;

use ib_link::{Datagram, Remote};
use ib_types::Qpn;
use ib_wire::mad::{MAD_LENGTH, Mad};

/// A bounded queue of ACKs, STOPs and ABORTs.
///
/// Every received duplicate segment adds an ACK. If the queue is full, its oldest datagram is dropped. The peer
/// recovers as if the network had lost this datagram.
#[derive(Debug, Default)]
pub(crate) struct Replies(VecDeque<Datagram>);

impl Replies {
    /// The maximum number of queued datagrams.
    pub(crate) const CAPACITY: usize = 1024;

    pub(crate) fn push(&mut self, datagram: Datagram) {
        if self.0.len() == Self::CAPACITY {
            self.0.pop_front();
        }
        self.0.push_back(datagram);
    }

    /// Removes and returns the datagram that was queued first.
    pub(crate) fn pop(&mut self) -> Option<Datagram> {
        self.0.pop_front()
    }
}

/// Returns a datagram that this port sends from QP0 (SMPs) or QP1 (other classes).
///
/// `remote` may contain any QP, because the peer can redirect a management class to another QP.
pub(crate) const fn outgoing(remote: Remote, mad: Mad) -> Datagram {
    let local_qpn = if mad.class().is_smp() { Qpn::SMI } else { Qpn::GSI };
    Datagram { remote, local_qpn, length: MAD_LENGTH as u16, mad }
}
