use proptest::prelude::*;

use super::*;
use crate::model::{LinkType, Packet, PacketFlags, Section, Statistics};
use crate::write::Writer;

/// Returns all items of a file. If the reader fails, returns its error.
fn events(bytes: &[u8]) -> Result<Vec<Event<'static>>, ReadError> {
    let mut reader = Reader::new(bytes)?;
    let mut all = Vec::new();
    while let Some(event) = reader.next_event()? {
        all.push(owned(event));
    }
    Ok(all)
}

/// Returns a copy of an item that does not borrow from the reader.
fn owned(event: Event<'_>) -> Event<'static> {
    match event {
        Event::Packet(packet) => Event::Packet(Packet {
            data: packet.data.to_vec().leak(),
            comments: packet.comments.iter().map(|c| &*c.to_string().leak()).collect(),
            ..packet
        }),
        Event::Section(section) => Event::Section(section),
        Event::Interface(interface) => Event::Interface(interface),
        Event::Statistics(statistics) => Event::Statistics(statistics),
    }
}

fn error_message(bytes: &[u8]) -> String {
    events(bytes).unwrap_err().to_string()
}

fn text() -> impl Strategy<Value = String> {
    "[a-z é]{0,9}"
}

prop_compose! {
    fn section()(
        big in any::<bool>(),
        hardware in prop::option::of(text()),
        os in prop::option::of(text()),
        application in prop::option::of(text()),
        comments in prop::collection::vec(text(), 0..3),
    ) -> Section {
        let byte_order = if big { ByteOrder::Big } else { ByteOrder::Little };
        Section { byte_order, hardware, os, application, comments }
    }
}

prop_compose! {
    fn interface()(
        link_type in any::<u16>(),
        name in prop::option::of(text()),
        description in prop::option::of(text()),
        speed in prop::option::of(any::<u64>()),
        comments in prop::collection::vec(text(), 0..3),
    ) -> Interface {
        let (link_type, snap_length) = (LinkType(link_type), 0);
        Interface { link_type, snap_length, name, description, speed, comments }
    }
}

prop_compose! {
    fn statistics()(
        time in any::<u64>(),
        counts in any::<[Option<u64>; 7]>(),
        comments in prop::collection::vec(text(), 0..3),
    ) -> Statistics {
        let [start, end, received, dropped, accepted, os_dropped, delivered] = counts;
        Statistics {
            interface: 0, time, start, end, received, dropped, accepted, os_dropped, delivered,
            comments,
        }
    }
}

proptest! {
    #[test]
    fn written_files_can_be_read(
        section in section(),
        interface in interface(),
        packets in prop::collection::vec(
            (any::<u64>(), prop::collection::vec(any::<u8>(), 0..40), 0u32..9, text(),
             any::<Option<u32>>(), any::<Option<u64>>()),
            0..4,
        ),
        statistics in statistics(),
    ) {
        let mut writer = Writer::new(Vec::new(), &section).unwrap();
        writer.interface(&interface).unwrap();
        let mut expected = vec![Event::Section(section), Event::Interface(interface)];
        for (time, data, more, comment, flags, dropped) in &packets {
            let mut packet = Packet::new(0, *time, data).comment(comment).comment("and more");
            packet.original_length += more;
            packet.flags = flags.map(PacketFlags);
            packet.dropped = *dropped;
            writer.packet(&packet).unwrap();
            expected.push(Event::Packet(packet));
        }
        writer.statistics(&statistics).unwrap();
        expected.push(Event::Statistics(statistics));
        let bytes = writer.finish().unwrap();
        prop_assert_eq!(events(&bytes).unwrap(), expected);
        // Reading a truncated file fails or returns fewer items, but never reads past its end.
        for end in 0..bytes.len() {
            let Ok(mut reader) = Reader::new(&bytes[..end]) else { continue };
            while let Ok(Some(_)) = reader.next_event() {}
            prop_assert!(reader.offset() <= end as u64);
        }
    }

    #[test]
    fn reading_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = events(&bytes);
        let starts: [&[u8]; 2] = [
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0],
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
        ];
        for start in starts {
            if bytes.len() >= start.len() {
                bytes[..start.len()].copy_from_slice(start);
                let _ = events(&bytes);
            }
        }
    }
}

/// Returns a file that consists of a section, an interface, and the given blocks.
fn file(blocks: &[&[u8]]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    writer.interface(&Interface::new(LinkType::ETHERNET)).unwrap();
    let mut bytes = writer.finish().unwrap();
    bytes.extend(blocks.concat());
    bytes
}

/// Returns a block of this type that consists of little-endian words.
fn block_of(kind: u32, words: &[u32]) -> Vec<u8> {
    let length = 12 + 4 * words.len() as u32;
    let all = [&[kind, length], words, &[length]].concat();
    all.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn unknown_blocks_are_skipped_and_simple_packets_read() {
    let bytes = file(&[&block_of(0x0bad_cafe, &[1, 2, 3]), &block_of(3, &[2, 0x6261])]);
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Packet(packet) = event {
            packets.push((packet.time, packet.original_length, packet.data.to_vec()));
        }
    }
    assert_eq!(packets, [(None, 2, b"ab".to_vec())]);
    assert_eq!((reader.skipped_blocks(), reader.offset()), (1, bytes.len() as u64));
}

