use std::time::Duration;

use ib_types::Qpn;
use ib_wire::mad::rmpp::{RmppHeader, RmppType};
use ib_wire::mad::{MadStatus, Method, MgmtClass};

use super::*;
use crate::rmpp::Sender;

fn responder(max_transfers: usize) -> Responder {
    Responder::new(ResponderConfig { max_transfers, ..ResponderConfig::default() })
}

fn request(method: Method, number: u64) -> Datagram {
    let mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(number));
    Datagram::new(Remote::gsi(4), mad)
}

fn segments(number: u64, length: usize) -> Vec<Datagram> {
    let datagram = request(Method::GET_MULTI, number);
    let mut sender = Sender::new(&datagram.mad, vec![7; length], u32::MAX).unwrap();
    std::iter::from_fn(|| sender.next_segment()).map(|mad| datagram.reply(mad)).collect()
}

fn respond(responder: &mut Responder, request: &Datagram, length: usize) {
    let mut header = request.mad;
    header.answer(MadStatus::OK);
    responder.respond_message(request, header, vec![1; length]).unwrap();
}

fn acknowledge(responder: &mut Responder, request: &Datagram, segment: u32, window: u32) {
    let mut mad = request.mad;
    mad.set_rmpp(&RmppHeader {
        version: 1,
        rmpp_type: RmppType::ACK,
        flags: ib_wire::mad::rmpp::RmppFlags::ACTIVE,
        segment,
        length_or_window: window,
        ..RmppHeader::zeroed()
    });
    receive(responder, request.reply(mad));
}

fn receive(responder: &mut Responder, datagram: Datagram) -> bool {
    responder.handle(Instant::ZERO, &Incoming::Received(datagram))
}

fn sent(responder: &mut Responder, now: Instant) -> Vec<RmppHeader> {
    std::iter::from_fn(|| responder.poll_transmit(now)).map(|sent| sent.mad.rmpp()).collect()
}

