//! Parses arbitrary bytes as a native packet, as a RoCEv2 packet, and as an IP packet with a RoCEv2
//! packet.
//!
//! Checks that an accepted packet, after it was built again, has the same fields. Reserved bits, padding and checksums
//! may differ.

#![no_main]

use ib_wire::packet::{BuildError, Builder, Packet, RoceNetwork};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(packet) = Packet::parse(bytes) {
        let _ = (packet.check_icrc(), packet.check_vcrc());
        let mut built = vec![0; bytes.len()];
        let length =
            Builder::from_packet(&packet).emit(&mut built).expect("the buffer is large enough");
        assert_eq!(length, bytes.len());
        let again = Packet::parse(&built).expect("a built packet is valid");
        assert_eq!((again.check_icrc(), again.check_vcrc()), (Ok(()), Ok(())));
        assert_eq!((packet.lrh(), packet.grh()), (again.lrh(), again.grh()));
        compare(&packet, &again);
    }
    let network = match RoceNetwork::parse(bytes) {
        Ok((network, udp)) => {
            if let Ok(packet) = Packet::parse_roce(udp) {
                roce(&packet, &network);
            }
            network
        }
        Err(_) => RoceNetwork {
            addresses: ib_wire::packet::RoceAddresses::V4 {
                source: [192, 0, 2, 1].into(),
                destination: [192, 0, 2, 2].into(),
                identification: 0,
                fragment: 0,
            },
            source_port: 0xc000,
            destination_port: RoceNetwork::PORT,
        },
    };
    if let Ok(packet) = Packet::parse_roce(bytes) {
        roce(&packet, &network);
    }
});

/// Rebuilds a RoCEv2 packet, and compares both packets.
fn roce(packet: &Packet<'_>, network: &RoceNetwork) {
    let _ = packet.check_roce_icrc(network);
    let mut built = vec![0; packet.bytes().len()];
    match Builder::from_packet(packet).emit_roce(network, &mut built) {
        Ok(length) => assert_eq!(length, built.len()),
        Err(BuildError::TooLong { .. }) => return,
        Err(error) => panic!("{error}"),
    }
    let again = Packet::parse_roce(&built).expect("a built packet is valid");
    assert_eq!(again.check_roce_icrc(network), Ok(()));
    compare(packet, &again);
}

fn compare(packet: &Packet<'_>, again: &Packet<'_>) {
    assert_eq!(packet.bth(), again.bth());
    assert_eq!(packet.payload(), again.payload());
    assert_eq!(packet.pad_count(), again.pad_count());
    assert_eq!((packet.rdeth(), packet.deth()), (again.rdeth(), again.deth()));
    assert_eq!((packet.xrceth(), packet.reth()), (again.xrceth(), again.reth()));
    assert_eq!((packet.aeth(), packet.immdt()), (again.aeth(), again.immdt()));
    assert_eq!(packet.atomic_eth(), again.atomic_eth());
    assert_eq!((packet.atomic_ack_eth(), packet.ieth()), (again.atomic_ack_eth(), again.ieth()));
    let _ = packet.aeth().map(|aeth| aeth.syndrome.decode().to_string());
    let opcode = packet.bth().opcode;
    assert!(!format!("{opcode} {opcode:?}").is_empty());
}
