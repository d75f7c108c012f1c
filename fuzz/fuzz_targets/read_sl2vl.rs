//! Parses arbitrary bytes as a dump of SL-to-VL tables. Accepted dumps have a VL for each SL and each
//! pair of ports of each switch.
#![no_main]

use ib_fuzz::subnet;
use ib_routing::check::VlMap;
use ib_routing::dump::sl2vl::read;
use ib_types::ServiceLevel;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let subnet = subnet();
    let Ok(loaded) = read("fuzz", bytes, subnet) else { return };
    for (id, switch) in subnet.switch_ids().zip(subnet.switches()) {
        for (from, out) in
            (0..=switch.ports).flat_map(|from| (0..=switch.ports).map(move |out| (from, out)))
        {
            for level in 0..16 {
                let level = ServiceLevel::new(level).expect("the SL is below 16");
                assert!(loaded.value.vl(id, from, out, level).get() < 16);
            }
        }
    }
});
