//! Complete transfers, with and without loss.

use super::*;

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 % 251) as u8).collect()
}

/// Transfers data and returns the received data. Segments and ACKs are numbered together from 1. `is_lost` returns true
/// if the datagram with a number is lost.
fn transfer(class: MgmtClass, sent: &[u8], is_lost: impl Fn(usize) -> bool) -> Vec<u8> {
    let header = header(class);
    let mut sender = Sender::new(&header, sent.to_vec(), 1).expect("the class uses RMPP");
    let limits = ReceiveLimits::default();
    let mut receiver = Receiver::new(&header, limits).expect("the class uses RMPP");
    let (mut count, mut received) = (0, None);
    let mut arrives = || {
        count += 1;
        !is_lost(count)
    };
    for _ in 0..10_000 {
        let Some(segment) = sender.next_segment() else {
            sender.rewind();
            continue;
        };
        if !arrives() {
            continue;
        }
        let state = match receiver.handle(&segment) {
            Progress::Nothing => continue,
            Progress::Acknowledge(state) => state,
            Progress::Complete(state) => {
                let data = receiver.take_data();
                assert!(received.replace(data).is_none(), "the message has been completed twice");
                state
            }
            Progress::Failed(status) => panic!("{status:?}"),
        };
        let ack = acknowledge(&segment, state);
        assert_eq!(ack.method(), Method::GET_TABLE);
        if arrives() && sender.handle(&ack.rmpp()) == Acknowledged::Complete {
            assert!(receiver.is_complete());
            return received.expect("the receiver has acknowledged all segments");
        }
    }
    panic!("the transfer did not complete");
}

#[test]
fn messages_of_every_length_are_transferred() {
    for length in [0, 1, 199, 200, 201, 400, 12_345, 100_000] {
        for class in [MgmtClass::SUBN_ADM, MgmtClass::SYSTEM_STATUS] {
            let sent = data(length);
            assert_eq!(transfer(class, &sent, |_| false), sent);
        }
    }
}

#[test]
fn message_of_maximum_length_is_received_and_longer_ones_are_not() {
    for (length, is_received) in [(20_000, true), (20_001, false)] {
        let limits = ReceiveLimits { max_message: 20_000, ..ReceiveLimits::default() };
        let header = header(MgmtClass::SUBN_ADM);
        let mut receiver = Receiver::new(&header, limits).expect("the class uses RMPP");
        let progress = segments(length).iter().map(|segment| receiver.handle(segment)).last();
        let is_complete = matches!(progress, Some(Progress::Complete(_)));
        assert_eq!((is_complete, receiver.is_complete()), (is_received, is_received));
    }
}

#[test]
fn impossible_last_length_is_a_full_segment_if_accepted() {
    let last = changed(&segments(1)[0], |header| header.length_or_window = u32::MAX >> 8);
    let mut strict = receiver();
    assert_eq!(strict.handle(&last), Progress::Failed(RmppStatus::INCONSISTENT_LAST));
    let limits = ReceiveLimits::default();
    let tolerant =
        Receiver::new(&header(MgmtClass::SUBN_ADM), limits).expect("the class uses RMPP");
    let mut tolerant = tolerant.accept_any_last_length();
    assert_eq!(tolerant.handle(&last), Progress::Complete(state(1, 1)));
    assert_eq!(tolerant.take_data().len(), 200);
    // The receiver ignores segments after the last segment.
    let behind = changed(&segments(401)[1], |_| {});
    assert_eq!(tolerant.handle(&behind), Progress::Nothing);
}

proptest! {
    #[test]
    fn lost_datagrams_are_retransmitted(length in 0_usize..30_000, seed in any::<u64>()) {
        let sent = data(length);
        let is_lost = |number: usize| {
            (seed ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0
        };
        prop_assert_eq!(transfer(MgmtClass::SUBN_ADM, &sent, is_lost), sent);
    }

    #[test]
    fn receiver_does_not_panic_on_any_bytes(
        bytes in prop::collection::vec(any::<[u8; 32]>(), 8..40),
    ) {
        let mut receiver = receiver();
        for bytes in bytes {
            let mut mad = header(MgmtClass::SUBN_ADM);
            mad.0[24..56].copy_from_slice(&bytes);
            mad.0[24] = 1;
            mad.0[27] = 0;
            mad.0[28..31].fill(0);
            receiver.handle(&mad);
        }
    }
}
