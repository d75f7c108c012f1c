use std::net::IpAddr;

use ib_types::{Instant, PKey, Psn, Qpn, ServiceLevel};
use ib_wire::packet::{Bth, Opcode, Packet};

use super::*;

fn record(direction: Direction, length: usize, route: Route) -> PacketRecord {
    PacketRecord {
        number: 0,
        direction,
        at: Instant::ZERO,
        route,
        length: length as u32,
        is_repeated: false,
        dropped: None,
        posted: None,
        is_lost: false,
    }
}

/// Returns the bytes of a packet from the BTH on.
fn transport(length: usize) -> Vec<u8> {
    let bth = Bth {
        opcode: Opcode::UD_SEND_ONLY,
        p_key: PKey::DEFAULT,
        destination: Qpn::truncated(0x1234),
        psn: Psn::truncated(7),
        pad_count: (length.wrapping_neg() & 3) as u8,
        ..Bth::default()
    };
    let mut bytes = bth.to_bytes().to_vec();
    bytes.extend([0; 8]);
    bytes.extend((0..length).map(|at| at as u8));
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn route(source: &str, destination: &str) -> Route {
    let gid = |text: &str| {
        let address: IpAddr = text.parse().expect("the text is an IP address");
        match address {
            IpAddr::V4(address) => Gid(address.to_ipv6_mapped().into()),
            IpAddr::V6(address) => Gid(address.into()),
        }
    };
    Route {
        source: gid(source),
        destination: gid(destination),
        slid: 3,
        dlid: 9,
        sl: ServiceLevel::new(2).expect("2 is a valid service level"),
        is_global: true,
        traffic_class: 5,
        ..Route::default()
    }
}

#[test]
fn ethernet_frames_have_addresses_and_icrc() {
    let link = Link::Ethernet { own_port: 4791, peer_port: 4792 };
    for (own, peer) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
        for (direction, from, to) in [(Direction::Send, own, peer), (Direction::Receive, peer, own)]
        {
            let bytes = transport(33);
            let mut out = Vec::new();
            let record = record(direction, bytes.len(), route(own, peer));
            let length = link.frame(&record, &bytes, &mut out);
            assert_eq!(length, out.len());
            let (network, rest) =
                RoceNetwork::parse(&out[ETHERNET..]).expect("the headers are valid");
            let found = match network.addresses {
                RoceAddresses::V4 { source, destination, .. } => {
                    [source, destination].map(IpAddr::from)
                }
                RoceAddresses::V6 { source, destination } => {
                    [source, destination].map(IpAddr::from)
                }
            };
            assert_eq!(
                found,
                [from, to].map(|it| it.parse::<IpAddr>().expect("the text is an IP address"))
            );
            let ports = (network.source_port, network.destination_port);
            assert_eq!(
                ports,
                if direction == Direction::Send { (4791, 4792) } else { (0xc000, 4791) }
            );
            let packet = Packet::parse_roce(rest).expect("the packet is valid");
            packet.check_roce_icrc(&network).expect("the ICRC is right");
            assert_eq!(packet.payload().len(), 33);
            // A truncated frame has no ICRC, but `frame` returns its original length.
            let cut = link.frame(&record, &bytes[..20], &mut out);
            assert_eq!((cut, out.len()), (length, length - 4 - (bytes.len() - 20)));
        }
    }
}

#[test]
fn infiniband_frames_have_icrc_and_vcrc() {
    for is_global in [false, true] {
        for direction in [Direction::Send, Direction::Receive] {
            let bytes = transport(30);
            let mut out = Vec::new();
            let route = Route { is_global, ..route("fe80::1", "fe80::2") };
            let length =
                Link::Infiniband.frame(&record(direction, bytes.len(), route), &bytes, &mut out);
            assert_eq!(length, out.len());
            let packet = Packet::parse(&out).expect("the packet is valid");
            packet.check_icrc().expect("the ICRC is right");
            packet.check_vcrc().expect("the VCRC is right");
            let lrh = packet.lrh().expect("an InfiniBand packet has an LRH");
            let lids = (lrh.slid, lrh.dlid);
            assert_eq!(lids, if direction == Direction::Send { (3, 9) } else { (9, 3) });
            assert_eq!(packet.grh().is_some(), is_global);
        }
    }
}
