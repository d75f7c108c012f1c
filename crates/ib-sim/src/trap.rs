//! Traps: notices that a node sends repeatedly to its subnet manager, until a TrapRepress arrives.
//!
//! A port has at most one pending trap of each trap number. If further events with this trap number
//! occur meanwhile, the port keeps only the notice of the latest event. It sends this notice when the
//! pending trap is repressed. Thus a flood of one trap does not block other traps, and the subnet
//! manager always gets the latest state.
//!
//! A trap is repeated at intervals of the port's `SubnetTimeOut` (IBTA volume 1, chapter 14.2.5.6).
//! The interval is at least one second. After the trap was sent 10 times, the interval is at least
//! one minute. Only a TrapRepress ends the repetitions. If none arrives, the fabric has queued
//! events indefinitely.
//!
//! The M_Key in a trap is zero, as rule o14-1 of IBTA chapter 14 requires, so that the trap does
//! not disclose the port's M_Key. A TrapRepress has to contain the port's M_Key, like a Set. Subnet
//! managers know the M_Key without the trap; OpenSM sends the M_Key that it has for the port.

use std::time::Duration;

use ib_topology::PortId;
use ib_types::NodeKind;
use ib_wire::mad::sm::notice::NoticeType;
use ib_wire::mad::sm::{Notice, TrapNumber};

/// Minimum interval between repetitions of a trap.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// Minimum interval between repetitions after the trap was sent [`OFTEN`] times.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// After a trap was sent this many times, the interval between repetitions is at least
/// [`LONG_PAUSE`].
const OFTEN: u32 = 10;

/// The pending traps of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traps {
    pending: Vec<Pending>,
    /// The transaction ID of the last trap that was added.
    transactions: u32,
}

#[derive(Clone, Debug)]
struct Pending {
    transaction: u32,
    /// The end port that sends the trap.
    port: PortId,
    notice: Notice,
    sent: u32,
    /// The latest notice of an event that occurred after the trap was first sent. It is sent when
    /// the trap is repressed.
    next: Option<Notice>,
}

impl Traps {
    /// Adds a trap of an end port. Returns its transaction ID if the trap has to be sent now.
    ///
    /// Returns `None` if a trap of the same number is pending. The notice is then sent when the
    /// pending trap is repressed, because the subnet manager may already have read the old state.
    pub(crate) fn raise(&mut self, port: PortId, notice: Notice) -> Option<u32> {
        let same =
            |pending: &&mut Pending| pending.port == port && pending.notice.trap == notice.trap;
        if let Some(pending) = self.pending.iter_mut().find(same) {
            pending.next = Some(notice);
            return None;
        }
        Some(self.add(port, notice))
    }

    fn add(&mut self, port: PortId, notice: Notice) -> u32 {
        self.transactions = self.transactions.wrapping_add(1);
        let transaction = self.transactions;
        self.pending.push(Pending { transaction, port, notice, sent: 0, next: None });
        transaction
    }

    /// Counts a transmission of a pending trap. Returns its port, its notice, and the number of
    /// transmissions including this one.
    pub(crate) fn send(&mut self, transaction: u32) -> Option<(PortId, Notice, u32)> {
        let pending = self.pending.iter_mut().find(|it| it.transaction == transaction)?;
        pending.sent = pending.sent.saturating_add(1);
        Some((pending.port, pending.notice, pending.sent))
    }

    /// Removes a repressed trap. If its port has kept the notice of a later event, adds a trap with this
    /// notice and returns the transaction ID of the added trap.
    pub(crate) fn repress(&mut self, transaction: u64) -> Option<u32> {
        let is_heard = |pending: &Pending| u64::from(pending.transaction) == transaction;
        let index = self.pending.iter().position(is_heard)?;
        let Pending { port, next, .. } = self.pending.remove(index);
        next.map(|notice| self.add(port, notice))
    }

    /// Removes all traps, as a power loss does.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Returns true if a trap with this trap number is pending at a port.
    #[cfg(test)]
    pub(crate) fn is_pending(&self, port: PortId, trap: TrapNumber) -> bool {
        self.pending.iter().any(|it| it.port == port && it.notice.trap == trap)
    }
}

/// Returns the notice of a trap; the caller sets the details, which depend on the trap number.
pub(crate) fn notice(
    kind: NodeKind,
    issuer_lid: u16,
    notice_type: NoticeType,
    trap: TrapNumber,
) -> Notice {
    let mut notice = Notice::zeroed();
    notice.is_generic = true;
    notice.notice_type = notice_type;
    notice.producer = match kind {
        NodeKind::ChannelAdapter => 1,
        NodeKind::Switch => 2,
        NodeKind::Router => 3,
    };
    notice.trap = trap;
    notice.issuer_lid = issuer_lid;
    notice
}

/// Returns the interval before the next repetition of a trap that was sent `sent` times so far.
pub(crate) fn pause(sent: u32, subnet_timeout: u8) -> Duration {
    let own = if sent < OFTEN { SHORTEST_PAUSE } else { LONG_PAUSE };
    own.max(Duration::from_nanos(4096 << subnet_timeout.min(31)))
}

#[cfg(test)]
mod tests;
