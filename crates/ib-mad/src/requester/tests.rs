use std::time::Duration;

use ib_types::{Gid, Guid};
use ib_wire::mad::rmpp::{RmppFlags, RmppHeader, RmppStatus};
use ib_wire::mad::{AttributeId, MadStatus, smp};
use ib_wire::packet::Grh;

use super::*;
use crate::{
    AnswerFrom, Backoff, OnLoss, Responder, ResponderConfig, ResponderEvent, Timing, Urgency,
};

const SECOND: Duration = Duration::from_secs(1);

fn requester(window: usize) -> Requester {
    Requester::new(RequesterConfig { tag: 0x1234, window, ..RequesterConfig::default() })
}

fn request(class: MgmtClass, lid: u16) -> Request {
    Request::new(Remote::gsi(lid), Mad::new(class, Method::GET, TransactionId(0)))
}

fn sent(requester: &mut Requester, now: Instant) -> Vec<Datagram> {
    std::iter::from_fn(|| requester.poll_transmit(now)).collect()
}

fn ended(requester: &mut Requester) -> Vec<Completion> {
    std::iter::from_fn(|| requester.poll_event()).collect()
}

fn answer(request: &Datagram) -> Datagram {
    let mut mad = request.mad;
    mad.answer(MadStatus::OK);
    request.reply(mad)
}

fn receive(requester: &mut Requester, now: Instant, datagram: Datagram) -> bool {
    requester.handle(now, &Incoming::Received(datagram))
}

#[test]
fn requests_are_sent_in_order_within_the_window() {
    let mut requester = requester(2);
    let now = Instant::ZERO;
    let classes =
        [MgmtClass::SUBN_LID_ROUTED, MgmtClass::PERFORMANCE, MgmtClass::SUBN_ADM, MgmtClass::PING];
    let ids: Vec<_> =
        classes.iter().map(|&class| requester.start(request(class, 9)).unwrap()).collect();
    assert_eq!(ids[0], TransactionId(0x1234_0000_0001));
    assert_eq!(requester.outstanding(), 4);
    let first = sent(&mut requester, now);
    assert_eq!(first.iter().map(|datagram| datagram.mad.class()).collect::<Vec<_>>(), classes[..2]);
    assert!(receive(&mut requester, now, answer(&first[1])));
    assert_eq!(ended(&mut requester)[0].transaction_id, ids[1]);
    let next = sent(&mut requester, now);
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].mad.class(), classes[2]);
    assert!(requester.cancel(ids[0]) && requester.cancel(ids[3]) && !requester.cancel(ids[3]));
    assert_eq!(sent(&mut requester, now), []);
    assert!(receive(&mut requester, now, answer(&next[0])));
    assert_eq!((ended(&mut requester).len(), requester.outstanding()), (1, 0));
    assert_eq!(requester.poll_timeout(), None);
}

#[test]
fn urgent_requests_are_sent_before_older_ones() {
    let mut requester = requester(1);
    let now = Instant::ZERO;
    let urgencies = [Urgency::Last, Urgency::Normal, Urgency::First, Urgency::Normal];
    for (urgency, lid) in urgencies.into_iter().zip(1..) {
        requester.start(request(MgmtClass::PING, lid).with_urgency(urgency)).unwrap();
    }
    let mut order = Vec::new();
    while let [datagram] = sent(&mut requester, now)[..] {
        order.push(datagram.remote.lid);
        if order.len() == 1 {
            // A request of priority `First` is sent before the waiting requests, although it was started later.
            let late = request(MgmtClass::PING, 9).with_urgency(Urgency::First);
            requester.start(late).unwrap();
        }
        assert!(receive(&mut requester, now, answer(&datagram)));
    }
    assert_eq!(order, [3, 9, 2, 4, 1]);
}

#[test]
fn transaction_ids_wrap_and_skip_those_in_use() {
    let config = RequesterConfig { first: u32::MAX, ..RequesterConfig::default() };
    let mut requester = Requester::new(config);
    let mut start = || requester.start(request(MgmtClass::PING, 1)).unwrap().0 as u32;
    assert_eq!([start(), start(), start()], [u32::MAX, 1, 2]);
    requester.next = u32::MAX;
    assert_eq!(requester.start(request(MgmtClass::PING, 1)).unwrap().0 as u32, 3);
}

