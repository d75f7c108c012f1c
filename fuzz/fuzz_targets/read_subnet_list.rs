//! Parses arbitrary bytes as OpenSM's subnet list. Accepted fabrics survive writing and parsing
//! again.

#![no_main]

use ib_topology::{Format, read_as, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(fabric) = read_as(Format::SubnetList, "fuzz", bytes) else { return };
    let mut written = Vec::new();
    write(&fabric, Format::SubnetList, &mut written).expect("the fabric can be written");
    let again =
        read_as(Format::SubnetList, "written", &written).expect("written fabrics are valid");
    // Writing may change the order of the nodes. So both outputs are compared with sorted lines.
    let mut rewritten = Vec::new();
    write(&again, Format::SubnetList, &mut rewritten).expect("the fabric can be written");
    assert_eq!(sorted(&written), sorted(&rewritten), "the fabric has changed");
    assert_eq!(fabric.node_count(), again.node_count());
    assert_eq!(fabric.link_count(), again.link_count());
});

fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = text.split(|&b| b == b'\n').collect();
    lines.sort_unstable();
    lines
}
