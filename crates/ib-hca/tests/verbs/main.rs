//! The semantics of verbs: two HCAs exchange packets over a simulated wire in virtual time.

mod abuse;
mod campaign;
mod exhaustion;
mod fast;
mod many;
mod pair;
mod programs;
mod queues;
mod retries;
mod states;
mod trace;
mod windows;
mod wire;

use ib_hca::{
    AccessFlags, AsyncEvent, Data, HcaEvent, QpState, QpType, SendOp, WcOpcode, WcStatus,
};
use ib_types::Mtu;
use pair::{Faults, Pair, Wiring};

const ALL: AccessFlags = AccessFlags::ALL;

fn pattern(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn messages_of_any_length_arrive_intact() {
    for mtu in Mtu::ALL {
        let size = mtu.bytes();
        for length in [0, 1, 3, 4, size - 1, size, size + 1, 3 * size, 10 * size + 7] {
            let mut pair = Pair::new(length as u64);
            let wiring = Wiring { mtu, ..Wiring::default() };
            let qps = pair.connect(&wiring);
            let (from, to) = (pair.region(0, 50_000, ALL), pair.region(1, 50_000, ALL));
            from.memory.write(5, &pattern(length, 1)).expect("the range is within the memory");
            pair.receive(1, qps[1], 7, to.data(9, length + 1));
            pair.send(0, qps[0], 3, SendOp::Send { imm: Some(0x0102_0304) }, from.data(5, length));
            pair.run();
            let (sent, got) = (pair.done(0), pair.done(1));
            assert_eq!((sent.len(), got.len()), (1, 1), "{mtu:?}, {length} bytes");
            assert_eq!((sent[0].wr_id, sent[0].status), (3, WcStatus::Success));
            assert_eq!((got[0].wr_id, got[0].status), (7, WcStatus::Success));
            assert_eq!((got[0].opcode, got[0].byte_len), (WcOpcode::Recv, length as u32));
            assert_eq!(got[0].imm_data, Some(0x0102_0304));
            assert_eq!(to.bytes(9, length), pattern(length, 1));
            assert_eq!(to.bytes(9 + length, 1), [0]);
        }
    }
}

#[test]
fn rdma_and_atomics_access_remote_memory() {
    let mut pair = Pair::new(1);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 20_000, ALL), pair.region(1, 20_000, ALL));
    near.memory.write(0, &pattern(9000, 5)).expect("the range is within the memory");
    pair.send(0, qps[0], 1, SendOp::Write { to: far.remote(100), imm: None }, near.data(0, 9000));
    pair.send(0, qps[0], 2, SendOp::Read { from: far.remote(50) }, near.data(10_000, 9000));
    pair.receive(1, qps[1], 9, Data::None);
    let imm = Some(77);
    pair.send(0, qps[0], 3, SendOp::Write { to: far.remote(0), imm }, near.data(0, 40));
    let at = far.remote(16_000);
    pair.send(0, qps[0], 4, SendOp::FetchAdd { at, add: 5 }, near.data(19_500, 8));
    let swap = SendOp::CompareSwap { at, compare: 5, swap: 0x1234 };
    pair.send(0, qps[0], 5, swap, near.data(19_508, 8));
    pair.run();
    let done = pair.done(0);
    let ids: Vec<(u64, WcStatus)> = done.iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(ids, (1..=5).map(|id| (id, WcStatus::Success)).collect::<Vec<_>>());
    let got = pair.done(1);
    assert_eq!((got.len(), got[0].wr_id, got[0].imm_data), (1, 9, Some(77)));
    assert_eq!((got[0].opcode, got[0].byte_len), (WcOpcode::RecvRdmaWithImm, 40));
    assert_eq!(far.bytes(100, 9000), pattern(9000, 5));
    assert_eq!(far.bytes(0, 40), pattern(40, 5));
    let mut read = vec![0; 50];
    read.extend(&pattern(9000, 5)[..8950]);
    assert_eq!(near.bytes(10_000, 9000), read);
    assert_eq!(near.bytes(19_500, 8), 0_u64.to_ne_bytes());
    assert_eq!(near.bytes(19_508, 8), 5_u64.to_ne_bytes());
    assert_eq!(far.bytes(16_000, 8), 0x1234_u64.to_ne_bytes());
}

