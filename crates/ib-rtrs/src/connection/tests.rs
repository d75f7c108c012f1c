use super::*;

#[test]
fn silent_peer_is_dead_one_interval_after_the_allowed_ones() {
    let mut heartbeat = Heartbeat::default();
    assert_eq!(heartbeat.tick(5), HeartbeatAction::Send);
    for _ in 0..4 {
        assert_eq!(heartbeat.tick(5), HeartbeatAction::Wait);
    }
    assert_eq!(heartbeat.tick(5), HeartbeatAction::Fail);
    heartbeat.message_received();
    assert_eq!(heartbeat.tick(5), HeartbeatAction::Send);
    heartbeat.message_received();
    assert_eq!(heartbeat.tick(5), HeartbeatAction::Send);
    assert_eq!(heartbeat.tick(0), HeartbeatAction::Fail);
}

#[test]
fn heartbeat_is_sent_before_peer_counts_as_dead() {
    let mut heartbeat = Heartbeat::default();
    assert_eq!(heartbeat.tick(0), HeartbeatAction::Send);
    assert_eq!(heartbeat.tick(0), HeartbeatAction::Fail);
}
