//! Tests with events in two files, and with damaged files.

use ib_pcap::Statistics;

use super::*;

#[test]
fn time_between_events_is_measured_across_files() {
    let mut bench = TwoCaptures { offset: 3_000_000, ..TwoCaptures::default() };
    sends(&mut bench, 100, 0);
    let correlation = bench.correlate(true);
    let event = |text: &str| text.parse::<EventKind>().unwrap();
    // Time from the last packet of a SEND to its acknowledgement, both in the second file.
    let timing =
        correlation.timing(&event("qp 0x12 receive SEND"), &event("qp 0x12 send ACK")).unwrap();
    assert_eq!((timing.from, timing.to, timing.times.len()), (100, 100, 100));
    assert!(timing.times.iter().all(|&time| (time - 300).abs() <= 2), "{:?}", timing.times);
    // Time from the send of a SEND's first packet (first file) to the receipt of its last packet (second file).
    let timing =
        correlation.timing(&event("qp 17 send SEND"), &event("qp 0x12 receive SEND last")).unwrap();
    assert!(timing.times.iter().all(|&time| (time - 5_200).abs() <= 6_020), "{:?}", timing.times);
    let timing = correlation.timing(&event("qp 17 send SEND"), &event("qp 17 send WRITE")).unwrap();
    assert_eq!((timing.from, timing.to, timing.times.len()), (100, 0, 0));
    let of_second = correlation.timing(&event("file 2 qp 17 send"), &event("qp 17 send")).unwrap();
    assert_eq!(of_second.from, 0);
}

#[test]
fn events_round_trip_as_text() {
    for (text, written) in [
        ("qp 0x11 receive SEND", "qp 0x000011 receive SEND"),
        ("file 2 qp 17 send write", "file 2 qp 0x000011 send WRITE"),
        ("qp 1 send", "qp 0x000001 send"),
        ("qp 1 send rdma read response last", "qp 0x000001 send RDMA READ response last"),
        ("qp 1 receive nak", "qp 0x000001 receive NAK"),
    ] {
        assert_eq!(text.parse::<EventKind>().unwrap().to_string(), written);
    }
    for text in
        ["", "qp", "qp 1", "qp x send", "qp 0x1000000 send", "qp 1 sends", "file 3 qp 1 send"]
    {
        assert!(matches!(text.parse::<EventKind>(), Err(EventError::Form(_))), "{text}");
    }
    let error = "qp 1 send WRIT".parse::<EventKind>().unwrap_err();
    assert_eq!(error, EventError::Operation("WRIT".to_owned()));
}

#[test]
fn statistics_of_sections_are_added() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &Section::default()).unwrap();
    for name in ["qp 0x000011 send", "qp 0x000011 lost"] {
        writer.interface(&Interface::new(LinkType::ETHERNET).named(name)).unwrap();
    }
    let bytes = frame(A, B, Operation::SendOnly, 5, 8, 0);
    for (interface, comment) in [(0, "posted 5 ns before"), (1, "lost: at leaf 1")] {
        let packet = Captured::new(interface, START, &bytes).flags(PacketFlags::OUTBOUND);
        writer.packet(&packet.comment(comment)).unwrap();
    }
    for (interface, received, dropped) in [(0, 8, 7), (1, 1, 0)] {
        let statistics = Statistics {
            interface,
            received: Some(received),
            dropped: Some(dropped),
            comments: vec![
                "9 packets noted in both directions, 2 captured, 7 overwritten".to_owned(),
            ],
            ..Statistics::default()
        };
        writer.statistics(&statistics).unwrap();
    }
    let mut correlator = Correlator::default();
    correlator.read(&mut CaptureFile::new(&out[..], &[]).unwrap()).unwrap();
    let correlation = correlator.finish(&[]);
    let expected = FileCounts {
        captured: 1,
        overwritten: Some(7),
        noted: Some(9),
        lost: 1,
        times: Some((START, START)),
        has_directions: true,
        ..FileCounts::default()
    };
    assert_eq!(correlation.files(), [expected]);
    let message = found(&correlation, correlation.pairs()[0])[0];
    assert_eq!(message.parts, [Some(5), None, None, None, None, None]);
}

#[test]
fn damaged_captures_are_correlated_up_to_the_damage() {
    let mut bench = TwoCaptures { offset: 5, ..TwoCaptures::default() };
    sends(&mut bench, 6, 0xff_fff8);
    bench.packet((A, B), (Operation::ReadRequest, 10, 0, 5000), (200_000, 205_000), WHOLE);
    let last = (Operation::ReadResponseLast, 14, 904, 0);
    bench.packet((B, A), last, (206_000, 207_000), WHOLE);
    let files = bench.files(true);
    let mut state = 1_u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % bound
    };
    let mut messages = 0;
    for _ in 0..4000 {
        let mut damaged = files.clone();
        for _ in 0..=below(4) {
            let file = &mut damaged[below(2)];
            let at = 28 + below(file.len() - 28);
            file[at] = below(256) as u8;
        }
        let mut correlator = Correlator::default();
        for file in &damaged {
            // A damaged file is read up to the first error.
            let Ok(mut file) = CaptureFile::new(&file[..], &[]) else { continue };
            correlator.read(&mut file).ok();
        }
        let correlation = correlator.finish(&[]);
        for &pair in correlation.pairs() {
            correlation.messages(pair, |_| messages += 1);
        }
        let event = "qp 0x11 send".parse().unwrap();
        let timing = correlation.timing(&event, &event);
        assert!(timing.is_none_or(|timing| timing.from == timing.to));
    }
    assert!(messages > 10_000, "{messages}");
}
