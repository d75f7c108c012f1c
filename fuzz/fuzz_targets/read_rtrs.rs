//! Parses arbitrary bytes as RTRS private data, messages and immediate data.
//!
//! Checks that accepted data is encoded to the same bytes, except for reserved bytes.
#![no_main]

use ib_wire::rtrs::{ConnectRequest, ConnectResponse, Immediate, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = ConnectRequest::read(bytes) {
        assert_eq!(ConnectRequest::read(&request.to_bytes()), Ok(request));
    }
    if let Ok(response) = ConnectResponse::read(bytes) {
        assert_eq!(ConnectResponse::read(&response.to_bytes()), Ok(response));
    }
    if let Ok(message) = Message::parse(bytes) {
        let mut out = Vec::new();
        message.emit(&mut out);
        assert_eq!(Message::parse(&out), Ok(message));
        assert!(out.len() <= bytes.len());
    }
    let Some((first, rest)) = bytes.split_first_chunk() else { return };
    let immediate = Immediate(u32::from_le_bytes(*first));
    assert_eq!(Immediate::new(immediate.kind()), immediate);
    assert!(!immediate.to_string().is_empty());
    let Some((depth, end)) = rest.split_first_chunk() else { return };
    let depth = u16::from_le_bytes(*depth);
    let (chunk, offset) = Immediate::chunk_and_offset(immediate.0 & 0x0fff_ffff, depth);
    let kind = immediate.0 >> 28;
    assert_eq!(Immediate::request(depth, chunk, offset).0 | kind << 28, immediate.0);
    for length in [end.len(), end.len() + 1, offset as usize] {
        if let Some((_, user)) = Message::parse_at_end(end, length, offset as usize) {
            assert!(user.len() < end.len());
        }
    }
});
