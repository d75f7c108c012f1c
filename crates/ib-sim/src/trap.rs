//! Traps: what a node tells its subnet manager unasked, again and again until it is repressed.
//!
//! A port has one trap of each number under way. What happens meanwhile is told when that one is
//! repressed, the latest of it where there is more: no flood of one trap keeps another from being
//! sent, and the manager is never left with what is no longer true.
//!
//! A trap is repeated at the pace of the port's `SubnetTimeOut`, as IBTA volume 1, chapter 14.2.5.6
//! has it, but not more often than once a second, and than once a minute when nobody has answered
//! for a while. Nothing ends it but a TrapRepress, so that there is something to come for ever where
//! nobody represses.
//!
//! The M_Key of a trap is zero, as rule o14-1 of that chapter has it: with its port's own key it would
//! tell whoever sees it what guards the port. A TrapRepress needs the key as a Set does. Managers know
//! it, and do not take it from the trap: OpenSM writes the one that it knows of the port.

use std::time::Duration;

use ib_topology::PortId;
use ib_types::NodeKind;
use ib_wire::mad::sm::notice::NoticeType;
use ib_wire::mad::sm::{Notice, TrapNumber};

/// How long a port waits at least before it sends a trap again.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
/// How long it waits at least once it has sent the trap [`OFTEN`] times.
const LONG_PAUSE: Duration = Duration::from_secs(60);
/// How often a trap is sent before its pauses are long.
const OFTEN: u32 = 10;

/// The traps of a node that were not repressed yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traps {
    pending: Vec<Pending>,
    /// The transactions of traps so far.
    transactions: u32,
}

#[derive(Clone, Debug)]
struct Pending {
    transaction: u32,
    /// The end port that sends it.
    port: PortId,
    notice: Notice,
    sent: u32,
    /// The last that has happened since it was first sent, to be told next.
    next: Option<Notice>,
}

impl Traps {
    /// Returns the transaction of a new trap to send from an end port. `None` if one of the same number
    /// is pending: this one is sent when that one is repressed, because the manager may have looked
    /// already.
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

    /// Counts that a pending trap is sent; returns its port, its notice, and how often it was sent.
    pub(crate) fn send(&mut self, transaction: u32) -> Option<(PortId, Notice, u32)> {
        let pending = self.pending.iter_mut().find(|it| it.transaction == transaction)?;
        pending.sent = pending.sent.saturating_add(1);
        Some((pending.port, pending.notice, pending.sent))
    }

    /// Takes the manager's word that it has heard a trap; returns the transaction of the next one to send.
    pub(crate) fn repress(&mut self, transaction: u64) -> Option<u32> {
        let is_heard = |pending: &Pending| u64::from(pending.transaction) == transaction;
        let index = self.pending.iter().position(is_heard)?;
        let Pending { port, next, .. } = self.pending.remove(index);
        next.map(|notice| self.add(port, notice))
    }

    /// Forgets all traps, as a node does that loses its power.
    pub(crate) fn clear(&mut self) {
        self.pending.clear();
    }

    /// Returns true when a trap of a port was not repressed yet.
    #[cfg(test)]
    pub(crate) fn is_pending(&self, port: PortId, trap: TrapNumber) -> bool {
        self.pending.iter().any(|it| it.port == port && it.notice.trap == trap)
    }
}

/// Returns the notice of a trap, without its details.
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

/// Returns how long a trap waits for its repetition once it was sent `sent` times, by the port's
/// `SubnetTimeOut`.
pub(crate) fn pause(sent: u32, subnet_timeout: u8) -> Duration {
    let own = if sent < OFTEN { SHORTEST_PAUSE } else { LONG_PAUSE };
    own.max(Duration::from_nanos(4096 << subnet_timeout.min(31)))
}

#[cfg(test)]
mod tests;
