use super::*;
use crate::erf::ErfHeader;
use crate::model::{Event, LinkType};
use crate::read::Reader;

#[test]
fn blocks_have_the_bytes_of_the_format() {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    let port = writer.interface(&Interface::new(LinkType::ETHERNET).named("p1")).unwrap();
    let packet = Packet::new(port, 0x1_0000_0002, b"abcde").flags(PacketFlags::OUTBOUND);
    writer.packet(&packet.comment("hi")).unwrap();
    let bytes = writer.finish().unwrap();
    #[rustfmt::skip]
    let expected = [
        // The section, with unknown size and without options.
        0x0a, 0x0d, 0x0d, 0x0a, 32, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 32, 0, 0, 0,
        // The interface: Ethernet, its name, and nanoseconds as resolution.
        1, 0, 0, 0, 40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
        2, 0, 2, 0, b'p', b'1', 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0,
        // The packet: five bytes, three bytes of padding, a comment, and flags.
        6, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 5, 0, 0, 0, 5, 0, 0, 0,
        b'a', b'b', b'c', b'd', b'e', 0, 0, 0, 1, 0, 2, 0, b'h', b'i', 0, 0,
        2, 0, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 60, 0, 0, 0,
    ];
    assert_eq!(bytes, expected);
}

#[test]
fn packets_are_truncated_to_the_snap_length() {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    writer.interface(&Interface::new(LinkType::ERF).snap_length(20)).unwrap();
    writer.infiniband(&Packet::new(0, 7, b"a native packet"), 1).unwrap();
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(&bytes[..]).unwrap();
    let mut found = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        if let Event::Packet(packet) = event {
            let (header, data) = ErfHeader::parse(packet.data).unwrap();
            assert_eq!((header.wire_length, header.port, header.truncated), (15, 1, true));
            found.push((packet.original_length, data.to_vec()));
        }
    }
    assert_eq!(found, [(31, b"a na".to_vec())]);
}

#[test]
fn invalid_items_are_errors() {
    let mut writer = Writer::new(Vec::new(), &Section::default()).unwrap();
    let said = |result: Result<(), WriteError>| result.unwrap_err().to_string();
    assert_eq!(
        said(writer.packet(&Packet::new(0, 0, b""))),
        "interface 0 does not exist: 0 interfaces were written so far"
    );
    writer.interface(&Interface::new(LinkType::ERF)).unwrap();
    let written = writer.out.len();
    let mut packet = Packet::new(0, 0, b"abc");
    packet.original_length = 2;
    assert_eq!(
        said(writer.packet(&packet)),
        "the captured size is 3 bytes: expected at most 2, the original size"
    );
    let long = "x".repeat(65_536);
    assert_eq!(
        said(writer.packet(&Packet::new(0, 0, b"").comment(&long))),
        "an option has 65536 bytes: expected at most 65535"
    );
    packet.original_length = 65_536;
    assert_eq!(
        said(writer.infiniband(&packet, 0)),
        "the InfiniBand packet has 65536 bytes: expected at most 65535"
    );
    let huge = vec![0; MAX_BLOCK];
    assert_eq!(
        said(writer.packet(&Packet::new(0, 0, &huge))),
        "the packet has 16777216 bytes: expected at most 16777152"
    );
    let statistics = Statistics { interface: 1, ..Statistics::default() };
    assert!(writer.statistics(&statistics).is_err());
    assert_eq!(writer.out.len(), written, "errors write nothing");
}

#[test]
fn packets_can_be_flushed_one_by_one() {
    #[derive(Default)]
    struct Counted(usize);
    impl Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            self.0 += 1;
            Ok(())
        }
    }
    let mut writer = Writer::new(Counted::default(), &Section::default()).unwrap();
    writer.interface(&Interface::new(LinkType::ETHERNET)).unwrap();
    writer.packet(&Packet::new(0, 0, b"")).unwrap();
    writer.flush_every_packet(true);
    writer.packet(&Packet::new(0, 0, b"")).unwrap();
    assert_eq!(writer.out.0, 1);
}