#[test]
fn loss_reordering_and_duplicates_are_recovered() {
    for seed in 0..200 {
        let mut pair = Pair::new(seed);
        pair.faults = [Faults { loss: 0.05, double: 0.05, late: 0.1, ..Faults::default() }; 2];
        let qps = pair.connect(&Wiring::default());
        let (near, far) = (pair.region(0, 200_000, ALL), pair.region(1, 200_000, ALL));
        near.memory.write(0, &pattern(60_000, 3)).expect("the range is within the memory");
        far.memory.write(100_000, &pattern(60_000, 4)).expect("the range is within the memory");
        for number in 0..4 {
            pair.receive(1, qps[1], number, far.data(60_000 + number as usize * 5000, 5000));
        }
        let to = far.remote(0);
        pair.send(0, qps[0], 1, SendOp::Write { to, imm: None }, near.data(0, 60_000));
        let from = far.remote(100_000);
        pair.send(0, qps[0], 2, SendOp::Read { from }, near.data(100_000, 60_000));
        for number in 0..4 {
            let data = near.data(number as usize * 5000, 5000);
            pair.send(0, qps[0], 3 + number, SendOp::Send { imm: None }, data);
            let at = far.remote(180_000);
            let back = near.data(180_000 + 8 * number as usize, 8);
            pair.send(0, qps[0], 10 + number, SendOp::FetchAdd { at, add: 1 << number }, back);
        }
        pair.run();
        let done: Vec<(u64, WcStatus)> =
            pair.done(0).iter().map(|wc| (wc.wr_id, wc.status)).collect();
        let expected = [1, 2, 3, 10, 4, 11, 5, 12, 6, 13].map(|id| (id, WcStatus::Success));
        assert_eq!(done, expected, "seed {seed}");
        assert_eq!(pair.done(1).len(), 4, "seed {seed}");
        assert_eq!(far.bytes(0, 60_000), pattern(60_000, 3), "seed {seed}");
        assert_eq!(near.bytes(100_000, 60_000), pattern(60_000, 4), "seed {seed}");
        assert_eq!(far.bytes(60_000, 20_000), pattern(20_000, 3), "seed {seed}");
        // Each atomic was executed once, in the order of the requests.
        assert_eq!(far.bytes(180_000, 8), 15_u64.to_ne_bytes(), "seed {seed}");
        for (number, before) in [0_u64, 1, 3, 7].into_iter().enumerate() {
            assert_eq!(near.bytes(180_000 + 8 * number, 8), before.to_ne_bytes(), "seed {seed}");
        }
    }
}

#[test]
fn rnr_retries_wait_for_a_receive_up_to_their_limit() {
    let mut pair = Pair::new(5);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 100, ALL), pair.region(1, 100, ALL));
    near.memory.write(0, b"late").expect("the range is within the memory");
    pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, 4));
    for _ in 0..40 {
        pair.step();
    }
    assert!(pair.sides[0].hca.counters().rnr_naks_received > 3);
    pair.receive(1, qps[1], 2, far.data(0, 100));
    pair.run();
    assert_eq!(pair.done(0)[0].status, WcStatus::Success);
    assert_eq!((pair.done(1)[0].byte_len, far.bytes(0, 4)), (4, b"late".to_vec()));
    // The request fails when its RNR retries are exhausted.
    let mut pair = Pair::new(5);
    let qps = pair.connect(&Wiring { rnr_retry: 3, ..Wiring::default() });
    let near = pair.region(0, 100, ALL);
    pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, 4));
    pair.send(0, qps[0], 2, SendOp::Send { imm: None }, near.data(0, 4));
    pair.run();
    let done: Vec<_> = pair.done(0).iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(done, [(1, WcStatus::RnrRetryExcErr), (2, WcStatus::WrFlushErr)]);
    assert_eq!(pair.sides[1].hca.counters().rnr_naks_sent, 4);
    assert_eq!(pair.state_of(0, qps[0]), QpState::Err);
}

