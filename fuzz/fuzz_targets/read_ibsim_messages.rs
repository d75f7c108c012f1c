//! Parses arbitrary bytes as messages between ibsim and its clients. Accepted messages survive
//! encoding and parsing again.
#![no_main]

use ib_ibsim::message::{Connect, Control, MessageError, Request};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Control::parse(bytes) {
        Ok(control) => {
            assert_eq!(control.to_bytes(), bytes);
            assert_eq!(Control::parse(&control.to_bytes()), Ok(control));
            let connect = Connect::parse(&control.payload);
            let mut payload = [0; 64];
            payload[..Connect::LENGTH].copy_from_slice(&connect.to_bytes());
            let again = Connect::parse(&payload);
            assert_eq!(
                (connect.id, connect.queue_pair, connect.is_sm),
                (again.id, again.queue_pair, again.is_sm)
            );
            // The encoder truncates names of 32 or more bytes. Parsing replaces invalid UTF-8 by longer characters, so
            // a parsed name can be that long.
            if connect.node.len() < 32 {
                assert_eq!(connect.node, again.node);
            }
        }
        Err(error) => refused(&error, bytes, Control::LENGTH),
    }
    match Request::parse(bytes) {
        Ok(request) => assert_eq!(Request::parse(&request.to_bytes()), Ok(request)),
        Err(error) => refused(&error, bytes, Request::LENGTH),
    }
});

fn refused(error: &MessageError, bytes: &[u8], length: usize) {
    assert!(!error.to_string().is_empty());
    let wrong = matches!(error, MessageError::Length { .. });
    assert_eq!(wrong, bytes.len() != length);
}
