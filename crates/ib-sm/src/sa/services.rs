//! Services that ports offer; IBTA volume 1, chapter 15.2.5.15.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use ib_types::{Gid, Instant, PKey};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sa::{ComponentMask, Record, ServiceRecord};

use super::groups::has;
use super::query::Query;
use super::view::Viewer;

/// The most services that are kept.
const MOST: usize = 65_536;

/// A lease that does not end.
const FOR_EVER: u32 = u32::MAX;

/// Bits of the component mask.
const SERVICE_ID: u8 = 0;
const SERVICE_GID: u8 = 1;
const P_KEY: u8 = 2;
const LEASE: u8 = 4;
const KEY: u8 = 5;

/// The P_Key of a service that is for all partitions.
const NO_PARTITION: PKey = PKey(0);

/// What makes a service another one: identifier, port and partition.
pub(super) type Identity = (u64, Gid, PKey);

/// The services.
#[derive(Debug, Default)]
pub(super) struct Services {
    all: BTreeMap<Identity, Service>,
    /// Those that run out, by when.
    deadlines: BTreeSet<(Instant, Identity)>,
}

#[derive(Debug)]
struct Service {
    record: ServiceRecord,
    /// When it is forgotten.
    ends: Option<Instant>,
}

impl Services {
    /// Takes up a service, or prolongs it; returns what was taken up. A service of a partition is only
    /// taken up from a port, and for one, that `in_partition` finds in it.
    pub(super) fn register(
        &mut self,
        now: Instant,
        mask: ComponentMask,
        mut record: ServiceRecord,
        in_partition: impl FnOnce(PKey) -> bool,
    ) -> Result<ServiceRecord, MadStatus> {
        if !mask.has(SERVICE_ID) || !mask.has(SERVICE_GID) {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        // What the mask does not name is not there, whatever stands in its place.
        if !mask.has(P_KEY) {
            record.p_key = NO_PARTITION;
        } else if !in_partition(record.p_key) {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        if !mask.has(LEASE) {
            record.lease = FOR_EVER;
        }
        if !mask.has(KEY) {
            record.key = [0; 16];
        }
        let key = identity(&record);
        if self.all.len() == MOST && !self.all.contains_key(&key) {
            return Err(MadStatus::SA_NO_RESOURCES);
        }
        let lease = Duration::from_secs(record.lease.into());
        let ends = (record.lease != FOR_EVER).then(|| now + lease);
        if let Some(Service { ends: Some(before), .. }) =
            self.all.insert(key, Service { record, ends })
        {
            self.deadlines.remove(&(before, key));
        }
        self.deadlines.extend(ends.map(|ends| (ends, key)));
        Ok(record)
    }

    /// Forgets the service whose identifier, port and partition a request names, whatever its mask says;
    /// it has to be there. OpenSM's clients give back the record that they were told, which has no key.
    pub(super) fn withdraw(&mut self, wanted: &ServiceRecord) -> Result<ServiceRecord, MadStatus> {
        let key = identity(wanted);
        let service = self.all.remove(&key).ok_or(MadStatus::SA_NO_RECORDS)?;
        if let Some(ends) = service.ends {
            self.deadlines.remove(&(ends, key));
        }
        Ok(service.record)
    }

    /// Appends the records that a request selects among so many services behind one, of the partitions of
    /// the port that asks; with their keys for those who are trusted only. Returns the last that was
    /// looked at, when there may be more.
    pub(super) fn records(
        &self,
        now: Instant,
        after: Option<Identity>,
        most: usize,
        query: &Query<'_>,
        viewer: &Viewer<'_>,
        records: &mut Vec<u8>,
    ) -> Option<Identity> {
        // How much of a lease is left is told, and not asked for.
        let query = query.without(LEASE);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut last = None;
        for (number, (&key, service)) in self.all.range((from, Bound::Unbounded)).enumerate() {
            if number == most {
                return last;
            }
            last = Some(key);
            let p_key = service.record.p_key;
            let visible = p_key == NO_PARTITION || has(viewer.keys, p_key);
            if !visible || !query.selects(&service.record) {
                continue;
            }
            let lease = service.ends.map_or(FOR_EVER, |ends| ends.since(now).as_secs() as u32);
            let record = ServiceRecord { lease, ..service.record };
            records.extend(if viewer.trusted { record } else { without_key(record) }.to_record());
        }
        None
    }

    /// Forgets what has run out.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(ends, key)) = self.deadlines.first()
            && ends <= now
        {
            self.deadlines.pop_first();
            self.all.remove(&key);
        }
    }

    /// Returns when the next service runs out.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(ends, _)| ends)
    }
}

/// Returns what makes a record another one.
const fn identity(record: &ServiceRecord) -> Identity {
    (record.service_id, record.service_gid, record.p_key)
}

/// Returns a record for those who are not trusted; C15-0.1.14.
pub(super) fn without_key(record: ServiceRecord) -> ServiceRecord {
    ServiceRecord { key: [0; 16], ..record }
}

#[cfg(test)]
mod tests;
