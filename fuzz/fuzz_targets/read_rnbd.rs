//! Parses arbitrary bytes as an RNBD message. Accepted messages survive encoding and parsing again.
#![no_main]

use ib_wire::rnbd::{IoFlags, Message};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(message) = Message::parse(bytes) else { return };
    let mut out = Vec::new();
    message.emit(&mut out);
    assert_eq!(Message::parse(&out), Ok(message));
    assert_eq!(out[..2], bytes[..2]);
    match message {
        Message::Io(io) => assert_eq!(IoFlags::of(io.rw.operation(), io.rw.flags()), io.rw),
        Message::Open(open) => assert!(open.name().len() <= 255),
        _ => {}
    }
    assert!(!message.message_type().to_string().is_empty());
});
