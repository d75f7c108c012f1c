use proptest::prelude::*;

use super::*;

crate::layout! {
    /// A layout with fields of several types. Some fields do not start at byte boundaries.
    struct Sample: 16 {
        flag: bool = bits(0, 0, 1),
        three: u8 = bits(0, 5, 3),
        twelve: u16 = bits(1, 4, 12),
        medium: u32 = bits(3, 0, 24),
        guid: Guid = bits(6, 0, 64),
        tail: [u8; 2] = bits(14, 0, 16),
    }
}

#[test]
fn parse_and_emit_use_the_positions_of_the_layout() {
    let bytes =
        [0x85, 0xfa, 0xbc, 1, 2, 3, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0xaa, 0xbb];
    let sample = Sample::parse(&bytes);
    let expected = Sample {
        flag: true,
        three: 5,
        twelve: 0xabc,
        medium: 0x01_0203,
        guid: Guid(0x1122_3344_5566_7788),
        tail: [0xaa, 0xbb],
    };
    assert_eq!(sample, expected);
    assert_eq!(Sample::FIELDS[1].name, "three");
    // `emit` does not change bits outside of fields.
    let mut buffer = [0xff; 16];
    sample.emit(&mut buffer);
    assert_eq!(buffer[..3], [0xfd, 0xfa, 0xbc]);
    assert_eq!(Sample::zeroed().to_bytes(), [0; Sample::LENGTH]);
}

proptest! {
    #[test]
    fn set_stores_the_value_and_changes_no_other_bits(
        before in prop::collection::vec(any::<u8>(), 24),
        byte in 0usize..12,
        bit in 0usize..8,
        width in 1usize..=64,
        value in any::<u64>(),
    ) {
        let at = Bits { byte, bit, width };
        let value = if width == 64 { value } else { value & ((1 << width) - 1) };
        let mut bytes = before.clone();
        set(&mut bytes, at, value);
        prop_assert_eq!(get(&bytes, at), value);
        set(&mut bytes, at, get(&before, at));
        prop_assert_eq!(bytes, before);
    }
}
