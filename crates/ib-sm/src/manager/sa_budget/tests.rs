use super::*;

#[test]
fn sa_gets_less_than_a_tenth_during_a_sweep() {
    let mut sa_budget = SaBudget::default();
    assert_eq!(*sa_budget.credit(true), 0);
    assert!(!sa_budget.can_send());
    for _ in 0..10 * SMPS_PER_MICROSECOND {
        sa_budget.smp_completed();
    }
    assert_eq!(*sa_budget.credit(true), 10);
    for _ in 0..5 {
        assert!(sa_budget.can_send());
        sa_budget.charge_mad();
    }
    assert!(!sa_budget.can_send());
    for _ in 0..10_000 {
        sa_budget.smp_completed();
    }
    assert_eq!(*sa_budget.credit(true), MAX_BUDGET, "completed SMPs grant at most `MAX_BUDGET`");
    assert_eq!(*sa_budget.credit(false), MAX_BUDGET);
}

#[test]
fn timer_grants_double_while_no_smp_completes() {
    let mut sa_budget = SaBudget::default();
    let at = |number: u64| Instant::from_nanos(number * 1_000_000);
    sa_budget.start_timer(at(0));
    assert_eq!(sa_budget.poll_timeout(), Some(at(1)));
    let mut seen = Vec::new();
    for number in 1..5 {
        sa_budget.handle_timeout(at(number));
        seen.push(std::mem::take(sa_budget.credit(true)));
    }
    assert_eq!(seen, [20, 40, 80, 160]);
    for _ in 0..SMPS_PER_MICROSECOND {
        sa_budget.smp_completed();
    }
    sa_budget.handle_timeout(at(5));
    assert_eq!(*sa_budget.credit(true), 21, "after a completed SMP, the timer grants 20 µs");
    sa_budget.handle_timeout(at(5));
    assert_eq!(*sa_budget.credit(true), 21, "the timer grants nothing before the next millisecond");
}
