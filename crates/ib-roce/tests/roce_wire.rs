//! Tests RoCEv2 sockets in a network namespace with a TUN device. The test is the other end of the
//! link: it reads and writes the device's file. The tests are skipped without the privilege to
//! create a namespace, or without iproute2.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use ib_link::Route;
use ib_os::clock;
use ib_roce::{IcrcCheck, PushError, RoceError, RoceInterface, RoceOptions, RoceSocket};
use ib_types::{Gid, Guid};
use ib_wire::packet::{Packet, RoceAddresses, RoceNetwork};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 77, 2));
const V4_PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 168, 77, 1));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2));
const V6_PEER: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1));

/// File of the TUN device. Reads return packets that sockets have sent; sockets receive the packets
/// that are written.
struct Wire(File);

impl Wire {
    /// Moves this thread into a new network namespace with a TUN device. Returns `None` if either
    /// cannot be created.
    fn new() -> Option<Self> {
        // SAFETY: the call accesses no memory of this process.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } < 0 {
            eprintln!("cannot create a network namespace: {}", std::io::Error::last_os_error());
            return None;
        }
        let file = File::options().read(true).write(true).open("/dev/net/tun").ok()?;
        // SAFETY: all bits zero are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(*b"wire") {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        // SAFETY: the request is live and has a name and flags.
        let result =
            unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
        if result < 0 {
            eprintln!("cannot create a TUN device: {}", std::io::Error::last_os_error());
            return None;
        }
        // SAFETY: the call accesses no memory of this process.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        let set_up = run("ip addr add 192.168.77.2/24 dev wire")
            && run("ip addr add fd00::2/64 dev wire nodad")
            && run("ip link set wire mtu 4300 up");
        set_up.then_some(Self(file))
    }

    /// Returns the headers and the UDP payload of the next RoCEv2 packet; `None` if no packet
    /// arrives within `limit`.
    fn next(&mut self, limit: Duration) -> Option<(RoceNetwork, Vec<u8>)> {
        let until = clock::now() + limit;
        let mut bytes = [0; 65_536];
        while clock::now() < until {
            match self.0.read(&mut bytes) {
                // Linux also sends packets of its own, such as router solicitations.
                Ok(length) => match RoceNetwork::parse(&bytes[..length]) {
                    Ok((network, udp)) if network.destination_port == RoceNetwork::PORT => {
                        return Some((network, udp.to_vec()));
                    }
                    _ => {}
                },
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        None
    }

    /// Returns the next packet, and checks its ICRC.
    fn checked(&mut self) -> (RoceNetwork, Vec<u8>) {
        let (network, udp) =
            self.next(Duration::from_secs(5)).expect("a packet arrives within 5 s");
        let packet = Packet::parse_roce(&udp).expect("the packet has valid headers");
        packet.check_roce_icrc(&network).expect("the ICRC is valid");
        (network, udp)
    }
}

/// Runs a command. Returns true if the command succeeds.
fn run(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().expect("the line names a command"));
    let done = command.args(words).status().is_ok_and(|status| status.success());
    if !done {
        eprintln!("failed: {line}");
    }
    done
}

fn route(own: IpAddr, peer: IpAddr) -> Route {
    let gid = |address| match address {
        IpAddr::V4(address) => Gid::from(address),
        IpAddr::V6(address) => Gid::from(address),
    };
    let (source, destination) = (gid(own), gid(peer));
    Route { source, destination, is_global: true, ..Route::default() }
}

/// Binds a socket. Retries while the port is in use: a process that another test starts inherits
/// the descriptors of sockets until it calls `exec`.
fn bind(options: &RoceOptions) -> RoceSocket {
    for _ in 0..100 {
        match RoceSocket::bind(options) {
            Err(RoceError::Bind { source, .. }) if source.kind() == ErrorKind::AddrInUse => {
                std::thread::sleep(Duration::from_millis(20));
            }
            bound => return bound.expect("the socket can be bound"),
        }
    }
    panic!("the port is in use: {options:?}");
}

