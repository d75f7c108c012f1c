//! Time limits after one of two paths was cut: how long requests stall, and when the dead path is detected.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_rtrs::{
    AdapterId, ClientConfig, ClientEvent, Direction, Heartbeats, Policy, ServerConfig, ServerEvent,
};
use ib_types::Instant;

use crate::lab::{Lab, quick_client, small_server};

/// Maximum time for which a request stalls between an ibfabric client and server. It results from the timeouts of the
/// transport.
pub(crate) const STALL: Duration = Duration::from_secs(5);

/// Maximum time of a failover after the client's port has lost its link.
pub(crate) const LINK_DOWN: Duration = Duration::from_millis(50);

/// Returns the maximum time until the client detects that an idle path was cut.
pub(crate) fn idle(heartbeats: Heartbeats) -> Duration {
    heartbeats.interval * (heartbeats.missed_max + 1)
}

fn down_at(lab: &Lab, link: usize) -> Option<Instant> {
    lab.events.iter().find_map(|(at, event)| match event {
        ClientEvent::PathDown { path, .. } if *path == lab.paths[link] => Some(*at),
        _ => None,
    })
}

/// Keeps `depth` requests in flight, cuts a link, and returns the maximum latency of a request.
fn longest_stall(seed: u64, depth: u64, policy: Policy) -> Duration {
    let client = ClientConfig { policy, ..quick_client() };
    let mut lab = Lab::connected(seed, 2, client, small_server());
    let takes = [10, 200, 40_000][(seed % 3) as usize];
    lab.backend = Box::new(move |rng, _| Duration::from_micros(rng.below(takes)));
    let link = lab.rng.below(2) as usize;
    let cut = lab.now + Duration::from_nanos(lab.rng.below(20_000_000));
    let (last, end) = (cut + Duration::from_millis(20), cut + Duration::from_secs(8));
    let (mut begun, mut longest) = (BTreeMap::new(), Duration::ZERO);
    for user in 0..depth {
        begin(&mut lab, user, &mut begun);
    }
    while lab.now < end {
        lab.links[link].is_cut |= lab.now >= cut;
        let next = if lab.now < cut { cut } else { end };
        lab.step(next);
        for done in std::mem::take(&mut lab.done) {
            assert!(done.outcome.errno().is_ok(), "{done:?}");
            let at = begun.remove(&done.user).expect("requests complete once");
            longest = longest.max(lab.now.since(at));
            if lab.now < last {
                begin(&mut lab, done.user, &mut begun);
            }
        }
    }
    let waited = begun.values().map(|&at| end.since(at)).max().unwrap_or_default();
    longest.max(waited)
}

fn begin(lab: &mut Lab, user: u64, begun: &mut BTreeMap<u64, Instant>) {
    let direction = if lab.rng.chance(0.5) { Direction::Write } else { Direction::Read };
    let length = 512 * (1 + lab.rng.below(16)) as u32;
    lab.io(direction, user * 8192, (user as usize * 8192, length), user)
        .expect("a path is connected");
    begun.insert(user, lab.now);
}

#[test]
fn cut_of_one_of_two_paths_stalls_requests_at_most_5_s() {
    let mut longest = Duration::ZERO;
    for seed in 0..27 {
        for policy in [Policy::RoundRobin, Policy::MinInflight, Policy::MinLatency] {
            let stall = longest_stall(seed, [1, 2, 16][(seed / 3 % 3) as usize], policy);
            assert!(stall <= STALL, "seed {seed}, {policy:?}: {stall:?}");
            longest = longest.max(stall);
        }
    }
    // Some of the requests wait until a timeout of the transport expires.
    assert!(longest > Duration::from_secs(2), "{longest:?}");
}

#[test]
fn cut_of_idle_path_is_detected_by_heartbeats_in_time() {
    for (interval, missed_max) in [(100, 0), (100, 1), (100, 5), (1000, 3), (5000, 5)] {
        let interval = Duration::from_millis(interval);
        let heartbeats = Heartbeats { interval, missed_max };
        for phase in 0..20 {
            let client = ClientConfig { heartbeats, ..quick_client() };
            let server = ServerConfig { heartbeats, ..small_server() };
            let mut lab = Lab::connected(1, 2, client, server);
            lab.run_for(interval * 3 + interval * phase / 20);
            lab.server_events.clear();
            lab.links[0].is_cut = true;
            let cut = lab.now;
            let bound = match missed_max {
                // A path fails only after at least one full interval without a message, even if `missed_max` is 0.
                0 => interval * 2,
                _ => idle(heartbeats),
            };
            lab.run_until(bound + Duration::from_nanos(1), |lab| down_at(lab, 0).is_some());
            assert!(lab.now.since(cut) <= bound, "{:?}", lab.now.since(cut));
            let is_down = |event: &ServerEvent| matches!(event, ServerEvent::PathDown { .. });
            let left = (cut + bound).since(lab.now) + Duration::from_nanos(1);
            lab.run_until(left, |lab| lab.server_events.iter().any(|(_, it)| is_down(it)));
        }
    }
}

#[test]
fn client_port_without_link_fails_its_paths_within_50_ms() {
    for link in [0, 1] {
        let mut lab = Lab::connected(1, 2, quick_client(), small_server());
        lab.backend = Box::new(|rng, _| Duration::from_micros(rng.below(500)));
        for user in 0..16 {
            lab.io(Direction::Write, user * 4096, (user as usize * 4096, 4096), user).unwrap();
        }
        lab.run_for(Duration::from_micros(30));
        lab.links[link].is_cut = true;
        let cut = lab.now;
        lab.sides[0].0[link].hca.set_port_active(false);
        lab.run_until(LINK_DOWN, |lab| down_at(lab, link).is_some() && lab.done.len() == 16);
        assert_eq!(down_at(&lab, link), Some(cut), "the path fails when its link is cut");
        assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()));
        // Once the link is back, the path reconnects within the same time limit, `LINK_DOWN`.
        lab.events.clear();
        lab.links[link].is_cut = false;
        lab.sides[0].0[link].hca.set_port_active(true);
        let up = ClientEvent::PathUp(lab.paths[link]);
        lab.run_until(LINK_DOWN, |lab| lab.has(&up));
    }
}

#[test]
fn server_port_without_link_ends_its_paths_at_once() {
    let mut lab = Lab::connected(1, 2, quick_client(), small_server());
    let id = AdapterId(1);
    let now = lab.now;
    lab.sides[1].0[1].hca.set_port_active(false);
    lab.run_for(Duration::from_millis(1));
    let paths: Vec<_> = lab.server.paths().collect();
    assert_eq!(paths.len(), 1);
    assert_ne!(lab.server.adapter(paths[0]), Some(id));
    let is_down = |event: &ServerEvent| matches!(event, ServerEvent::PathDown { .. });
    let down = lab.server_events.iter().find(|(_, event)| is_down(event)).unwrap();
    assert_eq!(down.0, now);
}
