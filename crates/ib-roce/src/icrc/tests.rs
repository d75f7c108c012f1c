use std::net::{Ipv4Addr, Ipv6Addr};

use ib_types::rng::Rng;
use ib_wire::packet::{RoceAddresses, RoceNetwork};
use proptest::prelude::*;

use super::*;

/// Returns the headers of a flow as two types: that of ib-wire, which computes the expected ICRCs,
/// and that of the tested module.
fn v4(source: u32, destination: u32, ports: (u16, u16), id: u16) -> (RoceNetwork, Headers) {
    let (source, destination) = (Ipv4Addr::from(source), Ipv4Addr::from(destination));
    let network = RoceNetwork {
        addresses: RoceAddresses::V4 { source, destination, identification: id, fragment: 0x4000 },
        source_port: ports.0,
        destination_port: ports.1,
    };
    (network, Headers::new(source.into(), destination.into(), ports.0, ports.1))
}

fn v6(source: u128, destination: u128, ports: (u16, u16)) -> (RoceNetwork, Headers) {
    let (source, destination) = (Ipv6Addr::from(source), Ipv6Addr::from(destination));
    let network = RoceNetwork {
        addresses: RoceAddresses::V6 { source, destination },
        source_port: ports.0,
        destination_port: ports.1,
    };
    (network, Headers::new(source.into(), destination.into(), ports.0, ports.1))
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    (3..=MAX_PACKET / 4).prop_flat_map(|words| {
        prop_oneof![
            prop::collection::vec(any::<u8>(), words * 4),
            prop::collection::vec(any::<u8>(), (words % 16).max(3) * 4),
        ]
    })
}

/// Appends the ICRC that ib-wire computes.
fn sealed(network: &RoceNetwork, mut bytes: Vec<u8>) -> Vec<u8> {
    let icrc = network.icrc(&bytes);
    bytes.extend(icrc.to_be_bytes());
    bytes
}

proptest! {
    #[test]
    fn icrc_equals_that_of_the_oracle(
        addresses in any::<(u128, u128)>(),
        ports in any::<(u16, u16)>(),
        id in 0..OWN_IDENTIFICATIONS as u16,
        bytes in bytes(),
    ) {
        let tables = Tables::get();
        let (network, headers) = v4(addresses.0 as u32, addresses.1 as u32, ports, id);
        prop_assert_eq!(headers.icrc(tables, &bytes, id), network.icrc(&bytes).swap_bytes());
        let zero = headers.icrc(tables, &bytes, id) ^ tables.without_identification(bytes.len(), id);
        prop_assert_eq!(zero, headers.icrc(tables, &bytes, 0));
        let (network, headers) = v6(addresses.0, addresses.1, ports);
        prop_assert_eq!(headers.icrc(tables, &bytes, 0), network.icrc(&bytes).swap_bytes());
    }

    #[test]
    fn any_identification_and_fragment_flag_is_found(
        addresses in any::<(u32, u32)>(),
        ports in any::<(u16, u16)>(),
        id in prop_oneof![any::<u16>(), 0..OWN_IDENTIFICATIONS as u16],
        guess in 0..OWN_IDENTIFICATIONS as u16,
        dont_fragment in any::<bool>(),
        bytes in bytes(),
    ) {
        let (mut network, headers) = v4(addresses.0, addresses.1, ports, id);
        if let RoceAddresses::V4 { fragment, .. } = &mut network.addresses && !dont_fragment {
            *fragment = 0;
        }
        let checked = headers.check(Tables::get(), &sealed(&network, bytes), guess);
        let expected = if dont_fragment && usize::from(id) < OWN_IDENTIFICATIONS {
            IcrcCheck::ConsistentWithOwnId(id)
        } else {
            IcrcCheck::ConsistentWithSomeId { identification: id, dont_fragment }
        };
        prop_assert_eq!(checked, Some(expected));
    }

    #[test]
    fn variant_fields_are_not_covered(bytes in bytes(), marks in any::<u8>()) {
        for (network, headers) in [v4(1, 2, (3, 4), 0), v6(1, 2, (3, 4))] {
            let mut packet = sealed(&network, bytes.clone());
            packet[4] = marks;
            prop_assert!(headers.check(Tables::get(), &packet, 0).is_some());
        }
    }
}

