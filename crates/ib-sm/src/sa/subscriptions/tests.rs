use super::*;
use ib_types::Guid;
use ib_wire::mad::sm::TrapNumber;
use ib_wire::mad::sm::notice::NoticeType;

const ISSUER: Gid = Gid::new(Gid::DEFAULT_PREFIX, Guid(1));

fn everything() -> InformInfo {
    InformInfo {
        lid_range_begin: ANY,
        is_generic: 1,
        subscribe: 1,
        notice_type: ANY,
        trap: ANY,
        producer: ANY_PRODUCER,
        ..InformInfo::zeroed()
    }
}

/// Returns the number of reports of the given trap.
fn told(subscriptions: &mut Subscriptions, trap: u16) -> usize {
    let notice = Notice {
        is_generic: true,
        notice_type: NoticeType::SECURITY,
        trap: TrapNumber(trap),
        ..Notice::zeroed()
    };
    subscriptions.notify(notice, ISSUER);
    std::iter::from_fn(|| subscriptions.next_report()).count()
}

#[test]
fn key_violations_are_reported_to_trusted_only() {
    let mut subscriptions = Subscriptions::default();
    let port = |number| Gid::new(Gid::DEFAULT_PREFIX, Guid(number));
    subscriptions.set(port(2), Remote::gsi(2), everything(), false).unwrap();
    let by_name = InformInfo { trap: 257, ..everything() };
    let refused = subscriptions.set(port(2), Remote::gsi(2), by_name, false);
    assert_eq!(refused, Err(MadStatus::SA_REQUEST_INVALID));
    for trap in FIRST_KEY_VIOLATION..=LAST_KEY_VIOLATION {
        assert_eq!(
            told(&mut subscriptions, trap),
            0,
            "a wildcard subscription without the SA_Key gets no report"
        );
    }
    assert_eq!(told(&mut subscriptions, 255), 1);
    assert_eq!(told(&mut subscriptions, 260), 1);
    subscriptions.set(port(3), Remote::gsi(3), everything(), true).unwrap();
    assert_eq!(told(&mut subscriptions, 257), 1);
    // The subscription is renewed, this time without the SA_Key.
    subscriptions.set(port(3), Remote::gsi(3), everything(), false).unwrap();
    assert_eq!(told(&mut subscriptions, 257), 0);
}
