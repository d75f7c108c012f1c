use super::*;

#[test]
fn a_sweep_leaves_less_than_a_tenth() {
    let mut pace = Pace::default();
    assert_eq!(*pace.credit(true), 0);
    assert!(!pace.may_send());
    for _ in 0..10 * SMPS {
        pace.smp_ended();
    }
    assert_eq!(*pace.credit(true), 10);
    for _ in 0..5 {
        assert!(pace.may_send());
        pace.sent();
    }
    assert!(!pace.may_send());
    for _ in 0..10_000 {
        pace.smp_ended();
    }
    assert_eq!(*pace.credit(true), MOST, "not more than a turn is saved up");
    assert_eq!(*pace.credit(false), MOST);
}

#[test]
fn time_alone_allows_more_and_more_while_nothing_ends() {
    let mut pace = Pace::default();
    let at = |number: u64| Instant::from_nanos(number * 1_000_000);
    pace.ask(at(0));
    assert_eq!(pace.poll_timeout(), Some(at(1)));
    let mut seen = Vec::new();
    for number in 1..5 {
        pace.handle_timeout(at(number));
        seen.push(std::mem::take(pace.credit(true)));
    }
    assert_eq!(seen, [20, 40, 80, 160]);
    for _ in 0..SMPS {
        pace.smp_ended();
    }
    pace.handle_timeout(at(5));
    assert_eq!(*pace.credit(true), 21, "it starts again when an SMP ends");
    pace.handle_timeout(at(5));
    assert_eq!(*pace.credit(true), 21, "once a millisecond");
}
