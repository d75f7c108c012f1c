//! Registered services. Source: IBTA volume 1, section 15.2.5.15.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use ib_types::{Gid, Instant, PKey};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sa::{ComponentMask, Record, ServiceRecord};

use super::groups::has;
use super::query::Query;
use super::view::Viewer;

/// Maximum number of services.
const MAX: usize = 65_536;

/// Lease that means that the service does not expire.
const INDEFINITE: u32 = u32::MAX;

/// Component mask bits of ServiceRecord.
const SERVICE_ID: u8 = 0;
const SERVICE_GID: u8 = 1;
const P_KEY: u8 = 2;
const LEASE: u8 = 4;
const KEY: u8 = 5;

/// P_Key of services that are visible in all partitions.
const NO_PARTITION: PKey = PKey(0);

/// The key of a service: `ServiceID`, `ServiceGID` and P_Key.
pub(super) type ServiceKey = (u64, Gid, PKey);

/// The registered services.
#[derive(Debug, Default)]
pub(super) struct Services {
    all: BTreeMap<ServiceKey, Service>,
    /// Expiry times of all services whose lease is limited.
    deadlines: BTreeSet<(Instant, ServiceKey)>,
}

#[derive(Debug)]
struct Service {
    record: ServiceRecord,
    /// Expiry time; `None` if the service does not expire.
    ends: Option<Instant>,
}

impl Services {
    /// Registers a service or renews its lease. Returns the registered record. Fails if the record has a P_Key for
    /// which `in_partition` returns false.
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
        // P_Key, lease and service key get default values if they are not in the component mask.
        if !mask.has(P_KEY) {
            record.p_key = NO_PARTITION;
        } else if !in_partition(record.p_key) {
            return Err(MadStatus::SA_REQUEST_INVALID);
        }
        if !mask.has(LEASE) {
            record.lease = INDEFINITE;
        }
        if !mask.has(KEY) {
            record.key = [0; 16];
        }
        let key = service_key(&record);
        if self.all.len() == MAX && !self.all.contains_key(&key) {
            return Err(MadStatus::SA_NO_RESOURCES);
        }
        let lease = Duration::from_secs(record.lease.into());
        let ends = (record.lease != INDEFINITE).then(|| now + lease);
        if let Some(Service { ends: Some(before), .. }) =
            self.all.insert(key, Service { record, ends })
        {
            self.deadlines.remove(&(before, key));
        }
        self.deadlines.extend(ends.map(|ends| (ends, key)));
        Ok(record)
    }

    /// Removes and returns the service with the ID, GID and P_Key of a record. The component mask
    /// and the service key do not matter: OpenSM's clients send the record as returned at
    /// registration, without its key.
    pub(super) fn unregister(
        &mut self,
        wanted: &ServiceRecord,
    ) -> Result<ServiceRecord, MadStatus> {
        let key = service_key(wanted);
        let service = self.all.remove(&key).ok_or(MadStatus::SA_NO_RECORDS)?;
        if let Some(ends) = service.ends {
            self.deadlines.remove(&(ends, key));
        }
        Ok(service.record)
    }

    /// Appends the records that a request selects, from at most `most` services after `after`. Only services in the
    /// viewer's partitions are visible, and only trusted clients see service keys. Returns the last service that was
    /// checked; `None` if there are no more services.
    pub(super) fn records(
        &self,
        now: Instant,
        after: Option<ServiceKey>,
        most: usize,
        query: &Query<'_>,
        viewer: &Viewer<'_>,
        records: &mut Vec<u8>,
    ) -> Option<ServiceKey> {
        // Services cannot be selected by their remaining lease.
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
            let lease = service.ends.map_or(INDEFINITE, |ends| ends.since(now).as_secs() as u32);
            let record = ServiceRecord { lease, ..service.record };
            records.extend(if viewer.trusted { record } else { without_key(record) }.to_record());
        }
        None
    }

    /// Removes all services whose leases have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(ends, key)) = self.deadlines.first()
            && ends <= now
        {
            self.deadlines.pop_first();
            self.all.remove(&key);
        }
    }

    /// Returns the time at which the next service expires.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(ends, _)| ends)
    }
}

/// Returns the key of the service that a record describes.
const fn service_key(record: &ServiceRecord) -> ServiceKey {
    (record.service_id, record.service_gid, record.p_key)
}

/// Clears the service key in a record for clients that are not trusted. Source: C15-0.1.14.
pub(super) fn without_key(record: ServiceRecord) -> ServiceRecord {
    ServiceRecord { key: [0; 16], ..record }
}

#[cfg(test)]
mod tests;
