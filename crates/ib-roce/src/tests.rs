use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use ib_link::Route;
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_types::{Gid, Instant};
use proptest::prelude::*;

use super::*;
use crate::icrc::ICRC;

mod corruption;
mod refusals;

const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

fn options(address: IpAddr) -> RoceOptions {
    // The receive buffer has the maximum size that Linux allows for unprivileged processes.
    RoceOptions { port: 0, receive_buffer: 212_992, ..RoceOptions::new(address) }
}

/// Returns two sockets that send to each other.
fn pair(options: &RoceOptions) -> (RoceSocket, RoceSocket) {
    let mut pair = (RoceSocket::bind(options).unwrap(), RoceSocket::bind(options).unwrap());
    pair.0.sender.set_peer_port(pair.1.port());
    pair.1.sender.set_peer_port(pair.0.port());
    pair
}

fn route(own: IpAddr, peer: IpAddr) -> Route {
    let (source, destination) = (gid_of(own), gid_of(peer));
    Route { source, destination, is_global: true, ..Route::default() }
}

/// Returns a packet whose bytes depend on the packet's number.
fn packet(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number * 31 + at * 7 + at / 251) as u8).collect()
}

fn push(sender: &mut RoceSender, route: &Route, bytes: &[u8]) {
    let fill = |buffer: &mut [u8]| buffer.copy_from_slice(bytes);
    match sender.push(route, bytes.len(), fill) {
        Ok(()) => {}
        Err(error) => panic!("{error}: {:?}", sender.counters()),
    }
}

type Arrived = (Route, Vec<u8>, IcrcCheck);

/// Receives `count` packets.
fn take(socket: &mut RoceSocket, count: usize) -> Vec<Arrived> {
    let until = clock::now() + Duration::from_secs(10);
    let mut taken = Vec::new();
    while taken.len() < count && clock::now() < until {
        socket.wait(until, None).unwrap();
        while let Some(packet) = socket.receiver.receive().unwrap() {
            taken.push((*packet.route, packet.bytes.to_vec(), packet.icrc));
        }
    }
    assert_eq!(taken.len(), count, "{:?}", socket.counters());
    taken
}

#[test]
fn packets_arrive_intact_with_and_without_offloads() {
    let lengths = [12, 16, 4108, 4108, 4108, 20, 4108, 4144, 4144, 12, 12, 12, 256, 260, 4];
    for address in [V4, V6] {
        for (gso, gro) in [(true, true), (true, false), (false, true), (false, false)] {
            let (mut here, mut there) = pair(&RoceOptions { gso, gro, ..options(address) });
            assert_eq!((here.sender.gso(), here.receiver.gro()), (gso, gro));
            let route = route(address, address);
            let packets: Vec<Vec<u8>> = (lengths.iter().enumerate())
                .map(|(number, &length)| packet(number, length))
                .filter(|packet| packet.len() >= 12)
                .collect();
            for packet in &packets {
                push(&mut here.sender, &route, packet);
            }
            assert_eq!(here.sender.unsent(), packets.len());
            assert_eq!(here.sender.flush(), 0);
            let arrived = take(&mut there, packets.len());
            for ((arrived, sent), number) in arrived.iter().zip(&packets).zip(0..) {
                assert!(arrived.1 == *sent, "{address}, {gso}, {gro}: packet {number}");
                let expected = (gid_of(address), gid_of(address), 64);
                let Route { source, destination, hop_limit, .. } = arrived.0;
                assert_eq!((source, destination, hop_limit), expected);
                assert_eq!(arrived.0.source_port, here.port());
                match arrived.2 {
                    IcrcCheck::Verified => assert!(address.is_ipv6()),
                    IcrcCheck::ConsistentWithOwnId(id) => {
                        assert!(address.is_ipv4() && (gso || id == 0));
                    }
                    other => panic!("{other:?}"),
                }
            }
            let bytes = packets.iter().map(Vec::len).sum::<usize>() as u64;
            let (sent, received) = (here.counters().sent, there.counters().received);
            assert_eq!((sent.packets, sent.bytes), (packets.len() as u64, bytes));
            assert_eq!((received.packets, received.bytes), (packets.len() as u64, bytes));
            assert_eq!((received.bad_icrc, received.malformed, received.truncated), (0, 0, 0));
            // Sizes of the packets in each GSO datagram: 12 | 16 | 4108 4108 4108 20 | 4108 | 4144
            // 4144 12 | 12 12 | 256 | 260.
            assert_eq!(sent.batches, if gso { 8 } else { packets.len() as u64 });
            assert!(sent.errors.is_empty() && received.errors.is_empty());
        }
    }
}

