//! CQs, SRQs, multicast groups, and draining of send queues.

use ib_hca::{
    AccessFlags, AsyncEvent, Data, DestroyError, DropReason, HcaEvent, QpAttr, QpInitAttr, QpState,
    QpType, RecvWr, SendFlags, SendOp, SendWr, UdDestination, WcStatus,
};
use ib_types::{Gid, QKey, Qpn};

use crate::pair::{Pair, Wiring};
use crate::{ALL, pattern};

fn events(pair: &mut Pair, side: usize) -> Vec<AsyncEvent> {
    let events = std::mem::take(&mut pair.sides[side].events);
    let is_async = |event| match event {
        HcaEvent::Async(event) => Some(event),
        _ => None,
    };
    events.into_iter().filter_map(is_async).collect()
}

#[test]
fn queue_pairs_share_receives() {
    let mut pair = Pair::new(1);
    let wiring = Wiring::default();
    let far = pair.region(1, 1000, ALL);
    let near = pair.region(0, 1000, ALL);
    near.memory.write(0, &pattern(100, 1)).expect("the range is within the memory");
    let (srq, shared) = {
        let side = &mut pair.sides[1];
        let srq = side.hca.create_srq(side.pd, 4, 1).expect("the size is valid");
        for wr_id in 0..4 {
            let data = far.data(wr_id as usize * 100, 100);
            side.hca.post_srq_recv(srq, RecvWr { wr_id, data }).expect("the SRQ has room");
        }
        let full = side.hca.post_srq_recv(srq, RecvWr { wr_id: 9, data: Data::None });
        assert!(full.is_err());
        assert!(side.hca.arm_srq(srq, 3) && !side.hca.arm_srq(srq, 5));
        let init = QpInitAttr {
            qp_type: QpType::Rc,
            send_cq: side.cq,
            recv_cq: side.cq,
            srq: Some(srq),
            cap: wiring.cap,
        };
        let shared = [(); 2].map(|()| side.hca.create_qp(side.pd, &init).expect("the SRQ exists"));
        (srq, shared)
    };
    let mut senders = Vec::new();
    for other in shared {
        let one = pair.create(0, &wiring);
        pair.connect_with(&wiring, [one, other]);
        senders.push(one);
    }
    for (number, &qp) in [0, 1, 1, 0].iter().map(|&at| &senders[at]).enumerate() {
        pair.send(0, qp, number as u64, SendOp::Send { imm: None }, near.data(0, 100));
        pair.run();
    }
    let got: Vec<(u64, Qpn)> = pair.done(1).iter().map(|wc| (wc.wr_id, wc.qp_num)).collect();
    let numbers = shared.map(|qp| pair.number_of(1, qp));
    assert_eq!(got, [(0, numbers[0]), (1, numbers[1]), (2, numbers[1]), (3, numbers[0])]);
    assert_eq!(far.bytes(300, 100), pattern(100, 1));
    assert_eq!(events(&mut pair, 1), [AsyncEvent::SrqLimitReached(srq)], "once");
    let side = &mut pair.sides[1];
    assert!(matches!(side.hca.destroy_srq(srq), Err(DestroyError::InUse(_))));
    let attr = QpAttr { qp_state: Some(QpState::Err), ..QpAttr::default() };
    pair.modify(1, shared[0], &attr);
    pair.step();
    assert_eq!(events(&mut pair, 1), [AsyncEvent::QpLastWqeReached(shared[0])]);
    let side = &mut pair.sides[1];
    for qp in shared {
        side.hca.destroy_qp(qp).expect("the queue pair exists");
    }
    side.hca.destroy_srq(srq).expect("the SRQ is unused");
}

#[test]
fn receive_with_invalid_key_fails_the_message_that_takes_it() {
    for with_srq in [false, true] {
        let mut pair = Pair::new(3);
        let wiring = Wiring::default();
        let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, AccessFlags::default()));
        let side = &mut pair.sides[1];
        let srq = side.hca.create_srq(side.pd, 4, 1).expect("the size is valid");
        let receive = RecvWr { wr_id: 5, data: far.data(0, 100) };
        let init = QpInitAttr {
            qp_type: QpType::Rc,
            send_cq: side.cq,
            recv_cq: side.cq,
            srq: with_srq.then_some(srq),
            cap: wiring.cap,
        };
        let other = side.hca.create_qp(side.pd, &init).expect("the SRQ exists");
        let qp = pair.create(0, &wiring);
        pair.connect_with(&wiring, [qp, other]);
        if with_srq {
            pair.sides[1].hca.post_srq_recv(srq, receive).expect("the SRQ has room");
        } else {
            pair.receive(1, other, 5, far.data(0, 100));
        }
        pair.run();
        assert!(pair.done(1).is_empty(), "the receive is not used yet");
        pair.send(0, qp, 1, SendOp::Send { imm: None }, near.data(0, 10));
        pair.run();
        assert_eq!(pair.done(0)[0].status, WcStatus::RemOpErr);
        let done = pair.done(1);
        assert_eq!((done[0].wr_id, done[0].status), (5, WcStatus::LocProtErr));
        assert_eq!([pair.state_of(0, qp), pair.state_of(1, other)], [QpState::Err; 2]);
    }
}

