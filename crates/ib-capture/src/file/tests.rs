use ib_link::{Direction, PacketRecord, Route};
use ib_pcap::{Interface, LinkType, Packet as Captured, PacketFlags, ReadError, Section, Writer};
use ib_types::{Gid, Guid, Instant, Psn, Qpn, ServiceLevel};
use ib_wire::packet::{Bth, Builder, Opcode, Reth};

use super::*;
use crate::frame::Link;

/// Returns the bytes of a packet from the BTH to the pad.
fn packet() -> Vec<u8> {
    let bth = Bth {
        opcode: Opcode::RC_WRITE_ONLY,
        destination: Qpn::truncated(0x12),
        psn: Psn::truncated(77),
        ..Bth::default()
    };
    let reth = Reth { virtual_address: 0x1000, r_key: 0x99, dma_length: 22 };
    let mut bytes = vec![0; 256];
    let builder = Builder::new(bth).reth(reth).payload(b"twenty-two bytes of it");
    let network = RoceNetwork {
        addresses: ib_wire::packet::RoceAddresses::V6 { source: 1.into(), destination: 2.into() },
        source_port: 1,
        destination_port: 2,
    };
    let length = builder.emit_roce(&network, &mut bytes).unwrap();
    bytes.truncate(length - ICRC);
    bytes
}

fn record(length: usize) -> PacketRecord {
    let gid = |number| Gid::new(Gid::DEFAULT_PREFIX, Guid(number));
    let sl = ServiceLevel::new(3).unwrap();
    let (source, destination) = (gid(1), gid(2));
    let route = Route { source, destination, slid: 1, dlid: 2, sl, ..Route::default() };
    PacketRecord {
        number: 0,
        direction: Direction::Send,
        at: Instant::from_nanos(5),
        route,
        length: length as u32,
        is_repeated: false,
        dropped: None,
        posted: None,
        is_lost: false,
    }
}

/// Writes a file with one packet. Of the packet, only the first `kept` bytes from the BTH on are
/// captured.
fn file(link: Link, kept: usize) -> Vec<u8> {
    let bytes = packet();
    let mut frame = Vec::new();
    let length = link.frame(&record(bytes.len()), &bytes[..kept.min(bytes.len())], &mut frame);
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &Section::default()).unwrap();
    let interface = writer.interface(&Interface::new(link.link_type()).named("a")).unwrap();
    let captured = Captured {
        original_length: length as u32,
        ..Captured::new(interface, 7, &frame).comment("why").flags(PacketFlags::OUTBOUND)
    };
    match link {
        Link::Infiniband => writer.infiniband(&captured, 0).unwrap(),
        Link::Ethernet { .. } => writer.packet(&captured).unwrap(),
    }
    out
}

const LINKS: [Link; 2] = [Link::Ethernet { own_port: 4791, peer_port: 4791 }, Link::Infiniband];

#[test]
fn captured_packets_are_read_back() {
    for link in LINKS {
        let file = file(link, usize::MAX);
        let mut file = CaptureFile::new(&file[..], &[]).unwrap();
        let Some(Item::Frame(frame)) = file.next_item().unwrap() else { panic!("no frame") };
        assert_eq!((frame.number, frame.time), (1, Some(7)));
        assert_eq!(frame.direction, Some(Direction::Send));
        assert_eq!(frame.comments, ["why"]);
        let content = frame.content.unwrap();
        assert!(content.is_whole);
        assert_eq!(content.payload(), b"twenty-two bytes of it");
        assert_eq!(content.packet.reth().unwrap().r_key, 0x99);
        match content.network {
            Some(network) => assert_eq!(content.packet.check_roce_icrc(&network), Ok(())),
            None => assert_eq!(content.packet.check_icrc(), Ok(())),
        }
        assert_eq!(file.interface(0).unwrap().name.as_deref(), Some("a"));
        assert!(file.next_item().unwrap().is_none());
    }
}

#[test]
fn truncated_packets_are_marked() {
    for link in LINKS {
        let file = file(link, Bth::LENGTH + 16 + 6);
        let mut file = CaptureFile::new(&file[..], &[]).unwrap();
        let Some(Item::Frame(frame)) = file.next_item().unwrap() else { panic!("no frame") };
        let content = frame.content.unwrap();
        assert!(!content.is_whole);
        assert_eq!(content.payload(), b"twenty");
        assert_eq!(content.packet.payload().len(), 22);
    }
}

#[test]
fn truncated_headers_limit_the_dissection() {
    for link in LINKS {
        let file = file(link, Bth::LENGTH + 3);
        let mut file = CaptureFile::new(&file[..], &[]).unwrap();
        let Some(Item::Frame(frame)) = file.next_item().unwrap() else { panic!("no frame") };
        assert!(matches!(frame.content, Err(FrameError::Cut { .. })), "{:?}", frame.content);
    }
}

#[test]
fn truncated_file_is_reported_with_its_offset() {
    let whole = file(LINKS[0], usize::MAX);
    for length in 1..whole.len() {
        let Ok(mut file) = CaptureFile::new(&whole[..length], &[]) else { continue };
        let mut frames = 0;
        let error = loop {
            match file.next_item() {
                Ok(Some(_)) => frames += 1,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        assert_eq!(frames, 0, "{length} bytes");
        if let Some(error) = error {
            let is_truncated =
                matches!(error, ReadError::Truncated { offset, .. } if offset <= length as u64);
            assert!(is_truncated, "{error}");
        }
    }
}

#[test]
fn other_link_types_and_ports_are_not_rdma() {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &Section::default()).unwrap();
    for (kind, bytes) in [(LinkType(113), &b"whatever"[..]), (LinkType::ETHERNET, &[0; 14])] {
        let interface = writer.interface(&Interface::new(kind)).unwrap();
        writer.packet(&Captured::new(interface, 1, bytes)).unwrap();
    }
    let mut file = CaptureFile::new(&out[..], &[]).unwrap();
    let mut found = Vec::new();
    while let Some(Item::Frame(frame)) = file.next_item().unwrap() {
        found.push(frame.content.unwrap_err());
    }
    assert_eq!(found, [FrameError::LinkType(113), FrameError::EtherType(0)]);
}
