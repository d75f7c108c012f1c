//! One peer sends random bytes: the engines must not panic, and every request must complete once.
//!
//! `RTRS_RUNS` sets the number of runs, and `RTRS_SEED` sets the first seed.

use std::time::Duration;

use ib_rtrs::{ClientConfig, Direction, ServerConfig, SharedKey};

use crate::lab::{Lab, Rng, quick_client, small_server};

/// Changes random bytes of the packets of one side on the first link.
fn run(seed: u64) {
    let mut rng = Rng::new(seed ^ 0xbad);
    let liar = rng.below(2) as usize;
    let often = [0.002, 0.02, 0.2][rng.below(3) as usize];
    let only_messages = rng.chance(0.7);
    let key = rng.chance(0.2).then(|| SharedKey::new(vec![7; 16]));
    let client = ClientConfig {
        connections: 1 + rng.below(3) as u16,
        need_invalidation: rng.chance(0.5),
        reconnect_delay: Duration::from_millis(100),
        io_timeout: Some(Duration::from_secs(2)),
        key: key.clone(),
        ..quick_client()
    };
    let server = ServerConfig { always_invalidate: rng.chance(0.5), key, ..small_server() };
    let mut lab = Lab::new(seed, 2, client, server);
    let mut lies = Rng::new(seed);
    lab.tap = Box::new(move |from, link, bytes| {
        if link != 0 || from != liar || !lies.chance(often) {
            return true;
        }
        // Destination QPNs are not changed, so that the packets arrive.
        let first = if only_messages { 12 } else { 8 };
        if bytes.len() > first {
            for _ in 0..1 + lies.below(3) {
                let at = first + lies.below((bytes.len() - first) as u64) as usize;
                bytes[at] = match lies.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[at] ^ 1 << lies.below(8),
                    _ => lies.next() as u8,
                };
            }
        }
        if lies.chance(0.05) {
            bytes.truncate((12 + lies.below(bytes.len() as u64) as usize) & !3);
        }
        true
    });
    lab.add_path(0);
    lab.add_path(1);
    let mut asked = 0;
    for _ in 0..300 {
        let user = asked;
        let place = (rng.below(64) as usize * 4096, 1 + rng.below(8192) as u32);
        let direction = if rng.chance(0.5) { Direction::Read } else { Direction::Write };
        asked += u64::from(lab.io(direction, rng.below(1 << 19), place, user).is_ok());
        let time = Duration::from_micros(rng.below(20_000));
        lab.run_for(time);
    }
    lab.tap = Box::new(|_, _, _| true);
    let wanted = asked as usize;
    let end = lab.now + Duration::from_secs(120);
    while lab.done.len() < wanted && lab.step(end) {}
    // A response may have a wrong status, but each request completes exactly once.
    assert_eq!(lab.done.len(), wanted, "seed {seed}");
    assert_eq!(lab.client.requests(), 0, "seed {seed}");
}

#[test]
fn random_bytes_of_a_peer_cause_no_panic() {
    let number = |name, default| {
        std::env::var(name).ok().and_then(|text: String| text.parse().ok()).unwrap_or(default)
    };
    let (first, runs) = (number("RTRS_SEED", 1_u64), number("RTRS_RUNS", 40));
    for seed in first..first + runs {
        run(seed);
    }
}
