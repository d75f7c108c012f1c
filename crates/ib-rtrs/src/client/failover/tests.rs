use super::Failover::{Abandon, End, FreeChunk, KeepChunk, Resend};
use super::Outcome::{Fenced, TimedOut, Unknown};
use super::*;

/// Each row has an event, and the actions for these requests:
/// 1. not recalled, and no other path is connected
/// 2. not recalled, and another path is connected
/// 3. recalled, and no other path is connected
/// 4. recalled, and another path is connected
/// 5. already completed
const TABLE: [(Event, [Failover; 5]); 6] = [
    (Event::Unfenced, [Abandon(Unknown), Resend, Abandon(Unknown), Abandon(Unknown), KeepChunk]),
    (Event::FencedAfterLoss, [End(Fenced), End(Fenced), End(Fenced), End(Fenced), FreeChunk]),
    (Event::Fenced, [End(Unknown), Resend, End(Fenced), End(Fenced), FreeChunk]),
    (
        Event::FenceTimedOut,
        [Abandon(TimedOut), Abandon(TimedOut), Abandon(TimedOut), Abandon(TimedOut), KeepChunk],
    ),
    (
        Event::GivenUp,
        [Abandon(Unknown), Abandon(Unknown), Abandon(Unknown), Abandon(Unknown), KeepChunk],
    ),
    (Event::Closed, [End(Unknown), End(Unknown), End(Unknown), End(Unknown), FreeChunk]),
];

#[test]
fn every_event_and_request_has_its_failover() {
    for (event, expected) in TABLE {
        for (at, (is_recalled, has_path)) in
            [(false, false), (false, true), (true, false), (true, true)].into_iter().enumerate()
        {
            let request = FailedRequest { is_ended: false, is_recalled, has_path };
            assert_eq!(decide(event, request), expected[at], "{event:?}, {request:?}");
            let ended = FailedRequest { is_ended: true, ..request };
            assert_eq!(decide(event, ended), expected[4], "{event:?}, {ended:?}");
        }
    }
}
