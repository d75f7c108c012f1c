//! Event subscriptions and the reports to subscribers. Source: IBTA volume 1, sections 13.4.8.3 and
//! 13.4.11.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use ib_link::Remote;
use ib_mad::Request;
use ib_types::{Gid, Qpn};
use ib_wire::mad::sa::{InformInfo, InformInfoRecord, SaNotice};
use ib_wire::mad::sm::Notice;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

use super::query::Query;

/// Maximum number of subscriptions of all ports in total.
const MAX: usize = 65_536;
/// Maximum number of subscriptions of each port.
const MAX_PER_PORT: usize = 256;

/// Maximum number of queued reports.
const MAX_REPORTS: usize = 65_536;

/// Wildcard values in InformInfo.
const ANY: u16 = 0xffff;
const ANY_PRODUCER: u32 = 0x00ff_ffff;

/// First trap number of P_Key, Q_Key and M_Key violations. Only trusted subscribers receive these traps.
const FIRST_KEY_VIOLATION: u16 = 256;
/// Last trap number of key violations.
const LAST_KEY_VIOLATION: u16 = 259;

/// Subscriptions by the GID of the subscriber.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    of: BTreeMap<Gid, Vec<Subscription>>,
    count: usize,
    numbers: u16,
    /// Queued reports.
    reports: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Subscription {
    number: u16,
    info: InformInfo,
    remote: Remote,
    /// True if the request for the subscription had the `SA_Key`.
    trusted: bool,
}

impl Subscriptions {
    /// Subscribes or unsubscribes a port. Returns the attribute for the response.
    pub(super) fn set(
        &mut self,
        subscriber: Gid,
        remote: Remote,
        info: InformInfo,
        trusted: bool,
    ) -> Result<InformInfo, MadStatus> {
        if info.is_generic == 1 && is_key_violation(info.trap) && !trusted {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        let remote = Remote { qpn: subscriber_queue_pair(&info, &remote), ..remote };
        let same = |one: &Subscription| {
            let bare = |info: InformInfo| InformInfo { subscribe: 0, qpn: Qpn::default(), ..info };
            one.remote.qpn == remote.qpn && bare(one.info) == bare(info)
        };
        match info.subscribe {
            1 => {
                let own = self.of.entry(subscriber).or_default();
                if let Some(known) = own.iter_mut().find(|one| same(one)) {
                    (known.remote, known.trusted) = (remote, trusted);
                } else if own.len() == MAX_PER_PORT || self.count == MAX {
                    return Err(MadStatus::SA_NO_RESOURCES);
                } else {
                    own.push(Subscription { number: self.numbers, info, remote, trusted });
                    self.numbers = self.numbers.wrapping_add(1);
                    self.count += 1;
                }
                Ok(info)
            }
            0 => {
                let own = self.of.get_mut(&subscriber).ok_or(MadStatus::SA_REQUEST_INVALID)?;
                let at = own.iter().position(same).ok_or(MadStatus::SA_REQUEST_INVALID)?;
                own.remove(at);
                self.count -= 1;
                if own.is_empty() {
                    self.of.remove(&subscriber);
                }
                Ok(info)
            }
            _ => Err(MadStatus::SA_REQUEST_INVALID),
        }
    }

    /// Removes all subscriptions of a port that has left the subnet.
    pub(super) fn forget(&mut self, subscriber: Gid) {
        self.count -= self.of.remove(&subscriber).map_or(0, |own| own.len());
    }

    /// Appends the selected records of the next subscriber after `after`. Returns this subscriber, and the number of
    /// records that were checked.
    pub(super) fn records(
        &self,
        after: Option<Gid>,
        query: &Query<'_>,
        sees: impl Fn(Gid) -> bool,
        records: &mut Vec<u8>,
    ) -> Option<(Gid, usize)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (&subscriber_gid, own) = self.of.range((from, Bound::Unbounded)).next()?;
        for one in own.iter().filter(|_| sees(subscriber_gid)) {
            let record =
                InformInfoRecord { subscriber_gid, inform_enum: one.number, inform_info: one.info };
            query.add(&record, records);
        }
        Some((subscriber_gid, own.len()))
    }

    /// Queues reports of a notice, one for each matching subscription.
    pub(super) fn notify(&mut self, notice: Notice, issuer: Gid) {
        let told = SaNotice { notice, issuer_gid: issuer };
        for own in self.of.values() {
            for one in own.iter().filter(|one| one.receives(&notice, issuer)) {
                if self.reports.len() == MAX_REPORTS {
                    // If subscribers acknowledge too slowly and the queue is full, further reports are dropped.
                    return;
                }
                let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::REPORT, TransactionId(0));
                mad.set_attribute(&told);
                self.reports.push_back(Request::new(one.remote, mad));
            }
        }
    }

    /// Returns the next report to send.
    pub(super) fn next_report(&mut self) -> Option<Request> {
        self.reports.pop_front()
    }
}

impl Subscription {
    /// Returns true if a notice has to be reported to the subscriber. Key violations are reported only to trusted
    /// subscribers, even if the subscription has wildcards.
    fn receives(&self, notice: &Notice, issuer: Gid) -> bool {
        let may = self.trusted || !(notice.is_generic && is_key_violation(notice.trap.0));
        may && wants(&self.info, notice, issuer)
    }
}

/// Returns true for the traps of key violations.
const fn is_key_violation(trap: u16) -> bool {
    FIRST_KEY_VIOLATION <= trap && trap <= LAST_KEY_VIOLATION
}

/// Returns the QP to which reports are sent: the QP in the subscription or, if there is none, the QP of the requester.
fn subscriber_queue_pair(info: &InformInfo, remote: &Remote) -> Qpn {
    if info.qpn.get() == 0 { remote.qpn } else { info.qpn }
}

fn wants(info: &InformInfo, notice: &Notice, issuer: Gid) -> bool {
    let about = if info.gid == Gid(0) {
        let last = info.lid_range_end.max(info.lid_range_begin);
        info.lid_range_begin == ANY || (info.lid_range_begin..=last).contains(&notice.issuer_lid)
    } else {
        info.gid == issuer
    };
    about
        && (info.is_generic == 1) == notice.is_generic
        && (info.notice_type == ANY || info.notice_type == u16::from(notice.notice_type.0))
        && (info.trap == ANY || info.trap == notice.trap.0)
        && (info.producer == ANY_PRODUCER || info.producer == notice.producer)
}

#[cfg(test)]
mod tests;
