//! Every packet that two HCAs exchange is parsed by ib-wire, and rebuilt byte by byte.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use ib_hca::{
    AccessFlags, Data, QpType, Registration, SendFlags, SendOp, SendWr, UdDestination, WcStatus,
};
use ib_types::{Mtu, QKey};
use ib_wire::packet::{Builder, Opcode, Operation, Packet, RoceAddresses, RoceNetwork, Transport};

use crate::pair::{Pair, Wiring};

const ALL: AccessFlags = AccessFlags::ALL;

/// The packets of a run, each with its sending side.
type Packets = Rc<RefCell<Vec<(usize, Vec<u8>)>>>;

/// Records all packets that a pair exchanges from now on.
fn record(pair: &mut Pair) -> Packets {
    let packets = Packets::default();
    let noted = Rc::clone(&packets);
    pair.tap = Box::new(move |from, bytes| {
        noted.borrow_mut().push((from, bytes.clone()));
        true
    });
    packets
}

/// Executes every operation of RC, with messages of 0 bytes, of one packet and of several packets.
fn reliable(pair: &mut Pair) {
    let mtu = 256;
    let qps = pair.connect(&Wiring { mtu: Mtu::B256, ..Wiring::default() });
    let (near, far) = (pair.region(0, 4096, ALL), pair.region(1, 4096, ALL));
    near.memory.write(0, &[0xa5; 2000]).expect("the range is within the memory");
    for (number, length) in [0, 1, 7, mtu, 3 * mtu - 2].into_iter().enumerate() {
        let (to, data) = (far.remote(0), near.data(0, length));
        for imm in [None, Some(0xdead_beef)] {
            pair.send(0, qps[0], 1, SendOp::Write { to, imm }, data.clone());
            pair.send(0, qps[0], 1, SendOp::Send { imm }, data.clone());
        }
        pair.send(0, qps[0], 1, SendOp::Read { from: to }, data.clone());
        // A key of side 1, which the message invalidates.
        let side = &mut pair.sides[1];
        let mr = side.hca.alloc_mr(side.pd).expect("the protection domain exists");
        let memory = far.memory.clone();
        let key = number as u8;
        let with = Registration { mr, key, memory, offset: 0, length: 8, iova: 0, access: ALL };
        let rkey = pair.sides[1].hca.key(mr).expect("the MR exists") & !0xff | u32::from(key);
        pair.send(1, qps[1], 2, SendOp::Register(Box::new(with)), Data::None);
        pair.send(0, qps[0], 1, SendOp::SendInvalidate { rkey }, data);
        // The first packets find no receive, and an RNR NAK is sent.
        pair.step();
        pair.step();
        for _ in 0..4 {
            pair.receive(1, qps[1], 3, far.data(0, 1000));
        }
        pair.run();
    }
    let at = far.remote(0);
    pair.send(0, qps[0], 1, SendOp::FetchAdd { at, add: 5 }, near.data(0, 8));
    pair.send(0, qps[0], 1, SendOp::CompareSwap { at, compare: 5, swap: 7 }, near.data(0, 8));
    pair.run();
    for side in [0, 1] {
        for wc in pair.done(side) {
            assert_eq!(wc.status, WcStatus::Success, "side {side}: {wc:?}");
        }
    }
    // An invalid R_Key fails the queue pair.
    let to = ib_hca::RemoteAddress { rkey: far.key ^ 0x100, ..at };
    pair.send(0, qps[0], 1, SendOp::Write { to, imm: None }, near.data(0, 8));
    pair.run();
    assert_eq!(pair.done(0)[0].status, WcStatus::RemAccessErr);
}

/// Executes every operation of UC and UD.
fn unreliable(pair: &mut Pair) {
    let wiring = Wiring { qp_type: QpType::Uc, mtu: Mtu::B256, ..Wiring::default() };
    let connected = pair.connect(&wiring);
    let datagrams = pair.connect(&Wiring { qp_type: QpType::Ud, ..wiring });
    let (near, far) = (pair.region(0, 4096, ALL), pair.region(1, 4096, ALL));
    let remote_qpn = pair.number_of(1, datagrams[1]);
    let (route, pd) = (pair.route(0), pair.sides[0].pd);
    let ah = pair.sides[0].hca.create_ah(pd, route).expect("the route starts at the port");
    let there = UdDestination { ah, remote_qpn, remote_qkey: QKey(0x1111) };
    for length in [0, 3, 256, 700] {
        for imm in [None, Some(7)] {
            let data = near.data(0, length);
            for qp in [connected[1], datagrams[1]] {
                pair.receive(1, qp, 1, far.data(0, 2000));
                pair.receive(1, qp, 1, far.data(0, 2000));
            }
            let to = far.remote(0);
            pair.send(0, connected[0], 1, SendOp::Send { imm }, data.clone());
            pair.send(0, connected[0], 1, SendOp::Write { to, imm }, data.clone());
            let flags = SendFlags { solicited: true, ..SendFlags::default() };
            let op = SendOp::SendDatagram { to: there, imm };
            pair.post(0, datagrams[0], SendWr { wr_id: 1, op, data, flags });
            pair.run();
        }
    }
}

/// Returns an IPv4 and an IPv6 header, both with UDP headers, for the packets of a side.
fn networks(from: usize) -> [RoceNetwork; 2] {
    let host = |side: usize| 1 + side as u8;
    let (source, destination) = (host(from), host(1 - from));
    let v4 = RoceAddresses::V4 {
        source: [192, 0, 2, source].into(),
        destination: [192, 0, 2, destination].into(),
        identification: 0,
        fragment: 0x4000,
    };
    let v6 = |host: u8| [0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(host)].into();
    let v6 = RoceAddresses::V6 { source: v6(source), destination: v6(destination) };
    let destination_port = RoceNetwork::PORT;
    [v4, v6].map(|addresses| RoceNetwork { addresses, source_port: 0xc123, destination_port })
}

#[test]
fn every_packet_is_rebuilt_byte_by_byte() {
    let mut pair = Pair::new(77);
    let packets = record(&mut pair);
    reliable(&mut pair);
    unreliable(&mut pair);
    let mut seen = BTreeSet::new();
    let mut syndromes = BTreeSet::new();
    for (from, bytes) in packets.borrow().iter() {
        for network in networks(*from) {
            let whole = [&bytes[..], &network.icrc(bytes).to_be_bytes()].concat();
            let packet = Packet::parse_roce(&whole).expect("the packet is valid");
            assert_eq!(packet.check_roce_icrc(&network), Ok(()));
            let mut again = vec![0xee; whole.len()];
            let length = Builder::from_packet(&packet).emit_roce(&network, &mut again);
            assert_eq!((length, &again), (Ok(whole.len()), &whole), "{}", packet.bth().opcode);
            seen.insert(packet.bth().opcode);
            syndromes.extend(packet.aeth().map(|aeth| aeth.syndrome.0 >> 5));
        }
    }
    let all = |transport: Transport| {
        let codes = (0..=u8::MAX).map(Opcode).filter(|code| code.is_known());
        codes.filter(move |code| code.transport() == transport)
    };
    let expected: BTreeSet<_> = all(Transport::Rc)
        .chain(all(Transport::Uc))
        .chain(all(Transport::Ud))
        // Only RD has RESYNC.
        .filter(|code| code.operation() != Some(Operation::Resync))
        .collect();
    assert_eq!(seen, expected);
    // The syndrome codes of ACK, RNR NAK and NAK.
    assert_eq!(syndromes, BTreeSet::from([0, 1, 3]));
}
