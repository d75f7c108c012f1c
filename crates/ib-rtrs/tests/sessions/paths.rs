//! Adding, removing and selecting paths.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ib_hca::{Hca, HcaConfig};
use ib_rtrs::{ClientConfig, ClientEvent, Direction, PathState, Policy, ServerEvent};
use ib_types::Mtu;

use crate::lab::{Lab, quick_client, small_server};

const SOON: Duration = Duration::from_secs(5);

/// Submits `count` requests one after the other. Returns how many of them each path has carried.
fn shares(lab: &mut Lab, count: u64) -> Vec<u64> {
    let before: Vec<u64> = counts(lab);
    for user in 0..count {
        lab.io(Direction::Read, 0, (0, 512), user & !1).expect("a path is connected");
        lab.run_until(SOON, |lab| lab.done.len() == 1);
        lab.done.clear();
    }
    counts(lab).iter().zip(before).map(|(after, before)| after - before).collect()
}

fn counts(lab: &Lab) -> Vec<u64> {
    lab.paths
        .iter()
        .map(|&path| lab.client.stats(path).expect("the path exists").traffic.reads)
        .collect()
}

#[test]
fn round_robin_alternates_paths_per_processor() {
    let client = ClientConfig { policy: Policy::RoundRobin, ..quick_client() };
    let mut lab = Lab::connected(1, 3, client, small_server());
    assert_eq!(shares(&mut lab, 30), [10, 10, 10]);
}

#[test]
fn min_inflight_selects_path_with_fewest_requests() {
    let client = ClientConfig { policy: Policy::MinInflight, ..quick_client() };
    let mut lab = Lab::connected(1, 2, client, small_server());
    for user in 0..8 {
        lab.io(Direction::Read, 0, (0, 512), user).unwrap();
    }
    let inflight = lab.paths.iter().map(|&path| lab.client.inflight(path));
    assert_eq!(inflight.collect::<Vec<_>>(), [Some(4), Some(4)]);
}

#[test]
fn min_latency_selects_path_with_fastest_heartbeat() {
    let client = ClientConfig { policy: Policy::MinLatency, ..quick_client() };
    let mut lab = Lab::connected(1, 2, client, small_server());
    lab.links[0].delay = Duration::from_micros(500);
    lab.run_for(Duration::from_secs(12));
    assert_eq!(shares(&mut lab, 10), [0, 10]);
    lab.links[0].delay = Duration::from_micros(5);
    lab.links[1].delay = Duration::from_micros(100);
    lab.run_for(Duration::from_secs(12));
    assert_eq!(shares(&mut lab, 10), [10, 0]);
}

#[test]
fn paths_change_while_requests_are_in_flight() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    lab.links.push(lab.links[0]);
    let mut other = Lab::new(2, 2, quick_client(), small_server());
    // `lab` has HCAs for one link only. The HCAs of the second link are taken from another lab.
    for side in [1, 0] {
        let node = other.sides[side].0.pop().unwrap();
        lab.sides[side].0.push(node);
    }
    let second = ib_rtrs::AdapterId(1);
    let mut far = std::mem::take(&mut lab.sides[1]);
    far.0[1].cm = ib_cm::Cm::new(
        ib_cm::CmConfig { ca_guid: ib_types::Guid(77), ..Default::default() },
        [9; 32],
    );
    lab.server.listen(&mut far, second, crate::lab::PORT).unwrap();
    lab.sides[1] = far;
    lab.backend = Box::new(|rng, _| Duration::from_micros(rng.below(300)));
    let (mut asked, mut step) = (0, 0);
    while asked < 2000 {
        if lab.io(Direction::Read, 0, (0, 4096), asked).is_ok() {
            asked += 1;
        } else {
            lab.step(lab.now + SOON);
        }
        step += 1;
        match step {
            200 => drop(lab.add_path(1)),
            2000 => {
                let first = lab.paths[0];
                assert!(lab.client.remove_path(lab.now, &mut lab.sides[0], first));
            }
            _ => {}
        }
    }
    lab.run_until(SOON, |lab| lab.done.len() == 2000);
    assert!(lab.done.iter().all(|it| it.outcome.errno().is_ok()));
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::PathRemoved(lab.paths[0])));
    assert_eq!(lab.client.paths().collect::<Vec<_>>(), [lab.paths[1]]);
    assert!(!lab.server_events.iter().any(|(_, it)| matches!(it, ServerEvent::SessionDown { .. })));
}

#[test]
fn session_is_up_once_all_paths_are_connected() {
    let mut lab = Lab::new(1, 3, quick_client(), small_server());
    lab.links[2].is_cut = true;
    for link in 0..3 {
        lab.add_path(link);
    }
    lab.run_for(SOON);
    assert!(!lab.has(&ClientEvent::Up));
    assert_eq!(lab.client.path_state(lab.paths[1]), Some(PathState::Connected));
    lab.links[2].is_cut = false;
    lab.run_until(Duration::from_secs(30), |lab| lab.has(&ClientEvent::Up));
}

#[test]
fn session_is_up_without_a_path_that_fails() {
    for cut in 0..3 {
        let mut lab = Lab::new(1, 3, quick_client(), small_server());
        lab.links[cut].is_cut = true;
        for link in 0..3 {
            lab.add_path(link);
        }
        lab.run_until(Duration::from_secs(30), |lab| lab.has(&ClientEvent::Up));
        assert_ne!(lab.client.path_state(lab.paths[cut]), Some(PathState::Connected));
        lab.links[cut].is_cut = false;
        lab.run_until(Duration::from_secs(30), |lab| {
            lab.client.path_state(lab.paths[cut]) == Some(PathState::Connected)
        });
    }
}