#[test]
fn silent_peer_exhausts_retries_and_flushes_requests() {
    let mut pair = Pair::new(6);
    let qps = pair.connect(&Wiring { retry_cnt: 2, ..Wiring::default() });
    let near = pair.region(0, 5000, ALL);
    pair.tap = Box::new(|from, _| from == 1);
    pair.receive(0, qps[0], 9, near.data(0, 10));
    for id in 1..=3 {
        pair.send(0, qps[0], id, SendOp::Send { imm: None }, near.data(0, 5000));
    }
    pair.run();
    let done: Vec<_> = pair.done(0).iter().map(|wc| (wc.wr_id, wc.status)).collect();
    let flushed = WcStatus::WrFlushErr;
    let expected = [(1, WcStatus::RetryExcErr), (2, flushed), (3, flushed), (9, flushed)];
    assert_eq!(done, expected);
    assert_eq!(pair.sides[0].hca.counters().timeouts, 3);
    // Requests posted in the error state are flushed immediately.
    pair.send(0, qps[0], 4, SendOp::Send { imm: None }, near.data(0, 1));
    pair.receive(0, qps[0], 5, near.data(0, 1));
    pair.run();
    let done: Vec<_> = pair.done(0).iter().map(|wc| (wc.wr_id, wc.status)).collect();
    assert_eq!(done, [(4, flushed), (5, flushed)]);
}

