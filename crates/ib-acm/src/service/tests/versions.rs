//! Tests of messages from services of other versions.

use super::hostile::{question, three};
use super::*;

/// Reaction of the service to a request of a service of another version.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The service drops the request as malformed.
    Dropped,
    /// The service caches the sender, but sends no response, because sender and service have no group in
    /// common.
    Cached,
    /// The service caches the sender, and sends a response.
    Answered,
}

#[test]
fn only_compatible_requests_are_answered() {
    type Make = fn(&mut AcmMessage, &mut Vec<(usize, u8)>);
    let cases: [(&str, Make, Fate); 11] = [
        ("a request of ibacm", |_, _| {}, Fate::Answered),
        ("another base version", |it, _| it.base_version = 2, Fate::Dropped),
        ("another class version", |it, _| it.class_version = 2, Fate::Dropped),
        ("class version 0", |it, _| it.class_version = 0, Fate::Dropped),
        ("an unknown operation", |it, _| it.control = 2, Fate::Dropped),
        (
            "a status in a request, which is ignored",
            |it, _| it.status = MadStatus(9),
            Fate::Answered,
        ),
        ("an empty list of groups", |it, _| it.gid_count = 0, Fate::Cached),
        (
            "a full list of groups whose last one is known",
            |it, _| {
                let known = it.gids[0];
                (it.gid_count, it.gids) = (6, [Gid(0xff15 << 112 | 1); 6]);
                it.gids[5] = known;
            },
            Fate::Answered,
        ),
        ("unknown groups only", |it, _| it.gids[0] = Gid(0xff15 << 112 | 1), Fate::Cached),
        (
            "a truncated list of further addresses",
            |_, more| more.extend([(23, 9), (168, 1), (169, 64)]),
            Fate::Answered,
        ),
        (
            "further addresses of unknown types",
            |_, more| more.extend([(23, 2), (168, 99), (169, 4), (170, 1)]),
            Fate::Answered,
        ),
    ];
    for (case, make, expected) in cases {
        let mut net = three();
        let asker = Address::name("elsewhere").expect("the name is valid");
        let (mut message, mut more) = (question(&asker, &name(0)), Vec::new());
        make(&mut message, &mut more);
        let mut bytes = message.to_bytes();
        for (at, byte) in more {
            bytes[at] = byte;
        }
        let before = net.counters(0);
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &bytes);
        let after = net.counters(0);
        let fate = match (after.heard - before.heard, after.answers - before.answers) {
            (0, 0) => Fate::Dropped,
            (1, 0) => Fate::Cached,
            _ => Fate::Answered,
        };
        assert_eq!(fate, expected, "{case}");
        assert_eq!(after.malformed - before.malformed, u64::from(fate == Fate::Dropped), "{case}");
        let known = net.hosts[0].service.cached(net.now, Some(&asker));
        assert_eq!(known.len(), usize::from(fate != Fate::Dropped), "{case}");
    }
}

#[test]
fn only_compatible_responses_are_accepted() {
    type Make = fn(&mut AcmMessage);
    let cases: [(&str, Make, bool); 6] = [
        ("a response of ibacm with one group", |_| {}, true),
        ("another base version", |it| it.base_version = 2, false),
        ("another class version", |it| it.class_version = 2, false),
        ("an error status", |it| it.status = MadStatus(1 << 8), false),
        ("no group", |it| it.gid_count = 0, false),
        ("a length, which is 0 in responses of ibacm", |it| it.destination_length = 64, true),
    ];
    for (case, make, counts) in cases {
        let mut net = three();
        let wanted = Address::name("elsewhere").expect("the name is valid");
        assert_eq!(net.cached_path(0, &wanted), None);
        let (.., asked) = net.sent.last().expect("host 0 has sent a request");
        let asked = AcmMessage::parse(asked);
        let mut answer = AcmMessage {
            base_version: 1,
            class: MgmtClass::ACM,
            class_version: 1,
            method: Method::GET_RESP,
            control: AcmMessage::RESOLVE,
            transaction_id: asked.transaction_id,
            gid_count: 1,
            ..AcmMessage::zeroed()
        };
        answer.gids[0] = asked.gids[0];
        make(&mut answer);
        net.deliver(0, gid(2), lid(2), Qpn::truncated(0x102), &answer.to_bytes());
        let known = net.hosts[0].service.cached(net.now, Some(&wanted));
        assert_eq!(known.len(), usize::from(counts), "{case}");
        assert_eq!(net.counters(0).malformed, u64::from(!counts), "{case}");
    }
}

#[test]
fn sent_messages_have_the_format_of_ibacm() {
    let mut net = Net::new(2, &by_group());
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("the address is resolved");
    for (_, _, bytes) in &net.sent {
        let message = AcmMessage::parse(bytes);
        assert_eq!((message.base_version, message.class_version), (1, 1));
        assert_eq!((message.class, message.control), (MgmtClass::ACM, AcmMessage::RESOLVE));
        assert!((1..=6).contains(&message.gid_count), "{message:?}");
    }
    assert_eq!(net.sent.len(), 2, "one request and one response are sent");
}
