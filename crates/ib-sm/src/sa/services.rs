//! Services that ports offer; IBTA volume 1, chapter 15.2.5.15.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_types::{Gid, Instant, PKey};
use ib_wire::mad::MadStatus;
use ib_wire::mad::sa::ServiceRecord;

use super::records::Query;

/// The most services that are kept.
const MOST: usize = 65_536;

/// A lease that does not end.
const FOR_EVER: u32 = u32::MAX;

/// The services by identifier, port and partition.
#[derive(Debug, Default)]
pub(super) struct Services {
    all: BTreeMap<(u64, Gid, PKey), Service>,
}

#[derive(Debug)]
struct Service {
    record: ServiceRecord,
    /// When it is forgotten.
    ends: Option<Instant>,
}

impl Services {
    /// Takes up a service, or prolongs it; returns what the answer says.
    pub(super) fn register(
        &mut self,
        now: Instant,
        record: ServiceRecord,
    ) -> Result<ServiceRecord, MadStatus> {
        let key = (record.service_id, record.service_gid, record.p_key);
        match self.all.get(&key) {
            // Who does not know the key must not change the record.
            Some(known) if known.record.key != [0; 16] && known.record.key != record.key => {
                return Err(MadStatus::SA_REQUEST_INVALID);
            }
            None if self.all.len() == MOST => return Err(MadStatus::SA_NO_RESOURCES),
            _ => {}
        }
        let lease = Duration::from_secs(record.lease.into());
        let ends = (record.lease != FOR_EVER).then(|| now + lease);
        self.all.insert(key, Service { record, ends });
        Ok(record)
    }

    /// Forgets the services that a request selects; at least one has to be there.
    pub(super) fn withdraw(
        &mut self,
        query: &Query<'_>,
        wanted: &ServiceRecord,
    ) -> Result<ServiceRecord, MadStatus> {
        let mut found = None;
        self.all.retain(|_, service| {
            let keyed = service.record.key == [0; 16] || service.record.key == wanted.key;
            let goes = keyed && query.selects(&service.record);
            if goes {
                found = Some(service.record);
            }
            !goes
        });
        found.ok_or(MadStatus::SA_NO_RECORDS)
    }

    /// Returns the records that a request selects, without their keys.
    pub(super) fn records(&self, now: Instant, query: &Query<'_>) -> Vec<u8> {
        let mut records = Vec::new();
        for service in self.all.values() {
            let left = service.ends.map_or(FOR_EVER, |ends| ends.since(now).as_secs() as u32);
            query.add(&ServiceRecord { key: [0; 16], lease: left, ..service.record }, &mut records);
        }
        records
    }

    /// Forgets what has run out.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.all.retain(|_, service| service.ends.is_none_or(|ends| ends > now));
    }

    /// Returns when the next service runs out.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.all.values().filter_map(|service| service.ends).min()
    }
}
