//! Parses arbitrary bytes as a capture file.
//!
//! Checks that accepted events survive writing and parsing again, except for the resolution of timestamps. The offsets
//! of errors must be within the file.

#![no_main]

use ib_pcap::erf::ErfHeader;
use ib_pcap::{Event, Packet, Reader, Writer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = Reader::new(bytes) else { return };
    let mut writer: Option<Writer<Vec<u8>>> = None;
    let mut told = Vec::new();
    while let Ok(Some(event)) = reader.next_event() {
        let event = tidied(event);
        told.push(format!("{event:?}"));
        match (&event, &mut writer) {
            (Event::Section(section), _) => {
                let before = writer
                    .take()
                    .map_or(Vec::new(), |old| old.finish().expect("memory is writable"));
                writer = Some(Writer::new(before, section).expect("a parsed section is valid"));
            }
            (Event::Interface(interface), Some(writer)) => {
                writer.interface(interface).map(drop).expect("a parsed interface is valid");
            }
            (Event::Packet(packet), Some(writer)) => {
                if let Ok((header, data)) = ErfHeader::parse(packet.data) {
                    let mut record = header.to_bytes(data.len()).to_vec();
                    record.extend_from_slice(data);
                    assert_eq!(ErfHeader::parse(&record), Ok((header, data)));
                }
                writer.packet(packet).expect("a parsed packet is valid");
            }
            (Event::Statistics(statistics), Some(writer)) => {
                writer.statistics(statistics).expect("parsed statistics are valid");
            }
            (_, None) => panic!("an event precedes the first section"),
        }
    }
    assert!(reader.offset() <= bytes.len() as u64);
    let Some(writer) = writer else { return };
    let written = writer.finish().expect("memory is writable");
    let mut reader = Reader::new(&written[..]).expect("a written file is valid");
    let mut again = Vec::new();
    while let Some(event) = reader.next_event().expect("a written file is valid") {
        again.push(format!("{event:?}"));
    }
    assert_eq!(told, again);
});

/// Sets values that the writer does not preserve to zero: snap lengths and missing timestamps.
fn tidied(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Interface(interface) => Event::Interface(interface.snap_length(0)),
        Event::Packet(packet) => {
            let time = Some(packet.time.unwrap_or(0));
            Event::Packet(Packet { time, ..packet })
        }
        other => other,
    }
}
