use proptest::prelude::*;

use super::*;

#[test]
fn events_come_by_time_then_by_insertion() {
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
    assert_eq!(order, "abc", "events after the given time remain queued");
    assert_eq!(queue.pop_by(at(5)), Some((at(5), 'd')));
    assert_eq!(queue.pop_by(Instant::NEVER), Some((at(5), 'e')));
    assert_eq!(queue.pop_by(Instant::NEVER), None);
}

#[test]
fn events_at_never_are_not_returned() {
    let mut queue = EventQueue::new();
    queue.push(Instant::NEVER, 'z');
    queue.push(Instant::from_nanos(u64::MAX - 1), 'a');
    assert_eq!(queue.pop_by(Instant::NEVER).map(|(_, event)| event), Some('a'));
    assert_eq!(queue.pop_by(Instant::NEVER), None);
}

proptest! {
    /// Checks that the queue returns events in the order of a stable sort by time.
    #[test]
    fn queue_is_a_stable_sort(steps in prop::collection::vec((0..6u64, any::<bool>()), 0..200)) {
        let (mut queue, mut list) = (EventQueue::new(), Vec::new());
        for (event, (time, takes)) in steps.into_iter().enumerate() {
            let time = Instant::from_nanos(time);
            if takes {
                let place = (0..list.len()).min_by_key(|&place| list[place]);
                let expected = place.map(|place| list.remove(place));
                prop_assert_eq!(queue.pop_by(Instant::NEVER), expected);
            } else {
                queue.push(time, event);
                list.push((time, event));
            }
            let earliest = list.iter().map(|&(time, _)| time).min();
            prop_assert_eq!(queue.next_at(), earliest);
            prop_assert_eq!(queue.iter().count(), list.len());
        }
    }
}
