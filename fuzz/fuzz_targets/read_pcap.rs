//! Reads any bytes as a capture file; what it accepts is the same when it is written and read again,
//! but for the resolution of times, and no error comes later than the bytes end.

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
                let before = writer.take().map_or(Vec::new(), |old| old.finish().expect("memory"));
                writer = Some(Writer::new(before, section).expect("what was read fits"));
            }
            (Event::Interface(interface), Some(writer)) => {
                writer.interface(interface).map(drop).expect("what was read fits");
            }
            (Event::Packet(packet), Some(writer)) => {
                if let Ok((header, data)) = ErfHeader::parse(packet.data) {
                    let mut record = header.to_bytes(data.len()).to_vec();
                    record.extend_from_slice(data);
                    assert_eq!(ErfHeader::parse(&record), Ok((header, data)));
                }
                writer.packet(packet).expect("what was read fits");
            }
            (Event::Statistics(statistics), Some(writer)) => {
                writer.statistics(statistics).expect("what was read fits");
            }
            (_, None) => panic!("something came before the section"),
        }
    }
    assert!(reader.offset() <= bytes.len() as u64);
    let Some(writer) = writer else { return };
    let written = writer.finish().expect("memory");
    let mut reader = Reader::new(&written[..]).expect("what was written is read");
    let mut again = Vec::new();
    while let Some(event) = reader.next_event().expect("what was written is read") {
        again.push(format!("{event:?}"));
    }
    assert_eq!(told, again);
});

/// Takes away what the writer does not keep: snap lengths that packets break, missing times.
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
