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

use ib_topology::{NodeId, PortId};
use ib_wire::mad::sm::notice::{LinkStateDetails, LocalChangeDetails, NoticeType};
use ib_wire::mad::sm::{Notice, NoticeDetails, TrapNumber};
use ib_wire::mad::{Mad, Method, TransactionId, smp};

use crate::event::{Event, Timer};
use crate::log::Entry;
use crate::sim::Sim;

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

impl Sim {
    /// Sends trap 128: the state of a link of the switch has changed.
    pub(crate) fn trap_link_state(&mut self, node: NodeId) {
        let port = self.port_id(node, 0);
        let details = LinkStateDetails { lid: self.port(port).info.lid };
        self.raise(
            port,
            (NoticeType::URGENT, TrapNumber::LINK_STATE_CHANGE),
            &NoticeDetails::LinkState(details),
        );
    }

    /// Sends trap 144: the capabilities of an end port have changed.
    pub(crate) fn trap_capabilities(&mut self, port: PortId) {
        let info = &self.port(port).info;
        let mut details = LocalChangeDetails::zeroed();
        details.lid = info.lid;
        details.capability_mask = info.capability_mask;
        self.raise(
            port,
            (NoticeType::INFORMATIONAL, TrapNumber::LOCAL_CHANGES),
            &NoticeDetails::LocalChange(details),
        );
    }

    /// Sends a trap from an end port, if it has a LID and knows that of its subnet manager.
    pub(crate) fn raise(
        &mut self,
        port: PortId,
        (kind, trap): (NoticeType, TrapNumber),
        details: &NoticeDetails,
    ) {
        let (node, info) = (self.port(port).node, &self.port(port).info);
        if info.lid == 0 || info.master_sm_lid == 0 || !self.node(node).powered {
            return;
        }
        let mut notice = Notice::zeroed();
        notice.is_generic = true;
        notice.notice_type = kind;
        notice.producer = match self.node(node).kind {
            ib_types::NodeKind::ChannelAdapter => 1,
            ib_types::NodeKind::Switch => 2,
            ib_types::NodeKind::Router => 3,
        };
        notice.trap = trap;
        notice.issuer_lid = info.lid;
        notice.set_details(details);
        let traps = &mut self.node_mut(node).traps;
        let same = |pending: &&mut Pending| pending.port == port && pending.notice.trap == trap;
        if let Some(pending) = traps.pending.iter_mut().find(same) {
            // The manager may have looked already: it is told once more when it represses this one.
            pending.next = Some(notice);
            return;
        }
        self.send_new_trap(node, port, notice);
    }

    fn send_new_trap(&mut self, node: NodeId, port: PortId, notice: Notice) {
        let traps = &mut self.node_mut(node).traps;
        traps.transactions = traps.transactions.wrapping_add(1);
        let transaction = traps.transactions;
        traps.pending.push(Pending { transaction, port, notice, sent: 0, next: None });
        self.send_trap(node, transaction);
    }

    /// Sends a trap that is not repressed yet.
    pub(crate) fn send_trap(&mut self, node: NodeId, transaction: u32) {
        let traps = &mut self.node_mut(node).traps;
        let Some(index) = traps.pending.iter().position(|p| p.transaction == transaction) else {
            return;
        };
        let pending = &mut traps.pending[index];
        pending.sent = pending.sent.saturating_add(1);
        let (port, notice, sent) = (pending.port, pending.notice, pending.sent);
        let at = self.now() + pause(sent, self.port(port).info.subnet_timeout);
        self.schedule(at, Event::Timer(Timer::Trap { node, transaction }));
        let mut mad = smp::lid_request(
            Method::TRAP,
            TransactionId(u64::from(transaction)),
            (ib_wire::mad::AttributeId::NOTICE, 0),
        );
        let info = &self.port(port).info;
        let dlid = info.master_sm_lid;
        let level = ib_types::ServiceLevel::new(info.master_sm_sl).unwrap_or_default();
        mad.set_attribute(&notice);
        self.log(Entry::Trap { port, number: notice.trap, count: sent });
        let packet = self.management_packet(port, dlid, level, mad);
        self.send_by_lid(port, packet, None);
    }

    /// Takes the manager's word that it has heard a trap.
    pub(crate) fn repress(&mut self, node: NodeId, mad: &Mad) {
        let transaction = mad.transaction_id().0;
        let traps = &mut self.node_mut(node).traps;
        let known = |pending: &Pending| u64::from(pending.transaction) == transaction;
        let Some(index) = traps.pending.iter().position(known) else { return };
        let Pending { port, next, .. } = traps.pending.remove(index);
        if let Some(notice) = next {
            self.send_new_trap(node, port, notice);
        }
    }

    /// Returns true when a trap of a port was not repressed yet.
    #[cfg(test)]
    pub(crate) fn waits_for_repress(&self, port: PortId, trap: TrapNumber) -> bool {
        let pending = &self.node(self.port(port).node).traps.pending;
        pending.iter().any(|pending| pending.port == port && pending.notice.trap == trap)
    }

    /// Forgets the traps of a node that lost its power.
    pub(crate) fn forget_traps(&mut self, node: NodeId) {
        self.node_mut(node).traps.pending.clear();
    }
}

/// Returns how long a trap waits that was sent so many times, by the port's `SubnetTimeOut`.
fn pause(sent: u32, subnet_timeout: u8) -> Duration {
    let own = if sent < OFTEN { SHORTEST_PAUSE } else { LONG_PAUSE };
    own.max(Duration::from_nanos(4096 << subnet_timeout.min(31)))
}

#[cfg(test)]
mod tests;
