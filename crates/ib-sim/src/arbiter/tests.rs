use super::*;

const HIGH: u16 = 1 << 0;
const LOW: u16 = 1 << 1;

/// Sends a packet of 1000 bytes. Returns the VL of the packet. VL 0 has high priority, VL 1 low
/// priority.
fn serve(state: &mut Arbiter, limit: u8, ready: u16) -> Option<u8> {
    let vl = state.choose(&ArbitrationTables::default(), 8, 8, limit, ready);
    state.sent(1000);
    vl
}

#[test]
fn low_priority_is_served_after_the_high_priority_limit() {
    let mut state = Arbiter::default();
    let vls: Vec<_> = (0..12).filter_map(|_| serve(&mut state, 1, HIGH | LOW)).collect();
    // The fifth packet exceeds the limit of 4,096 bytes.
    assert_eq!(vls, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    let vls: Vec<_> = (0..4).filter_map(|_| serve(&mut state, 0, HIGH | LOW)).collect();
    assert_eq!(vls, [0, 1, 0, 1]);
}

#[test]
fn limit_ignores_bytes_sent_while_low_priority_was_idle() {
    let mut state = Arbiter::default();
    for _ in 0..8 {
        assert_eq!(serve(&mut state, 1, HIGH), Some(0));
    }
    // Of the eight packets, the first five reached the limit while no low-priority packet was
    // waiting, so the count restarted. Since then, three packets were sent.
    let vls: Vec<_> = (0..4).filter_map(|_| serve(&mut state, 1, HIGH | LOW)).collect();
    assert_eq!(vls, [0, 0, 1, 0]);
    assert_eq!(serve(&mut state, 255, HIGH | LOW), Some(0));
}