#[test]
fn second_path_starts_session_if_first_fails() {
    let mut lab = Lab::new(1, 2, quick_client(), small_server());
    lab.links[0].is_cut = true;
    for link in 0..2 {
        lab.add_path(link);
    }
    lab.run_until(Duration::from_secs(30), |lab| lab.has(&ClientEvent::PathUp(lab.paths[1])));
    lab.links[0].is_cut = false;
    lab.run_until(Duration::from_secs(30), |lab| lab.has(&ClientEvent::Up));
}

#[test]
fn user_disconnects_and_reconnects_a_path() {
    let mut lab = Lab::connected(1, 2, quick_client(), small_server());
    let path = lab.paths[0];
    assert!(lab.client.disconnect_path(lab.now, &mut lab.sides[0], path));
    assert_eq!(lab.client.path_state(path), Some(PathState::Closing));
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::PathDisconnected(path)));
    lab.run_for(Duration::from_secs(60));
    assert_eq!(lab.client.path_state(path), Some(PathState::Disconnected));
    assert_eq!(lab.server.paths().count(), 1);
    lab.events.clear();
    assert!(lab.client.reconnect_path(lab.now, &mut lab.sides[0], path));
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::PathUp(path)));
    assert_eq!(lab.client.stats(path).unwrap().reconnects.succeeded, 1);
    // The user reconnects a path that is still connected.
    lab.events.clear();
    assert!(lab.client.reconnect_path(lab.now, &mut lab.sides[0], path));
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::PathUp(path)));
    assert_eq!(shares(&mut lab, 4).iter().sum::<u64>(), 4);
}

#[test]
fn client_reconnects_after_server_disconnects() {
    let mut lab = Lab::connected(1, 1, quick_client(), small_server());
    let far = lab.server.paths().next().unwrap();
    assert!(lab.server.disconnect_path(lab.now, &mut lab.sides[1], far));
    assert_eq!(lab.server.paths().count(), 0);
    lab.events.clear();
    lab.run_until(Duration::from_secs(10), |lab| lab.has(&ClientEvent::PathUp(lab.paths[0])));
    assert!(!lab.server.disconnect_path(lab.now, &mut lab.sides[1], far));
}

/// Returns how long 1,000 reads of the maximum length take over `links` links of 10 Gbit/s each.
fn time_over(links: usize) -> Duration {
    let mut lab = Lab::connected(1, links, quick_client(), small_server());
    let (begun, length) = (lab.now, lab.client.max_io_size());
    let (mut asked, mut done) = (0, 0);
    while done < 1000 {
        while asked < 1000 && lab.io(Direction::Read, 0, (0, length), asked).is_ok() {
            asked += 1;
        }
        lab.step(lab.now + SOON);
        done += std::mem::take(&mut lab.done).len();
    }
    lab.now.since(begun)
}

#[test]
fn two_links_carry_nearly_twice_as_much_as_one() {
    let (one, two) = (time_over(1).as_secs_f64(), time_over(2).as_secs_f64());
    assert!(one / two >= 1.9, "speedup of {:.2}", one / two);
    // The throughput of one link: each read transfers 15,872 bytes of data.
    let gigabits = 1000.0 * 15_872.0 * 8.0 / one / 1e9;
    assert!(gigabits > 9.0, "{gigabits:.2} Gbit/s");
}

#[test]
fn path_mtu_of_a_reject_is_adopted() {
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    let server = &mut lab.sides[1].0[0];
    let config = HcaConfig { active_mtu: Mtu::B512, ..server.hca.config().clone() };
    server.hca = Hca::new(config, [5; 32]);
    let path = lab.add_path(0);
    assert_eq!(lab.client.spec(path).map(|spec| spec.mtu), Some(Mtu::B1024));
    lab.run_until(Duration::from_millis(500), |lab| lab.has(&ClientEvent::Up));
    assert_eq!(lab.client.spec(path).map(|spec| spec.mtu), Some(Mtu::B512));
    assert_eq!(shares(&mut lab, 4), [4]);
}

/// A Linux server derives its ACK timeout of 17 s from the REQ. A Linux client derives 2.1 s from the target ACK delay
/// of the REP.
#[test]
fn req_and_rep_carry_the_ack_timeouts_for_the_peer() {
    const DATA: usize = 12 + 8 + 24;
    let mut lab = Lab::new(1, 1, quick_client(), small_server());
    let told = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&told);
    lab.tap = Box::new(move |_, _, bytes| {
        match bytes.get(36..38).filter(|_| bytes[0] == 0x64) {
            Some([0, 0x10]) => drop(seen.lock().unwrap().insert(("REQ", bytes[DATA + 95] >> 3))),
            Some([0, 0x13]) => drop(seen.lock().unwrap().insert(("REP", bytes[DATA + 26] >> 3))),
            _ => {}
        }
        true
    });
    lab.add_path(0);
    lab.run_until(SOON, |lab| lab.has(&ClientEvent::Up));
    assert_eq!(*told.lock().unwrap(), BTreeSet::from([("REQ", 22), ("REP", 17)]));
}
