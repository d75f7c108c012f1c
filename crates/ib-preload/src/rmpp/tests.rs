use ib_wire::mad::rmpp::{RmppFlags, RmppHeader};
use ib_wire::mad::{MgmtClass, TransactionId};
use proptest::prelude::*;

use super::*;

/// Returns a message of a class with so many bytes of data.
fn message(class: MgmtClass, length: usize) -> Vec<u8> {
    let mad = Mad::new(class, Method::GET_TABLE_RESP, TransactionId(9));
    let mut message = mad.0[..class.data_offset()].to_vec();
    message.extend((0..length).map(|index| (index * 7 % 251) as u8));
    message
}

fn ack(segment: u32, window: u32) -> RmppHeader {
    let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET, TransactionId(0));
    mad.0[25] = 2;
    let header = mad.rmpp();
    RmppHeader { segment, length_or_window: window, ..header }
}

/// Sends a message to a receiver; datagram n of all that travel is lost when the seed says so.
fn transfer(sent: &[u8], lost: impl Fn(usize) -> bool) -> Vec<u8> {
    let (mut sender, mut receiver) = (Sender::new(sent.to_vec()), Receiver::new());
    let (mut travelled, mut whole) = (0, None);
    let mut arrives = || {
        travelled += 1;
        !lost(travelled)
    };
    for _ in 0..10_000 {
        let Some((segment, length)) = sender.poll_segment() else {
            sender.restart();
            continue;
        };
        assert!(length as usize <= MAD);
        if !arrives() {
            continue;
        }
        let ack = match receiver.handle(&segment) {
            Step::Nothing => continue,
            Step::Send(ack) => ack,
            Step::Whole(ack, message) => {
                assert!(whole.replace(message).is_none(), "it is handed out once");
                ack
            }
            Step::Abort(abort) => panic!("{abort:?}"),
        };
        assert_eq!(ack.method(), Method::GET_TABLE);
        if arrives() && sender.handle(&ack.rmpp()) == Acknowledged::Whole {
            assert!(receiver.is_done());
            return whole.expect("what is acknowledged as a whole was received");
        }
    }
    panic!("it did not end");
}

const MAD: usize = 256;

/// What is behind the RMPP header must be the same; the first segment's own header is new.
fn same(sent: &[u8], came: &[u8]) {
    assert_eq!(sent.len(), came.len());
    assert_eq!(sent[..24], came[..24]);
    assert_eq!(sent[36..], came[36..]);
}

#[test]
fn messages_of_every_length_arrive_whole() {
    for length in [0, 1, 199, 200, 201, 400, 12_345, 100_000] {
        for class in [MgmtClass::SUBN_ADM, MgmtClass::SYSTEM_STATUS] {
            let sent = message(class, length);
            same(&sent, &transfer(&sent, |_| false));
        }
    }
}

#[test]
fn the_first_segment_waits_for_its_acknowledgement() {
    let mut sender = Sender::new(message(MgmtClass::SUBN_ADM, 2_000));
    let (first, length) = sender.poll_segment().expect("the window is 1");
    assert_eq!((length, first.rmpp().length_or_window), (256, 2_000 + 10 * 20));
    assert!(sender.poll_segment().is_none());
    assert_eq!(sender.handle(&ack(1, 4)), Acknowledged::Progress);
    let segments: Vec<u32> =
        std::iter::from_fn(|| sender.poll_segment()).map(|(mad, _)| mad.rmpp().segment).collect();
    assert_eq!(segments, [2, 3, 4]);
    sender.restart();
    assert_eq!(sender.poll_segment().expect("again").0.rmpp().segment, 2);
    assert_eq!(sender.handle(&ack(1, 4)), Acknowledged::Old);
    assert_eq!(sender.handle(&ack(5, 6)), Acknowledged::Wrong(RmppStatus::SEGMENT_TOO_BIG));
    assert_eq!(sender.handle(&ack(3, 2)), Acknowledged::Wrong(RmppStatus::WINDOW_TOO_SMALL));
    let bad = RmppHeader { status: RmppStatus::UNSPECIFIED, ..ack(3, 5) };
    assert_eq!(sender.handle(&bad), Acknowledged::Wrong(RmppStatus::ILLEGAL_STATUS));
    assert_eq!(sender.handle(&ack(4, 99)), Acknowledged::Progress);
    assert_eq!(sender.handle(&ack(10, 99)), Acknowledged::Whole);
}