#[test]
fn requests_without_response_or_rmpp_are_rejected() {
    let mut requester = requester(1);
    for method in [Method::SEND, Method::TRAP_REPRESS, Method::GET_RESP] {
        let mad = Mad::new(MgmtClass::SUBN_ADM, method, TransactionId(0));
        let error = requester.start(Request::new(Remote::gsi(1), mad)).unwrap_err();
        assert_eq!(error, StartError::NoAnswer { class: MgmtClass::SUBN_ADM, method });
    }
    let mad = Mad::new(MgmtClass::PERFORMANCE, Method::SET, TransactionId(0));
    let error = requester.start(Request::message(Remote::gsi(1), mad, vec![0; 9])).unwrap_err();
    assert_eq!(error, StartError::NoMessage { class: MgmtClass::PERFORMANCE, length: 9 });
    assert_eq!(requester.outstanding(), 0);
}

#[test]
fn every_attempt_has_its_timeout() {
    let longest = 4 * SECOND;
    let cases =
        [(Backoff::Fixed, [1, 2, 3, 4, 5]), (Backoff::Doubling { longest }, [1, 3, 7, 11, 15])];
    for (backoff, moments) in cases {
        let mut requester = requester(1);
        let timing = Timing { timeout: SECOND, retries: 4, backoff };
        requester.start(request(MgmtClass::PERFORMANCE, 9).with_timing(timing)).unwrap();
        for (attempt, seconds) in moments.into_iter().enumerate() {
            let now = requester.poll_timeout().unwrap_or(Instant::ZERO);
            requester.handle_timeout(now);
            assert_eq!(sent(&mut requester, now).len(), 1, "attempt {attempt}");
            assert_eq!(requester.poll_timeout(), Some(Instant::ZERO + SECOND * seconds));
        }
        let last = requester.poll_timeout().unwrap();
        requester.handle_timeout(last);
        let completion = ended(&mut requester).remove(0);
        let waited = last - Instant::ZERO;
        assert_eq!(completion.result, Err(Failure::TimedOut { attempts: 5, waited }));
        assert_eq!((completion.attempts, completion.elapsed), (5, waited));
        assert_eq!(requester.counters().retries, 4);
    }
}

#[test]
fn only_the_matching_response_completes_a_request() {
    let mut requester = requester(1);
    let now = Instant::ZERO;
    let mut asked = request(MgmtClass::PERFORMANCE, 9);
    asked.mad.set_attribute_id(AttributeId::PORT_COUNTERS);
    requester.start(asked).unwrap();
    let request = sent(&mut requester, now)[0];
    let good = answer(&request);
    let wrong = |change: fn(&mut Datagram)| {
        let mut datagram = good;
        change(&mut datagram);
        datagram
    };
    // The requester ignores MADs that do not belong to it.
    assert!(!receive(&mut requester, now, request));
    assert!(!receive(&mut requester, now, wrong(|it| it.mad.0[0] = 2)));
    assert!(!receive(&mut requester, now, wrong(|it| it.mad.0[11] = 1)));
    assert!(!receive(&mut requester, now, wrong(|it| it.mad.0[8] = 1)));
    // The requester counts responses that have the transaction ID of the request but do not match it.
    let foreign = [
        wrong(|it| it.mad.0[1] = 3),
        wrong(|it| it.mad.set_method(Method::GET_TABLE_RESP)),
        wrong(|it| it.mad.set_attribute_id(AttributeId::PORT_COUNTERS_EXTENDED)),
        wrong(|it| it.remote.lid = 10),
    ];
    for datagram in foreign {
        assert!(receive(&mut requester, now, datagram));
    }
    assert!(receive(&mut requester, now, wrong(|it| it.mad.0[15] = 9)));
    assert_eq!((requester.counters().foreign, requester.counters().late), (4, 1));
    assert_eq!(ended(&mut requester), []);
    assert!(receive(&mut requester, now, good));
    assert!(receive(&mut requester, now, good));
    assert_eq!(ended(&mut requester)[0].result.as_ref().map(Message::datagram), Ok(&good));
    assert_eq!((ended(&mut requester).len(), requester.counters().late), (0, 2));
}

