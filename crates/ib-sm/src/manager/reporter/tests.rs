use super::*;

fn fault(text: &str) -> Fault {
    Fault::TooLarge { what: text.to_owned() }
}

fn events(reporter: &mut Reporter) -> Vec<SmEvent> {
    std::iter::from_fn(|| reporter.poll()).collect()
}

#[test]
fn faults_of_the_last_sweep_are_not_reported_again() {
    let mut reporter = Reporter::default();
    reporter.report_faults(vec![fault("a"), fault("a"), fault("b")]);
    let new = events(&mut reporter);
    assert!(matches!(&new[..], [SmEvent::Fault(one), SmEvent::Fault(other)]
        if *one == fault("a") && *other == fault("b")));
    reporter.start_sweep("why".to_owned(), true);
    reporter.report_faults(vec![fault("b"), fault("c")]);
    let new = events(&mut reporter);
    assert!(matches!(&new[..], [SmEvent::DiscoveryStart(_), SmEvent::Fault(one)]
        if *one == fault("c")));
    assert_eq!(reporter.faults().count(), 2);
}

#[test]
fn alarm_keeps_its_time_while_it_is_raised() {
    let mut reporter = Reporter::default();
    let alarm = |reason: &str| vec![Alarm::NoPlan { reason: reason.to_owned() }];
    let [first, later] = [1, 2].map(Instant::from_nanos);
    reporter.raise(first, alarm("a"));
    reporter.raise(later, alarm("a"));
    assert_eq!(events(&mut reporter).len(), 1, "an unchanged alarm is reported only once");
    reporter.raise(later, alarm("b"));
    assert!(matches!(&events(&mut reporter)[..], [SmEvent::AlarmRaised(_)]));
    assert_eq!(reporter.alarms().map(|it| it.since).collect::<Vec<_>>(), [first]);
    reporter.raise(later, Vec::new());
    assert!(matches!(&events(&mut reporter)[..], [SmEvent::AlarmCleared(AlarmKind::NoPlan)]));
}

#[test]
fn refusal_is_reported_once_until_there_is_a_plan() {
    let mut reporter = Reporter::default();
    reporter.refuse("a".to_owned());
    reporter.refuse("a".to_owned());
    reporter.accept();
    reporter.refuse("a".to_owned());
    assert_eq!(events(&mut reporter).len(), 2);
}
