use std::collections::BTreeSet;

use ib_types::PKey;
use ib_wire::packet::Opcode;
use proptest::prelude::*;

use super::*;

const NOW: Instant = Instant::ZERO;

/// Returns a packet to a queue pair.
fn packet(destination: Qpn) -> Vec<u8> {
    let bth =
        Bth { opcode: Opcode::UD_SEND_ONLY, p_key: PKey::DEFAULT, destination, ..Bth::default() };
    bth.to_bytes().to_vec()
}

/// Returns a packet with a MAD of the given class.
fn mad(class: MgmtClass) -> Vec<u8> {
    let mad = [1, class.0, 2, 3];
    [&packet(Qpn::GSI)[..], &[0; Deth::LENGTH], &mad].concat()
}

/// Returns a QPN in a block.
fn number_in(block: u8, lower: u32) -> Qpn {
    Qpn::truncated(u32::from(block) << 16 | lower & 0xffff)
}

#[test]
fn packet_goes_to_the_hca_that_has_its_qpn() {
    let mut port = Demultiplexer::default();
    let blocks = [7, 8, 9].map(|client| port.admit(NOW, client, &[]).expect("a block is free"));
    for (client, block) in [7, 8, 9].into_iter().zip(blocks) {
        for lower in [0, 2, 0xffff] {
            let packet = packet(number_in(block, lower));
            assert_eq!(port.destination(&packet, false), Destination::One(client));
            assert_eq!(port.destination(&packet, true), Destination::All);
        }
    }
    assert_eq!(port.destination(&packet(number_in(200, 5)), false), Destination::None);
    assert_eq!(port.destination(&packet(Qpn::MULTICAST), false), Destination::All);
    assert_eq!(port.destination(&[0; 11], false), Destination::None);
}

#[test]
fn attached_hca_serves_a_class_that_no_other_hca_serves() {
    let mut port = Demultiplexer::default();
    let class = MgmtClass::COMMUNICATION;
    for client in [1, 2] {
        port.admit(NOW, client, &[]).expect("a block is free");
    }
    assert_eq!([port.add_class(1, class), port.add_class(1, class)], [Ok(()); 2]);
    assert_eq!(port.destination(&mad(class), false), Destination::One(1));
    let refused = port.add_class(2, class);
    assert_eq!(refused, Err(AdmissionError::ClassInUse { class, client: 1 }));
    port.remove(NOW, 1, false);
    assert_eq!(port.add_class(2, class), Ok(()));
    assert_eq!(port.destination(&mad(class), false), Destination::One(2));
}

#[test]
fn mad_goes_to_the_hca_that_serves_its_class() {
    let mut port = Demultiplexer::default();
    port.admit(NOW, 1, &[]).expect("a block is free");
    port.admit(NOW, 2, &[MgmtClass::COMMUNICATION]).expect("the class is not in use");
    port.admit(NOW, 3, &[MgmtClass::SUBN_ADM]).expect("the class is not in use");
    assert_eq!(port.destination(&mad(MgmtClass::COMMUNICATION), false), Destination::One(2));
    assert_eq!(port.destination(&mad(MgmtClass::SUBN_ADM), false), Destination::One(3));
    assert_eq!(port.destination(&mad(MgmtClass::PERFORMANCE), false), Destination::None);
    assert_eq!(port.destination(&packet(Qpn::GSI), false), Destination::None);
    let refused = port.admit(NOW, 4, &[MgmtClass::PERFORMANCE, MgmtClass::COMMUNICATION]);
    let class = MgmtClass::COMMUNICATION;
    assert_eq!(refused, Err(AdmissionError::ClassInUse { class, client: 2 }));
    let classes = [MgmtClass::PERFORMANCE; MOST_CLASSES + 1];
    assert_eq!(port.admit(NOW, 4, &classes), Err(AdmissionError::Classes { found: 9 }));
    port.remove(NOW, 2, false);
    // The first HCA rejects requests that no HCA serves.
    assert_eq!(port.destination(&mad(MgmtClass::COMMUNICATION), false), Destination::One(1));
    port.admit(NOW, 4, &[MgmtClass::COMMUNICATION]).expect("the class is free again");
}

#[test]
fn block_of_a_killed_process_is_reserved() {
    let mut port = Demultiplexer::default();
    let blocks: BTreeSet<u8> =
        (0..256).map(|client| port.admit(NOW, client, &[]).expect("a block is free")).collect();
    assert_eq!(blocks.len(), usize::from(BLOCKS));
    port.remove(NOW, 40, true);
    port.remove(NOW, 17, true);
    let just_before = NOW + (RESERVED - Duration::from_nanos(1));
    let full = Err(AdmissionError::NoBlock { used: 254, reserved: 2 });
    assert_eq!(port.admit(just_before, 300, &[]), full);
    assert_eq!(port.destination(&packet(number_in(40, 9)), false), Destination::None);
    port.remove(NOW, 99, false);
    assert_eq!(port.admit(NOW, 299, &[]), Ok(99));
    assert_eq!(port.admit(NOW + RESERVED, 300, &[]), Ok(40));
    assert_eq!(port.admit(NOW + RESERVED, 301, &[]), Ok(17));
}

#[test]
fn freed_block_is_the_last_to_be_assigned_again() {
    let mut port = Demultiplexer::default();
    let first = port.admit(NOW, 0, &[]).expect("a block is free");
    port.remove(NOW, 0, false);
    let later = NOW + Duration::from_secs(60);
    let others: Vec<u8> =
        (1..256).map(|client| port.admit(later, client, &[]).expect("a block is free")).collect();
    assert!(!others.contains(&first));
    assert_eq!(port.admit(later, 256, &[]), Ok(first));
}

proptest! {
    /// HCAs attach and detach in any order. Each HCA has its own block, and gets only packets to QPNs of this block.
    #[test]
    fn attached_hcas_never_share_a_block(steps in prop::collection::vec((0..40_usize, 0..3000_u64), 1..400)) {
        let mut port = Demultiplexer::default();
        let (mut now, mut blocks) = (NOW, std::collections::BTreeMap::new());
        for (client, milliseconds) in steps {
            now += Duration::from_millis(milliseconds);
            if blocks.remove(&client).is_some() {
                port.remove(now, client, milliseconds % 2 == 0);
            } else {
                blocks.insert(client, port.admit(now, client, &[]).expect("at most 40 blocks are in use"));
            }
            prop_assert_eq!(blocks.values().collect::<BTreeSet<_>>().len(), blocks.len());
            prop_assert_eq!(port.clients().collect::<BTreeSet<_>>(), blocks.keys().copied().collect());
            for (&client, &block) in &blocks {
                let found = port.destination(&packet(number_in(block, 77)), false);
                prop_assert_eq!(found, Destination::One(client));
            }
        }
    }
}
