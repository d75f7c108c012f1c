//! `dump::lfts::read` takes any bytes without a panic, and what it reads can be written and read
//! again.
#![no_main]

use ib_fuzz::subnet;
use ib_routing::dump::lfts::{Follow, read, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let subnet = subnet();
    let Ok(loaded) = read("fuzz", bytes, subnet, Follow::AllGuids) else { return };
    let mut written = Vec::new();
    write(&mut written, subnet, &loaded.value.lfts).expect("memory can be written");
    let again =
        read("fuzz", &written, subnet, Follow::AllGuids).expect("what was written reads back");
    let mut rewritten = Vec::new();
    write(&mut rewritten, subnet, &again.value.lfts).expect("memory can be written");
    assert!(written == rewritten, "a second round changes nothing");
});
