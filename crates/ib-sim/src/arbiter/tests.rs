use super::*;

const HIGH: u16 = 1 << 0;
const LOW: u16 = 1 << 1;

/// Sends a packet of 1000 bytes and returns its VL: 0 has high priority, 1 low.
fn serve(state: &mut Arbiter, limit: u8, ready: u16) -> Option<u8> {
    let vl = state.choose(&ArbitrationTables::default(), 8, 8, limit, ready);
    state.sent(1000);
    vl
}

#[test]
fn low_priority_is_served_when_high_priority_has_sent_its_limit() {
    let mut state = Arbiter::default();
    let vls: Vec<_> = (0..12).filter_map(|_| serve(&mut state, 1, HIGH | LOW)).collect();
    // 4,096 bytes are passed with the fifth packet.
    assert_eq!(vls, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    let vls: Vec<_> = (0..4).filter_map(|_| serve(&mut state, 0, HIGH | LOW)).collect();
    assert_eq!(vls, [0, 1, 0, 1]);
}

#[test]
fn what_was_sent_while_low_priority_had_nothing_to_send_does_not_count() {
    let mut state = Arbiter::default();
    for _ in 0..8 {
        assert_eq!(serve(&mut state, 1, HIGH), Some(0));
    }
    // Five packets made the limit and nobody waited; three are sent since.
    let vls: Vec<_> = (0..4).filter_map(|_| serve(&mut state, 1, HIGH | LOW)).collect();
    assert_eq!(vls, [0, 0, 1, 0]);
    assert_eq!(serve(&mut state, 255, HIGH | LOW), Some(0));
}
