//! Tests of records of completed messages, packet traces, and selections of queue pairs.

use std::cell::RefCell;
use std::rc::Rc;

use ib_hca::trace::{
    PacketFilter, PacketReader, PacketTrace, Peer, Selection, TraceError, Trigger,
};
use ib_hca::{Data, DropReason, QpCap, QpId, QpType, SendOp};
use ib_link::{Direction, MessageBlock, PacketRecord, PacketSource};
use ib_types::{Mtu, Qpn};
use ib_wire::packet::{Bth, Opcode, Operation, Position, Transport};

use super::ALL;
use super::pair::{Faults, Pair, Wiring};

fn blocks(pair: &Pair, side: usize, qp: QpId) -> Vec<MessageBlock> {
    let (found, lost) = pair.sides[side].hca.messages(qp).expect("the queue pair exists").since(0);
    assert_eq!(lost, 0);
    found
}

fn packets(reader: &mut PacketReader) -> Vec<(PacketRecord, Vec<u8>)> {
    let mut found = Vec::new();
    let mut bytes = Vec::new();
    while let Some(record) = reader.next_packet(&mut bytes) {
        found.push((record, bytes.clone()));
    }
    found
}

#[test]
fn command_blocks_exist_at_both_ends() {
    let mut pair = Pair::new(3);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 20_000, ALL), pair.region(1, 20_000, ALL));
    pair.receive(1, qps[1], 70, far.data(0, 5000));
    pair.receive(1, qps[1], 71, Data::None);
    let to = far.remote(0);
    pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, 5000));
    pair.send(0, qps[0], 2, SendOp::Write { to, imm: None }, near.data(0, 3000));
    pair.send(0, qps[0], 3, SendOp::Read { from: to }, near.data(0, 2500));
    pair.send(0, qps[0], 4, SendOp::Write { to, imm: Some(1) }, near.data(0, 0));
    pair.send(0, qps[0], 5, SendOp::FetchAdd { at: to, add: 1 }, near.data(0, 8));
    pair.run();
    let asked = blocks(&pair, 0, qps[0]);
    let seen: Vec<_> = asked
        .iter()
        .map(|it| (it.wr_id, it.operation, it.length, it.packets, it.direction))
        .collect();
    let send = Direction::Send;
    let expected = [
        (1, "send", 5000, 5, send),
        (2, "rdma_write", 3000, 3, send),
        (3, "rdma_read", 2500, 3, send),
        (4, "rdma_write", 0, 1, send),
        (5, "fetch_add", 8, 1, send),
    ];
    assert_eq!(seen, expected);
    let served = blocks(&pair, 1, qps[1]);
    let seen: Vec<_> =
        served.iter().map(|it| (it.wr_id, it.operation, it.length, it.packets)).collect();
    let expected = [
        (70, "recv", 5000, 5),
        (0, "rdma_write", 3000, 3),
        (0, "rdma_read", 2500, 3),
        (71, "recv_rdma_with_imm", 0, 1),
        (0, "fetch_add", 8, 1),
    ];
    assert_eq!(seen, expected);
    for (one, other) in asked.iter().zip(&served) {
        assert_eq!((one.first, one.status, other.status), (other.first, "success", "success"));
        assert!(one.begin <= one.started && one.started < other.started, "{one:?} {other:?}");
        assert!(other.started <= other.end && other.end < one.end, "{one:?} {other:?}");
    }
}

#[test]
fn command_blocks_of_failed_messages_have_their_status() {
    let mut pair = Pair::new(4);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 9000, ALL), pair.region(1, 100, ALL));
    pair.send(0, qps[0], 1, SendOp::Write { to: far.remote(50), imm: None }, near.data(0, 9000));
    pair.send(0, qps[0], 2, SendOp::Send { imm: None }, near.data(0, 10));
    pair.run();
    let found: Vec<_> = blocks(&pair, 0, qps[0]).iter().map(|it| (it.wr_id, it.status)).collect();
    assert_eq!(found, [(1, "rem_access_err"), (2, "wr_flush_err")]);
}

