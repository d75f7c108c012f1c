//! Parses arbitrary bytes as OpenSM's guid2lid file, and assigns LIDs from it.
#![no_main]

use ib_fuzz::fabric;
use ib_routing::dump::lists::read_guid2lid;
use ib_routing::{LidOptions, Subnet, SubnetOptions};
use ib_types::Lmc;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(guid2lid) = read_guid2lid("fuzz", bytes) else { return };
    for lmc in [0, 3] {
        let lmc = Lmc::new(lmc).expect("the LMC is at most 7");
        let lids = LidOptions { lmc, guid2lid: guid2lid.clone(), ..Default::default() };
        let options = SubnetOptions { sm_port: None, lids };
        let Ok(subnet) = Subnet::discover(fabric(), &options) else { continue };
        for end_port in subnet.end_ports() {
            for lid in end_port.lid_range() {
                assert_eq!(subnet.lid_owner(lid).map(|id| subnet.end_port(id)), Some(end_port));
            }
        }
    }
});