#[test]
fn multi_path_request_accepts_path_records() {
    for (method, answered) in [(Method::GET_MULTI, true), (Method::GET_TABLE, false)] {
        let mut requester = requester(1);
        let mut asked = request(MgmtClass::SUBN_ADM, 9);
        asked.mad.set_method(method);
        asked.mad.set_attribute_id(AttributeId::MULTI_PATH_RECORD);
        requester.start(asked).unwrap();
        let mut answer = answer(&sent(&mut requester, Instant::ZERO)[0]);
        answer.mad.set_attribute_id(AttributeId::PATH_RECORD);
        receive(&mut requester, Instant::ZERO, answer);
        assert_eq!(ended(&mut requester).len() == 1, answered, "{method}");
    }
}

#[test]
fn source_of_a_response_is_checked() {
    let gid = |id| Gid::new(0xfe80 << 48, Guid(id));
    let grh = |source, destination| Some(Grh { source, destination, ..Grh::default() });
    let asked = request(MgmtClass::PERFORMANCE, 9);
    let directed =
        smp::directed_request(Method::GET, TransactionId(0), (AttributeId::NODE_INFO, 0), &[1]);
    let mut routed = asked.clone();
    routed.remote.grh = grh(gid(1), gid(2));
    let anyone = Request { answer_from: AnswerFrom::Anyone, ..asked.clone() };
    let permissive = Request { remote: Remote::gsi(0xffff), ..asked.clone() };
    let cases = [
        (asked, 5, None, false),
        (anyone, 5, None, true),
        (permissive, 5, None, true),
        (Request::new(Remote::directed(), directed), 5, None, true),
        (routed.clone(), 5, grh(gid(2), gid(1)), true),
        (routed.clone(), 9, grh(gid(3), gid(1)), false),
        (routed, 9, None, true),
    ];
    for (index, (request, lid, grh, accepted)) in cases.into_iter().enumerate() {
        let mut requester = requester(1);
        requester.start(request).unwrap();
        let mut answer = answer(&sent(&mut requester, Instant::ZERO)[0]);
        (answer.remote.lid, answer.remote.grh) = (lid, grh);
        receive(&mut requester, Instant::ZERO, answer);
        assert_eq!(ended(&mut requester).len() == 1, accepted, "case {index}");
    }
}

#[test]
fn loss_fails_a_request_or_takes_a_retry() {
    let now = Instant::ZERO;
    for (on_loss, sent_in_all) in [(OnLoss::Fail, 1), (OnLoss::Retry, 4)] {
        let mut requester = requester(1);
        requester.start(Request { on_loss, ..request(MgmtClass::PING, 9) }).unwrap();
        for attempt in 1..=sent_in_all {
            let datagrams = sent(&mut requester, now);
            assert_eq!(datagrams.len(), 1, "attempt {attempt}");
            assert!(requester.handle(now, &Incoming::Lost(datagrams[0])));
            assert_eq!(requester.poll_timeout().is_some(), attempt < sent_in_all);
        }
        let failure = Failure::Lost { attempts: sent_in_all };
        assert_eq!(ended(&mut requester)[0].result, Err(failure));
    }
    let other = answer(&Datagram::new(Remote::gsi(1), Mad::default()));
    assert!(!requester(1).handle(now, &Incoming::Lost(other)));
}

#[test]
fn response_with_only_the_active_flag_is_one_mad() {
    let mut requester = requester(1);
    requester.start(request(MgmtClass::SUBN_ADM, 9)).unwrap();
    let mut answer = answer(&sent(&mut requester, Instant::ZERO)[0]);
    answer.mad.set_rmpp(&RmppHeader { flags: RmppFlags::ACTIVE, ..RmppHeader::zeroed() });
    answer.length = 56 + 112;
    receive(&mut requester, Instant::ZERO, answer);
    let completion = ended(&mut requester).remove(0);
    assert_eq!(completion.result.unwrap().data().len(), 112);
    assert_eq!(sent(&mut requester, Instant::ZERO), []);
}

