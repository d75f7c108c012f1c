use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppStatus, RmppType, VERSION};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};
use proptest::prelude::*;

use super::control::{acknowledge, end, open, refuse};
use super::*;

mod transfer;

fn header(class: MgmtClass) -> Mad {
    Mad::new(class, Method::GET_TABLE_RESP, TransactionId(7))
}

fn segments(length: usize) -> Vec<Mad> {
    let data = (0..length).map(|byte| byte as u8).collect();
    let mut sender = Sender::new(&header(MgmtClass::SUBN_ADM), data, u32::MAX).unwrap();
    std::iter::from_fn(|| sender.next_segment()).collect()
}

fn limits() -> ReceiveLimits {
    ReceiveLimits { window: 4, max_message: 100_000, ..ReceiveLimits::default() }
}

fn receiver() -> Receiver {
    Receiver::new(&header(MgmtClass::SUBN_ADM), limits()).unwrap()
}

fn state(segment: u32, window_last: u32) -> Acknowledgement {
    Acknowledgement { segment, window_last }
}

fn changed(mad: &Mad, change: impl FnOnce(&mut RmppHeader)) -> Mad {
    let (mut mad, mut header) = (*mad, mad.rmpp());
    change(&mut header);
    mad.set_rmpp(&header);
    mad
}

#[test]
fn receiver_acknowledges_at_the_ends_of_windows() {
    let mut receiver = receiver();
    let segments = segments(10 * 200 + 1);
    let found: Vec<_> = segments.iter().map(|segment| receiver.handle(segment)).collect();
    let ack = |segment, window_last| Progress::Acknowledge(state(segment, window_last));
    let mut expected = vec![Progress::Nothing; 11];
    expected[0] = ack(1, 5);
    expected[4] = ack(5, 9);
    expected[8] = ack(9, 13);
    expected[10] = Progress::Complete(state(11, 13));
    assert_eq!(found, expected);
    assert_eq!(receiver.take_data().len(), 2001);
}

#[test]
fn segment_beyond_the_window_is_ignored() {
    let (mut receiver, segments) = (receiver(), segments(10 * 200));
    for index in [0, 5, 1, 2, 3] {
        receiver.handle(&segments[index]);
    }
    assert_eq!(receiver.handle(&segments[4]), Progress::Acknowledge(state(5, 9)));
    assert_eq!(receiver.handle(&segments[6]), Progress::Nothing);
    assert_eq!(receiver.handle(&segments[4]), Progress::Acknowledge(state(5, 9)));
}

/// Checks each received segment (column) after each set of previously received segments (row).
#[test]
fn every_segment_in_every_state_has_its_result() {
    let parts = segments(5 * 200 + 1);
    let before: [(&str, &[usize]); 4] =
        [("nothing", &[]), ("first", &[1]), ("gap", &[1, 3]), ("all", &[1, 2, 3, 4, 5, 6])];
    let first_late =
        changed(&parts[1], |header| header.flags = RmppFlags::ACTIVE | RmppFlags::FIRST);
    let not_first = changed(&parts[0], |header| header.flags = RmppFlags::ACTIVE);
    let bad_status = changed(&parts[1], |header| header.status = RmppStatus::UNSPECIFIED);
    let zero = changed(&parts[1], |header| header.segment = 0);
    let beyond = changed(&parts[1], |header| header.segment = 40);
    let last_too_long = changed(&parts[1], |header| {
        header.flags = RmppFlags::ACTIVE | RmppFlags::LAST;
        header.length_or_window = 221;
    });
    let last_too_short = changed(&last_too_long, |header| header.length_or_window = 19);
    let events = [
        ("1", parts[0]),
        ("2", parts[1]),
        ("3", parts[2]),
        ("0", zero),
        ("40", beyond),
        ("2 with First", first_late),
        ("1 without First", not_first),
        ("status", bad_status),
        ("last 221", last_too_long),
        ("last 19", last_too_short),
    ];
    let ack = |segment, window_last| Progress::Acknowledge(state(segment, window_last));
    let failed = Progress::Failed;
    let first = failed(RmppStatus::INCONSISTENT_FIRST);
    let illegal = failed(RmppStatus::ILLEGAL_STATUS);
    let last = failed(RmppStatus::INCONSISTENT_LAST);
    let nothing = Progress::Nothing;
    let silent = [nothing; 3];
    let expected = [
        // If nothing was received, only the first segment is in the window.
        [
            ack(1, 5),
            silent[0],
            silent[1],
            nothing,
            nothing,
            first,
            first,
            illegal,
            nothing,
            nothing,
        ],
        [ack(1, 5), nothing, nothing, ack(1, 5), nothing, first, first, illegal, last, last],
        [ack(1, 5), nothing, nothing, ack(1, 5), nothing, first, first, illegal, last, last],
        [
            ack(6, 9),
            ack(6, 9),
            ack(6, 9),
            ack(6, 9),
            nothing,
            first,
            first,
            illegal,
            ack(6, 9),
            ack(6, 9),
        ],
    ];
    for ((name, came), row) in before.iter().zip(expected) {
        for ((event, mad), result) in events.iter().zip(row) {
            let mut receiver = receiver();
            for number in *came {
                receiver.handle(&parts[number - 1]);
            }
            assert_eq!(receiver.handle(mad), result, "{event} after {name}");
        }
    }
}

