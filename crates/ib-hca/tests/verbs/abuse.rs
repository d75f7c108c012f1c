//! Malicious packets: each test covers a kind of defect that software HCAs have had.

use std::time::Duration;

use ib_hca::{
    AccessFlags, Data, DropReason, QpAttr, QpCap, QpState, SendFlags, SendOp, SendWr, WcStatus,
};
use ib_link::Route;
use ib_types::{Mtu, Psn};

use crate::pair::{Faults, Pair, Rng, Wiring};

const ALL: AccessFlags = AccessFlags::ALL;

/// Returns a packet of a reliable connection.
fn packet(opcode: u8, pad: u8, qpn: u32, psn: Psn, rest: &[u8]) -> Vec<u8> {
    let mut bytes = vec![opcode, pad << 4, 0xff, 0xff, 0];
    bytes.extend(&qpn.to_be_bytes()[1..]);
    bytes.push(0x80);
    bytes.extend(&psn.get().to_be_bytes()[1..]);
    bytes.extend(rest);
    bytes
}

/// First PSN that side 1 expects, set by [`Pair::connect_with`].
const EXPECTED: u32 = 0xff_fff0;

#[test]
fn pad_longer_than_the_payload_is_harmless() {
    for opcode in 0..=255 {
        for pad in 0..4 {
            for length in (0..48).step_by(2) {
                let mut pair = Pair::new(1);
                let qps = pair.connect(&Wiring::default());
                let far = pair.region(1, 100, ALL);
                pair.receive(1, qps[1], 1, far.data(0, 100));
                let number = pair.number_of(1, qps[1]).get();
                let psn = Psn::truncated(EXPECTED);
                let bytes = packet(opcode, pad, number, psn, &vec![0xff; length]);
                let (route, now) = (pair.route(1), pair.now);
                for cut in [bytes.len(), 11, 12, 13] {
                    let bytes = &bytes[..cut.min(bytes.len())];
                    pair.sides[1].hca.handle(now, &route, bytes);
                }
                pair.run();
                for wc in pair.done(1) {
                    assert!(
                        wc.byte_len <= length as u32,
                        "opcode {opcode:#x}, pad {pad}, {length} bytes: {wc:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn retransmitted_packets_equal_the_original() {
    // Requests posted during the retransmission do not change the retransmitted packets.
    let mut pair = Pair::new(3);
    pair.faults = [Faults { loss: 0.2, ..Faults::default() }; 2];
    let wiring = Wiring { mtu: Mtu::B256, timeout: 5, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    let far = pair.region(1, 64 * 256, ALL);
    for number in 0..64_u8 {
        let data = Data::Inline(vec![number; 256].into());
        let to = far.remote(usize::from(number) * 256);
        let flags = SendFlags::default();
        let op = SendOp::Write { to, imm: None };
        pair.post(0, qps[0], SendWr { wr_id: 1, op, data, flags });
        pair.step();
    }
    pair.run();
    for number in 0..64_u8 {
        let offset = usize::from(number) * 256;
        assert_eq!(far.bytes(offset, 256), vec![number; 256]);
    }
    assert!(pair.sides[0].hca.counters().retransmitted > 0);
}

#[test]
fn local_operations_are_executed_once_despite_retries() {
    let mut pair = Pair::new(4);
    let qps = pair.connect(&Wiring { timeout: 5, ..Wiring::default() });
    let near = pair.region(0, 4096, ALL);
    let mr = {
        let side = &mut pair.sides[0];
        side.hca.alloc_mr(side.pd).expect("the protection domain exists")
    };
    let with = ib_hca::Registration {
        mr,
        key: 0x77,
        memory: near.memory.clone(),
        offset: 0,
        length: 100,
        iova: 0,
        access: ALL,
    };
    let mut seen = 0;
    pair.tap = Box::new(move |from, _| {
        seen += usize::from(from == 1);
        // The first three acknowledgements are lost.
        from == 0 || seen > 3
    });
    let far = pair.region(1, 4096, ALL);
    pair.receive(1, qps[1], 1, far.data(0, 4096));
    pair.receive(1, qps[1], 2, far.data(0, 4096));
    pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, 10));
    pair.send(0, qps[0], 2, SendOp::Register(Box::new(with)), Data::None);
    let rkey = pair.sides[0].hca.key(mr).expect("the region exists") & !0xff | 0x77;
    pair.send(0, qps[0], 3, SendOp::Send { imm: None }, near.data(0, 10));
    pair.send(0, qps[0], 4, SendOp::LocalInvalidate { rkey }, Data::None);
    pair.run();
    let done: Vec<_> = pair.done(0).iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(done, [1, 2, 3, 4].map(|id| (id, WcStatus::Success)));
    assert!(pair.sides[0].hca.counters().retransmitted > 0);
    assert_eq!(pair.state_of(0, qps[0]), QpState::Rts);
}

#[test]
fn deregistration_during_a_transfer_fails_the_queue_pair() {
    for is_far in [false, true] {
        let mut pair = Pair::new(5);
        let qps = pair.connect(&Wiring::default());
        let (near, far) = (pair.region(0, 200_000, ALL), pair.region(1, 200_000, ALL));
        pair.send(
            0,
            qps[0],
            1,
            SendOp::Write { to: far.remote(0), imm: None },
            near.data(0, 200_000),
        );
        for _ in 0..10 {
            pair.step();
        }
        let (side, mr) = if is_far { (1, far.mr) } else { (0, near.mr) };
        pair.sides[side].hca.dereg_mr(mr).expect("the region exists");
        pair.run();
        let status = if is_far { WcStatus::RemAccessErr } else { WcStatus::LocProtErr };
        assert_eq!(pair.done(0)[0].status, status);
        assert_eq!(pair.state_of(0, qps[0]), QpState::Err);
    }
    // The source region of a READ is deregistered during the READ.
    let mut pair = Pair::new(6);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 200_000, ALL), pair.region(1, 200_000, ALL));
    pair.send(0, qps[0], 1, SendOp::Read { from: far.remote(0) }, near.data(0, 200_000));
    for _ in 0..4 {
        pair.step();
    }
    pair.sides[1].hca.dereg_mr(far.mr).expect("the region exists");
    pair.run();
    let status = pair.done(0)[0].status;
    let is_error = matches!(status, WcStatus::RemAccessErr | WcStatus::RetryExcErr);
    // If all responses were sent before the region was deregistered, the READ succeeds.
    assert!(is_error || status == WcStatus::Success, "{status:?}");
}

#[test]
fn destroyed_objects_are_not_used() {
    for steps in 0..30 {
        let mut pair = Pair::new(7);
        let qps = pair.connect(&Wiring::default());
        let (near, far) = (pair.region(0, 50_000, ALL), pair.region(1, 50_000, ALL));
        pair.send(0, qps[0], 1, SendOp::Read { from: far.remote(0) }, near.data(0, 50_000));
        pair.send(0, qps[0], 2, SendOp::Send { imm: None }, near.data(0, 5000));
        for _ in 0..steps {
            pair.step();
        }
        for side in [steps % 2, 1 - steps % 2] {
            let cq = pair.sides[side].cq;
            pair.sides[side].hca.destroy_qp(qps[side]).expect("the queue pair exists");
            pair.sides[side].hca.destroy_cq(cq).expect("the CQ is unused");
            // New objects reuse the table slots of removed objects, but get none of their packets and completions.
            let new = {
                let side = &mut pair.sides[side];
                side.cq = side.hca.create_cq(10).expect("the size is valid");
                side.cq
            };
            let qp = pair.create(side, &Wiring::default());
            assert_ne!((new, qp), (cq, qps[side]));
            pair.step();
        }
        pair.run();
        assert!(pair.done(0).is_empty() && pair.done(1).is_empty());
    }
}

#[test]
fn forged_packets_do_not_fail_a_queue_pair() {
    let mut pair = Pair::new(8);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 50_000, ALL), pair.region(1, 50_000, ALL));
    let numbers = [0, 1].map(|side| pair.number_of(side, qps[side]).get());
    let mut rng = Rng::new(9);
    for round in 0..200 {
        let to = far.remote(0);
        pair.send(0, qps[0], round, SendOp::Write { to, imm: None }, near.data(0, 5000));
        for side in [0, 1] {
            // Valid packets of another source, and packets from the peer's address with PSNs far from those in flight.
            let other = Route { destination: ib_types::Gid(1), ..pair.route(side) };
            let opcode = rng.below(0x18) as u8;
            let psn = Psn::truncated(rng.next() as u32);
            let rest = vec![rng.next() as u8; 4 * rng.below(20)];
            let near_psn = Psn::truncated(EXPECTED.wrapping_add(round as u32 * 5));
            let (own, now) = (pair.route(side), pair.now);
            let forged = packet(opcode, 0, numbers[side], near_psn, &rest);
            pair.sides[side].hca.handle(now, &other, &forged);
            if psn.distance_from(near_psn).unsigned_abs() > 10_000 {
                let forged = packet(opcode, 0, numbers[side], psn, &rest);
                pair.sides[side].hca.handle(now, &own, &forged);
            }
        }
        pair.run();
    }
    assert_eq!(pair.done(0).iter().filter(|wc| wc.status == WcStatus::Success).count(), 200);
    assert_eq!((pair.state_of(0, qps[0]), pair.state_of(1, qps[1])), (QpState::Rts, QpState::Rts));
    assert!(pair.sides[1].hca.counters().dropped(DropReason::Source) > 150);
}