#[test]
fn receives_of_an_srq_use_the_pd_of_the_srq() {
    let mut pair = Pair::new(4);
    let wiring = Wiring::default();
    let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, ALL));
    near.memory.write(0, &pattern(100, 1)).expect("the range is within the memory");
    let side = &mut pair.sides[1];
    let srq = side.hca.create_srq(side.pd, 4, 1).expect("the size is valid");
    let receive = RecvWr { wr_id: 5, data: far.data(0, 100) };
    side.hca.post_srq_recv(srq, receive).expect("the SRQ has room");
    let other_pd = side.hca.alloc_pd().expect("there is room for a PD");
    let init = QpInitAttr {
        qp_type: QpType::Rc,
        send_cq: side.cq,
        recv_cq: side.cq,
        srq: Some(srq),
        cap: wiring.cap,
    };
    let other = side.hca.create_qp(other_pd, &init).expect("the SRQ exists");
    let qp = pair.create(0, &wiring);
    pair.connect_with(&wiring, [qp, other]);
    pair.send(0, qp, 1, SendOp::Send { imm: None }, near.data(0, 100));
    pair.run();
    assert_eq!(pair.done(1)[0].status, WcStatus::Success);
    assert_eq!(far.bytes(0, 100), pattern(100, 1));
}

#[test]
fn violation_of_access_rights_is_reported_to_the_responder() {
    let mut pair = Pair::new(5);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, ALL));
    let to = ib_hca::RemoteAddress { rkey: far.key ^ 0x1000, ..far.remote(0) };
    pair.send(0, qps[0], 1, SendOp::Write { to, imm: None }, near.data(0, 10));
    pair.run();
    assert_eq!(pair.done(0)[0].status, WcStatus::RemAccessErr);
    assert_eq!(events(&mut pair, 0), [], "the completion reports the error");
    assert_eq!(events(&mut pair, 1), [AsyncEvent::QpAccessError(qps[1])]);

    let qps = pair.connect(&Wiring::default());
    pair.receive(1, qps[1], 7, Data::None);
    pair.send(0, qps[0], 2, SendOp::Write { to, imm: Some(6) }, near.data(0, 10));
    pair.run();
    assert_eq!(pair.done(0)[0].status, WcStatus::RemAccessErr);
    let done = pair.done(1);
    assert_eq!((done[0].wr_id, done[0].status), (7, WcStatus::LocAccessErr));
}

#[test]
fn cq_overrun_fails_its_queue_pairs() {
    let mut pair = Pair::new(2);
    let small = pair.sides[0].hca.create_cq(2).expect("the size is valid");
    let large = std::mem::replace(&mut pair.sides[0].cq, small);
    let wiring = Wiring::default();
    let qp = pair.create(0, &wiring);
    // The test never polls the small CQ.
    pair.sides[0].cq = large;
    let other = pair.create(1, &wiring);
    pair.connect_with(&wiring, [qp, other]);
    for wr_id in 0..3 {
        pair.receive(1, other, wr_id, Data::None);
        pair.send(0, qp, wr_id, SendOp::Send { imm: None }, Data::None);
    }
    pair.run();
    let seen = events(&mut pair, 0);
    assert!(seen.contains(&AsyncEvent::CqError(small)), "{seen:?}");
    assert!(seen.contains(&AsyncEvent::QpFatal(qp)), "{seen:?}");
    assert_eq!(pair.state_of(0, qp), QpState::Err);
}

