use super::*;

#[test]
fn who_is_silent_is_dead_within_one_more_interval_than_may_be_missed() {
    let mut heartbeat = Heartbeat::default();
    assert_eq!(heartbeat.tick(5), Beat::Send);
    for _ in 0..4 {
        assert_eq!(heartbeat.tick(5), Beat::Wait);
    }
    assert_eq!(heartbeat.tick(5), Beat::Dead);
    heartbeat.heard();
    assert_eq!(heartbeat.tick(5), Beat::Send);
    heartbeat.heard();
    assert_eq!(heartbeat.tick(5), Beat::Send);
    assert_eq!(heartbeat.tick(0), Beat::Dead);
}

#[test]
fn a_heartbeat_is_sent_before_anybody_is_dead() {
    let mut heartbeat = Heartbeat::default();
    assert_eq!(heartbeat.tick(0), Beat::Send);
    assert_eq!(heartbeat.tick(0), Beat::Dead);
}