#[test]
fn strict_queue_pair_drops_weak_packets() {
    let mut pair = Pair::new(8);
    let qps = pair.connect(&Wiring::default());
    let far = pair.region(1, 64, ALL);
    let number = pair.number_of(1, qps[1]).get();
    let mut rest = far.remote(0).addr.to_be_bytes().to_vec();
    rest.extend(far.remote(0).rkey.to_be_bytes());
    rest.extend(8_u32.to_be_bytes());
    rest.extend([0xee; 8]);
    let forged = packet(0x0a, 0, number, Psn::truncated(EXPECTED), &rest);
    let (own, now) = (pair.route(1), pair.now);
    for (is_weak, expected) in [(true, 0), (false, 0xee)] {
        pair.sides[1].hca.handle(now, &Route { is_weak, ..own }, &forged);
        assert_eq!(far.bytes(0, 8), [expected; 8]);
    }
    assert_eq!(pair.sides[1].hca.counters().dropped(DropReason::Icrc), 1);
}

#[test]
fn key_gives_no_access_outside_its_region() {
    let mut pair = Pair::new(10);
    let cap = QpCap { max_send_wr: 8, ..QpCap::default() };
    for (offset, length) in [(0, 101), (100, 1), (99, 2), (usize::MAX - 10, 5), (50, 1 << 20)] {
        let qps = pair.connect(&Wiring { cap, ..Wiring::default() });
        let near = pair.region(0, 2 << 20, ALL);
        let far = pair.region(1, 100, ALL);
        let mut to = far.remote(0);
        to.addr = to.addr.wrapping_add(offset as u64);
        pair.send(0, qps[0], 1, SendOp::Write { to, imm: None }, near.data(0, length));
        pair.run();
        assert_eq!(
            pair.done(0)[0].status,
            WcStatus::RemAccessErr,
            "{length} bytes at offset {offset}"
        );
        assert_eq!(pair.state_of(1, qps[1]), QpState::Err);
        pair.done(1);
    }
    // Either the region or the queue pair does not permit the operations.
    let none = AccessFlags::default();
    for (region, queue) in [(none, ALL), (ALL, none)] {
        for number in 0..3 {
            let qps = pair.connect(&Wiring { access: queue, ..Wiring::default() });
            let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, region));
            let at = far.remote(0);
            let op = match number {
                0 => SendOp::Write { to: at, imm: None },
                1 => SendOp::Read { from: at },
                _ => SendOp::FetchAdd { at, add: 1 },
            };
            pair.send(0, qps[0], 1, op, near.data(0, 8));
            pair.run();
            let expected = match region == none {
                true => WcStatus::RemAccessErr,
                false => WcStatus::RemInvReqErr,
            };
            assert_eq!(pair.done(0)[0].status, expected, "{number}");
            assert_eq!(far.bytes(0, 8), [0; 8]);
            pair.done(1);
        }
    }
}

