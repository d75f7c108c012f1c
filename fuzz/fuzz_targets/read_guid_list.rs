//! Parses arbitrary bytes as a GUID list.
//!
//! Checks that each line yields at most one GUID or one discarded line. The GUIDs must be the same after writing and
//! parsing again.

#![no_main]

use std::fmt::Write;

use ib_topology::guid_list;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let list = guid_list::parse(bytes);
    let lines = bytes.split(|&b| b == b'\n').count();
    assert!(list.entries.len() + list.discarded.len() <= lines);
    let mut written = String::new();
    for entry in &list.entries {
        assert!((1..=lines).contains(&entry.line) && !entry.guid.is_zero());
        writeln!(written, "{} {}", entry.guid, entry.rest).expect("a `String` is writable");
    }
    let again = guid_list::parse(written.as_bytes());
    assert!(again.discarded.is_empty());
    let found = |list: &guid_list::GuidList| -> Vec<_> {
        list.entries.iter().map(|entry| (entry.guid, entry.rest.clone())).collect()
    };
    assert_eq!(found(&list), found(&again));
});