#[test]
fn requested_notification_is_sent_once() {
    let mut pair = Pair::new(3);
    let qps = pair.connect(&Wiring::default());
    let cq = pair.sides[1].cq;
    let notifications = |pair: &mut Pair| {
        let events = std::mem::take(&mut pair.sides[1].events);
        events.iter().filter(|it| matches!(it, HcaEvent::Completion(of) if *of == cq)).count()
    };
    let send = |pair: &mut Pair, solicited: bool| {
        pair.receive(1, qps[1], 1, Data::None);
        let flags = SendFlags { solicited, ..SendFlags::default() };
        let op = SendOp::Send { imm: None };
        pair.post(0, qps[0], SendWr { wr_id: 1, op, data: Data::None, flags });
        pair.run();
    };
    send(&mut pair, true);
    assert_eq!(notifications(&mut pair), 0, "no notification is requested");
    pair.sides[1].hca.req_notify_cq(cq, false);
    send(&mut pair, false);
    send(&mut pair, false);
    assert_eq!(notifications(&mut pair), 1, "once");
    pair.sides[1].hca.req_notify_cq(cq, true);
    send(&mut pair, false);
    assert_eq!(notifications(&mut pair), 0, "the completion is not solicited");
    send(&mut pair, true);
    assert_eq!(notifications(&mut pair), 1);
}

#[test]
fn send_queue_drains_and_resumes() {
    let mut pair = Pair::new(4);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 50_000, ALL), pair.region(1, 50_000, ALL));
    let to = far.remote(0);
    pair.send(0, qps[0], 1, SendOp::Write { to, imm: None }, near.data(0, 50_000));
    pair.step();
    pair.send(0, qps[0], 2, SendOp::Write { to, imm: None }, near.data(0, 10));
    let state = |to| QpAttr { qp_state: Some(to), ..QpAttr::default() };
    pair.modify(0, qps[0], &state(QpState::Sqd));
    pair.run();
    // In state SQD, a request still completes if its transmission has started. The transmission of the first request
    // has started.
    let done = pair.done(0).len();
    assert!(done >= 1);
    assert!(events(&mut pair, 0).contains(&AsyncEvent::SqDrained(qps[0])));
    pair.send(0, qps[0], 3, SendOp::Write { to, imm: None }, near.data(0, 10));
    pair.run();
    assert_eq!(pair.done(0).len(), 0, "no new request is started");
    pair.modify(0, qps[0], &state(QpState::Rts));
    pair.run();
    assert_eq!(pair.done(0).len(), 3 - done);
}

#[test]
fn datagram_reaches_all_members_of_a_group() {
    let mut pair = Pair::new(5);
    let wiring = Wiring { qp_type: QpType::Ud, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    let second = pair.create(1, &wiring);
    let third = pair.create(0, &wiring);
    pair.connect_with(&wiring, [third, second]);
    let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 1000, ALL));
    near.memory.write(0, &pattern(100, 9)).expect("the range is within the memory");
    let group = Gid(0xff12_401b_ffff_0000_0000_0000_0000_0001);
    let hca = &mut pair.sides[1].hca;
    assert!(hca.attach_mcast(qps[1], Gid(5)).is_err());
    for qp in [qps[1], second] {
        hca.attach_mcast(qp, group).expect("the GID is a multicast GID");
        hca.attach_mcast(qp, group).expect("attaching again has no effect");
    }
    assert!(matches!(hca.destroy_qp(second), Err(DestroyError::InUse(_))));
    pair.receive(1, qps[1], 1, far.data(0, 200));
    pair.receive(1, second, 2, far.data(200, 200));
    // The destination GID of the packet is the GID of the group. The wire delivers the packet to the other side.
    let route = pair.route(0);
    let side = &mut pair.sides[0];
    let to_group = ib_link::Route { destination: group, ..route };
    let ah = side.hca.create_ah(side.pd, to_group).expect("the route starts at the port");
    let to = UdDestination { ah, remote_qpn: Qpn::MULTICAST, remote_qkey: QKey(0x1111) };
    pair.send(0, qps[0], 1, SendOp::SendDatagram { to, imm: None }, near.data(0, 100));
    pair.run();
    let mut got: Vec<_> = pair.done(1).iter().map(|wc| (wc.wr_id, wc.byte_len)).collect();
    got.sort_unstable();
    assert_eq!(got, [(1, 140), (2, 140)]);
    assert_eq!(far.bytes(240, 100), pattern(100, 9));
    let hca = &mut pair.sides[1].hca;
    for qp in [qps[1], second] {
        hca.detach_mcast(qp, group).expect("the queue pair is attached");
    }
    assert!(hca.detach_mcast(second, group).is_err());
    pair.send(0, qps[0], 2, SendOp::SendDatagram { to, imm: None }, near.data(0, 100));
    pair.run();
    assert_eq!(pair.sides[1].hca.counters().dropped(DropReason::NoGroup), 1);
    assert!(pair.done(0).iter().all(|wc| wc.status == WcStatus::Success));
}