#[test]
fn full_buffer_is_flushed_by_push() {
    for address in [V4, V6] {
        let (mut here, mut there) = pair(&options(address));
        let route = route(address, address);
        let packets: Vec<Vec<u8>> = (0..200).map(|number| packet(number, 4112)).collect();
        let mut arrived = Vec::new();
        for packet in &packets {
            push(&mut here.sender, &route, packet);
            // Receives between sends: the receive buffer of an unprivileged process cannot hold all
            // packets.
            while let Some(packet) = there.receiver.receive().unwrap() {
                arrived.push(packet.bytes.to_vec());
            }
        }
        assert!(here.counters().sent.packets > 100, "`push` did not flush the full send buffer");
        here.sender.flush();
        let rest = take(&mut there, packets.len() - arrived.len());
        arrived.extend(rest.into_iter().map(|arrived| arrived.1));
        assert!(arrived == packets);
        let batches = here.counters().sent.batches;
        assert!(batches <= 20, "{batches} batches");
    }
}

#[test]
fn routes_determine_source_addresses_and_may_alternate() {
    let hosts = [2, 3].map(|host| IpAddr::from([127, 0, 0, host]));
    let [mut first, mut second] = hosts.map(|host| RoceSocket::bind(&options(host)).unwrap());
    let open = options(Ipv4Addr::UNSPECIFIED.into());
    let mut here = RoceSocket::bind(&open).unwrap();
    let own = IpAddr::from([127, 0, 0, 4]);
    for (number, host) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        let marks = Route { traffic_class: 0x68, hop_limit: 9, ..route(own, hosts[host]) };
        here.sender.set_peer_port([first.port(), second.port()][host]);
        push(&mut here.sender, &marks, &packet(number, 64));
    }
    here.sender.flush();
    for (socket, numbers) in [(&mut first, [0, 2]), (&mut second, [1, 3])] {
        socket.sender.set_peer_port(here.port());
        for (arrived, number) in take(socket, 2).into_iter().zip(numbers) {
            assert_eq!(arrived.1, packet(number, 64));
            assert_eq!(arrived.0.destination, gid_of(own));
            assert_eq!((arrived.0.traffic_class, arrived.0.hop_limit), (0x68, 9));
            // The received route is that of the response.
            push(&mut socket.sender, &arrived.0, &arrived.1);
        }
        socket.sender.flush();
    }
    let mut back: Vec<Arrived> = take(&mut here, 4);
    back.sort_by_key(|arrived| arrived.0.destination);
    for (arrived, (number, host)) in back.iter().zip([(0, 0), (2, 0), (1, 1), (3, 1)]) {
        assert_eq!(arrived.1, packet(number, 64));
        let ends = (arrived.0.source, arrived.0.destination);
        assert_eq!(ends, (gid_of(own), gid_of(hosts[host])));
    }
}

#[test]
fn unspecified_ipv6_address_does_not_bind_ipv4() {
    let both = || {
        let here = RoceSocket::bind(&options(Ipv6Addr::UNSPECIFIED.into())).unwrap();
        let same_port = RoceOptions { port: here.port(), ..options(Ipv4Addr::UNSPECIFIED.into()) };
        // The bind can fail because another test uses the port.
        RoceSocket::bind(&same_port).is_ok().then_some(here)
    };
    let mut here = (0..20).find_map(|_| both()).expect("both sockets can be bound");
    let mut there = RoceSocket::bind(&options(V6)).unwrap();
    here.sender.set_peer_port(there.port());
    let marks = Route { traffic_class: 0x20, hop_limit: 3, ..route(V6, V6) };
    push(&mut here.sender, &marks, &packet(1, 32));
    push(&mut here.sender, &marks, &packet(2, 32));
    here.sender.flush();
    let arrived = take(&mut there, 2);
    assert_eq!((arrived[1].0.traffic_class, arrived[1].0.hop_limit), (0x20, 3));
    there.sender.set_peer_port(here.port());
    push(&mut there.sender, &arrived[0].0, &arrived[1].1);
    there.sender.flush();
    let back = take(&mut here, 1);
    assert_eq!(back[0].0.source, Gid::from(Ipv6Addr::LOCALHOST));
    assert!(here.gids().unwrap().contains(&Gid::from(Ipv6Addr::LOCALHOST)));
    assert_eq!(there.gids().unwrap(), [Gid::from(Ipv6Addr::LOCALHOST)]);
}