#[test]
fn too_long_message_does_not_overflow_its_receive() {
    for length in [11, 1024, 1025, 3000] {
        let mut pair = Pair::new(11);
        let qps = pair.connect(&Wiring::default());
        let (near, far) = (pair.region(0, 5000, ALL), pair.region(1, 5000, ALL));
        near.memory.fill(0, 5000, 0xaa).expect("the range is within the memory");
        pair.receive(1, qps[1], 1, far.data(0, 10));
        pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, length));
        pair.run();
        assert_eq!(pair.done(0)[0].status, WcStatus::RemInvReqErr, "{length}");
        assert_eq!(pair.done(1)[0].status, WcStatus::LocLenErr, "{length}");
        assert_eq!(far.bytes(10, 100), [0; 100]);
    }
}

#[test]
fn requests_complete_despite_corrupted_packets() {
    let mut rng = Rng::new(12);
    for seed in 0..200 {
        let mut pair = Pair::new(seed);
        let mut other = Rng::new(seed);
        pair.tap = Box::new(move |_, bytes| {
            // An ICRC check would detect this corruption, but the packets of this test carry no ICRC.
            for _ in 0..other.below(3) {
                let at = other.below(bytes.len());
                bytes[at] = other.next() as u8;
            }
            if other.chance(0.05) {
                bytes.truncate(other.below(bytes.len()));
            }
            true
        });
        let qps = pair.connect(&Wiring { timeout: 5, retry_cnt: 3, ..Wiring::default() });
        let (near, far) = (pair.region(0, 50_000, ALL), pair.region(1, 50_000, ALL));
        for id in 0..10 {
            pair.receive(1, qps[1], id, far.data(0, 5000));
            let op = match rng.below(4) {
                0 => SendOp::Send { imm: Some(1) },
                1 => SendOp::Write { to: far.remote(0), imm: None },
                2 => SendOp::Read { from: far.remote(0) },
                _ => SendOp::FetchAdd { at: far.remote(0), add: 1 },
            };
            let length = if matches!(op, SendOp::FetchAdd { .. }) { 8 } else { rng.below(5000) };
            let now = pair.now;
            let flags = SendFlags { signaled: true, ..SendFlags::default() };
            let wr = SendWr { wr_id: id, op, data: near.data(0, length), flags };
            pair.sides[0].hca.post_send(now, qps[0], wr).expect("the send queue has room");
        }
        pair.run();
        assert_eq!(pair.done(0).len(), 10, "seed {seed}: number of completed requests");
    }
}

