//! Parses arbitrary bytes as the header of umad devices, and as their old and new registration structs. The parsed
//! structs survive encoding and parsing again.
#![no_main]

use ib_umad::abi::{HEADER, Registration, SHORT_HEADER, UmadHeader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if bytes.len() >= SHORT_HEADER {
        let header = UmadHeader::parse(bytes);
        let written = header.to_bytes();
        assert_eq!(
            UmadHeader::parse(&written[..HEADER.min(bytes.len()).max(SHORT_HEADER)]),
            header
        );
        assert_eq!(written[..32], bytes[..32], "the first 32 bytes have no reserved bits");
    }
    if let Some(bytes) = bytes.first_chunk() {
        let old = Registration::from_old(bytes);
        assert_eq!(Registration::from_old(&old.to_old()), old);
        assert_eq!(Registration::from_new(&old.to_new()), old);
    }
    if let Some(bytes) = bytes.first_chunk() {
        let new = Registration::from_new(bytes);
        assert_eq!(Registration::from_new(&new.to_new()), new);
    }
});
