use ib_types::{Guid, PKey, Psn, QKey, Qpn, ServiceLevel, VirtualLane};
use proptest::prelude::*;

use super::*;
use crate::packet::{Builder, Opcode};

/// A UD SEND only packet with a GRH, 5 bytes of payload, and 3 pad bytes.
fn global() -> Vec<u8> {
    let bth = Bth {
        opcode: Opcode::UD_SEND_ONLY,
        p_key: PKey::DEFAULT_LIMITED,
        fecn: true,
        destination: Qpn::GSI,
        psn: Psn::truncated(0x12_3456),
        ..Bth::default()
    };
    let lrh = Lrh {
        vl: VirtualLane::new(3).unwrap(),
        sl: ServiceLevel::new(5).unwrap(),
        dlid: 0xc001,
        slid: 7,
        ..Lrh::default()
    };
    let source = ib_types::Gid::new(ib_types::Gid::DEFAULT_PREFIX, Guid(7));
    let mut bytes = vec![0; 96];
    let length = Builder::new(bth)
        .lrh(lrh)
        .grh(Grh { source, ..Grh::default() })
        .deth(Deth { q_key: QKey::GSI, source: Qpn::GSI })
        .payload(b"hello")
        .emit(&mut bytes)
        .unwrap();
    bytes.truncate(length);
    bytes
}

#[test]
fn parse_finds_all_headers_and_the_payload() {
    let bytes = global();
    let packet = Packet::parse(&bytes).unwrap();
    assert!(packet.is_native());
    let lrh = packet.lrh().unwrap();
    assert_eq!((lrh.vl.get(), lrh.sl.get(), lrh.dlid, lrh.slid), (3, 5, 0xc001, 7));
    assert_eq!((lrh.next_header, lrh.length), (LinkNextHeader::GLOBAL, 20));
    let grh = packet.grh().unwrap();
    assert_eq!((grh.payload_length, grh.source.guid()), (32, Guid(7)));
    let bth = packet.bth();
    assert_eq!((bth.opcode, bth.destination), (Opcode::UD_SEND_ONLY, Qpn::GSI));
    assert_eq!((bth.pad_count, bth.fecn, bth.becn), (3, true, false));
    assert_eq!(packet.deth(), Some(Deth { q_key: QKey::GSI, source: Qpn::GSI }));
    assert_eq!(packet.reth(), None);
    assert_eq!((packet.payload(), packet.pad_count()), (&b"hello"[..], 3));
    assert_eq!((packet.bth_offset(), packet.payload_offset()), (48, 68));
    assert_eq!(packet.header_offset(Header::Deth), Some(60));
    assert_eq!((packet.check_icrc(), packet.check_vcrc()), (Ok(()), Ok(())));
}

#[test]
fn errors_name_field_offset_and_value() {
    let good = global();
    let error_of = |bytes: &[u8]| Packet::parse(bytes).unwrap_err().to_string();
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        error_of(&bytes)
    };
    assert_eq!(error_of(&[0; 7]), "the packet ends at byte 7, within the LRH (bytes 0 to 8)");
    assert_eq!(changed(0, 0x31), "LVer of the LRH at byte 0 is 1: expected 0");
    let raw = "LNH of the LRH at byte 1 is 1: expected 2 (BTH) or 3 (GRH)";
    assert_eq!(changed(1, 0x51), raw);
    assert_eq!(
        changed(5, 19),
        "PktLen of the LRH (in words of 4 bytes) at byte 4 is 19: expected 20"
    );
    assert_eq!(
        changed(5, 21),
        "the packet ends at byte 82, within the packet length of the LRH (bytes 0 to 86)"
    );
    assert_eq!(changed(8, 0x40), "IPVer of the GRH at byte 8 is 4: expected 6");
    assert_eq!(changed(13, 31), "PayLen of the GRH at byte 12 is 31: expected 32");
    assert_eq!(changed(14, 17), "NxtHdr of the GRH at byte 14 is 17: expected 27 (BTH)");
    assert_eq!(changed(49, 1), "TVer of the BTH at byte 49 is 1: expected 0");
    assert_eq!(changed(48, 0x4a), "the packet ends at byte 80, within RETH (bytes 72 to 88)");
    assert_eq!(changed(48, 0x53), "the packet ends at byte 80, within AtomicETH (bytes 72 to 100)");
    let short = Bth { pad_count: 1, ..Bth::default() }.to_bytes();
    let error_of = |bytes: &[u8]| Packet::parse_roce(bytes).unwrap_err().to_string();
    assert_eq!(
        error_of(&[&short[..], &[0; 4]].concat()),
        "the packet ends at byte 16, within the pad that the BTH announces (bytes 12 to 17)"
    );
    assert_eq!(
        error_of(&[&short[..], &[0; 9]].concat()),
        "the packet has 21 bytes from the BTH at byte 0 to the end: expected a multiple of 4"
    );
    assert_eq!(
        error_of(&short[..11]),
        "the packet ends at byte 11, within the BTH (bytes 0 to 12)"
    );
    assert_eq!(error_of(&short), "the packet ends at byte 12, within the ICRC (bytes 12 to 16)");
}

#[test]
fn changed_bit_makes_both_checksums_wrong() {
    let mut bytes = global();
    bytes[68] ^= 1;
    let packet = Packet::parse(&bytes).unwrap();
    let icrc = packet.check_icrc().unwrap_err().to_string();
    assert!(icrc.starts_with("ICRC at byte 76 is 0x"), "{icrc}");
    let vcrc = packet.check_vcrc().unwrap_err().to_string();
    assert!(vcrc.starts_with("VCRC at byte 80 is 0x"), "{vcrc}");
}

#[test]
fn bytes_after_an_unknown_opcode_are_payload() {
    let bth = Bth { opcode: Opcode(0xc7), ..Bth::default() };
    let mut bytes = [0; 64];
    let builder = Builder::new(bth).lrh(Lrh::default()).payload(b"a vendor's own");
    let length = builder.emit(&mut bytes).unwrap();
    let packet = Packet::parse(&bytes[..length]).unwrap();
    assert_eq!(packet.bth().opcode, Opcode(0xc7));
    assert_eq!(packet.payload(), b"a vendor's own");
    assert_eq!(packet.headers().iter().count(), 0);
}

proptest! {
    #[test]
    fn parse_does_not_panic_on_any_bytes(
        mut bytes in prop::collection::vec(any::<u8>(), 0..160),
        fit in any::<bool>(),
    ) {
        if fit && bytes.len() >= 8 {
            // Makes the LRH valid. Otherwise the parser would reject most random bytes because of
            // the LRH.
            bytes.truncate((bytes.len() - 2) / 4 * 4 + 2);
            bytes[0] &= 0xf0;
            bytes[1] &= 0xf1;
            bytes[1] |= 2;
            let words = ((bytes.len() - 2) / 4) as u16;
            bytes[4..6].copy_from_slice(&words.to_be_bytes());
        }
        for parsed in [Packet::parse(&bytes), Packet::parse_roce(&bytes)] {
            let Ok(packet) = parsed else { continue };
            let end = packet.payload_offset() + packet.payload().len() + packet.pad_count() + ICRC;
            prop_assert_eq!(end, bytes.len() - if packet.is_native() { VCRC } else { 0 });
            let extended = packet.headers().length();
            prop_assert_eq!(packet.bth_offset() + Bth::LENGTH + extended, packet.payload_offset());
            if packet.is_native() {
                let _ = (packet.check_icrc(), packet.check_vcrc());
            }
        }
    }
}
