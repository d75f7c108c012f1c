//! Parses arbitrary bytes as ibnetdiscover output. Accepted fabrics survive writing and parsing
//! again.

#![no_main]

use ib_topology::{Format, read_as, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(fabric) = read_as(Format::Ibnetdiscover, "fuzz", bytes) else { return };
    let mut written = Vec::new();
    write(&fabric, Format::Ibnetdiscover, &mut written).expect("the fabric can be written");
    let again =
        read_as(Format::Ibnetdiscover, "written", &written).expect("written fabrics are valid");
    assert!(fabric == again, "the fabric has changed");
    assert!(ib_topology::read("sniffed", &written) == Ok(fabric), "the format is not recognized");
});
