use super::*;
use ib_types::Guid;

const ALL: ComponentMask =
    ComponentMask(1 << SERVICE_ID | 1 << SERVICE_GID | 1 << P_KEY | 1 << LEASE | 1 << KEY);
const KEYS: &[PKey] = &[PKey(0xffff)];
const START: Instant = Instant::ZERO;

fn record(id: u64) -> ServiceRecord {
    ServiceRecord {
        service_id: id,
        service_gid: Gid::new(Gid::DEFAULT_PREFIX, Guid(7)),
        p_key: PKey::DEFAULT,
        lease: 10,
        key: [3; 16],
        ..ServiceRecord::zeroed()
    }
}

fn selected(services: &Services, now: Instant, mask: u64, keys: &[PKey], trusted: bool) -> Vec<u8> {
    let template = record(1).to_record();
    let query = Query { mask: ComponentMask(mask), template: &template };
    let viewer = Viewer { gid: None, keys, trusted };
    let (mut records, mut after) = (Vec::new(), None);
    loop {
        after = services.records(now, after, 2, &query, &viewer, &mut records);
        if after.is_none() {
            return records;
        }
    }
}

#[test]
fn service_without_lease_does_not_expire() {
    let mut services = Services::default();
    services.register(START, ALL, record(1), |_| true).unwrap();
    let unnamed = ComponentMask(ALL.0 & !(1 << LEASE));
    services.register(START, unnamed, record(2), |_| true).unwrap();
    let length = record(1).to_record().len();
    assert_eq!(selected(&services, START, 0, KEYS, false).len(), 2 * length);
    let later = START + Duration::from_secs(11);
    assert_eq!(services.poll_timeout(), Some(START + Duration::from_secs(10)));
    services.handle_timeout(later);
    assert_eq!(selected(&services, later, 0, KEYS, false).len(), length);
    assert_eq!(services.poll_timeout(), None);
}

#[test]
fn service_key_selects_and_is_visible_to_trusted_only() {
    let mut services = Services::default();
    services.register(START, ALL, record(1), |_| true).unwrap();
    let by_key = 1 << KEY;
    let plain = selected(&services, START, by_key, KEYS, false);
    assert_eq!(plain, without_key(record(1)).to_record());
    assert_eq!(selected(&services, START, by_key, KEYS, true), record(1).to_record());
    let another = ServiceRecord { key: [4; 16], ..record(1) };
    services.register(START, ALL, another, |_| true).unwrap();
    assert!(
        selected(&services, START, by_key, KEYS, true).is_empty(),
        "the service key was replaced"
    );
}

#[test]
fn service_is_visible_in_its_partition() {
    let mut services = Services::default();
    let refused = services.register(START, ALL, record(1), |key| key != PKey::DEFAULT);
    assert_eq!(refused, Err(MadStatus::SA_REQUEST_INVALID));
    services.register(START, ALL, record(1), |key| key == PKey::DEFAULT).unwrap();
    assert!(selected(&services, START, 0, &[PKey(0x8005)], false).is_empty());
    // A service without a P_Key is visible in all partitions.
    let unnamed = ComponentMask(ALL.0 & !(1 << P_KEY));
    services.register(START, unnamed, record(2), |_| false).unwrap();
    let length = record(1).to_record().len();
    assert_eq!(selected(&services, START, 0, &[PKey(0x8005)], false).len(), length);
}

#[test]
fn returned_record_unregisters_the_service() {
    let mut services = Services::default();
    services.register(START, ALL, record(1), |_| true).unwrap();
    let elsewhere = ServiceRecord { service_gid: Gid(9), ..record(1) };
    assert_eq!(services.unregister(&elsewhere), Err(MadStatus::SA_NO_RECORDS));
    assert_eq!(services.unregister(&without_key(record(1))), Ok(record(1)));
    assert_eq!(services.unregister(&record(1)), Err(MadStatus::SA_NO_RECORDS));
}

#[test]
fn registration_requires_service_id_and_gid() {
    let mut services = Services::default();
    for missing in [SERVICE_ID, SERVICE_GID] {
        let mask = ComponentMask(ALL.0 & !(1 << missing));
        let refused = services.register(START, mask, record(1), |_| true);
        assert_eq!(refused, Err(MadStatus::SA_REQUEST_INVALID));
    }
}

#[test]
fn renewed_lease_replaces_the_expiry_time() {
    let mut services = Services::default();
    services.register(START, ALL, record(1), |_| true).unwrap();
    services.register(START, ALL, ServiceRecord { lease: 5, ..record(2) }, |_| true).unwrap();
    let second = Duration::from_secs(1);
    services.register(START + second, ALL, record(1), |_| true).unwrap();
    assert_eq!(services.deadlines.len(), 2);
    assert_eq!(services.poll_timeout(), Some(START + 5 * second));
    services.unregister(&record(2)).unwrap();
    assert_eq!(services.poll_timeout(), Some(START + 11 * second));
    services.handle_timeout(START + 10 * second);
    assert_eq!(services.all.len(), 1, "the renewed service is kept");
    // The limited lease is replaced by an unlimited one.
    let unnamed = ComponentMask(ALL.0 & !(1 << LEASE));
    services.register(START, unnamed, record(1), |_| true).unwrap();
    assert_eq!((services.poll_timeout(), services.deadlines.len()), (None, 0));
    // A timeout checks only the next expiry time, not all services.
    for id in 0..60_000 {
        services.register(START, ALL, record(id), |_| true).unwrap();
    }
    for _ in 0..100_000 {
        services.handle_timeout(START);
        assert_eq!(services.poll_timeout(), Some(START + 10 * second));
    }
    services.handle_timeout(START + 10 * second);
    assert_eq!((services.all.len(), services.poll_timeout()), (0, None));
}