/// Adds a SEND Middle packet to the sender.
fn push(socket: &mut RoceSocket, route: &Route, length: usize) -> Result<(), PushError> {
    socket.sender.push(route, length, |bytes| {
        bytes.fill(length as u8);
        bytes[..12].copy_from_slice(&[1, 0, 0xff, 0xff, 0, 0, 0, 17, 0, 0, 0, 1]);
    })
}

#[test]
fn every_segment_has_the_icrc_of_its_own_headers() {
    let Some(mut wire) = Wire::new() else { return };
    let lengths = [4108, 4108, 4108, 268, 12, 1036, 1036];
    for (own, peer) in [(V4, V4_PEER), (V6, V6_PEER)] {
        let open = if own.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0u16; 8]) };
        for (address, gso) in [(own, true), (own, false), (open, true), (open, false)] {
            let mut socket = bind(&RoceOptions { gso, ..RoceOptions::new(address) });
            let route = Route { traffic_class: 0x68, hop_limit: 7, ..route(own, peer) };
            for length in lengths {
                push(&mut socket, &route, length).expect("the send buffer has room");
            }
            assert_eq!(socket.sender.flush(), 0);
            // With GSO, Linux counts the identifications of a datagram's segments from 0.
            let identifications = [0, 1, 2, 3, 0, 0, 1];
            for (length, id) in lengths.into_iter().zip(identifications) {
                let (network, udp) = wire.checked();
                assert_eq!(udp.len(), length + 4);
                assert_eq!(network.source_port, RoceNetwork::PORT);
                let expected = match (own, peer) {
                    (IpAddr::V4(source), IpAddr::V4(destination)) => RoceAddresses::V4 {
                        source,
                        destination,
                        identification: if gso { id } else { 0 },
                        fragment: 0x4000,
                    },
                    (IpAddr::V6(source), IpAddr::V6(destination)) => {
                        RoceAddresses::V6 { source, destination }
                    }
                    _ => unreachable!("both addresses are of one family"),
                };
                assert_eq!(network.addresses, expected, "{address}, {gso}");
            }
            assert_eq!(socket.sender.gso(), gso);
        }
    }
}

/// The packets are from rxe of Linux 6.1. They have no UDP checksum. Over IPv4, their ICRCs cannot
/// be fully verified.
#[test]
fn packets_of_rxe_are_received() {
    let Some(mut wire) = Wire::new() else { return };
    let options = |own| RoceOptions { allow_zero_checksum: true, ..RoceOptions::new(own) };
    let (mut v4, mut v6) = (bind(&options(V4)), bind(&options(V6)));
    let packets = [
        "45000030fa2c40004011253cc0a84d01c0a84d02f54112b7001c00001100ffff000000110064dd151f000001\
         29575875",
        "45000038fa4440004011251cc0a84d01c0a84d02f54112b7002400000500ffff0000001180ccd92b20000000\
         0400000020030000acb119fe",
        "60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002e96112b7\
         001c00001100ffff0000001100063b011f000001db7a9a96",
    ];
    let checks = [
        IcrcCheck::ConsistentWithSomeId { identification: 0xfa2c, dont_fragment: true },
        IcrcCheck::ConsistentWithSomeId { identification: 0xfa44, dont_fragment: true },
        IcrcCheck::Verified,
    ];
    for (text, expected) in packets.into_iter().zip(checks) {
        let bytes: Vec<u8> = (0..text.len() / 2)
            .map(|at| {
                u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("the text is hexadecimal")
            })
            .collect();
        let mut wrong = bytes.clone();
        *wrong.last_mut().expect("the packet is not empty") ^= 1;
        let (is_v4, (network, udp)) =
            (bytes[0] == 0x45, RoceNetwork::parse(&bytes).expect("the packet is valid"));
        let socket = if is_v4 { &mut v4 } else { &mut v6 };
        let until = clock::now() + Duration::from_secs(5);
        let received = loop {
            // Linux enables an IPv6 address in the background, and drops packets until then. So the
            // packets are sent repeatedly.
            wire.0.write_all(&wrong).expect("the device is writable");
            wire.0.write_all(&bytes).expect("the device is writable");
            socket
                .wait(clock::now() + Duration::from_millis(200), None)
                .expect("the socket can be polled");
            if let Some(packet) = socket.receiver.receive().expect("the socket is usable") {
                break (*packet.route, packet.bytes.to_vec(), packet.icrc);
            }
            assert!(clock::now() < until, "no packet from {:?}", network.addresses);
        };
        assert_eq!((&received.1[..], received.2), (&udp[..udp.len() - 4], expected));
        let back = if is_v4 { route(V4, V4_PEER) } else { route(V6, V6_PEER) };
        // Over IPv4, the receiver does not know the identification, which the ICRC covers.
        let back = Route { source_port: network.source_port, is_weak: is_v4, ..back };
        assert_eq!(received.0, back);
    }
    let (v4, v6) = (v4.counters().received, v6.counters().received);
    assert_eq!((v4.packets, v4.unverifiable, v4.bad_icrc), (2, 2, 2));
    assert_eq!((v6.packets, v6.unverifiable, v6.bad_icrc), (1, 0, 1));
}