#[test]
fn wait_returns_at_its_deadline_or_with_the_alarm() {
    let mut here = RoceSocket::bind(&options(V4)).unwrap();
    let start = clock::now();
    here.wait(start + Duration::from_micros(300), None).unwrap();
    assert!(clock::now().since(start) >= Duration::from_micros(300));
    let alarm = Alarm::new().unwrap();
    alarm.bell().ring();
    here.wait(start + Duration::from_secs(100), Some(&alarm)).unwrap();
    let RoceSocket { sender, receiver, .. } = &mut here;
    sender.wait(start + Duration::from_secs(100), None).unwrap();
    receiver.wait(start + Duration::from_secs(100), Some(&alarm)).unwrap();
    assert!(clock::now().since(start) < Duration::from_secs(50));
}

#[test]
fn disabled_icrc_is_not_checked() {
    let (mut here, mut there) = pair(&RoceOptions { icrc: false, ..options(V4) });
    push(&mut here.sender, &route(V4, V4), &packet(1, 64));
    let until = clock::now() + Duration::from_secs(10);
    assert_eq!(here.begin_wait(), Some(false));
    there.wait(until, None).unwrap();
    let packet = there.receiver.receive().unwrap().expect("a packet has arrived");
    assert_eq!(packet.icrc, IcrcCheck::Unchecked);
}

#[test]
fn packet_is_returned_directly_after_a_wait() {
    let (mut here, mut there) = pair(&options(V4));
    for number in 0..3 {
        push(&mut here.sender, &route(V4, V4), &packet(number, 64));
        here.sender.flush();
        there.wait(clock::now() + Duration::from_secs(10), None).unwrap();
        assert_eq!(
            there.receiver.receive().unwrap().expect("a packet has arrived").bytes,
            packet(number, 64)
        );
    }
}

#[test]
fn push_next_writes_packets_in_place() {
    let (mut here, mut there) = pair(&options(V4));
    let lengths = [256, 256, 12, MAX_PACKET, 13, 16];
    let mut left = lengths.into_iter();
    let mut refused = 0;
    loop {
        let pushed = here.sender.push_next(|room| {
            assert!(room.len() >= MAX_PACKET);
            let length = left.next()?;
            room[..length].copy_from_slice(&packet(length, length));
            Some((route(V4, V4), length))
        });
        match pushed {
            Ok(true) => {}
            Ok(false) => break,
            Err(PushError::Length { length: 13 }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert_eq!((refused, here.sender.flush()), (1, 0));
    let arrived: Vec<Vec<u8>> = take(&mut there, 5).into_iter().map(|arrived| arrived.1).collect();
    assert_eq!(arrived, [256, 256, 12, MAX_PACKET, 16].map(|length| packet(length, length)));
}

#[test]
fn sender_and_receiver_work_in_two_threads() {
    let (here, there) = pair(&options(V4));
    let (mut sender, mut receiver) = (here.sender, there.receiver);
    let until = clock::now() + Duration::from_secs(10);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..32 {
                push(&mut sender, &route(V4, V4), &packet(number, 512));
                assert_eq!(sender.flush(), 0);
            }
        });
        let mut count = 0;
        while count < 32 && clock::now() < until {
            receiver.wait(until, None).unwrap();
            while let Some(arrived) = receiver.receive().unwrap() {
                assert_eq!(arrived.bytes, packet(count, 512));
                count += 1;
            }
        }
        assert_eq!(count, 32);
    });
}

proptest! {
    /// Checks that packets of any sizes to two receivers arrive intact and in order.
    #[test]
    fn any_mixture_arrives_in_order(
        is_v4 in any::<bool>(),
        gso in any::<bool>(),
        gro in any::<bool>(),
        pushes in prop::collection::vec(
            (0..2usize, prop_oneof![Just(3usize), Just(7), 3..=MAX_PACKET / 4], prop::bool::weighted(0.1)),
            1..30,
        ),
    ) {
        let address = if is_v4 { V4 } else { V6 };
        let options = RoceOptions { gso, gro, ..options(address) };
        let mut here = RoceSocket::bind(&options).unwrap();
        let mut ends = [(); 2].map(|()| RoceSocket::bind(&options).unwrap());
        let ports = [ends[0].port(), ends[1].port()];
        let mut expected = [Vec::new(), Vec::new()];
        let route = route(address, address);
        let mut port = None;
        for (number, &(end, words, flush)) in pushes.iter().enumerate() {
            if port.replace(end) != Some(end) {
                here.sender.set_peer_port(ports[end]);
            }
            let bytes = packet(number, words * 4);
            push(&mut here.sender, &route, &bytes);
            expected[end].push(bytes);
            if flush {
                prop_assert_eq!(here.sender.flush(), 0);
            }
        }
        prop_assert_eq!(here.sender.flush(), 0);
        for (end, expected) in ends.iter_mut().zip(&expected) {
            let arrived = take(end, expected.len());
            prop_assert!(arrived.iter().map(|arrived| &arrived.1).eq(expected));
            prop_assert!(end.receiver.receive().unwrap().is_none());
        }
    }
}
