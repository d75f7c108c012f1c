use super::*;
use crate::region::Sge;
use crate::work_request::{Data, RemoteAddress, SendFlags};

const MTU: usize = 1024;

fn write(packets: u32) -> (SendOp, u32) {
    (SendOp::Write { to: RemoteAddress::default(), imm: None }, packets * MTU as u32)
}

fn read(packets: u32) -> (SendOp, u32) {
    (SendOp::Read { from: RemoteAddress::default() }, packets * MTU as u32)
}

/// Returns a queue of the given requests, whose PSNs start at 10.
fn queue(requests: impl IntoIterator<Item = (SendOp, u32)>) -> SendQueue {
    let mut queue = SendQueue::default();
    queue.start(Psn::truncated(10));
    for (op, length) in requests {
        let data = Data::One(Sge::default());
        queue.push(
            SendWr { wr_id: 0, op, data, flags: SendFlags::default() },
            length,
            Instant::default(),
        );
    }
    queue
}

/// Sends the next packet. Returns its PSN and the result of `advance`.
fn send(queue: &mut SendQueue) -> (u32, AdvanceOutcome) {
    if queue.current().is_some_and(Wqe::is_local) {
        queue.start_local();
        queue.pass_local();
    }
    queue.start_current(MTU, Instant::default());
    let psn = queue.next_packet().psn.get();
    (psn, queue.advance())
}

#[test]
fn packets_of_requests_have_consecutive_psns() {
    let mut queue = queue([write(2), read(3), write(1)]);
    let sent: Vec<(u32, bool)> =
        (0..4).map(|_| send(&mut queue)).map(|(psn, advanced)| (psn, advanced.is_last)).collect();
    // A READ has only one request packet, but uses one PSN for each packet of the response.
    assert_eq!(sent, [(10, false), (11, true), (12, true), (15, true)]);
    assert_eq!((queue.in_flight(), queue.outstanding_reads), (6, 1));
    assert!(queue.current().is_none());
}

#[test]
fn cursor_goes_back_into_a_message() {
    let mut queue = queue([write(3), write(1)]);
    for _ in 0..4 {
        assert!(!send(&mut queue).1.is_repeated);
    }
    queue.go_back(Psn::truncated(11));
    assert_eq!(queue.next_packet().index, 1);
    let sent: Vec<(u32, bool)> = (0..3)
        .map(|_| send(&mut queue))
        .map(|(psn, advanced)| (psn, advanced.is_repeated))
        .collect();
    assert_eq!(sent, [(11, true), (12, true), (13, true)]);
}

#[test]
fn read_resumes_behind_its_received_data() {
    let mut queue = queue([read(4), write(1)]);
    send(&mut queue);
    send(&mut queue);
    queue.front_mut().expect("the queue holds the READ").received = 2;
    queue.go_back(Psn::truncated(12));
    assert_eq!((queue.next.get(), queue.outstanding_reads), (12, 0));
    send(&mut queue);
    assert_eq!((queue.next.get(), queue.outstanding_reads), (14, 1));
}

#[test]
fn completed_read_is_no_longer_outstanding() {
    let mut queue = queue([read(1), read(1)]);
    send(&mut queue);
    send(&mut queue);
    assert_eq!(queue.outstanding_reads, 2);
    queue.pop().expect("the queue holds two requests");
    assert_eq!((queue.outstanding_reads, queue.len()), (1, 1));
    queue.pop().expect("the queue holds a request");
    assert_eq!((queue.outstanding_reads, queue.has_passed()), (0, false));
}

#[test]
fn local_operation_is_done_once() {
    let mut queue = queue([write(1), (SendOp::LocalInvalidate { rkey: 1 }, 0), write(1)]);
    send(&mut queue);
    assert!(queue.start_local().is_some());
    queue.pass_local();
    send(&mut queue);
    queue.go_back(Psn::truncated(10));
    send(&mut queue);
    assert!(queue.start_local().is_none());
    queue.pass_local();
    queue.pop().expect("the queue holds the first request");
    assert!(queue.has_done_local());
}

#[test]
fn last_packet_is_found_until_its_request_completes() {
    let mut queue = queue([write(2), read(1)]);
    assert!(queue.last_packet().is_none());
    send(&mut queue);
    send(&mut queue);
    let last = queue.last_packet().expect("the request has not completed");
    assert_eq!((last.psn.get(), last.index), (11, 1));
    queue.pop().expect("the queue holds the request");
    assert!(queue.last_packet().is_none());
}