#[test]
fn recorded_packets_equal_those_on_the_wire() {
    for payload in [0, 64, 1500, 4096] {
        let mut pair = Pair::new(5);
        let wiring = Wiring { mtu: Mtu::B1024, ..Wiring::default() };
        let qps = pair.connect(&wiring);
        let (near, far) = (pair.region(0, 20_000, ALL), pair.region(1, 20_000, ALL));
        near.memory.fill(0, 20_000, 0x5a).expect("the range is within the memory");
        let options = PacketTrace { payload, ..PacketTrace::default() };
        let mut readers = [0, 1].map(|side: usize| {
            let hca = &mut pair.sides[side].hca;
            hca.trace_packets(qps[side], options.clone()).expect("the queue pair is not traced")
        });
        let wire = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&wire);
        pair.tap = Box::new(move |side, bytes| {
            seen.borrow_mut().push((side, bytes.clone()));
            true
        });
        pair.receive(1, qps[1], 70, far.data(0, 10_000));
        let to = far.remote(0);
        pair.send(0, qps[0], 1, SendOp::Send { imm: None }, near.data(0, 10_000));
        pair.send(0, qps[0], 2, SendOp::Read { from: to }, near.data(0, 3000));
        pair.send(0, qps[0], 3, SendOp::FetchAdd { at: to, add: 1 }, near.data(0, 8));
        pair.run();
        for (side, reader) in readers.iter_mut().enumerate() {
            let found = packets(reader);
            assert_eq!((reader.overwritten().all(), reader.noted().all()), (0, found.len() as u64));
            for direction in [Direction::Send, Direction::Receive] {
                let from = if direction == Direction::Send { side } else { 1 - side };
                let wire = wire.borrow();
                let sent: Vec<_> = wire.iter().filter(|(by, _)| *by == from).collect();
                let kept: Vec<_> =
                    found.iter().filter(|(record, _)| record.direction == direction).collect();
                assert_eq!(sent.len(), kept.len());
                let mut left = 0;
                for ((_, sent), (record, kept)) in sent.iter().zip(kept) {
                    assert_eq!(record.length as usize, sent.len());
                    assert_eq!((record.dropped, record.is_repeated), (None, false));
                    assert_eq!(sent[..kept.len()], kept[..]);
                    let opcode =
                        Bth::parse(sent.first_chunk().expect("a packet starts with a BTH")).opcode;
                    let headers =
                        Bth::LENGTH + opcode.headers().expect("the opcode is known").length();
                    let data = sent.len() - headers;
                    let position = opcode.operation().expect("the opcode is known").position();
                    if matches!(position, Position::First | Position::Only) {
                        left = usize::from(payload);
                    }
                    let part = data.min(left);
                    left -= part;
                    assert_eq!(kept.len(), headers + part);
                }
            }
        }
    }
}

#[test]
fn drops_and_retransmissions_are_marked_in_the_trace() {
    let mut pair = Pair::new(6);
    pair.faults = [Faults { loss: 0.03, double: 0.05, late: 0.05, ..Faults::default() }; 2];
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 300_000, ALL), pair.region(1, 300_000, ALL));
    let mut readers = [0, 1].map(|side: usize| {
        let hca = &mut pair.sides[side].hca;
        hca.trace_packets(qps[side], PacketTrace::default()).expect("the queue pair is not traced")
    });
    for number in 0..20 {
        let op = SendOp::Write { to: far.remote(0), imm: None };
        pair.send(0, qps[0], number, op, near.data(0, 300_000 / (number as usize + 1)));
    }
    pair.run();
    for (side, reader) in readers.iter_mut().enumerate() {
        let found = packets(reader);
        let counters = pair.sides[side].hca.counters();
        assert_eq!((reader.overwritten().all(), reader.noted().all()), (0, found.len() as u64));
        let count = |direction| {
            found.iter().filter(|(record, _)| record.direction == direction).count() as u64
        };
        assert_eq!(count(Direction::Send), counters.sent_packets);
        assert_eq!(count(Direction::Receive), counters.received_packets);
        let repeated = found.iter().filter(|(record, _)| record.is_repeated).count() as u64;
        assert_eq!(repeated, counters.retransmitted, "side {side}");
        for why in DropReason::ALL {
            let dropped = found.iter().filter(|(it, _)| it.dropped == Some(why.name())).count();
            assert_eq!(dropped as u64, counters.dropped(why), "side {side}: {why}");
        }
    }
    let counters = [0, 1].map(|side: usize| pair.sides[side].hca.counters().clone());
    assert!(counters[0].retransmitted > 0 && counters[1].dropped(DropReason::Duplicate) > 0);
}