/// The effect of a wrong bit depends only on the bit's distance from the identification. Therefore
/// the test uses the longest packet, and other lengths only for bits of the ICRC itself.
#[test]
fn single_wrong_bits_never_match_an_own_identification() {
    let tables = Tables::get();
    let (network, headers) = v4(1, 2, (3, 4), 0);
    let (mut tries, mut some) = (0, 0);
    let mut try_bits = |length: usize, bytes: &mut dyn Iterator<Item = usize>| {
        let mut packet = sealed(&network, vec![0; length]);
        for (at, bit) in bytes.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            packet[at] ^= 1 << bit;
            match headers.check(tables, &packet, 0) {
                None => {}
                Some(IcrcCheck::ConsistentWithSomeId { .. }) => some += 1,
                other => panic!("bit {bit} of byte {at} of {length} is wrong: {other:?}"),
            }
            packet[at] ^= 1 << bit;
            tries += 1;
        }
    };
    try_bits(MAX_PACKET, &mut (0..MAX_PACKET).filter(|&at| at != 4));
    for length in (12..=MAX_PACKET).step_by(4) {
        try_bits(length, &mut (length..length + ICRC));
    }
    // With a probability of 2^-15 for each try, 2 undetected corruptions are expected on average.
    // The tries of this test are fixed, and 4 of them are undetected.
    assert_eq!((tries, some), (66_488, 4));
}

#[test]
fn undetected_corruptions_have_the_documented_rate() {
    const TRIES: usize = 1 << 20;
    let tables = Tables::get();
    let (network, headers) = v4(0x0a00_0001, 0x0a00_0002, (4791, 4791), 7);
    let (network_v6, headers_v6) = v6(1, 2, (4791, 4791));
    let mut rng = Rng::new(1);
    let (mut some, mut own, mut verified) = (0, 0, 0);
    for length in [12, 64] {
        let bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        let packet = sealed(&network, bytes.clone());
        let packet_v6 = sealed(&network_v6, bytes);
        for _ in 0..TRIES / 2 {
            let (mut wrong, mut wrong_v6) = (packet.clone(), packet_v6.clone());
            // Overwrites a burst of bytes that is longer than the CRC.
            let at = 5 + rng.next_u64() as usize % (length - 5);
            for (byte, noise) in (at..length + 4).zip(rng.next_u64().to_le_bytes()) {
                wrong[byte] ^= noise;
                wrong_v6[byte] ^= noise;
            }
            if wrong == packet {
                continue;
            }
            match headers.check(tables, &wrong, 0) {
                Some(IcrcCheck::ConsistentWithSomeId { .. }) => some += 1,
                Some(_) => own += 1,
                None => {}
            }
            verified += usize::from(headers_v6.check(tables, &wrong_v6, 0).is_some());
        }
    }
    // With a probability of 2^-15 for each try, 32 undetected corruptions are expected. The chance
    // of more than 70 or fewer than 8 is below one in a million.
    assert!((8..=70).contains(&some), "{some} of {TRIES} corruptions were undetected");
    assert!(own <= 2, "{own} of {TRIES} corruptions matched an identification below 64");
    assert_eq!(verified, 0, "{verified} of {TRIES} corruptions over IPv6 were undetected");
}

/// Checks IP packets that were captured from the driver `rdma_rxe` of Linux 6.1.
#[test]
fn captured_packets_of_rxe_have_valid_icrcs() {
    let packets = [
        "45000030fa2c40004011253cc0a84d01c0a84d02f54112b7001c00001100ffff000000110064dd151f000001\
         29575875",
        "45000040fed2400040112086c0a84d01c0a84d02f54112b7002c00000b00ffff0000001180ccd92f00000000\
         00000000000000000000000080000000083aab41",
        "45000038fa4440004011251cc0a84d01c0a84d02f54112b7002400000500ffff0000001180ccd92b20000000\
         0400000020030000acb119fe",
        "60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002e96112b7\
         001c00001100ffff0000001100063b011f000001db7a9a96",
        "60000000001c1140fd000000000000000000000000000001fd000000000000000000000000000002e96112b7\
         001c00001700ffff0000001180c96e2b00000331c0f3d97e",
        "6000000000541140fd000000000000000000000000000002fd000000000000000000000000000001e96112b7\
         005400000b00ffff000000128017a5d7ffff8e9f03a200000000037c00000028000000200400000000000000\
         ffffffffffffffff0203000000000000000000000000000003002000000000000da1a545",
    ];
    for text in packets {
        let packet: Vec<u8> = (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let (network, udp) = RoceNetwork::parse(&packet).unwrap();
        let ports = (network.source_port, network.destination_port);
        let (headers, expected) = match network.addresses {
            RoceAddresses::V4 { source, destination, identification, .. } => (
                Headers::new(source.into(), destination.into(), ports.0, ports.1),
                IcrcCheck::ConsistentWithSomeId { identification, dont_fragment: true },
            ),
            RoceAddresses::V6 { source, destination } => (
                Headers::new(source.into(), destination.into(), ports.0, ports.1),
                IcrcCheck::Verified,
            ),
        };
        assert_eq!(headers.check(Tables::get(), udp, 0), Some(expected));
        let mut wrong = udp.to_vec();
        wrong[13] ^= 1;
        assert_eq!(headers.check(Tables::get(), &wrong, 0), None);
    }
}
