//! Parses arbitrary bytes as a capture file. Correlates this capture three times: alone, with itself, and with the
//! capture that starts in the middle of the bytes.
//!
//! Checks that the wire, receive and completion times of a message add up to its time in flight.

#![no_main]

use ib_capture::CaptureFile;
use ib_capture::correlate::{Correlator, EventKind, Part};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for second in [None, Some(&bytes[bytes.len() / 2..]), Some(bytes)] {
        let mut correlator = Correlator::default();
        for bytes in [Some(bytes), second].into_iter().flatten() {
            let Ok(mut file) = CaptureFile::new(bytes, &[]) else { return };
            if correlator.read(&mut file).is_err() {
                return;
            }
        }
        let correlation = correlator.finish(&[]);
        for &pair in correlation.pairs() {
            correlation.messages(pair, |message| {
                let part = |part| message.part(part);
                let parts = [Part::Wire, Part::Receive, Part::Completion].map(part);
                if let ([Some(a), Some(b), Some(c)], Some(all)) = (parts, part(Part::InFlight)) {
                    assert_eq!(a.wrapping_add(b).wrapping_add(c), all);
                }
            });
        }
        let event: EventKind = "qp 0x11 send".parse().expect("the event is valid");
        let _ = correlation.timing(&event, &event);
    }
});
