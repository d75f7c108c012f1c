//! Parses arbitrary bytes as a dump of LFTs. Accepted dumps survive writing and parsing again.
#![no_main]

use ib_fuzz::subnet;
use ib_routing::dump::lfts::{Follow, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let subnet = subnet();
    let Ok(loaded) = read("fuzz", bytes, subnet, Follow::AllGuids) else { return };
    let mut written = Vec::new();
    write(&mut written, subnet, &loaded.value.lfts).expect("memory is writable");
    let again = read("fuzz", &written, subnet, Follow::AllGuids).expect("a written dump is valid");
    let mut rewritten = Vec::new();
    write(&mut rewritten, subnet, &again.value.lfts).expect("memory is writable");
    assert!(written == rewritten, "the dump has changed");
});
