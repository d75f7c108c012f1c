use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

#[test]
fn first_reason_of_a_discovery_counts() {
    let mut triggers = Triggers::new("start");
    assert_eq!(triggers.start_discovery(at(0)), "start");
    triggers.require_full_discovery("one");
    triggers.require_full_discovery("two");
    assert!(triggers.is_stale());
    assert_eq!(triggers.start_discovery(at(0)), "one");
    assert!(!triggers.is_stale());
}

#[test]
fn unknown_ports_start_one_discovery_per_second() {
    let mut triggers = Triggers::new("start");
    triggers.start_discovery(at(5));
    assert_eq!(triggers.search_soon(at(5), "trap".to_owned()), Some(at(6)));
    assert!(triggers.is_unsettled && !triggers.is_stale());
    assert_eq!(triggers.search_soon(at(6), "trap".to_owned()), None);
    assert!(triggers.is_stale());
}

#[test]
fn incomplete_sweeps_double_the_interval() {
    let mut triggers = Triggers::new("start");
    assert_eq!(triggers.next_sweep(at(0), None, SECOND), None);
    assert_eq!(triggers.next_sweep(at(0), Some(10 * SECOND), SECOND), Some(at(10)));
    triggers.end_sweep(true);
    triggers.end_sweep(true);
    assert_eq!(triggers.next_sweep(at(0), Some(10 * SECOND), SECOND), Some(at(4)));
    assert_eq!(triggers.next_sweep(at(0), None, SECOND), Some(at(4)));
    triggers.end_sweep(false);
    assert_eq!(
        triggers.next_sweep(at(0), None, SECOND),
        Some(at(1)),
        "a complete sweep resets the wait, but does not clear `is_unsettled`"
    );
}

#[test]
fn blind_discovery_is_repeated_once() {
    let mut triggers = Triggers::new("start");
    assert!(triggers.take_repeat() && !triggers.take_repeat());
    triggers.accept_discovery();
    assert!(triggers.take_repeat());
}
