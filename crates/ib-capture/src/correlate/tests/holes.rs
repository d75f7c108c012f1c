//! Captures with missing packets.

use super::*;

/// Adds a SEND of one packet every 20 µs. Each SEND is acknowledged after 12.1 µs. File 0 has no
/// packets of the messages in `missed`. If `acknowledgements` is true, file 0 has the SENDs of
/// these messages, but not the acknowledgements.
fn with_hole(bench: &mut TwoCaptures, missed: std::ops::Range<u32>, acknowledgements: bool) {
    for number in 0..100 {
        let time = 20_000 * u64::from(number);
        let is_missed_by = missed.contains(&number).then_some(0);
        let fate = Fate { is_missed_by, posted: Some(100), ..WHOLE };
        let send = if acknowledgements { WHOLE } else { fate };
        let psn = 0xff_ffd0_u32.wrapping_add(number);
        let posted = Some(100);
        let what = (Operation::SendOnly, psn, 8, 0);
        bench.packet((A, B), what, (time, time + 5_000), Fate { posted, ..send });
        let ack = (Operation::Acknowledge, psn, 0, 0);
        bench.packet((B, A), ack, (time + 5_100, time + 12_100), fate);
    }
}

/// Returns the counts of messages that could not be measured completely, and all known values of [`Part::InFlight`].
fn flight_times(bench: &TwoCaptures, is_named: bool) -> (UnmeasuredCounts, Vec<i64>) {
    let correlation = bench.correlate(is_named);
    let mut flight_times = Vec::new();
    let pair = correlation.pairs()[0];
    let unknown = correlation.messages(pair, |message| {
        flight_times.extend(message.part(Part::InFlight));
        let known = [Part::Completion, Part::InFlight, Part::Total].map(|part| message.part(part));
        assert!(message.part(Part::InFlight).is_some() || known == [None; 3], "{message:?}");
    });
    (unknown, flight_times)
}

#[test]
fn ack_after_a_reported_gap_completes_no_request() {
    for is_one_file in [false, true] {
        let mut bench = TwoCaptures { tells_missed: true, is_one_file, ..TwoCaptures::default() };
        // All requests are captured. The acknowledgement after the hole acknowledges all requests
        // before it.
        with_hole(&mut bench, 40..60, true);
        if is_one_file {
            // The file reports only the packets that are missing at `A`.
            bench.written[0].retain(|it| !it.is_missed || it.end.file == 0);
        }
        let (unknown, flight_times) = flight_times(&bench, true);
        // The hole ends with the acknowledgement of message 60. This message was sent during the hole, so it is the
        // 21st message without a known time of acknowledgement.
        assert_eq!(unknown, UnmeasuredCounts { incomplete: 0, unacknowledged: 21 });
        assert_eq!(flight_times, [12_100; 79]);
    }
}

#[test]
fn ack_after_a_gap_in_requests_completes_no_request() {
    // The files do not report missed packets, like files of other programs.
    for is_named in [true, false] {
        let mut bench = TwoCaptures::default();
        with_hole(&mut bench, 40..60, false);
        // The last request before the hole is captured, but its acknowledgement is not.
        bench.written[0].retain(|it| it.is_sent || it.time != START + 39 * 20_000 + 12_100);
        let (unknown, flight_times) = flight_times(&bench, is_named);
        // The second file contains the requests in the hole, so their messages are counted.
        assert_eq!((unknown.unacknowledged, flight_times.len()), (21, 79), "{is_named}");
        assert!(flight_times.iter().all(|&time| time == 12_100), "{flight_times:?}");
    }
}

#[test]
fn ack_completes_its_request_without_a_gap() {
    // Every fourth SEND is acknowledged, together with the three SENDs before it.
    let mut bench = TwoCaptures { tells_missed: true, ..TwoCaptures::default() };
    for number in 0..40 {
        let time = 1_000 * u64::from(number);
        bench.packet((A, B), (Operation::SendOnly, number, 8, 0), (time, time + 5_000), WHOLE);
        if number % 4 == 3 {
            let ack = (Operation::Acknowledge, number, 0, 0);
            bench.packet((B, A), ack, (time + 5_100, time + 12_100), WHOLE);
        }
    }
    let (unknown, flight_times) = flight_times(&bench, true);
    assert_eq!((unknown, flight_times.len()), (UnmeasuredCounts::default(), 40));
    assert_eq!(flight_times[..4], [15_100, 14_100, 13_100, 12_100]);
}

#[test]
fn same_file_twice_is_detected() {
    let mut bench = TwoCaptures::default();
    sends(&mut bench, 10, 0);
    for is_named in [true, false] {
        let files = bench.files(is_named);
        for (other, expected) in [(0, true), (1, false)] {
            let mut correlator = Correlator::default();
            for file in [0, other] {
                correlator.read(&mut CaptureFile::new(&files[file][..], &[]).unwrap()).unwrap();
            }
            assert_eq!(correlator.finish(&[]).are_duplicates(), expected, "{is_named}");
        }
    }
}

#[test]
fn common_queue_pairs_are_found_without_common_packets() {
    let mut bench = TwoCaptures { tells_missed: true, ..TwoCaptures::default() };
    for number in 0..100 {
        let time = 1_000 * u64::from(number);
        let fate = Fate { is_missed_by: Some(usize::from(number < 50)), ..WHOLE };
        bench.packet((A, B), (Operation::SendOnly, number, 8, 0), (time, time + 5_000), fate);
    }
    let correlation = bench.correlate(true);
    assert_eq!((correlation.all_matched().matched, correlation.common()), (0, 1));
    // The files have no interface statistics, so the counts of missed packets that the packets
    // report are added up.
    let overwritten = correlation.files().iter().map(|file| file.overwritten);
    assert_eq!(overwritten.collect::<Vec<_>>(), [None, Some(50)]);
}
