//! Reads any bytes as ibnetdiscover output; what it accepts survives being written and read again.

#![no_main]

use ib_topology::{Format, read_as, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(fabric) = read_as(Format::Ibnetdiscover, "fuzz", bytes) else { return };
    let mut written = Vec::new();
    write(&fabric, Format::Ibnetdiscover, &mut written).expect("what was read can be written");
    let again = read_as(Format::Ibnetdiscover, "written", &written).expect("and read again");
    assert!(fabric == again, "the fabric has changed");
    assert!(ib_topology::read("sniffed", &written) == Ok(fabric), "it is known for what it is");
});
