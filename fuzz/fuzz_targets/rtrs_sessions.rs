//! An RTRS client and server exchange messages over two paths. On one path, bytes are modified.
//!
//! Checks that every request completes or fails exactly once. The first byte of the input selects options. Each
//! following group of five bytes describes one modified packet. The first two bytes are the number of packets that its
//! sender sends unmodified before, and the sender. The others are the offset of the modified byte (two bytes) and its
//! new value.
#![no_main]

use std::time::Duration;

use ib_rtrs::{ClientConfig, Direction, ServerConfig};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, unreachable_pub, reason = "the tests use more of this module")]
#[path = "../../crates/ib-rtrs/tests/sessions/lab.rs"]
mod lab;
#[allow(dead_code, unreachable_pub, reason = "the tests use more of this module")]
#[path = "../../crates/ib-rtrs/tests/sessions/wire.rs"]
mod wire;

use lab::{Lab, quick_client, small_server};

/// The maximum number of modifications that are applied.
const MOST: usize = 64;

fuzz_target!(|input: &[u8]| {
    let Some((&options, lies)) = input.split_first() else { return };
    let option = |bit: u8| options >> bit & 1 == 1;
    let client = ClientConfig {
        connections: 1 + u16::from(options & 1),
        need_invalidation: option(1),
        reconnect_delay: Duration::from_millis(100),
        io_timeout: Some(Duration::from_secs(2)),
        ..quick_client()
    };
    let server = ServerConfig { always_invalidate: option(2), ..small_server() };
    let mut lab = Lab::new(u64::from(options), 2, client, server);
    let (chunks, _) = lies.as_chunks::<5>();
    let mut lies: Vec<[u8; 5]> = chunks.iter().copied().take(MOST).collect();
    lies.reverse();
    let mut passed = 0;
    lab.tap = Box::new(move |from, link, bytes| {
        let Some(&[after, whose, high, low, value]) = lies.last() else { return true };
        if link != 0 || from != usize::from(whose & 1) {
            return true;
        }
        passed += 1;
        // The first 12 bytes, the BTH, are not modified, so that the packet reaches its queue pair.
        if passed > u32::from(after) && bytes.len() > 12 {
            let at = 12 + usize::from(u16::from_be_bytes([high, low])) % (bytes.len() - 12);
            bytes[at] = value;
            passed = 0;
            lies.pop();
        }
        true
    });
    lab.add_path(0);
    lab.add_path(1);
    lab.run_for(Duration::from_millis(1));
    let mut asked = 0;
    for user in 0..40 {
        let direction = if user % 2 == 0 { Direction::Read } else { Direction::Write };
        let place = (user as usize * 4096, 1 + user as u32 * 300);
        asked += usize::from(lab.io(direction, user * 512, place, user).is_ok());
        lab.run_for(Duration::from_micros(700 * user));
    }
    lab.tap = Box::new(|_, _, _| true);
    let end = lab.now + Duration::from_secs(120);
    while lab.done.len() < asked && lab.step(end) {}
    assert_eq!(lab.done.len(), asked);
    assert_eq!(lab.client.requests(), 0);
});