#[test]
fn lost_uc_and_ud_messages_are_not_recovered() {
    let mut pair = Pair::new(8);
    let wiring = Wiring { qp_type: QpType::Uc, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    let (near, far) = (pair.region(0, 20_000, ALL), pair.region(1, 60_000, ALL));
    near.memory.write(0, &pattern(5000, 1)).expect("the range is within the memory");
    let mut seen = 0;
    // The second packet of the second message is lost.
    pair.tap = Box::new(move |from, _| {
        seen += usize::from(from == 0);
        seen != 7
    });
    for id in 0..3 {
        pair.receive(1, qps[1], id, far.data(id as usize * 5000, 5000));
    }
    for id in 0..3 {
        pair.send(0, qps[0], id, SendOp::Send { imm: Some(id as u32) }, near.data(0, 5000));
    }
    pair.run();
    assert_eq!(pair.done(0).len(), 3);
    let got: Vec<_> = pair.done(1).iter().map(|wc| (wc.wr_id, wc.imm_data)).collect();
    assert_eq!(
        got,
        [(0, Some(0)), (1, Some(2))],
        "the next message uses the receive of the lost message"
    );
    assert_eq!(far.bytes(5000, 5000), pattern(5000, 1));

    let mut pair = Pair::new(9);
    let wiring = Wiring { qp_type: QpType::Ud, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    let (near, far) = (pair.region(0, 5000, ALL), pair.region(1, 20_000, ALL));
    near.memory.write(0, &pattern(4096, 1)).expect("the range is within the memory");
    let route = pair.route(0);
    let pd = pair.sides[0].pd;
    let ah = pair.sides[0].hca.create_ah(pd, route).expect("the route starts at the port");
    let to = ib_hca::UdDestination {
        ah,
        remote_qpn: pair.number_of(1, qps[1]),
        remote_qkey: ib_types::QKey(0x1111),
    };
    pair.receive(1, qps[1], 1, far.data(0, 5000));
    pair.receive(1, qps[1], 2, far.data(5000, 44));
    for (id, length) in [(1, 4096), (2, 5), (3, 4), (5, 4)] {
        pair.send(0, qps[0], id, SendOp::SendDatagram { to, imm: Some(6) }, near.data(0, length));
    }
    let other = ib_hca::UdDestination { remote_qkey: ib_types::QKey(0x2222), ..to };
    pair.send(0, qps[0], 4, SendOp::SendDatagram { to: other, imm: None }, near.data(0, 4));
    pair.run();
    assert_eq!(pair.done(0).len(), 5);
    // The second datagram is too long for its receive, which remains for the next datagram (IBTA volume 1, 9.9.6).
    let got: Vec<_> = pair.done(1).iter().map(|wc| (wc.wr_id, wc.status, wc.byte_len)).collect();
    assert_eq!(got, [(1, WcStatus::Success, 4136), (2, WcStatus::Success, 44)]);
    assert_eq!(far.bytes(40, 4096), pattern(4096, 1));
    // The receive buffer holds an IPv4 header with a valid checksum. The lengths are those of the IPv4, UDP, BTH, DETH
    // and ImmDt headers, the payload and the ICRC.
    let header = far.bytes(20, 20);
    let words = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let words: Vec<u32> = words.collect();
    let total = 20 + 8 + 12 + 8 + 4 + 4096 + 4;
    assert_eq!((words[0] >> 8, words[1], words.iter().sum::<u32>() % 0xffff), (0x45, total, 0));
    let counters = pair.sides[1].hca.counters();
    assert_eq!(counters.dropped(ib_hca::DropReason::QKey), 1);
    assert_eq!(counters.dropped(ib_hca::DropReason::NoReceive), 1);
    assert_eq!(counters.dropped(ib_hca::DropReason::NoRoom), 1);
}

/// Number of random programs to run: `IBFABRIC_PROGRAMS`, by default 1000.
fn programs() -> u64 {
    std::env::var("IBFABRIC_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

#[test]
fn random_programs_match_the_model() {
    for seed in 0..programs() {
        let seen = programs::run(seed);
        if seed % 10 == 0 {
            assert_eq!(programs::run(seed), seen, "seed {seed}: a second run has another result");
        }
    }
}

/// Writes 64 messages of 1 MiB, of which 4 are in flight at a time, over 100 Gbit/s with a delay of 2 µs per direction.
/// Returns the goodput in Gbit/s.
fn goodput(loss: f64, seed: u64) -> f64 {
    const LENGTH: usize = 1 << 20;
    let mut pair = Pair::new(seed);
    pair.faults = [Faults { loss, ..Faults::default() }; 2];
    let wiring = Wiring { mtu: Mtu::B4096, timeout: 8, ..Wiring::default() };
    let qps = pair.connect(&wiring);
    let (near, far) = (pair.region(0, LENGTH, ALL), pair.region(1, LENGTH, ALL));
    let to = far.remote(0);
    let (mut posted, mut done, start) = (0, 0, pair.now);
    while done < 64 {
        while posted < 64 && posted - done < 4 {
            let op = SendOp::Write { to, imm: None };
            pair.send(0, qps[0], posted, op, near.data(0, LENGTH));
            posted += 1;
        }
        assert!(pair.step());
        for wc in pair.done(0) {
            assert_eq!(wc.status, WcStatus::Success);
            done += 1;
        }
    }
    (64 * LENGTH * 8) as f64 / (pair.now - start).as_nanos() as f64
}

#[test]
fn one_percent_loss_halves_the_goodput_at_most() {
    let whole = goodput(0.0, 1);
    assert!(whole > 90.0, "the goodput is {whole} of 100 Gbit/s");
    for seed in 0..5 {
        let with_loss = goodput(0.01, seed);
        assert!(
            with_loss > whole / 2.0,
            "the goodput is {with_loss} Gbit/s with loss, {whole} without"
        );
    }
}

#[test]
fn port_state_changes_cause_one_event_each() {
    let mut pair = Pair::new(10);
    let hca = &mut pair.sides[0].hca;
    let mut set_active = |is_active| {
        hca.set_port_active(is_active);
        assert_eq!(hca.is_port_active(), is_active);
        hca.poll_event()
    };
    assert!(set_active(true).is_none());
    assert!(matches!(set_active(false), Some(HcaEvent::Async(AsyncEvent::PortError))));
    assert!(set_active(false).is_none());
    assert!(matches!(set_active(true), Some(HcaEvent::Async(AsyncEvent::PortActive))));
}
