use proptest::prelude::*;

use super::*;

/// The sample packet of IBTA volume 1, chapter 7.8: an RDMA WRITE of 14 bytes, without a GRH.
const SAMPLE: [u8; 52] = [
    0x70, 0x12, 0x37, 0x5c, 0x00, 0x0e, 0x17, 0xd2, 0x0a, 0x20, 0x24, 0x87, 0x00, 0x87, 0xb1, 0xb3,
    0x00, 0x0d, 0xec, 0x2a, 0x01, 0x71, 0x0a, 0x1c, 0x01, 0x5d, 0x40, 0x02, 0x38, 0xf2, 0x7a, 0x05,
    0x00, 0x00, 0x00, 0x0e, 0xbb, 0x88, 0x4d, 0x85, 0xfd, 0x5c, 0xfb, 0xa4, 0x72, 0x8b, 0xc0, 0x69,
    0x0e, 0xd4, 0x00, 0x00,
];

#[test]
fn icrc_matches_the_ibta_sample_packet() {
    assert_eq!(icrc_native(&SAMPLE), 0x9625_b75a);
    let mut changed = SAMPLE;
    changed[0] = 0x20;
    changed[12] = 0xc0;
    assert_eq!(icrc_native(&changed), 0x9625_b75a, "the ICRC does not cover VL, FECN and BECN");
}

#[test]
fn after_lrh_of_ones_equals_eight_bytes_of_ones() {
    let mut explicit = Icrc::new();
    explicit.update(&[0xff; 8]);
    explicit.update(b"payload");
    let mut precomputed = Icrc::after_lrh_of_ones();
    precomputed.update(b"payload");
    assert_eq!(explicit.finish(), precomputed.finish());
}

#[test]
fn vcrc_of_the_sample_packet_matches_bitwise_computation() {
    let sample = [SAMPLE.as_slice(), &[0x96, 0x25, 0xb7, 0x5a]].concat();
    assert_eq!(vcrc(&sample), bit_by_bit(&sample));
    assert_eq!(vcrc(&sample), 0x45fa);
}

/// Computes the VCRC bit by bit, as does the shift register in IBTA volume 1, chapter 7.8.2.
fn bit_by_bit(bytes: &[u8]) -> u16 {
    let mut register = u16::MAX;
    for &byte in bytes {
        for bit in 0..8 {
            let feedback = register >> 15 ^ u16::from(byte >> bit & 1);
            register = register << 1 ^ if feedback == 1 { 0x100b } else { 0 };
        }
    }
    (!register).reverse_bits().swap_bytes()
}

proptest! {
    #[test]
    fn vcrc_tables_match_the_shift_register(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        prop_assert_eq!(vcrc(&bytes), bit_by_bit(&bytes));
    }
}
