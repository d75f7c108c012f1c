//! Services of other ages and kinds on the same group.

use super::hostile::{question, three};
use super::*;

/// What becomes of a question: whether who has asked is known then, and whether it is answered.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// It is not looked at any further.
    Dropped,
    /// Who has asked is known; there is no group for an answer.
    Heard,
    /// It is answered as well.
    Answered,
}

#[test]
fn questions_of_other_versions_are_answered_as_far_as_they_mean_the_same() {
    type Make = fn(&mut AcmMessage, &mut Vec<(usize, u8)>);
    let cases: [(&str, Make, Fate); 11] = [
        ("ibacm: zeros beside what it says", |_, _| {}, Fate::Answered),
        ("one with another base version", |it, _| it.base_version = 2, Fate::Dropped),
        ("one with another class version", |it, _| it.class_version = 2, Fate::Dropped),
        ("one of before there were versions", |it, _| it.class_version = 0, Fate::Dropped),
        ("one that knows other operations", |it, _| it.control = 2, Fate::Dropped),
        (
            "a status in a question, which means nothing",
            |it, _| it.status = MadStatus(9),
            Fate::Answered,
        ),
        ("a shorter list of groups: none", |it, _| it.gid_count = 0, Fate::Heard),
        (
            "a longer list, the known one last",
            |it, _| {
                let known = it.gids[0];
                (it.gid_count, it.gids) = (6, [Gid(0xff15 << 112 | 1); 6]);
                it.gids[5] = known;
            },
            Fate::Answered,
        ),
        ("groups that nobody here has", |it, _| it.gids[0] = Gid(0xff15 << 112 | 1), Fate::Heard),
        (
            "a list of further addresses that ends too soon",
            |_, more| more.extend([(23, 9), (168, 1), (169, 64)]),
            Fate::Answered,
        ),
        (
            "further addresses of types of later days",
            |_, more| more.extend([(23, 2), (168, 99), (169, 4), (170, 1)]),
            Fate::Answered,
        ),
    ];
    for (what, make, expected) in cases {
        let mut net = three();
        let asker = Address::name("elsewhere").expect("a name");
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
            (1, 0) => Fate::Heard,
            _ => Fate::Answered,
        };
        assert_eq!(fate, expected, "{what}");
        assert_eq!(after.malformed - before.malformed, u64::from(fate == Fate::Dropped), "{what}");
        let known = net.hosts[0].service.cached(net.now, Some(&asker));
        assert_eq!(known.len(), usize::from(fate != Fate::Dropped), "{what}");
    }
}

#[test]
fn answers_of_other_versions_count_as_far_as_they_mean_the_same() {
    type Make = fn(&mut AcmMessage);
    let cases: [(&str, Make, bool); 6] = [
        ("ibacm: one group, nothing else", |_| {}, true),
        ("one with another base version", |it| it.base_version = 2, false),
        ("one with another class version", |it| it.class_version = 2, false),
        ("one that says no", |it| it.status = MadStatus(1 << 8), false),
        ("no group", |it| it.gid_count = 0, false),
        ("lengths, which ibacm leaves zero", |it| it.destination_length = 64, true),
    ];
    for (what, make, counts) in cases {
        let mut net = three();
        let wanted = Address::name("elsewhere").expect("a name");
        assert_eq!(net.known(0, &wanted), None);
        let (.., asked) = net.sent.last().expect("a question");
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
        assert_eq!(known.len(), usize::from(counts), "{what}");
        assert_eq!(net.counters(0).malformed, u64::from(!counts), "{what}");
    }
}

#[test]
fn what_is_sent_is_what_ibacm_of_today_takes() {
    let mut net = Net::new(2, &by_group());
    net.run_for(Duration::from_secs(1));
    net.find(0, &name(1)).expect("it is there");
    for (_, _, bytes) in &net.sent {
        let message = AcmMessage::parse(bytes);
        assert_eq!((message.base_version, message.class_version), (1, 1));
        assert_eq!((message.class, message.control), (MgmtClass::ACM, AcmMessage::RESOLVE));
        assert!((1..=6).contains(&message.gid_count), "{message:?}");
    }
    assert_eq!(net.sent.len(), 2, "a question and an answer");
}
