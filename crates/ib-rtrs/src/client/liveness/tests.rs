use super::*;

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(milliseconds)
}

#[test]
fn silent_path_with_requests_is_probed_once() {
    let mut liveness = Liveness::default();
    liveness.connected(at(0));
    assert!(liveness.watch());
    assert!(!liveness.watch(), "the probe timer already runs");
    assert_eq!(liveness.probe(at(100), true), Probe::Wait);
    assert_eq!(liveness.probe(at(500), true), Probe::Send);
    assert_eq!(liveness.probe(at(1000), true), Probe::Wait);
    liveness.message_received(at(1100));
    assert_eq!(liveness.probe(at(1500), true), Probe::Wait);
    assert_eq!(liveness.probe(at(1600), true), Probe::Send);
    assert_eq!(liveness.probe(at(2200), false), Probe::Stop);
    assert!(liveness.watch(), "the probe timer was stopped");
}

#[test]
fn latency_is_the_round_trip_of_the_last_heartbeat() {
    let mut liveness = Liveness::default();
    liveness.heartbeat_acknowledged(at(1));
    assert_eq!(liveness.latency(), None);
    liveness.heartbeat_sent(at(1));
    liveness.heartbeat_acknowledged(at(4));
    assert_eq!(liveness.latency(), Some(Duration::from_millis(3)));
    liveness.connected(at(9));
    assert_eq!(liveness.latency(), None);
}

#[test]
fn message_resets_missed_heartbeats() {
    let mut liveness = Liveness::default();
    assert_eq!(
        [(); 3].map(|()| liveness.tick(2)),
        [HeartbeatAction::Send, HeartbeatAction::Wait, HeartbeatAction::Fail]
    );
    liveness.message_received(at(1));
    assert_eq!(liveness.tick(2), HeartbeatAction::Send);
}
