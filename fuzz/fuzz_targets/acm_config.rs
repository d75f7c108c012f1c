//! Parses arbitrary bytes as each of the ACM configuration files.
//!
//! Checks that errors name the file, and that accepted files are the same after writing and parsing again.
#![no_main]

use ib_acm::config::routes::{Block, Row};
use ib_acm::config::{AddressFile, HostFile, Options, Routes};
use ib_types::{Guid, Lid, NodeKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Options::read("file", data) {
        Ok(read) => {
            let again = Options::read("file", read.value.to_file().as_bytes());
            assert_eq!(again.map(|again| again.value), Ok(read.value));
        }
        Err(error) => assert!(error.to_string().starts_with("file:"), "{error}"),
    }
    addresses(data);
    hosts(data);
    routes(data);
});

fn addresses(data: &[u8]) {
    let mut read = AddressFile::read(data).value;
    let mut again = AddressFile::read(read.to_file().as_bytes());
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    for line in read.lines.iter_mut().chain(&mut again.value.lines) {
        line.line = 0;
    }
    assert_eq!(again.value, read);
}

fn hosts(data: &[u8]) {
    let mut read = HostFile::read(data).value;
    let mut again = HostFile::read(read.to_file().as_bytes());
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    for line in read.lines.iter_mut().chain(&mut again.value.lines) {
        line.line = 0;
    }
    assert_eq!(again.value, read);
}

fn routes(data: &[u8]) {
    let (guid, base_lid) = (Guid(1), Lid::unicast(1).expect("1 is a unicast LID"));
    let read = Routes::read("file", data, guid, base_lid).expect("memory is readable").value;
    let kind = NodeKind::ChannelAdapter;
    let block = Block { kind, guid, base_lid, description: "", port: 1 };
    let none = read.unreachable.iter().copied().map(Row::Unreachable);
    let text = block.to_text(read.routes.iter().copied().map(Row::Route).chain(none));
    let again = Routes::read("file", text.as_bytes(), guid, base_lid)
        .expect("reading from memory does not fail");
    assert!(again.warnings.is_empty(), "{:?}", again.warnings);
    assert_eq!((again.value.routes, again.value.unreachable), (read.routes, read.unreachable));
}
