use ib_topology::PortId;

use super::*;
use crate::event::Timer;

#[test]
fn only_events_on_links_count_as_transit() {
    let mut clock = Clock::new();
    let at = Instant::from_nanos(5);
    clock.schedule(at, Event::Timer(Timer::Agent { agent: 0 }));
    assert!(!clock.has_transit());
    clock.schedule(at, Event::Sent { port: PortId(0), epoch: 0 });
    assert!(clock.has_transit());
    while clock.pop_by(at).is_some() {}
    assert_eq!((clock.in_transit(), clock.steps(), clock.now()), (0, 2, at));
}

#[test]
fn clock_never_goes_back() {
    let mut clock = Clock::new();
    clock.advance(Instant::from_nanos(9));
    clock.schedule(Instant::from_nanos(3), Event::Timer(Timer::Agent { agent: 0 }));
    assert!(clock.pop_by(Instant::from_nanos(3)).is_some());
    clock.advance(Instant::from_nanos(1));
    assert_eq!(clock.now(), Instant::from_nanos(9));
}
