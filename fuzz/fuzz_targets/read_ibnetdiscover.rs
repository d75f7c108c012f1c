//! Parses arbitrary bytes as ibnetdiscover output. Accepted fabrics survive writing and parsing
//! again.

#![no_main]

use ib_topology::{Format, read_as, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(fabric) = read_as(Format::Ibnetdiscover, "fuzz", bytes) else { return };
    let mut written = Vec::new();
    write(&fabric, Format::Ibnetdiscover, &mut written).expect("write the parsed fabric");
    let again = read_as(Format::Ibnetdiscover, "written", &written).expect("parse it again");
    assert!(fabric == again, "the fabric has changed");
    assert!(ib_topology::read("sniffed", &written) == Ok(fabric), "the format is recognized");
});
