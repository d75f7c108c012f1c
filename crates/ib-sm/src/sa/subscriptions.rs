//! Who wants to hear of what happens, and who is told; IBTA volume 1, chapters 13.4.8.3 and 13.4.11.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use ib_link::Remote;
use ib_mad::Request;
use ib_types::{Gid, Qpn};
use ib_wire::mad::sa::{InformInfo, InformInfoRecord, SaNotice};
use ib_wire::mad::sm::Notice;
use ib_wire::mad::{Mad, MadStatus, Method, MgmtClass, TransactionId};

use super::query::Query;

/// The most subscriptions of all ports, and of one.
const MOST: usize = 65_536;
const MOST_OF_ONE: usize = 256;

/// The most reports that wait to be sent.
const MOST_REPORTS: usize = 65_536;

/// The number that stands for everything in a subscription.
const ANY: u16 = 0xffff;
const ANY_PRODUCER: u32 = 0x00ff_ffff;

/// The first of the traps that only the trusted hear of: violations of keys.
const FIRST_OF_KEYS: u16 = 256;
const LAST_OF_KEYS: u16 = 259;

/// Subscriptions by the port that has them.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    of: BTreeMap<Gid, Vec<Subscription>>,
    count: usize,
    numbers: u16,
    /// What subscribers are to be told.
    reports: VecDeque<Request>,
}

#[derive(Clone, Copy, Debug)]
struct Subscription {
    number: u16,
    info: InformInfo,
    remote: Remote,
    /// Whether who asked for it knew the key.
    trusted: bool,
}

impl Subscriptions {
    /// Subscribes or ends a subscription; returns what the answer says.
    pub(super) fn set(
        &mut self,
        subscriber: Gid,
        remote: Remote,
        info: InformInfo,
        trusted: bool,
    ) -> Result<InformInfo, MadStatus> {
        if info.is_generic == 1 && is_of_keys(info.trap) && !trusted {
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
                } else if own.len() == MOST_OF_ONE || self.count == MOST {
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

    /// Forgets the subscriptions of a port that has gone.
    pub(super) fn forget(&mut self, subscriber: Gid) {
        self.count -= self.of.remove(&subscriber).map_or(0, |own| own.len());
    }

    /// Appends the records that a request selects of the subscriber behind one; returns it, and how many
    /// records were looked at.
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

    /// Tells of a notice whoever wants to know.
    pub(super) fn tell(&mut self, notice: Notice, issuer: Gid) {
        let told = SaNotice { notice, issuer_gid: issuer };
        for own in self.of.values() {
            for one in own.iter().filter(|one| one.hears_of(&notice, issuer)) {
                if self.reports.len() == MOST_REPORTS {
                    // Who does not take reports must not make the others' wait for ever.
                    return;
                }
                let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::REPORT, TransactionId(0));
                mad.set_attribute(&told);
                self.reports.push_back(Request::new(one.remote, mad));
            }
        }
    }

    /// Returns the next report to be sent.
    pub(super) fn next_report(&mut self) -> Option<Request> {
        self.reports.pop_front()
    }
}

impl Subscription {
    /// Returns true when it is for a notice: violations of keys are for the trusted only, who asks for
    /// everything not excepted.
    fn hears_of(&self, notice: &Notice, issuer: Gid) -> bool {
        let may = self.trusted || !(notice.is_generic && is_of_keys(notice.trap.0));
        may && wants(&self.info, notice, issuer)
    }
}

/// Returns true for the traps of violations of keys.
const fn is_of_keys(trap: u16) -> bool {
    FIRST_OF_KEYS <= trap && trap <= LAST_OF_KEYS
}

/// Returns the queue pair that reports go to: the one that the subscription names, else who asked.
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