#[test]
fn packets_above_the_interface_mtu_are_counted() {
    let Some(mut wire) = Wire::new() else { return };
    assert!(run("ip link set wire mtu 1500"));
    for (own, peer) in [(V4, V4_PEER), (V6, V6_PEER)] {
        let mut socket = bind(&RoceOptions::new(own));
        for length in [4108, 4108, 4108, 1036, 2060, 1032] {
            push(&mut socket, &route(own, peer), length).expect("the send buffer has room");
        }
        assert_eq!(socket.sender.flush(), 0);
        // Sizes of the packets in each GSO datagram: 4108 4108 4108 1036 | 2060 1032. Linux
        // compares only the size of a datagram's first packet with the MTU.
        let sent = socket.counters().sent;
        let lost: u64 = sent.errors.values().sum();
        assert_eq!(sent.errors.keys().collect::<Vec<_>>(), [&libc::EMSGSIZE], "{sent:?}");
        for _ in 0..sent.packets {
            wire.checked();
        }
        assert_eq!(sent.packets + lost, 6);
        push(&mut socket, &route(own, peer), 1036).expect("the send buffer has room");
        socket.sender.flush();
        assert_eq!(wire.checked().1.len(), 1040);
        assert!(socket.sender.gso(), "EMSGSIZE does not disable GSO");
    }
}

#[test]
fn full_send_buffer_loses_no_packets() {
    let Some(mut wire) = Wire::new() else { return };
    if !run("tc qdisc add dev wire root tbf rate 30mbit burst 9000 limit 1000000") {
        return;
    }
    let options = RoceOptions { send_buffer: 100_000, ..RoceOptions::new(V4) };
    let mut socket = bind(&options);
    let length = |number: usize| 4108 - number % 7 * 4;
    let mut pushed = 0;
    while push(&mut socket, &route(V4, V4_PEER), length(pushed)) != Err(PushError::Full) {
        pushed += 1;
        assert!(pushed < 1000, "{:?}", socket.counters());
    }
    assert!(socket.sender.unsent() > 0 && socket.counters().sent.full > 0);
    // A packet that is shorter than those in the full buffer is refused, too.
    assert_eq!(push(&mut socket, &route(V4, V4_PEER), 12), Err(PushError::Full));
    for read in 0..pushed + 20 {
        socket.sender.flush();
        if read % 2 == 1 && pushed < 120 {
            let again = push(&mut socket, &route(V4, V4_PEER), length(pushed));
            pushed += usize::from(again.is_ok());
        }
        let Some((_, udp)) = wire.next(Duration::from_millis(200)) else {
            assert_eq!((read, socket.sender.unsent()), (pushed, 0));
            break;
        };
        assert_eq!(udp.len(), length(read) + 4);
    }
    let sent = socket.counters().sent;
    assert_eq!((sent.packets, sent.errors.len()), (pushed as u64, 0));
}

