//! Parses arbitrary bytes as OpenSM's partition file. Errors name the file.
#![no_main]

use ib_sm::{Partitions, PortQos};
use ib_types::{Guid, NodeKind};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    match Partitions::read("file", data) {
        Ok(partitions) => {
            for kind in [NodeKind::ChannelAdapter, NodeKind::Switch, NodeKind::Router] {
                let keys = partitions.keys(Guid(1), kind, true);
                assert!(keys.iter().all(|key| key.partition() != 0));
            }
        }
        Err(error) => assert!(error.to_string().starts_with("file:"), "{error}"),
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = (PortQos::parse_arbitration(text), PortQos::parse_sl_to_vl(text));
    }
});