#[test]
fn filter_and_payload_can_be_changed_during_a_trace() {
    let mut pair = Pair::new(7);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 20_000, ALL), pair.region(1, 20_000, ALL));
    let filter = PacketFilter { direction: Some(Direction::Receive), ..PacketFilter::default() };
    let options = PacketTrace { filter, ..PacketTrace::default() };
    let mut reader =
        pair.sides[0].hca.trace_packets(qps[0], options.clone()).expect("the options are valid");
    let write = |pair: &mut Pair| {
        let op = SendOp::Write { to: far.remote(0), imm: None };
        pair.send(0, qps[0], 1, op, near.data(0, 3000));
        pair.run();
    };
    write(&mut pair);
    let acks = packets(&mut reader);
    assert!(acks.iter().all(|(record, _)| record.direction == Direction::Receive));
    assert_eq!(acks.len(), 1);
    let opcode = |operation| Opcode::new(Transport::Rc, operation).expect("the opcode is known");
    let opcodes = vec![opcode(Operation::WriteFirst), opcode(Operation::WriteLast)];
    let filter = PacketFilter { opcodes, ..PacketFilter::default() };
    let changed = PacketTrace { payload: 10, filter, ..options };
    let hca = &mut pair.sides[0].hca;
    hca.change_trace(qps[0], changed).expect("the queue pair is traced");
    write(&mut pair);
    let found = packets(&mut reader);
    let lengths: Vec<_> = found.iter().map(|(_, bytes)| bytes.len()).collect();
    // The first packet has 28 bytes of headers and 10 recorded bytes of payload. The last packet has 12 bytes of
    // headers.
    assert_eq!(lengths, [28 + 10, 12]);
    pair.sides[0].hca.end_trace(qps[0]).expect("the queue pair is traced");
    write(&mut pair);
    assert_eq!((packets(&mut reader).len(), reader.has_ended()), (0, true));
    assert_eq!(reader.noted().all(), 3);
}

#[test]
fn trigger_ends_the_trace_with_the_packets_before_it() {
    let mut pair = Pair::new(8);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 9000, ALL), pair.region(1, 9000, ALL));
    let options = PacketTrace {
        ring_bytes: 64 << 10,
        trigger: Some((Trigger::Error, 0)),
        ..PacketTrace::default()
    };
    let mut reader =
        pair.sides[0].hca.trace_packets(qps[0], options).expect("the options are valid");
    for number in 0..100 {
        let op = SendOp::Write { to: far.remote(0), imm: None };
        pair.send(0, qps[0], number, op, near.data(0, 9000));
        pair.run();
    }
    // A WRITE beyond the region fails the queue pair.
    let op = SendOp::Write { to: far.remote(8000), imm: None };
    pair.send(0, qps[0], 100, op, near.data(0, 9000));
    pair.run();
    assert!(reader.has_ended());
    let found = packets(&mut reader);
    assert_eq!(found.len() as u64 + reader.overwritten().all(), reader.noted().all());
    assert!(reader.overwritten().all() > 500 && found.len() > 20, "{}", found.len());
    let (last, bytes) = found.last().expect("packets were recorded");
    // The last recorded packet is the NAK that has failed the queue pair.
    assert_eq!(last.direction, Direction::Receive);
    let bth = Bth::parse(bytes.first_chunk().expect("a packet starts with a BTH"));
    assert_eq!(bth.opcode.operation(), Some(Operation::Acknowledge));
}

#[test]
fn invalid_trace_options_are_refused() {
    let mut pair = Pair::new(9);
    let qps = pair.connect(&Wiring::default());
    let hca = &mut pair.sides[0].hca;
    let wrong = |hca: &mut ib_hca::Hca, options| hca.trace_packets(qps[0], options).err();
    let usual = PacketTrace::default();
    let long = PacketTrace { payload: 4097, ..usual.clone() };
    assert_eq!(wrong(hca, long), Some(TraceError::Payload(4097)));
    for ring_bytes in [0, 1000, 32 << 10, 100_000, 2 << 30] {
        let options = PacketTrace { ring_bytes, ..usual.clone() };
        assert_eq!(wrong(hca, options), Some(TraceError::Ring(ring_bytes)));
    }
    assert_eq!(hca.end_trace(qps[0]), Err(TraceError::NotTraced));
    assert_eq!(hca.change_trace(qps[0], usual.clone()), Err(TraceError::NotTraced));
    let reader = hca.trace_packets(qps[0], usual.clone()).expect("the options are valid");
    assert_eq!(wrong(hca, usual.clone()), Some(TraceError::Traced));
    hca.destroy_qp(qps[0]).expect("the queue pair exists");
    assert_eq!(wrong(hca, usual), Some(TraceError::NoSuchQp));
    assert!(reader.has_ended(), "the trace ends with its queue pair");
}