#[test]
fn interfaces_are_listed_with_mtu_and_addresses() {
    let Some(_wire) = Wire::new() else { return };
    let wire = RoceInterface::holding(V4)
        .expect("interfaces can be listed")
        .expect("`wire` has the address");
    assert_eq!((wire.name.as_str(), wire.mtu, wire.active_mtu()), ("wire", 4300, Some(4096)));
    assert!(wire.addresses.contains(&V6));
    assert_eq!((wire.mac, wire.guid()), (None, Guid(0xffff_c0a8_4d02)));
    assert_eq!(RoceInterface::holding(V6).expect("interfaces can be listed"), Some(wire));
    if run("ip link add name port type dummy") && run("ip link set port address 02:00:5e:10:00:01")
    {
        let interfaces = RoceInterface::all().expect("interfaces can be listed");
        let port = interfaces.iter().find(|port| port.name == "port").expect("`port` was added");
        assert_eq!(port.guid(), Guid(0x0000_5eff_fe10_0001));
    }
}

/// As with UD QPs, members of a group also receive the packets that their own port sends.
#[test]
fn multicast_packets_keep_their_hop_limit() {
    let Some(mut wire) = Wire::new() else { return };
    let cases = [
        (V4, IpAddr::from([239, 1, 2, 3]), IpAddr::from([0; 4])),
        (V6, "ff15::7".parse().expect("the address is valid"), IpAddr::from([0u16; 8])),
    ];
    let index = RoceInterface::holding(V4)
        .expect("interfaces can be listed")
        .expect("`wire` has the address")
        .index;
    for (own, group, open) in cases {
        let mut socket = bind(&RoceOptions::new(open));
        let there = Route { hop_limit: 64, ..route(own, group) };
        socket.join(there.destination, index).expect("the GID is a multicast group");
        assert!(socket.join(there.source, index).is_err(), "the GID is not a multicast GID");
        for length in [64, 64, 32] {
            push(&mut socket, &there, length).expect("the send buffer has room");
        }
        assert_eq!(socket.sender.flush(), 0);
        // The packet is sent to the link, and to members of the group on this machine.
        for length in [64, 64, 32] {
            assert_eq!(wire.checked().1.len(), length + 4);
            let until = clock::now() + Duration::from_secs(5);
            socket.wait(until, None).expect("the socket can be polled");
            let packet = socket
                .receiver
                .receive()
                .expect("the socket is usable")
                .expect("the packet has arrived");
            assert_eq!((packet.bytes.len(), packet.route.hop_limit), (length, 64));
            let back = (packet.route.source, packet.route.destination);
            assert_eq!(back, (there.destination, there.source));
        }
        socket.leave(there.destination, index).expect("the socket is a member");
        assert!(socket.leave(there.destination, index).is_err());
    }
}

#[test]
fn link_local_destinations_use_the_interface_of_the_source() {
    let Some(mut wire) = Wire::new() else { return };
    let (own, peer) = (
        "fe80::7:2".parse().expect("the address is valid"),
        "fe80::7:1".parse().expect("the address is valid"),
    );
    assert!(run("ip addr add fe80::7:2/64 dev wire nodad"));
    for address in [own, IpAddr::from([0u16; 8])] {
        let mut socket = bind(&RoceOptions::new(address));
        push(&mut socket, &route(own, peer), 16).expect("the send buffer has room");
        assert_eq!(socket.sender.flush(), 0);
        let (network, _) = wire.checked();
        assert!(
            matches!(network.addresses, RoceAddresses::V6 { destination, .. } if destination == peer)
        );
    }
}