#[test]
fn requests_are_complete_and_in_order() {
    let mut responder = responder(4);
    for (datagram, taken) in [
        (request(Method::GET, 1), true),
        (request(Method::GET_RESP, 1), false),
        (request(Method::TRAP_REPRESS, 1), false),
        (request(Method::TRAP, 2), true),
    ] {
        assert_eq!(receive(&mut responder, datagram), taken);
    }
    assert!(!responder.handle(Instant::ZERO, &Incoming::Lost(request(Method::GET, 1))));
    for segment in segments(3, 500) {
        assert!(receive(&mut responder, segment));
    }
    let requests: Vec<_> = std::iter::from_fn(|| responder.poll_event())
        .map(|event| match event {
            ResponderEvent::Request(message) => {
                (message.mad().transaction_id().0, message.data().len())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(requests, [(1, 200), (2, 200), (3, 500)]);
}

#[test]
fn requests_beyond_the_queue_limit_are_dropped() {
    let config = ResponderConfig { max_waiting: 2, ..ResponderConfig::default() };
    let mut responder = Responder::new(config);
    for number in 0..5 {
        receive(&mut responder, request(Method::GET, number));
    }
    let counters = responder.counters();
    assert_eq!((counters.requests, counters.dropped), (2, 3));
}

#[test]
fn complete_request_is_acknowledged_for_ten_seconds() {
    let mut responder = responder(4);
    let only = segments(3, 50)[0];
    for _ in 0..3 {
        receive(&mut responder, only);
        let replies = sent(&mut responder, Instant::ZERO);
        assert_eq!(replies.len(), 1);
        assert_eq!((replies[0].rmpp_type, replies[0].segment), (RmppType::ACK, 1));
    }
    assert_eq!(responder.counters().requests, 1);
    let gone = responder.poll_timeout().unwrap();
    assert_eq!(gone - Instant::ZERO, Duration::from_secs(10));
    responder.handle_timeout(gone);
    assert_eq!(responder.poll_timeout(), None);
}

#[test]
fn stalled_request_is_aborted_after_40_seconds() {
    let mut responder = responder(4);
    receive(&mut responder, segments(3, 500)[0]);
    sent(&mut responder, Instant::ZERO);
    let end = responder.poll_timeout().unwrap();
    assert_eq!(end - Instant::ZERO, Duration::from_secs(40));
    responder.handle_timeout(end);
    let abort = sent(&mut responder, end)[0];
    assert_eq!((abort.rmpp_type, abort.status), (RmppType::ABORT, RmppStatus::TIME_TOO_LONG));
    assert_eq!((responder.poll_timeout(), responder.counters().aborted), (None, 1));
}

#[test]
fn rmpp_requests_beyond_the_limit_are_stopped() {
    let mut responder = responder(2);
    for number in 0..2 {
        receive(&mut responder, segments(number, 500)[0]);
    }
    sent(&mut responder, Instant::ZERO);
    receive(&mut responder, segments(9, 500)[0]);
    let stop = sent(&mut responder, Instant::ZERO)[0];
    let exhausted = RmppStatus::RESOURCES_EXHAUSTED;
    assert_eq!((stop.rmpp_type, stop.status), (RmppType::STOP, exhausted));
    // After request 1 is complete, the responder can receive request 9. Duplicates of request 1 are then no longer
    // acknowledged.
    for segment in &segments(1, 500)[1..] {
        receive(&mut responder, *segment);
    }
    sent(&mut responder, Instant::ZERO);
    receive(&mut responder, segments(9, 500)[0]);
    assert_eq!(sent(&mut responder, Instant::ZERO)[0].rmpp_type, RmppType::ACK);
}

#[test]
fn response_is_sent_within_the_window() {
    let mut responder = responder(4);
    let request = request(Method::GET_TABLE, 5);
    respond(&mut responder, &request, 1900);
    let numbers = |responder: &mut Responder| -> Vec<u32> {
        sent(responder, Instant::ZERO).iter().map(|header| header.segment).collect()
    };
    assert_eq!(numbers(&mut responder), [1]);
    acknowledge(&mut responder, &request, 1, 4);
    assert_eq!(numbers(&mut responder), [2, 3, 4]);
    acknowledge(&mut responder, &request, 4, 20);
    assert_eq!(numbers(&mut responder), [5, 6, 7, 8, 9, 10]);
    acknowledge(&mut responder, &request, 10, 20);
    let (remote, transaction_id) = (request.remote, TransactionId(5));
    let delivered = ResponderEvent::Delivered { remote, transaction_id };
    assert_eq!(responder.poll_event(), Some(delivered));
    acknowledge(&mut responder, &request, 10, 20);
    assert_eq!((responder.poll_event(), responder.poll_timeout()), (None, None));
}

#[test]
fn segments_of_several_responses_alternate() {
    let mut responder = responder(4);
    let requests = [5, 6].map(|number| request(Method::GET_TABLE, number));
    for request in &requests {
        respond(&mut responder, request, 500);
        acknowledge(&mut responder, request, 0, 9);
    }
    let order: Vec<_> = std::iter::from_fn(|| responder.poll_transmit(Instant::ZERO))
        .map(|sent| (sent.mad.transaction_id().0, sent.mad.rmpp().segment))
        .collect();
    assert_eq!(order, [(5, 1), (6, 1), (5, 2), (6, 2), (5, 3), (6, 3)]);
}

#[test]
fn response_without_acks_fails_after_the_last_retry() {
    let mut responder = responder(4);
    let mut request = request(Method::GET_TABLE, 5);
    request.local_qpn = Qpn::truncated(77);
    respond(&mut responder, &request, 10);
    let mut rounds = 0;
    while responder.outstanding() > 0 {
        let now = responder.poll_timeout().unwrap_or(Instant::ZERO);
        responder.handle_timeout(now);
        while let Some(datagram) = responder.poll_transmit(now) {
            rounds += usize::from(datagram.mad.rmpp().rmpp_type == RmppType::DATA);
            assert_eq!(datagram.local_qpn, request.local_qpn);
        }
    }
    assert_eq!(rounds, 4);
    let waited = Duration::from_secs(4);
    let failure = Failure::TimedOut { attempts: 4, waited };
    let (remote, transaction_id) = (request.remote, TransactionId(5));
    let failed = ResponderEvent::Failed { remote, transaction_id, failure };
    assert_eq!(responder.poll_event(), Some(failed));
}

/// Reports the loss of segments of a response to the responder.
fn lose(responder: &mut Responder, request: &Datagram, segments: &[u32]) {
    for &segment in segments {
        assert!(responder.handle(Instant::ZERO, &Incoming::Lost(data(request, segment))));
    }
}

/// Returns the given segment of a response.
fn data(request: &Datagram, segment: u32) -> Datagram {
    let mut mad = request.mad;
    mad.answer(MadStatus::OK);
    mad.set_rmpp(&RmppHeader {
        version: 1,
        rmpp_type: RmppType::DATA,
        flags: ib_wire::mad::rmpp::RmppFlags::ACTIVE,
        segment,
        ..RmppHeader::zeroed()
    });
    request.reply(mad)
}

#[test]
fn lost_segments_are_retransmitted_immediately() {
    let mut responder = responder(4);
    let request = request(Method::GET_TABLE, 5);
    respond(&mut responder, &request, 1900);
    acknowledge(&mut responder, &request, 0, 5);
    let numbers = |responder: &mut Responder| -> Vec<u32> {
        responder.handle_timeout(Instant::ZERO);
        sent(responder, Instant::ZERO).iter().map(|header| header.segment).collect()
    };
    assert_eq!(numbers(&mut responder), [1, 2, 3, 4, 5]);
    acknowledge(&mut responder, &request, 1, 7);
    lose(&mut responder, &request, &[2, 3, 5]);
    // The losses have expired the ACK timer. Segment 6, sent before the retransmission, does not restart it.
    assert_eq!(responder.poll_transmit(Instant::ZERO).unwrap().mad.rmpp().segment, 6);
    assert_eq!(responder.poll_timeout(), Some(Instant::ZERO));
    assert_eq!(numbers(&mut responder), [2, 3, 4, 5, 6, 7]);
    let counters = responder.counters();
    assert_eq!((counters.lost, counters.retries), (3, 1), "three losses do not count as one retry");
    assert_eq!(responder.poll_timeout(), Some(Instant::ZERO + Duration::from_secs(1)));

    // The responder ignores the loss of other MADs: acknowledged segments, segments not sent yet, MADs of other
    // transactions, MADs that are not segments.
    let others = [
        data(&request, 1),
        data(&request, 8),
        data(&self::request(Method::GET_TABLE, 6), 2),
        self::request(Method::GET_RESP, 5),
        segments(5, 300)[1],
    ];
    for other in others {
        assert!(!responder.handle(Instant::ZERO, &Incoming::Lost(other)), "{}", other.mad);
    }
    assert_eq!(responder.counters(), counters);
    acknowledge(&mut responder, &request, 7, 20);
    assert_eq!(numbers(&mut responder), [8, 9, 10]);
}

#[test]
fn repeatedly_lost_response_fails_immediately() {
    let mut responder = responder(4);
    let request = request(Method::GET_TABLE, 5);
    respond(&mut responder, &request, 10);
    for _ in 0..4 {
        assert_eq!(sent(&mut responder, Instant::ZERO).len(), 1);
        assert_eq!(responder.poll_event(), None);
        lose(&mut responder, &request, &[1]);
        responder.handle_timeout(Instant::ZERO);
    }
    let failure = Failure::Lost { attempts: 4 };
    let (remote, transaction_id) = (request.remote, TransactionId(5));
    let failed = ResponderEvent::Failed { remote, transaction_id, failure };
    assert_eq!(responder.poll_event(), Some(failed));
    assert_eq!((responder.outstanding(), responder.poll_timeout()), (0, None));
    let abort = sent(&mut responder, Instant::ZERO)[0];
    assert_eq!(abort.rmpp_type, RmppType::ABORT);
}

/// Checks each control MAD (column) in each state of the responder (row). The values are the responder's reply and the
/// result of the response.
#[test]
fn every_control_mad_in_every_state_has_its_result() {
    let word = |rmpp_type, status: u8, segment, window| {
        let mut datagram = request(Method::GET_MULTI, 5);
        let header = RmppHeader {
            version: 1,
            rmpp_type,
            flags: ib_wire::mad::rmpp::RmppFlags::ACTIVE,
            status: RmppStatus(status),
            segment,
            length_or_window: window,
            ..RmppHeader::zeroed()
        };
        datagram.mad.set_rmpp(&header);
        datagram
    };
    let words = [
        ("ACK 1", word(RmppType::ACK, 0, 1, 9)),
        ("ACK 2", word(RmppType::ACK, 0, 2, 9)),
        ("ACK 0", word(RmppType::ACK, 0, 0, 9)),
        ("ACK 9", word(RmppType::ACK, 0, 9, 9)),
        ("ACK beyond window", word(RmppType::ACK, 0, 2, 1)),
        ("STOP", word(RmppType::STOP, 1, 0, 0)),
        ("ABORT", word(RmppType::ABORT, 127, 0, 0)),
        ("bad type", word(RmppType(9), 0, 1, 0)),
        ("segment", segments(5, 300)[0]),
    ];
    let expected = [
        ("nothing", ["", "", "", "", "", "", "", "ABORT 121", "ACK"]),
        (
            "response",
            [
                "DATA",
                // The responder has not sent the second segment yet.
                "ABORT 123, gave up",
                "DATA",
                "ABORT 123, gave up",
                "ABORT 122, gave up",
                "refused",
                "refused",
                "ABORT 121, gave up",
                "ACK",
            ],
        ),
        (
            "whole response",
            [
                "",
                "delivered",
                "",
                "ABORT 123, gave up",
                "ABORT 122, gave up",
                "refused",
                "refused",
                "ABORT 121, gave up",
                "ACK",
            ],
        ),
        ("request", ["", "", "", "", "", "", "", "ABORT 121", "ACK"]),
    ];
    for (state, row) in expected {
        for ((name, word), expected) in words.iter().zip(row) {
            let mut responder = responder(4);
            match state {
                "response" => respond(&mut responder, &request(Method::GET_MULTI, 5), 300),
                "whole response" => {
                    let request = request(Method::GET_MULTI, 5);
                    respond(&mut responder, &request, 300);
                    acknowledge(&mut responder, &request, 0, 9);
                }
                "request" => _ = receive(&mut responder, segments(5, 300)[0]),
                _ => {}
            }
            sent(&mut responder, Instant::ZERO);
            receive(&mut responder, *word);
            let mut found: Vec<_> = sent(&mut responder, Instant::ZERO)
                .iter()
                .map(|header| match header.status.0 {
                    0 => header.rmpp_type.to_string(),
                    status => format!("{} {status}", header.rmpp_type),
                })
                .collect();
            found.extend(std::iter::from_fn(|| responder.poll_event()).map(|event| match event {
                ResponderEvent::Delivered { .. } => "delivered".into(),
                ResponderEvent::Failed { failure: Failure::Refused { .. }, .. } => "refused".into(),
                ResponderEvent::Failed { .. } => "gave up".into(),
                ResponderEvent::Request(_) => "request".into(),
            }));
            assert_eq!(found.join(", "), expected, "{name} with {state}");
        }
    }
}

#[test]
fn requester_opens_the_window_of_a_double_sided_transfer() {
    for (window, first_segments) in [(None, 1), (Some(1), 1), (Some(3), 3)] {
        let mut responder = responder(4);
        for segment in segments(5, 300) {
            receive(&mut responder, segment);
        }
        if let Some(window) = window {
            acknowledge(&mut responder, &request(Method::GET_MULTI, 5), 0, window);
        }
        sent(&mut responder, Instant::ZERO);
        respond(&mut responder, &request(Method::GET_MULTI, 5), 900);
        assert_eq!(sent(&mut responder, Instant::ZERO).len(), first_segments);
    }
}

#[test]
fn duplicate_and_excess_responses_are_rejected() {
    let mut responder = responder(1);
    let request = request(Method::GET_TABLE, 5);
    respond(&mut responder, &request, 10);
    let mut header = request.mad;
    header.answer(MadStatus::OK);
    let doubled = responder.respond_message(&request, header, vec![]);
    assert_eq!(doubled, Err(RespondError::UnderWay));
    header.set_transaction_id(TransactionId(6));
    let more = responder.respond_message(&request, header, vec![]);
    assert_eq!(more, Err(RespondError::TooMany { transfers: 1 }));
    header = Mad::new(MgmtClass::PERFORMANCE, Method::GET_RESP, TransactionId(7));
    let mut empty = Responder::new(ResponderConfig::default());
    let wrong = empty.respond_message(&request, header, vec![]);
    let class = MgmtClass::PERFORMANCE;
    assert_eq!(wrong, Err(RespondError::NoMessage { class, length: 0 }));
}

#[test]
fn transfers_are_distinguished_by_method() {
    let mut responder = responder(4);
    for method in [Method::GET_MULTI, Method::GET_TABLE, Method::SET] {
        let datagram = request(method, 3);
        let mut sender = Sender::new(&datagram.mad, vec![7; 50], 1).unwrap();
        for segment in std::iter::from_fn(|| sender.next_segment()) {
            receive(&mut responder, datagram.reply(segment));
        }
    }
    assert_eq!(responder.counters().requests, 3);
    assert_eq!(sent(&mut responder, Instant::ZERO).len(), 3, "a request is not acknowledged");
}

#[test]
fn acks_of_a_set_response_have_method_get() {
    let mut responder = responder(4);
    let request = request(Method::SET, 5);
    respond(&mut responder, &request, 300);
    let mut acknowledged = request;
    acknowledged.mad.set_method(Method::GET);
    assert_eq!(sent(&mut responder, Instant::ZERO).len(), 1);
    acknowledge(&mut responder, &acknowledged, 1, 9);
    assert_eq!(sent(&mut responder, Instant::ZERO).len(), 1);
    acknowledge(&mut responder, &acknowledged, 2, 9);
    assert!(matches!(responder.poll_event(), Some(ResponderEvent::Delivered { .. })));
}

#[test]
fn memory_of_all_messages_is_limited() {
    let mut responder = Responder::new(ResponderConfig { max_bytes: 1000, ..Default::default() });
    let replies = |responder: &mut Responder| sent(responder, Instant::ZERO);
    let last = |responder: &mut Responder, number, length| {
        for segment in segments(number, length) {
            receive(responder, segment);
        }
        replies(responder).last().copied().unwrap()
    };
    // One complete request waits. The next request exceeds the memory limit.
    assert_eq!(last(&mut responder, 1, 500).rmpp_type, RmppType::ACK);
    assert_eq!(responder.held(), 500);
    let stop = last(&mut responder, 2, 600);
    assert_eq!((stop.rmpp_type, stop.status), (RmppType::STOP, RmppStatus::RESOURCES_EXHAUSTED));
    assert_eq!((responder.held(), responder.counters().aborted), (500, 1));
    // After `poll_event` has returned the first request, its 500 bytes no longer count.
    assert!(matches!(responder.poll_event(), Some(ResponderEvent::Request(_))));
    assert_eq!(responder.held(), 0);
    assert_eq!(last(&mut responder, 3, 600).rmpp_type, RmppType::ACK);
    // The data of responses counts towards the memory limit, too.
    let request = request(Method::GET_TABLE, 5);
    let mut header = request.mad;
    header.answer(MadStatus::OK);
    let refused = responder.respond_message(&request, header, vec![1; 401]);
    assert_eq!(refused, Err(RespondError::NoRoom { length: 401, free: 400 }));
    respond(&mut responder, &request, 400);
    replies(&mut responder);
    let stop = last(&mut responder, 4, 1);
    assert_eq!((stop.rmpp_type, responder.held()), (RmppType::STOP, 1000));
    acknowledge(&mut responder, &request, 1, 9);
    replies(&mut responder);
    acknowledge(&mut responder, &request, 2, 9);
    assert_eq!(responder.held(), 600);
    // A segment that follows a missing segment takes 256 bytes until the missing one arrives. With such a segment,
    // request 6 exceeds the memory limit and is removed. Request 7 takes memory until it times out.
    let parts = segments(6, 900);
    for (index, held) in [(0, 800), (2, 600), (1, 600)] {
        receive(&mut responder, parts[index]);
        assert_eq!(responder.held(), held);
    }
    while responder.poll_event().is_some() {}
    assert_eq!(responder.held(), 0);
    for index in [0, 2, 3] {
        receive(&mut responder, segments(7, 900)[index]);
    }
    assert_eq!(responder.held(), 200 + 2 * 256);
    responder.handle_timeout(Instant::ZERO + Duration::from_secs(41));
    assert_eq!(responder.held(), 0);
}