#[test]
fn duplicated_rnr_nak_uses_up_one_retry() {
    let mut pair = Pair::new(41);
    let wiring = Wiring { rnr_retry: 1, min_rnr_timer: 12, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    pair.faults = [Faults { double: 1.0, ..Faults::default() }; 2];
    let near = pair.region(0, 100, ALL);
    pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, 100));
    let early = pair.now + Duration::from_micros(300);
    while pair.now < early && pair.step() {}
    let far = pair.region(1, 100, ALL);
    pair.receive(1, qps[1], 2, far.data(0, 100));
    pair.run();
    assert_eq!(pair.done(0)[0].status, WcStatus::Success);
    assert_eq!(pair.sides[0].hca.counters().rnr_naks_received, 1);
}

/// If a message finds no receive, the packets after it are dropped without a NAK.
#[test]
fn missing_receive_causes_a_single_rnr_nak() {
    let mut pair = Pair::new(42);
    let wiring = Wiring { min_rnr_timer: 20, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    let near = pair.region(0, 100, ALL);
    for number in 0..100 {
        pair.send(0, qps[0], number, SendOp::Send { imm: None }, near.data(0, 100));
    }
    let early = pair.now + Duration::from_micros(300);
    while pair.now < early && pair.step() {}
    let counters = pair.sides[1].hca.counters();
    assert_eq!((counters.rnr_naks_sent, counters.sequence_naks_sent), (1, 0));
}

/// After a transition to the error state, a queue pair sends no packets, not even queued READ responses.
#[test]
fn queue_pair_in_error_sends_no_packets() {
    let mut pair = Pair::new(43);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 100_000, ALL), pair.region(1, 100_000, ALL));
    pair.send(0, qps[0], 1, SendOp::Read { from: far.remote(0) }, near.data(0, 100_000));
    // The responder executes the request, but fails before it sends the response.
    let mut buffer = vec![0; ib_hca::MAX_PACKET];
    let sent =
        pair.sides[0].hca.poll_transmit(pair.now, &mut buffer).expect("side 0 sends the READ");
    let route =
        Route { source: sent.route.destination, destination: sent.route.source, ..sent.route };
    let now = pair.now;
    pair.sides[1].hca.handle(now, &route, &buffer[..sent.length]);
    pair.modify(1, qps[1], &QpAttr { qp_state: Some(QpState::Err), ..QpAttr::default() });
    assert_eq!(pair.sides[1].hca.poll_transmit(now, &mut buffer), None);
}

/// Lost responses are sent again in order, each in answer to its own repeated request.
#[test]
fn duplicates_of_several_requests_are_all_answered() {
    for lost in [true, false] {
        let mut pair = Pair::new(44);
        let wiring = Wiring { timeout: 14, ..Wiring::default() };
        let qps = pair.connect(&wiring);
        let (near, far) = (pair.region(0, 9000, ALL), pair.region(1, 9000, ALL));
        pair.receive(1, qps[1], 7, far.data(0, 100));
        let mut left = if lost { 6 } else { 0 };
        pair.tap = Box::new(move |side, _| {
            let goes = side == 0 || left == 0;
            left -= u32::from(!goes);
            goes
        });
        pair.send(0, qps[0], 1, SendOp::Read { from: far.remote(0) }, near.data(0, 5000));
        pair.send(0, qps[0], 2, SendOp::Send { imm: None }, near.data(0, 100));
        let start = pair.now;
        pair.run();
        let done = pair.done(0);
        assert_eq!(done.len(), 2);
        assert!(done.iter().all(|wc| wc.status == WcStatus::Success), "{done:?}");
        // The READ and the SEND complete after a single ACK timeout of 67 ms.
        assert!(pair.now.since(start) < Duration::from_millis(140), "{:?}", pair.now.since(start));
    }
}
