//! Parses arbitrary bytes as a node-name-map. Names survive writing and parsing again.

#![no_main]

use std::fmt::Write;

use ib_topology::name_map;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(names) = name_map::parse("fuzz", bytes) else { return };
    let mut written = String::new();
    for (guid, name) in &names {
        writeln!(written, "{guid} \"{name}\"").expect("a `String` is writable");
    }
    assert_eq!(name_map::parse("written", written.as_bytes()), Ok(names));
});
