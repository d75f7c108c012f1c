//! Parses arbitrary bytes as a LID matrix dump. Accepted dumps survive writing and parsing again.
#![no_main]

use ib_fuzz::subnet;
use ib_routing::dump::lid_matrix::{read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let subnet = subnet();
    let Ok(loaded) = read("fuzz", bytes, subnet) else { return };
    let mut written = Vec::new();
    write(&mut written, subnet, &loaded.value).expect("memory is writable");
    let again = read("fuzz", &written, subnet).expect("a written dump is valid");
    let mut rewritten = Vec::new();
    write(&mut rewritten, subnet, &again.value).expect("memory is writable");
    assert!(written == rewritten, "the dump has changed");
});
