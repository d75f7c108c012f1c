//! Parses arbitrary bytes as an ibsim net file, which may include itself: an included file `N` has the same bytes from
//! offset N on. Accepted fabrics survive writing and parsing again.

#![no_main]

use ib_topology::read::{Included, ibsim, ibsim_with};
use ib_topology::{Format, write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut resolver = |_: &str, name: &str| match name.parse::<usize>() {
        Ok(start) if start < bytes.len() => {
            Ok(Included { name: name.to_owned(), bytes: bytes[start..].to_vec() })
        }
        _ => Err("no such file".to_owned()),
    };
    let Ok(fabric) = ibsim_with("fuzz", bytes, &mut resolver) else { return };
    let mut written = Vec::new();
    write(&fabric, Format::Ibsim, &mut written).expect("the fabric can be written");
    let again = ibsim("written", &written).expect("written fabrics are valid");
    assert!(fabric == again, "the fabric has changed");
    assert!(ib_topology::read("sniffed", &written) == Ok(fabric), "the format is not recognized");
});