#[test]
fn times_have_the_resolution_and_offset_of_their_interface() {
    // Resolutions of the interfaces: the default (1 µs), 10^-3 s, 2^-10 s, and the default with an
    // offset of three seconds.
    let interfaces: [&[u32]; 4] =
        [&[1, 0], &[1, 0, 0x1_0009, 3], &[1, 0, 0x1_0009, 0x8a], &[1, 0, 0x8_000e, 3, 0]];
    let mut bytes = file(&[]);
    for interface in interfaces {
        bytes.extend(block_of(1, interface));
    }
    for interface in 1..=4 {
        bytes.extend(block_of(6, &[interface, 0, 2048, 0, 0]));
    }
    let times: Vec<_> = events(&bytes)
        .unwrap()
        .iter()
        .filter_map(|event| if let Event::Packet(packet) = event { packet.time } else { None })
        .collect();
    assert_eq!(times, [2_048_000, 2_048_000_000, 2_000_000_000, 3_002_048_000]);
    bytes.extend(block_of(6, &[2, u32::MAX, 0, 0, 0]));
    let error = error_message(&bytes);
    assert!(error.contains("a time is 18446744069414584320"), "{error}");
}

#[test]
fn classic_files_are_read_in_both_byte_orders() {
    let word = |big: bool, value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    for (magic, big, nanoseconds) in
        [(0xa1b2_c3d4, false, 3_000), (0xa1b2_c3d4, true, 3_000), (0xa1b2_3c4d, true, 3)]
    {
        let version = if big { 0x0002_0004 } else { 0x0004_0002 };
        let words = [magic, version, 0, 0, 96, 0x1000_00c5, 2, 3, 4, 90];
        let mut bytes: Vec<u8> = words.iter().flat_map(|&value| word(big, value)).collect();
        bytes.extend(b"data");
        let mut packet = Packet::new(0, 2_000_000_000 + nanoseconds, b"data");
        packet.original_length = 90;
        let order = if big { ByteOrder::Big } else { ByteOrder::Little };
        let expected = [
            Event::Section(Section { byte_order: order, ..Section::default() }),
            Event::Interface(Interface::new(LinkType::ERF).snap_length(96)),
            Event::Packet(packet),
        ];
        assert_eq!(events(&bytes).unwrap(), expected);
        let end = bytes.len() - 1;
        assert_eq!(
            error_message(&bytes[..end]),
            "byte 40: the file ends within a packet: expected 4 bytes, found 3"
        );
        assert_eq!(
            error_message(&bytes[..40]),
            "byte 40: the file ends within a packet: expected 4 bytes, found 0"
        );
    }
}

#[test]
fn errors_have_offset_found_and_expected_value() {
    assert_eq!(
        error_message(b""),
        "byte 0: the file ends within the magic number: expected 4 bytes, found 0"
    );
    assert_eq!(
        error_message(b"%PDF-1.4"),
        "byte 0: the magic number is 0x25504446: expected that of pcapng or pcap"
    );
    let good = file(&[]);
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        error_message(&bytes)
    };
    assert_eq!(
        changed(8, 0),
        "byte 8: the byte-order magic is 0x1a2b3c00: expected 0x1a2b3c4d in either order"
    );
    assert_eq!(changed(12, 2), "byte 12: the major version of pcapng is 2: expected 1");
    assert_eq!(
        changed(36, 3),
        "byte 36: the length of a block is 3: expected a multiple of 4 from 12 on"
    );
    assert_eq!(
        changed(39, 255),
        "byte 36: the length of a block is 4278190112: expected at most 16777216"
    );
    assert_eq!(changed(60, 1), "byte 60: the length at the end of a block is 1: expected 32");
    let said_of = |kind, words: &[u32]| error_message(&file(&[&block_of(kind, words)]));
    assert_eq!(
        said_of(6, &[7, 0, 0, 0, 0]),
        "byte 72: the interface of a block is 7: expected less than 1, the interfaces before"
    );
    assert_eq!(
        said_of(6, &[0, 0, 0, 8, 9, 0]),
        "byte 84: the captured length is 8: expected at most 4, the rest of the block"
    );
    assert_eq!(
        said_of(6, &[0, 0, 0, 2, 1, 0]),
        "byte 84: the captured length is 2: expected at most the original length, 1"
    );
    assert_eq!(
        said_of(6, &[0, 0, 0]),
        "byte 72: the file ends within an enhanced packet: expected 20 bytes, found 12"
    );
    assert_eq!(
        said_of(6, &[0, 0, 0, 0, 0, 0x5_0001, 0]),
        "byte 94: the length of an option is 5: expected at most 4, the rest of the block"
    );
    assert_eq!(
        said_of(6, &[0, 0, 0, 0, 0, 0x2_0001, 0xff61]),
        "byte 97: a byte of a text is 0xff: expected UTF-8"
    );
    assert_eq!(
        said_of(6, &[0, 0, 0, 0, 0, 0x1_0002, 0]),
        "byte 94: the length of an option is 1: expected 4"
    );
}
