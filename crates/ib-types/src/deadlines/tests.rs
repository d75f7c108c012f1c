use super::*;

fn at(nanos: u64) -> Instant {
    Instant::from_nanos(nanos)
}

#[test]
fn new_timer_of_a_key_replaces_the_old_one() {
    let mut deadlines = Deadlines::default();
    deadlines.set(1, "answer", at(10));
    deadlines.set(1, "linger", at(20));
    assert_eq!(deadlines.get(1), Some(at(20)));
    assert_eq!(deadlines.next(), Some(at(20)));
    assert_eq!(deadlines.take_due(at(19)), None);
    assert_eq!(deadlines.take_due(at(20)), Some((1, "linger")));
    assert_eq!(deadlines.next(), None);
}

#[test]
fn earliest_deadline_comes_first_then_lowest_key() {
    let mut deadlines = Deadlines::default();
    for (key, nanos) in [(3, 5), (1, 7), (2, 5), (4, 1)] {
        deadlines.set(key, (), at(nanos));
    }
    deadlines.stop(4);
    deadlines.stop(4);
    let order: Vec<_> = std::iter::from_fn(|| deadlines.take_due(at(9))).map(|due| due.0).collect();
    assert_eq!(order, [2, 3, 1]);
}
