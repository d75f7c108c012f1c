use proptest::prelude::*;

use super::*;

#[test]
fn payload_lengths_match_the_linux_kernel() {
    // Length of the message, data bytes per segment, and the payload length fields that the Linux
    // kernel sends.
    let cases: [(u32, u32, &[u32]); 6] = [
        (0, 200, &[20]),
        (112, 200, &[132]),
        (200, 200, &[220]),
        (201, 200, &[241, 21]),
        (560, 200, &[620, 0, 180]),
        (300, 216, &[308, 88]),
    ];
    for (length, per_segment, expected) in cases {
        let count = segments(length, per_segment);
        let lengths: Vec<_> =
            (1..=count).map(|segment| payload_length(length, per_segment, segment)).collect();
        assert_eq!(lengths, expected, "message of {length} bytes");
    }
    assert_eq!(data_per_segment(MgmtClass::SUBN_ADM), Some(200));
    assert_eq!(data_per_segment(MgmtClass::TRACER), Some(216));
    assert_eq!(data_per_segment(MgmtClass::PERFORMANCE), None);
}

#[test]
fn flags_mark_first_and_last_segment() {
    assert_eq!(flags(1, 1).to_string(), "Active|First|Last");
    assert_eq!(flags(1, 3).to_string(), "Active|First");
    assert_eq!(flags(2, 3).to_string(), "Active");
    assert_eq!(flags(3, 3).to_string(), "Active|Last");
}

#[test]
fn rmpp_header_is_at_byte_24() {
    let mut mad = Mad::default();
    mad.0[1] = 3;
    assert!(!mad.is_rmpp());
    mad.0[24..36].copy_from_slice(&[1, 1, 0xf3, 0, 0, 0, 0, 1, 0, 0, 1, 0x2c]);
    let header = mad.rmpp();
    assert_eq!((header.rmpp_type, header.resp_time), (RmppType::DATA, 30));
    assert_eq!(header.flags, RmppFlags::ACTIVE | RmppFlags::FIRST);
    assert_eq!((header.segment, header.length_or_window), (1, 300));
    assert!(mad.is_rmpp());
    let mut copy = Mad::default();
    copy.set_rmpp(&header);
    assert_eq!(copy.0[24..36], mad.0[24..36]);
}

proptest! {
    #[test]
    fn payload_lengths_add_up(
        length in 0u32..1_000_000,
        per_segment in prop::sample::select(vec![200u32, 216]),
    ) {
        let count = segments(length, per_segment);
        let last = payload_length(length, per_segment, count);
        let whole = payload_length(length, per_segment, 1);
        prop_assert_eq!(whole, length + count * (SEGMENT_LENGTH - per_segment));
        let data = last_data(last, per_segment);
        prop_assert_eq!(data, Some(length - (count - 1) * per_segment));
    }
}