/// However late the reader is, the packets it reads and the overwritten packets add up to all packets.
#[test]
fn overwritten_packets_are_counted_exactly() {
    let mut pair = Pair::new(10);
    let qps = pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 9000, ALL), pair.region(1, 9000, ALL));
    let options = PacketTrace { payload: 64, ring_bytes: 64 << 10, ..PacketTrace::default() };
    let mut reader =
        pair.sides[0].hca.trace_packets(qps[0], options).expect("the options are valid");
    let mut read = 0;
    for number in 0..2000 {
        let op = SendOp::Write { to: far.remote(0), imm: None };
        pair.send(0, qps[0], number, op, near.data(0, 9000));
        pair.run();
        let at_once = pair.rng.below(4);
        let mut bytes = Vec::new();
        for _ in 0..at_once {
            read += u64::from(reader.next_packet(&mut bytes).is_some());
        }
    }
    let counters = pair.sides[0].hca.counters();
    let all = counters.sent_packets + counters.received_packets;
    pair.sides[0].hca.end_trace(qps[0]).expect("the queue pair is traced");
    read += packets(&mut reader).len() as u64;
    assert_eq!((read + reader.overwritten().all(), reader.noted().all()), (all, all));
    assert!(reader.overwritten().all() > 0);
}

/// Selections by queue pair number, by peer and by service ID include present and later queue pairs.
#[test]
fn selection_includes_present_and_later_queue_pairs() {
    let mut pair = Pair::new(11);
    let qps: Vec<_> = (0..50).map(|_| pair.connect(&Wiring::default())).collect();
    let hca = &mut pair.sides[0].hca;
    let number =
        |hca: &mut ib_hca::Hca, at: usize| hca.query_qp(qps[at][0]).expect("the QP exists").0;
    let one = Selection { qpns: vec![number(hca, 7)], ..Selection::default() };
    let first = hca.select(one).expect("the options are valid");
    let service = Selection { services: vec![0x106_4711], ..Selection::default() };
    let second = hca.select(service).expect("the options are valid");
    hca.set_service(qps[9][0], 0x106_4711).expect("the queue pair exists");
    let (found, reader) = hca.poll_selected().expect("a queue pair is selected");
    assert_eq!((found, reader.qpn()), (first, number(hca, 7)));
    let (found, reader) = hca.poll_selected().expect("a queue pair is selected");
    assert_eq!((found, reader.qpn()), (second, number(hca, 9)));
    assert!(hca.poll_selected().is_none());
    // No queue pair is connected to this peer yet.
    let elsewhere = Selection { peers: vec![Peer::Lid(0xbff)], ..Selection::default() };
    let third = hca.select(elsewhere).expect("the options are valid");
    let route = hca.query_qp(qps[3][0]).expect("the queue pair exists").2.route;
    let peer = Peer::Gid(route.destination);
    let there = Selection { peers: vec![peer], ..Selection::default() };
    let fourth = hca.select(there).expect("the options are valid");
    let chosen: Vec<_> = std::iter::from_fn(|| hca.poll_selected()).collect();
    // `third` and `fourth` include queue pair 1, which is traced only for `third`, the older selection.
    assert_eq!(chosen.iter().filter(|(id, _)| *id == third).count(), 1);
    assert_eq!(chosen.len(), 1 + 48);
    let changed = PacketTrace { payload: 0, ..PacketTrace::default() };
    hca.change_selection(first, &changed).expect("the selection exists");
    hca.deselect(first);
    assert_eq!(hca.change_selection(first, &changed), Err(TraceError::NotTraced));
    // When a selection is removed, each of its queue pairs is traced for the oldest remaining selection that includes
    // the queue pair.
    hca.deselect(second);
    let chosen: Vec<_> = std::iter::from_fn(|| hca.poll_selected()).collect();
    let numbers: Vec<_> = chosen.iter().map(|(id, reader)| (*id, reader.qpn())).collect();
    assert_eq!(numbers, [(fourth, number(hca, 7)), (fourth, number(hca, 9))]);
    let all = hca.select(Selection::default()).expect("the options are valid");
    assert!(hca.poll_selected().is_none(), "all queue pairs are traced already");
    hca.deselect(third);
    let (found, reader) = hca.poll_selected().expect("queue pair 1 is selected again");
    assert_eq!((found, reader.qpn()), (fourth, Qpn::GSI));
    hca.deselect(fourth);
    let chosen: Vec<_> = std::iter::from_fn(|| hca.poll_selected()).collect();
    assert!(chosen.iter().all(|(id, _)| *id == all));
    assert_eq!(chosen.len(), 1 + 50);
    // A queue pair created later is traced for the selection that includes all queue pairs.
    let later = pair.connect(&Wiring::default());
    let hca = &mut pair.sides[0].hca;
    let (found, reader) = hca.poll_selected().expect("the new queue pair is selected");
    assert_eq!((found, reader.qpn()), (all, hca.query_qp(later[0]).expect("the QP exists").0));
}

