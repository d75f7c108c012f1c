//! Parses arbitrary text as a file of port addresses.
//!
//! Checks that each accepted address belongs to one port, and that the addresses are the same after writing and parsing
//! again.
#![no_main]

use std::fmt::Write;

use ib_sim::{Addresses, Options, Sim};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let sim = Sim::new(ib_fuzz::fabric(), Options::default());
    let derived = Addresses::derive(&sim);
    let mut addresses = derived.clone();
    if let Err(error) = addresses.override_from(&sim, "fuzz", text) {
        let text = text.trim_start_matches('\u{feff}');
        let line = text.lines().nth(error.line - 1).expect("the line of the error exists");
        assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}");
        assert_eq!(addresses, derived);
        return;
    }
    let mut written = String::new();
    for (port, list) in addresses.iter() {
        let (node, number) = sim.place(port);
        write!(written, "\"{}\"[{number}]", sim.node_name(node)).expect("a `String` is writable");
        for &address in list {
            assert_eq!(addresses.find(address), Some(port));
            write!(written, " {address}").expect("a `String` is writable");
        }
        written.push('\n');
    }
    let mut again = Addresses::default();
    again.override_from(&sim, "written", &written).expect("written addresses are valid");
    assert_eq!(addresses, again);
});
