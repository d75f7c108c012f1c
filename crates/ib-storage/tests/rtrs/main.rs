//! Tests RTRS between HCAs of a simulated InfiniBand fabric in virtual time. Client and server have
//! two ports each. Each RTRS path connects the GIDs of a client port and a server port.

mod lab;
#[allow(dead_code, reason = "the tests of fabrics share it")]
#[path = "../../../ib-device/tests/fabric/lab/managed.rs"]
mod managed;

use std::time::Duration;

use ib_rtrs::{Address, ClientEvent, Direction, Failure};

use lab::{BLOCK, Lab};

const SECOND: Duration = Duration::from_secs(1);

/// Returns the throughput in Gbit/s of requests of 120 KiB over this number of paths.
fn gigabits(paths: usize, directions: &[Direction]) -> f64 {
    let mut lab = Lab::connected(paths);
    let mut next = 0;
    let mut ask = |lab: &mut Lab| {
        next += 1;
        lab.ask(directions[next % directions.len()], next as u64);
    };
    (0..32).for_each(|_| ask(&mut lab));
    let mut begun = lab.now();
    let (mut blocks, end) = (0_usize, lab.now() + Duration::from_millis(60));
    let warm = lab.now() + Duration::from_millis(10);
    while lab.now() < end {
        lab.step(end);
        for completion in std::mem::take(&mut lab.done) {
            assert!(completion.outcome.errno().is_ok(), "{completion:?}");
            ask(&mut lab);
            if lab.now() < warm {
                begun = lab.now();
            } else {
                blocks += 1;
            }
        }
    }
    (blocks * BLOCK * 8) as f64 / lab.now().since(begun).as_nanos() as f64
}

#[test]
fn two_paths_carry_1_9_times_the_throughput_of_one() {
    for (what, directions) in [
        ("writes", &[Direction::Write][..]),
        ("reads", &[Direction::Read]),
        ("both", &[Direction::Read, Direction::Write]),
    ] {
        let (one, two) = (gigabits(1, directions), gigabits(2, directions));
        let ratio = two / one;
        eprintln!("{what}: {one:.2} Gbit/s over one path, {two:.2} Gbit/s over two: {ratio:.3}");
        assert!(ratio >= 1.9, "{what}: {one} Gbit/s over one path, {two} Gbit/s over two");
        // Reads and writes together use both directions of a link, so the limit is twice its rate.
        let most = if directions.len() == 2 { 20.1 } else { 10.05 };
        assert!(one > 0.8 * most && one < most, "{what}: {one} Gbit/s over a link of 10 Gbit/s");
    }
}

#[test]
fn paths_connect_gids() {
    let mut lab = Lab::connected(2);
    for (number, path) in lab.paths.clone().into_iter().enumerate() {
        let address = lab.client.spec(path).expect("the path exists").address;
        let [near, far] = [0, 1].map(|side| Address::Gid(lab.gid(side, number)));
        assert_eq!((address.source, address.destination), (Some(near), far));
    }
    let told: Vec<_> = lab.server.paths().filter_map(|path| lab.server.address(path)).collect();
    for number in [0, 1] {
        let [near, far] = [0, 1].map(|side| Address::Gid(lab.gid(side, number)));
        assert!(told.iter().any(|it| (it.source, it.destination) == (Some(near), far)));
    }
    lab.ask(Direction::Write, 1);
    lab.run_until(SECOND, |lab| lab.done.len() == 1);
    assert!(lab.done[0].outcome.errno().is_ok());
}

/// Cuts a link while requests are in flight. Returns the failure of the first path, the time until
/// it was detected, and the maximum latency of requests.
fn cut(link: &str) -> (Failure, Duration, Duration) {
    let mut lab = Lab::connected(2);
    (1..=16).for_each(|user| lab.ask(Direction::Write, user));
    lab.run_for(Duration::from_micros(500));
    lab.done.clear();
    let at = lab.now();
    lab.command(&format!("Unlink {link}"));
    let mut next = 100;
    let end = at + Duration::from_secs(8);
    let (mut slowest, mut begun) = (Duration::ZERO, std::collections::BTreeMap::new());
    while lab.now() < end {
        while begun.len() < 8 && lab.now() < at + SECOND / 10 {
            next += 1;
            lab.ask(Direction::Read, next);
            begun.insert(next, lab.now());
        }
        lab.step(end);
        for completion in std::mem::take(&mut lab.done) {
            assert!(completion.outcome.errno().is_ok(), "{completion:?}");
            let since = begun.remove(&completion.user).unwrap_or(at);
            slowest = slowest.max(lab.now().since(since));
        }
    }
    assert!(begun.is_empty() && lab.client.requests() == 0);
    let down = lab.events.iter().find_map(|(at, event)| match event {
        ClientEvent::PathDown { path, why, .. } if *path == lab.paths[0] => {
            Some((*at, why.clone()))
        }
        _ => None,
    });
    let (seen, why) = down.expect("the first path has failed");
    (why, seen.since(at), slowest)
}

#[test]
fn link_down_of_the_port_is_detected_within_50_ms() {
    let (why, seen, slowest) = cut("\"client\"[1]");
    assert_eq!(why, Failure::LinkDown);
    assert!(seen < Duration::from_millis(50), "{seen:?}");
    assert!(slowest < Duration::from_millis(100), "{slowest:?}");
}

#[test]
fn cut_between_switches_stalls_requests_at_most_5_s() {
    let (why, _, slowest) = cut("\"rail-1\"[2]");
    assert!(matches!(why, Failure::Transport(_)), "{why}");
    assert!(slowest < 5 * SECOND, "{slowest:?}");
}

#[test]
fn path_reconnects_when_its_link_returns() {
    let mut lab = Lab::connected(2);
    lab.command("Unlink \"client\"[1]");
    let path = lab.paths[0];
    let is_down = |lab: &Lab| {
        lab.has(|it| matches!(it, ClientEvent::PathDown { path: at, .. } if *at == path))
    };
    lab.run_until(SECOND, is_down);
    lab.events.clear();
    lab.command("Relink \"client\"[1]");
    lab.run_until(20 * SECOND, |lab| lab.has(|it| *it == ClientEvent::PathUp(path)));
}