/// The loss of a packet in the network is recorded in the trace of its sender.
#[test]
fn network_loss_is_recorded_with_its_queue_pair() {
    let mut pair = Pair::new(12);
    let qps = pair.connect(&Wiring::default());
    pair.connect(&Wiring::default());
    let (near, far) = (pair.region(0, 9000, ALL), pair.region(1, 9000, ALL));
    let hca = &mut pair.sides[0].hca;
    let mut reader =
        hca.trace_packets(qps[0], PacketTrace::default()).expect("the options are valid");
    let sent = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&sent);
    pair.tap = Box::new(move |side, bytes| {
        if side == 0 {
            seen.borrow_mut().push(bytes.clone());
        }
        true
    });
    let op = SendOp::Write { to: far.remote(0), imm: None };
    pair.send(0, qps[0], 1, op, near.data(0, 3000));
    pair.run();
    let hca = &mut pair.sides[0].hca;
    let route = hca.query_qp(qps[0]).expect("the queue pair exists").2.route;
    let now = ib_types::Instant::from_nanos(5);
    let lost = sent.borrow()[1].clone();
    hca.note_lost(now, &route, &lost[..40], lost.len(), "s1:4: a cable was pulled");
    let (mut bytes, mut found) = (Vec::new(), Vec::new());
    while let Some(record) = reader.next_packet(&mut bytes) {
        found.push((record, bytes.clone(), reader.remark().to_owned()));
    }
    let posted = found.iter().filter(|(record, ..)| record.posted.is_some()).count();
    assert_eq!(posted, 1, "a message has a single post time");
    let (record, bytes, remark) = found.last().expect("packets were recorded");
    assert!(record.is_lost && record.direction == Direction::Send);
    assert_eq!((remark.as_str(), &bytes[..]), ("s1:4: a cable was pulled", &lost[..12]));
    assert_eq!(record.length as usize, lost.len());
}

/// Two queue pairs of an HCA start to send at the same time. The first one is traced if `trace` is given. Returns how
/// many packets the first one has sent when the second one has sent 2,000.
fn sent_beside_another(trace: Option<PacketTrace>) -> u32 {
    let mut pair = Pair::new(13);
    let cap = QpCap { max_send_wr: 2500, ..QpCap::default() };
    let wiring = Wiring { qp_type: QpType::Uc, mtu: Mtu::B4096, cap, ..Wiring::default() };
    let qps = [pair.connect(&wiring), pair.connect(&wiring)];
    let _reader = trace.map(|options| {
        pair.sides[0].hca.trace_packets(qps[0][0], options).expect("the queue pair is not traced")
    });
    let (near, far) = (pair.region(0, 4096, ALL), pair.region(1, 4096, ALL));
    let watched = pair.number_of(1, qps[0][1]);
    let counts = Rc::new(RefCell::new([0, 0]));
    let seen = Rc::clone(&counts);
    pair.tap = Box::new(move |_, bytes| {
        let [own, other] = &mut *seen.borrow_mut();
        let bth = bytes.first_chunk().map(Bth::parse).expect("a packet starts with a BTH");
        if *other < 2000 {
            *(if bth.destination == watched { own } else { other }) += 1;
        }
        true
    });
    for (number, [from, _]) in (0..2500).flat_map(|number| qps.map(|qps| (number, qps))) {
        let op = SendOp::Write { to: far.remote(0), imm: None };
        pair.send(0, from, number, op, near.data(0, 4096));
    }
    pair.run();
    let [own, other] = *counts.borrow();
    assert_eq!(other, 2000);
    own
}

/// A trace shortens only the bursts of the traced queue pair, in proportion to the recorded bytes.
#[test]
fn trace_costs_only_the_traced_queue_pair() {
    let keeping = |payload| Some(PacketTrace { payload, ..PacketTrace::default() });
    let alone = sent_beside_another(None);
    assert!((1984..=2016).contains(&alone), "{alone}");
    let (headers, all) = (sent_beside_another(keeping(64)), sent_beside_another(keeping(4096)));
    assert!((1800..1984).contains(&headers), "{headers}");
    assert!((1000..1800).contains(&all), "{all}");
}
