use super::*;
use crate::packet::{Bth, Builder, Opcode, Packet};

mod kernel;

const V4: RoceNetwork = RoceNetwork {
    addresses: RoceAddresses::V4 {
        source: Ipv4Addr::new(192, 0, 2, 1),
        destination: Ipv4Addr::new(192, 0, 2, 2),
        identification: 0x1234,
        fragment: 0x4000,
    },
    source_port: 0xc123,
    destination_port: RoceNetwork::PORT,
};

const V6: RoceNetwork = RoceNetwork {
    addresses: RoceAddresses::V6 {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
    },
    ..V4
};

/// Builds an IP packet that carries the payload in a SEND.
fn ip_packet(network: &RoceNetwork, hop: RoceHop, payload: &[u8]) -> Vec<u8> {
    let mut udp = [0; 256];
    let builder = Builder::new(Bth::default()).payload(payload);
    let length = builder.emit_roce(network, &mut udp).unwrap();
    let mut bytes = vec![0; network.length()];
    assert_eq!(network.emit(hop, length, &mut bytes), bytes.len());
    bytes.extend(&udp[..length]);
    bytes
}

#[test]
fn built_packet_parses_and_its_icrc_is_right() {
    for network in [V4, V6] {
        let hop = RoceHop { traffic_class: 0x68, hop_limit: 3, flow_label: 0xabcde };
        let mut bytes = ip_packet(&network, hop, b"seven b");
        bytes.extend([0xee; 9]); // padding of a short Ethernet frame
        let (read, udp) = RoceNetwork::parse(&bytes).unwrap();
        assert_eq!(read, network);
        let packet = Packet::parse_roce(udp).unwrap();
        assert_eq!((packet.payload(), packet.pad_count()), (&b"seven b"[..], 1));
        assert_eq!(packet.check_roce_icrc(&read), Ok(()));
        let other = RoceNetwork { source_port: 1, ..read };
        assert!(packet.check_roce_icrc(&other).is_err());
    }
}

/// Checks IP packets that rxe, the soft RoCE driver of Linux 6.1, has sent.
#[test]
fn icrc_matches_packets_of_linux_rxe() {
    let packets: [&[u8]; 2] = [
        b"\x45\x00\x00\x30\xfa\x2c\x40\x00\x40\x11\x25\x3c\xc0\xa8\x4d\x01\xc0\xa8\x4d\x02\
          \xf5\x41\x12\xb7\x00\x1c\x00\x00\x11\x00\xff\xff\x00\x00\x00\x11\x00\x64\xdd\x15\
          \x1f\x00\x00\x01\x29\x57\x58\x75",
        b"\x60\x00\x00\x00\x00\x1c\x11\x40\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
          \x00\x00\x00\x01\xfd\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\
          \xe9\x61\x12\xb7\x00\x1c\x00\x00\x11\x00\xff\xff\x00\x00\x00\x11\x00\x06\x3b\x01\
          \x1f\x00\x00\x01\xdb\x7a\x9a\x96",
    ];
    for bytes in packets {
        let (network, udp) = RoceNetwork::parse(bytes).unwrap();
        let packet = Packet::parse_roce(udp).unwrap();
        assert_eq!(packet.bth().opcode, Opcode::RC_ACKNOWLEDGE);
        assert_eq!(packet.check_roce_icrc(&network), Ok(()));
        let mut again = [0; RoceNetwork::MAX_LENGTH];
        let length = network.emit(RoceHop::default(), udp.len(), &mut again);
        assert_eq!(&again[..length], &bytes[..length], "`emit` restores the IP and UDP headers");
    }
}

#[test]
fn errors_name_field_offset_and_value() {
    let error_of = |bytes: &[u8]| RoceNetwork::parse(bytes).unwrap_err().to_string();
    let good = ip_packet(&V4, RoceHop::default(), b"");
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        error_of(&bytes)
    };
    assert_eq!(error_of(b""), "the packet ends at byte 0, within the IP header (bytes 0 to 20)");
    assert_eq!(changed(0, 0x55), "IP version at byte 0 is 5: expected 4 or 6");
    assert_eq!(changed(0, 0x46), "IHL of the IPv4 header at byte 0 is 6: expected 5");
    assert_eq!(changed(6, 0x20), "the fragment field at byte 6 is 8192: expected no fragment");
    assert_eq!(changed(9, 6), "protocol of the IP header at byte 9 is 6: expected 17 (UDP)");
    assert_eq!(changed(25, 23), "length of the UDP header at byte 24 is 23: expected 24");
    assert_eq!(
        changed(3, 27),
        "the packet ends at byte 27, within the UDP header (bytes 20 to 28)"
    );
    assert_eq!(
        error_of(&good[..30]),
        "the packet ends at byte 30, within the IP packet (bytes 0 to 44)"
    );
    let v6 = ip_packet(&V6, RoceHop::default(), b"");
    assert_eq!(
        error_of(&v6[..39]),
        "the packet ends at byte 39, within the IPv6 header (bytes 0 to 40)"
    );
}