#[test]
fn too_long_message_is_stopped() {
    let exhausted = Progress::Failed(RmppStatus::RESOURCES_EXHAUSTED);
    let announced = changed(&segments(201)[0], |header| header.length_or_window = u32::MAX);
    assert_eq!(receiver().handle(&announced), exhausted);
    // If the first segment announces no length, the receiver checks the limit at each segment.
    let mut receiver = receiver();
    let mut number = 0;
    let stopped = loop {
        number += 1;
        let segment = changed(&segments(401)[1], |header| {
            header.segment = number;
            header.flags = RmppFlags::ACTIVE.with(RmppFlags::FIRST, number == 1);
        });
        match receiver.handle(&segment) {
            Progress::Failed(status) => break status,
            _ => assert!(number <= 500),
        }
    };
    assert_eq!((stopped, number), (RmppStatus::RESOURCES_EXHAUSTED, 501));
}

/// Checks each received ACK (column) in each state of the sender of six segments (row). A state is the number of
/// acknowledged segments and the last segment of the window. An ACK of segments after the window is an error.
#[test]
fn every_ack_in_every_state_has_its_result() {
    use Acknowledged::{Complete, Failed, Nothing, Progress};
    let (small, big) = (Failed(RmppStatus::WINDOW_TOO_SMALL), Failed(RmppStatus::SEGMENT_TOO_BIG));
    let acks = [(0, 1), (1, 1), (1, 5), (2, 5), (5, 4), (6, 6), (6, 70), (7, 70), (0, 70)];
    let rows = [
        ((0, 1), [Nothing, Progress, Progress, big, small, big, big, big, Nothing]),
        ((1, 5), [Nothing, Nothing, Nothing, Progress, small, big, big, big, Nothing]),
        ((5, 9), [Nothing, Nothing, Nothing, Nothing, small, Nothing, Complete, big, Nothing]),
    ];
    for ((segment, window_last), row) in rows {
        for ((number, last), expected) in acks.into_iter().zip(row) {
            let mut sender = Sender::new(&header(MgmtClass::SUBN_ADM), vec![1; 1001], 1).unwrap();
            for known in [segment.min(1), segment] {
                sender.handle(&acknowledgement(known, window_last));
            }
            let result = sender.handle(&acknowledgement(number, last));
            assert_eq!(result, expected, "ACK {number}, {last} in state {segment}, {window_last}");
        }
    }
    let mut sender = Sender::new(&header(MgmtClass::SUBN_ADM), vec![1; 1001], 1).unwrap();
    let mut bad = acknowledgement(1, 2);
    bad.status = RmppStatus::UNSPECIFIED;
    assert_eq!(sender.handle(&bad), Failed(RmppStatus::ILLEGAL_STATUS));
}

fn acknowledgement(segment: u32, window_last: u32) -> RmppHeader {
    acknowledge(&segments(1)[0], state(segment, window_last)).rmpp()
}

#[test]
fn sender_rewinds_to_the_last_acknowledged_segment() {
    let mut sender = Sender::new(&header(MgmtClass::SUBN_ADM), vec![1; 2000], 1).unwrap();
    let numbers = |sender: &mut Sender| -> Vec<u32> {
        std::iter::from_fn(|| sender.next_segment()).map(|mad| mad.rmpp().segment).collect()
    };
    assert_eq!(numbers(&mut sender), [1]);
    sender.rewind();
    assert_eq!(numbers(&mut sender), [1]);
    sender.handle(&acknowledgement(1, 4));
    assert_eq!(numbers(&mut sender), [2, 3, 4]);
    sender.handle(&acknowledgement(2, 4));
    sender.rewind();
    assert_eq!(numbers(&mut sender), [3, 4]);
    // An old ACK reduces neither the number of acknowledged segments nor the window.
    sender.handle(&acknowledgement(1, 9));
    sender.handle(&acknowledgement(3, 3));
    sender.rewind();
    assert_eq!(numbers(&mut sender), [3, 4]);
    // The window is used up. After a timeout, the sender nevertheless sends one segment beyond the window, so that the
    // receiver repeats the lost ACK.
    sender.handle(&acknowledgement(4, 4));
    assert_eq!(numbers(&mut sender), [0_u32; 0]);
    sender.rewind();
    assert_eq!(numbers(&mut sender), [5]);
    // Segment 5 was sent, so the peer may acknowledge it. Segment 6 was not sent, so an ACK of it is an error.
    let beyond = sender.handle(&acknowledgement(6, 9));
    assert_eq!(beyond, Acknowledged::Failed(RmppStatus::SEGMENT_TOO_BIG));
    assert_eq!(sender.handle(&acknowledgement(5, 9)), Acknowledged::Progress);
}

