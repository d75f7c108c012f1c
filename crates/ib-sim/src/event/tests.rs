use super::*;

#[test]
fn events_come_by_time_and_then_in_their_order() {
    let mut queue = EventQueue::new();
    let at = Instant::from_nanos;
    for (time, event) in [(5, 'd'), (1, 'a'), (5, 'e'), (1, 'b'), (3, 'c')] {
        queue.push(at(time), event);
    }
    assert_eq!(queue.next_at(), Some(at(1)));
    let mut order = String::new();
    while let Some((_, event)) = queue.pop_by(at(4)) {
        order.push(event);
    }
    assert_eq!(order, "abc", "what is due later stays");
    assert_eq!(queue.pop_by(at(5)), Some((at(5), 'd')));
    assert_eq!(queue.pop_by(Instant::NEVER), Some((at(5), 'e')));
    assert_eq!(queue.pop_by(Instant::NEVER), None);
}
