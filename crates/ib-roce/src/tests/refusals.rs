//! Tests with packets that the sender refuses or loses, or that the receiver drops.

use super::*;

#[test]
fn invalid_packets_are_counted_and_dropped() {
    for address in [V4, V6] {
        let mut here = RoceSocket::bind(&options(address)).unwrap();
        let other = UdpSocket::bind((address, 0)).unwrap();
        let ports = (other.local_addr().unwrap().port(), here.port());
        let headers = icrc::Headers::new(address, address, ports.0, ports.1);
        let mut good = packet(5, 40);
        let icrc = headers.icrc(icrc::Tables::get(), &good, 0);
        good.extend(icrc.to_le_bytes());
        let wrong = {
            let mut wrong = good.clone();
            wrong[30] ^= 0x10;
            wrong
        };
        let long = vec![0; MAX_PACKET + 2 * ICRC];
        let bad: [&[u8]; 7] =
            [&[], &good[..3], &good[..12], &good[..42], &wrong, &long, &[0; 9999]];
        for bytes in bad.into_iter().chain([&good[..]]) {
            other.send_to(bytes, (address, here.port())).unwrap();
        }
        let arrived = take(&mut here, 1);
        assert_eq!(arrived[0].1, packet(5, 40));
        let received = here.counters().received;
        assert_eq!((received.bad_icrc, received.malformed), (1, 6), "{received:?}");

        // Without GRO, the receiver's buffer is smaller, so that a long datagram is truncated.
        let alone = RoceOptions { gro: false, ..options(address) };
        let mut here = RoceSocket::bind(&alone).unwrap();
        other.send_to(&[0; 9999], (address, here.port())).unwrap();
        here.wait(clock::now() + Duration::from_secs(10), None).unwrap();
        assert!(here.receiver.receive().unwrap().is_none());
        assert_eq!(here.counters().received.truncated, 1);
    }
}

#[test]
fn rejected_batch_is_sent_as_single_packets() {
    let (mut here, mut there) = pair(&RoceOptions { allow_zero_checksum: true, ..options(V4) });
    // With SO_NO_CHECK, the system rejects GSO datagrams, like a system or device that does not
    // support GSO.
    ib_os::sockopt::set(here.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
    let packets = [96, 96, 96, 32].map(|length| packet(length, length));
    for _ in 0..2 {
        for packet in &packets {
            push(&mut here.sender, &route(V4, V4), packet);
        }
        assert_eq!(here.sender.flush(), 0);
        for (arrived, packet) in take(&mut there, 4).iter().zip(&packets) {
            assert_eq!((&arrived.1, arrived.2), (packet, IcrcCheck::ConsistentWithOwnId(0)));
        }
        assert!(!here.sender.gso());
    }
    assert!(here.counters().sent.errors.is_empty());
}

#[test]
fn rejected_packet_is_counted_and_later_ones_are_sent() {
    let (mut here, mut there) = pair(&options(V4));
    for peer in [IpAddr::V4(Ipv4Addr::BROADCAST), V4] {
        push(&mut here.sender, &route(V4, peer), &packet(1, 64));
        push(&mut here.sender, &route(V4, peer), &packet(2, 64));
    }
    assert_eq!(here.sender.flush(), 0);
    assert_eq!(take(&mut there, 2)[1].1, packet(2, 64));
    let sent = here.counters().sent;
    assert_eq!((sent.packets, sent.batches, sent.full), (2, 1, 0));
    assert_eq!(sent.errors, [(libc::EACCES, 2)].into());
    assert!(here.sender.gso(), "an invalid address does not disable GSO");
}

#[test]
fn invalid_sizes_routes_and_addresses_are_refused() {
    let mut here = RoceSocket::bind(&options(V4)).unwrap();
    for length in [0, 8, 13, 14, 15, MAX_PACKET + 4, 65_536] {
        let refused =
            here.sender.push(&route(V4, V4), length, |_| panic!("`fill` must not be called"));
        assert_eq!(refused, Err(PushError::Length { length }));
    }
    let other = IpAddr::from([127, 0, 0, 2]);
    for (own, peer) in [(V4, V6), (V6, V6), (other, V4)] {
        let refused =
            here.sender.push(&route(own, peer), 12, |_| panic!("`fill` must not be called"));
        assert_eq!(refused, Err(PushError::Route { own, peer, socket: V4 }));
    }
    assert_eq!(here.sender.unsent(), 0);
    let taken = RoceOptions { port: here.port(), ..options(V4) };
    assert!(matches!(RoceSocket::bind(&taken), Err(RoceError::Bind { .. })));
    let mapped = options(Ipv4Addr::LOCALHOST.to_ipv6_mapped().into());
    assert_eq!(RoceSocket::bind(&mapped).unwrap().address(), V4);
    let foreign = options(IpAddr::from([192, 0, 2, 1]));
    assert!(matches!(RoceSocket::bind(&foreign), Err(RoceError::Bind { .. })));
}

#[test]
fn overflows_of_the_receive_buffer_are_counted() {
    let small = RoceOptions { receive_buffer: 0, gso: false, ..options(V4) };
    let (mut here, mut there) = pair(&small);
    let mut arrived = 0;
    for _ in 0..2 {
        for number in 0..40 {
            push(&mut here.sender, &route(V4, V4), &packet(number, 1024));
        }
        here.sender.flush();
        there.wait(clock::now() + Duration::from_secs(10), None).unwrap();
        while there.receiver.receive().unwrap().is_some() {
            arrived += 1;
        }
    }
    let received = there.counters().received;
    // The system reports drops with the next datagram that arrives. So drops after the last datagram are not counted.
    assert!(received.overflows > 0 && received.overflows + arrived <= 80, "{received:?}");
    assert_eq!(received.packets, arrived);
}

#[test]
fn zero_udp_checksums_over_ipv4_are_refused_unless_allowed() {
    for (address, allow, expected) in [(V4, false, 0), (V4, true, 2), (V6, false, 2)] {
        let options = RoceOptions { allow_zero_checksum: allow, ..options(address) };
        let (mut here, mut there) = pair(&options);
        // With this socket option, the system sends packets with a UDP checksum of zero.
        let (level, name) = if address.is_ipv4() {
            (libc::SOL_SOCKET, libc::SO_NO_CHECK)
        } else {
            (libc::SOL_UDP, libc::UDP_NO_CHECK6_TX)
        };
        ib_os::sockopt::set(here.as_fd(), level, name, 1).unwrap();
        for number in 0..2 {
            push(&mut here.sender, &route(address, address), &packet(number, 32 + 4 * number));
            here.sender.flush();
        }
        let until = clock::now() + Duration::from_secs(10);
        let mut arrived = 0;
        while arrived + there.counters().received.zero_checksum < 2 && clock::now() < until {
            there.wait(until, None).unwrap();
            while there.receiver.receive().unwrap().is_some() {
                arrived += 1;
            }
        }
        let received = there.counters().received;
        assert_eq!((arrived, received.zero_checksum), (expected, 2 - expected), "{received:?}");
        assert_eq!((received.malformed, received.overflows), (0, 0), "{received:?}");
        assert_eq!(there.receiver.take_refused(), (expected == 0).then_some(address));
    }
}