#[test]
fn received_mads_are_classified() {
    let data = segments(1)[0];
    let with = |rmpp_type, status| {
        changed(&data, |header| (header.rmpp_type, header.status) = (rmpp_type, status))
    };
    let cases = [
        (header(MgmtClass::SUBN_ADM), Kind::Plain),
        (header(MgmtClass::PERFORMANCE), Kind::Plain),
        (data, Kind::Data),
        (changed(&data, |header| header.version = 2), Kind::Bad(RmppStatus::BAD_VERSION)),
        (with(RmppType::ACK, RmppStatus::NORMAL), Kind::Acknowledgement),
        (with(RmppType::NONE, RmppStatus::NORMAL), Kind::Bad(RmppStatus::BAD_TYPE)),
        (with(RmppType(9), RmppStatus::NORMAL), Kind::Bad(RmppStatus::BAD_TYPE)),
        (
            with(RmppType::STOP, RmppStatus::RESOURCES_EXHAUSTED),
            Kind::End(RmppStatus::RESOURCES_EXHAUSTED),
        ),
        (with(RmppType::STOP, RmppStatus(118)), Kind::Bad(RmppStatus::ILLEGAL_STATUS)),
        (with(RmppType::ABORT, RmppStatus(118)), Kind::End(RmppStatus::TIME_TOO_LONG)),
        (with(RmppType::ABORT, RmppStatus(127)), Kind::End(RmppStatus::UNSPECIFIED)),
        (with(RmppType::ABORT, RmppStatus(117)), Kind::Bad(RmppStatus::ILLEGAL_STATUS)),
        (with(RmppType::ABORT, RmppStatus(128)), Kind::Bad(RmppStatus::ILLEGAL_STATUS)),
        (
            changed(&header(MgmtClass::SUBN_ADM), |header| header.flags = RmppFlags::ACTIVE),
            Kind::Plain,
        ),
    ];
    for (index, (mad, kind)) in cases.into_iter().enumerate() {
        assert_eq!(classify(&mad), kind, "case {index}");
    }
}

/// The expected bytes are derived from the rules of the Linux kernel.
#[test]
fn control_mads_have_the_expected_bytes() {
    let segment = segments(1)[0];
    let ack = acknowledge(&segment, state(5, 69));
    assert_eq!(ack.method(), Method::GET_TABLE);
    assert_eq!(ack.0[24..36], [1, 2, 0xf9, 0, 0, 0, 0, 5, 0, 0, 0, 69]);
    assert_eq!(ack.0[56..], [0; 200]);
    let abort = refuse(&segment, RmppStatus::INCONSISTENT_FIRST);
    assert_eq!(abort.method(), Method::GET_TABLE);
    assert_eq!(abort.0[24..36], [1, 4, 0xf9, 120, 0, 0, 0, 0, 0, 0, 0, 0]);
    let stop = end(&segment, RmppStatus::RESOURCES_EXHAUSTED);
    assert_eq!(stop.method(), Method::GET_TABLE_RESP);
    assert_eq!(stop.0[24..36], [1, 3, 0xf9, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let request = Mad::new(MgmtClass::SUBN_ADM, Method::GET_MULTI, TransactionId(7));
    let opened = open(&request);
    assert_eq!(opened.method(), Method::GET_MULTI);
    assert_eq!(opened.0[24..36], [1, 2, 0xf9, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(VERSION, 1);
}

proptest! {
    #[test]
    fn segments_in_any_order_give_the_message(
        length in 0usize..3_000,
        window in 1u32..9,
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..200),
        vendor in any::<bool>(),
    ) {
        let class = if vendor { MgmtClass::TRACER } else { MgmtClass::SUBN_ADM };
        let data: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
        let mut sender = Sender::new(&header(class), data.clone(), u32::MAX).unwrap();
        let parts: Vec<_> = std::iter::from_fn(|| sender.next_segment()).collect();
        let limits = ReceiveLimits { window, ..limits() };
        let mut receiver = Receiver::new(&header(class), limits).unwrap();
        let drawn = order.iter().map(|index| index.index(parts.len()));
        let rest = (0..parts.len()).cycle().take(parts.len() * parts.len());
        let complete = drawn.chain(rest).any(|index| {
            matches!(receiver.handle(&parts[index]), Progress::Complete(_))
        });
        prop_assert!(complete);
        prop_assert_eq!(receiver.take_data(), data);
    }
}