#[test]
fn contradictions_end_a_transfer() {
    let mut sender = Sender::new(message(MgmtClass::SUBN_ADM, 2_000));
    let (first, _) = sender.poll_segment().expect("the window is 1");
    let changed = |change: fn(&mut RmppHeader)| {
        let (mut mad, mut header) = (first, first.rmpp());
        change(&mut header);
        mad.set_rmpp(&header);
        match Receiver::new().handle(&mad) {
            Step::Abort(mad) => Some((mad.rmpp().rmpp_type, mad.rmpp().status)),
            _ => None,
        }
    };
    let abort = |status| Some((RmppType::ABORT, status));
    assert_eq!(changed(|header| header.version = 2), abort(RmppStatus::BAD_VERSION));
    assert_eq!(changed(|header| header.segment = 2), abort(RmppStatus::INCONSISTENT_FIRST));
    let no_first = changed(|header| header.flags = RmppFlags::ACTIVE);
    assert_eq!(no_first, abort(RmppStatus::INCONSISTENT_FIRST));
    let status = changed(|header| header.status = RmppStatus::BAD_TYPE);
    assert_eq!(status, abort(RmppStatus::ILLEGAL_STATUS));
}

/// Has a receiver of messages of so many bytes take segments without an end, and returns how many it
/// took and what it sent then.
fn endless(limit: usize) -> (u32, Mad) {
    let mut receiver = Receiver::with_limit(limit);
    let (mut segment, _) = Sender::new(message(MgmtClass::SUBN_ADM, 0)).poll_segment().unwrap();
    for number in 1.. {
        let mut header = segment.rmpp();
        header.segment = number;
        header.flags = if number == 1 {
            RmppFlags(RmppFlags::ACTIVE.0 | RmppFlags::FIRST.0)
        } else {
            RmppFlags::ACTIVE
        };
        segment.set_rmpp(&header);
        match receiver.handle(&segment) {
            Step::Abort(mad) => return (number - 1, *mad),
            Step::Whole(..) => panic!("it has no end"),
            Step::Nothing | Step::Send(_) => {}
        }
    }
    unreachable!("there are more numbers than segments fit")
}

#[test]
fn a_message_without_an_end_is_stopped() {
    for (limit, segments) in [(200, 1), (201, 2), (20_000, 100)] {
        let (taken, stop) = endless(limit);
        assert_eq!(taken, segments);
        let header = stop.rmpp();
        let expected = (RmppType::STOP, RmppStatus::RESOURCES_EXHAUSTED);
        assert_eq!((header.rmpp_type, header.status), expected);
        assert_eq!(stop.method(), Method::GET_TABLE);
    }
    // A message of just the limit arrives.
    let sent = message(MgmtClass::SUBN_ADM, 20_000);
    let (mut sender, mut receiver) = (Sender::new(sent.clone()), Receiver::with_limit(20_000));
    let whole = loop {
        let (segment, _) = sender.poll_segment().expect("the window is open");
        match receiver.handle(&segment) {
            Step::Whole(_, message) => break message,
            Step::Send(ack) => assert_eq!(sender.handle(&ack.rmpp()), Acknowledged::Progress),
            other => assert_eq!(other, Step::Nothing),
        }
    };
    same(&sent, &whole);
}

proptest! {
    #[test]
    fn messages_survive_loss(length in 0_usize..30_000, seed in any::<u64>()) {
        let sent = message(MgmtClass::SUBN_ADM, length);
        let lost = |number: usize| {
            (seed ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0
        };
        same(&sent, &transfer(&sent, lost));
    }

    #[test]
    fn no_bytes_make_a_receiver_panic(bytes in prop::collection::vec(any::<[u8; 32]>(), 8..40)) {
        let mut receiver = Receiver::new();
        for bytes in bytes {
            let mut mad = Mad::new(MgmtClass::SUBN_ADM, Method::GET_TABLE_RESP, TransactionId(1));
            mad.0[24..56].copy_from_slice(&bytes);
            mad.0[24] = 1;
            mad.0[27] = 0;
            mad.0[28..31].fill(0);
            receiver.handle(&mad);
        }
    }
}
