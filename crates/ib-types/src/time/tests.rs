use super::*;

#[test]
fn addition_and_subtraction_saturate() {
    let start = Instant::from_nanos(5);
    assert_eq!(start + Duration::from_nanos(7), Instant::from_nanos(12));
    assert_eq!(start - Instant::from_nanos(9), Duration::ZERO);
    assert_eq!(Instant::NEVER + Duration::MAX, Instant::NEVER);
    assert_eq!(Instant::from_nanos(1_000_000_002).to_string(), "1.000000002");
}

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
