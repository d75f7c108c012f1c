use proptest::prelude::*;

use super::*;

const HEADER: ErfHeader = ErfHeader {
    time: 1_700_000_000_123_456_789,
    kind: ErfHeader::INFINIBAND,
    port: 2,
    truncated: true,
    receive_error: false,
    lost: 3,
    wire_length: 290,
};

#[test]
fn record_can_be_parsed_after_formatting() {
    let mut record = HEADER.to_bytes(5).to_vec();
    assert_eq!(record[8..], [21, 0x0e, 0, 24, 0, 3, 0x01, 0x22]);
    record.extend(b"start");
    assert_eq!(ErfHeader::parse(&record), Ok((HEADER, &b"start"[..])));
}

#[test]
fn extension_headers_and_padding_are_skipped() {
    let mut record = ErfHeader { wire_length: 4, ..HEADER }.to_bytes(4).to_vec();
    record[8] |= 0x80;
    record.extend([0x83, 0, 0, 0, 0, 0, 0, 0, 0x03, 0, 0, 0, 0, 0, 0, 0]);
    record.extend(b"wire fill");
    let (header, packet) = ErfHeader::parse(&record).unwrap();
    assert_eq!((header.kind, packet), (ErfHeader::INFINIBAND, &b"wire"[..]));
    let error = ErfHeader::parse(&record[..30]).unwrap_err().to_string();
    assert_eq!(error, "the ERF record ends at byte 30: expected 32 bytes of headers");
}

#[test]
fn records_of_other_types_are_errors() {
    let mut record = HEADER.to_bytes(0);
    record[8] = 2;
    let error = ErfHeader::parse(&record).unwrap_err().to_string();
    assert_eq!(error, "the ERF record's type at byte 8 is 2: expected 21 (InfiniBand)");
    assert_eq!(ErfHeader::parse(&[]), Err(ErfError::Truncated { expected: 16, found: 0 }));
}

proptest! {
    #[test]
    fn times_survive(seconds in any::<u32>(), nanoseconds in 0..BILLION) {
        let time = u64::from(seconds) * BILLION + nanoseconds;
        prop_assert_eq!(from_fixed_point(to_fixed_point(time)), time);
    }

    #[test]
    fn parsing_never_panics(record in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = ErfHeader::parse(&record);
        let mut record = record;
        if record.len() > 8 {
            record[8] = record[8] & 0x80 | 21;
            let _ = ErfHeader::parse(&record);
        }
    }
}
