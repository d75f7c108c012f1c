use super::*;

fn at(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1000)
}

fn round_trip(micros: u64) -> Option<RoundTrip> {
    Some(RoundTrip::with(None, Duration::from_micros(micros)))
}

const PSN: Psn = Psn::truncated(7);

#[test]
fn first_nak_retransmits_and_repeated_naks_wait() {
    let mut recovery = Recovery::default();
    recovery.progress(1, 1);
    assert!(recovery.report_missing(PSN, at(0), round_trip(100), None));
    assert_eq!(recovery.use_retry_for_nak(), Ok(true));
    recovery.start_round(PSN, at(0));
    // Round-trip time 100 µs and variation 50 µs give a retransmission timeout of 300 µs. A NAK before this timeout
    // only makes the loss suspected.
    assert!(!recovery.report_missing(PSN, at(299), round_trip(100), None));
    assert_eq!(recovery.deadline(), Some(at(300)));
    assert!(recovery.report_missing(PSN, at(300), round_trip(100), None));
    // The second round of retransmissions uses up no retry. It doubles the time for which a loss is only suspected.
    assert_eq!(recovery.use_retry_for_nak(), Ok(false));
    recovery.start_round(PSN, at(300));
    assert!(!recovery.report_missing(PSN, at(899), round_trip(100), None));
    assert!(recovery.report_missing(PSN, at(900), round_trip(100), None));
}

#[test]
fn suspected_loss_counts_only_for_the_oldest_packet() {
    for (oldest, is_lost) in [(PSN, true), (PSN.wrapping_add(1), false)] {
        let mut recovery = Recovery::default();
        recovery.start_round(PSN, at(0));
        assert!(!recovery.report_missing(PSN, at(1), None, Some(Duration::from_micros(400))));
        assert!(!recovery.take_suspected(oldest, at(99)));
        assert_eq!(recovery.take_suspected(oldest, at(100)), is_lost);
        assert_eq!(recovery.deadline(), None);
    }
}

#[test]
fn retries_run_out_and_progress_restores_them() {
    let mut recovery = Recovery::default();
    recovery.progress(2, 1);
    assert_eq!(recovery.use_retry_for_timeout(), Ok(()));
    assert_eq!(recovery.use_retry_for_nak(), Ok(true));
    assert_eq!(recovery.use_retry_for_timeout(), Err(NoRetriesLeft));
    assert_eq!(recovery.use_rnr_retry(1), Ok(()));
    assert_eq!(recovery.use_rnr_retry(1), Err(NoRetriesLeft));
    recovery.progress(2, UNLIMITED);
    assert_eq!(recovery.use_retry_for_timeout(), Ok(()));
    for _ in 0..100 {
        assert_eq!(recovery.use_rnr_retry(UNLIMITED), Ok(()));
    }
}

#[test]
fn round_trip_is_measured_for_one_packet_at_a_time() {
    let mut timer = RoundTripTimer::default();
    assert_eq!(timer.timeout(), None);
    timer.sent(PSN, at(0));
    timer.sent(PSN.wrapping_add(1), at(50));
    timer.acknowledged(PSN.wrapping_sub(1), at(60), None);
    assert_eq!(timer.timeout(), None);
    timer.acknowledged(PSN.wrapping_add(1), at(100), None);
    assert_eq!(timer.timeout(), Some(Duration::from_micros(300)));
    // Once a round-trip time is known, a retransmission no longer gives a sample of it.
    timer.acknowledged(PSN.wrapping_add(2), at(900), Some(at(0)));
    assert_eq!(timer.timeout(), Some(Duration::from_micros(300)));
}

#[test]
fn probe_is_sent_once_until_the_next_response() {
    let (mut probe, timeout) = (Probe::default(), Some(Duration::from_micros(30)));
    probe.sent(at(0), timeout);
    assert_eq!(probe.deadline, Some(at(30)));
    // Another packet was sent at 10 µs, so the probe is due 30 µs after this packet.
    probe.handle_timeout(at(30), at(10), timeout);
    assert_eq!((probe.deadline, probe.is_next()), (Some(at(40)), false));
    probe.handle_timeout(at(40), at(10), timeout);
    assert!(probe.take() && !probe.take());
    probe.sent(at(41), timeout);
    assert_eq!(probe.deadline, None);
    probe.acknowledged(at(50), true, timeout);
    assert_eq!(probe.deadline, Some(at(80)));
    probe.acknowledged(at(60), false, timeout);
    assert_eq!(probe.deadline, None);
}

#[test]
fn congestion_window_halves_and_grows_within_its_limits() {
    let mut window = CongestionWindow::new(64);
    window.grow(1000);
    assert_eq!(window.size(), 64);
    for expected in [32, LEAST_WINDOW, LEAST_WINDOW] {
        window.shrink();
        assert_eq!(window.size(), expected);
    }
    window.grow(LEAST_WINDOW - 1);
    assert_eq!(window.size(), LEAST_WINDOW);
    window.grow(1);
    assert_eq!(window.size(), LEAST_WINDOW + 1);
}