#[test]
fn late_segments_are_acknowledged_for_ten_seconds() {
    let mut requester = requester(1);
    let mut responder = Responder::new(ResponderConfig::default());
    let now = Instant::ZERO;
    requester.start(request(MgmtClass::SUBN_ADM, 9)).unwrap();
    responder.handle(now, &Incoming::Received(sent(&mut requester, now)[0]));
    let Some(ResponderEvent::Request(request)) = responder.poll_event() else { panic!() };
    let mut header = *request.mad();
    header.answer(MadStatus::OK);
    responder.respond_message(request.datagram(), header, vec![1; 10]).unwrap();
    let segment = responder.poll_transmit(now).unwrap();
    receive(&mut requester, now, segment);
    assert_eq!(ended(&mut requester).len(), 1);
    let acknowledgement = sent(&mut requester, now);
    assert_eq!(acknowledgement.len(), 1);
    receive(&mut requester, now, segment);
    assert_eq!(sent(&mut requester, now), acknowledgement);
    let gone = requester.poll_timeout().unwrap();
    assert_eq!(gone - now, 10 * SECOND);
    requester.handle_timeout(gone);
    receive(&mut requester, gone, segment);
    assert_eq!(sent(&mut requester, gone), []);
    assert_eq!(requester.counters().late, 2);
}

#[test]
fn stalled_response_is_aborted_after_40_seconds() {
    let mut requester = requester(1);
    let now = Instant::ZERO;
    requester.start(request(MgmtClass::SUBN_ADM, 9)).unwrap();
    let mut segment = answer(&sent(&mut requester, now)[0]);
    let mut header = Sender::new(&segment.mad, vec![0; 300], 1).unwrap();
    segment.mad = header.next_segment().unwrap();
    receive(&mut requester, now, segment);
    let end = requester.poll_timeout().unwrap();
    assert_eq!(end - now, 40 * SECOND);
    requester.handle_timeout(end);
    let status = RmppStatus::TIME_TOO_LONG;
    assert_eq!(ended(&mut requester)[0].result, Err(Failure::Aborted { status }));
    let abort = sent(&mut requester, end).pop().unwrap();
    assert_eq!((abort.mad.rmpp().rmpp_type, abort.mad.rmpp().status), (RmppType::ABORT, status));
}

#[test]
fn memory_of_all_responses_is_limited() {
    let config = RequesterConfig { window: 3, max_bytes: 1000, ..RequesterConfig::default() };
    let mut requester = Requester::new(config);
    let now = Instant::ZERO;
    for _ in 0..3 {
        requester.start(request(MgmtClass::SUBN_ADM, 9)).unwrap();
    }
    let asked = sent(&mut requester, now);
    let feed = |requester: &mut Requester, asked: &Datagram, length: usize| {
        let answer = answer(asked);
        let mut sender = Sender::new(&answer.mad, vec![7; length], u32::MAX).unwrap();
        while let Some(mad) = sender.next_segment() {
            receive(requester, now, asked.reply(mad));
        }
        sent(requester, now).pop().unwrap().mad.rmpp()
    };
    assert_eq!(feed(&mut requester, &asked[0], 700).rmpp_type, RmppType::ACK);
    assert_eq!(requester.held(), 700);
    let stop = feed(&mut requester, &asked[1], 400);
    let status = RmppStatus::RESOURCES_EXHAUSTED;
    assert_eq!((stop.rmpp_type, stop.status, requester.held()), (RmppType::STOP, status, 700));
    let ends: Vec<_> = ended(&mut requester).into_iter().map(|end| end.result).collect();
    assert_eq!(ends[0].as_ref().map(|message| message.data().len()), Ok(700));
    assert_eq!(ends[1], Err(Failure::Aborted { status }));
    assert_eq!(requester.held(), 0);
    // The memory of a response is free after `poll_event` has returned the response, or `cancel` has ended the request.
    let answer = answer(&asked[2]);
    let mut sender = Sender::new(&answer.mad, vec![7; 900], u32::MAX).unwrap();
    for _ in 0..4 {
        receive(&mut requester, now, answer.reply(sender.next_segment().unwrap()));
    }
    assert_eq!(requester.held(), 800);
    assert!(requester.cancel(asked[2].mad.transaction_id()));
    assert_eq!(requester.held(), 0);
}
