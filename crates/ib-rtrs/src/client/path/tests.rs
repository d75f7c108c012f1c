use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use ib_link::Route;
use ib_types::{Instant, Mtu};

use super::*;
use crate::PathSpec;

fn path(number: u32) -> Path {
    let end: SocketAddr = (Ipv4Addr::LOCALHOST, 1).into();
    let spec = PathSpec::new(AdapterId(number % 2), end, end, Route::default(), Mtu::B1024);
    Path::new(PathId(number), spec, [0; 16], 0, 1)
}

fn paths(count: u32) -> Paths {
    let mut paths = Paths::new(2);
    for number in 0..count {
        assert_eq!(paths.next_id(), PathId(number));
        paths.add(path(number));
    }
    paths
}

#[test]
fn numbers_of_removed_paths_are_not_reused() {
    let mut paths = paths(3);
    paths.remove(PathId(1));
    assert!(paths.get(PathId(1)).is_none());
    assert_eq!(paths.next_id(), PathId(3));
    assert_eq!(paths.of_adapter(AdapterId(0)), [PathId(0), PathId(2)]);
    assert_eq!(paths.of_adapter(AdapterId(1)), []);
}

#[test]
fn connected_paths_stay_in_order() {
    let mut paths = paths(3);
    for number in [2, 0, 1, 0] {
        paths.set_connected(PathId(number));
    }
    assert_eq!(paths.connected(), [0, 1, 2].map(PathId));
    paths.set_disconnected(PathId(1));
    assert_eq!(paths.connected(), [0, 2].map(PathId));
}

#[test]
fn each_policy_chooses_a_connected_path() {
    let mut paths = paths(3);
    let policies = [Policy::RoundRobin, Policy::MinInflight, Policy::MinLatency];
    for policy in policies {
        assert_eq!(paths.choose(policy, 0), None);
    }
    paths.set_connected(PathId(1));
    for policy in policies {
        assert_eq!(paths.choose(policy, 0), Some(PathId(1)));
    }
    paths.set_connected(PathId(2));
    let turns: Vec<_> = (0..4).map(|_| paths.choose(Policy::RoundRobin, 0)).collect();
    assert_eq!(turns, [2, 1, 2, 1].map(|number| Some(PathId(number))));
    assert_eq!(
        paths.choose(Policy::RoundRobin, 1),
        Some(PathId(2)),
        "each processor uses the paths in turn"
    );
    paths.get_mut(PathId(1)).expect("path 1 was added").inflight = 1;
    assert_eq!(paths.choose(Policy::MinInflight, 0), Some(PathId(2)));
    let slow = &mut paths.get_mut(PathId(1)).expect("path 1 was added").liveness;
    slow.heartbeat_sent(Instant::ZERO);
    slow.heartbeat_acknowledged(Instant::ZERO + Duration::from_millis(1));
    assert_eq!(paths.choose(Policy::MinLatency, 0), Some(PathId(2)));
}
