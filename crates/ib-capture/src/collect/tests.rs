use std::collections::VecDeque;

use ib_link::Route;
use ib_pcap::{Event, Reader};
use ib_types::{Gid, Instant, PKey, Psn};
use ib_wire::packet::{NakCode, Opcode, Operation, Syndrome, Transport};

use super::*;

/// A source of recorded packets, some of which were overwritten.
struct Script {
    qpn: Qpn,
    packets: VecDeque<(PacketCounts, PacketRecord, Vec<u8>)>,
    overwritten: PacketCounts,
    noted: PacketCounts,
}

impl PacketSource for Script {
    fn qpn(&self) -> Qpn {
        self.qpn
    }

    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord> {
        let (missed, record, found) = self.packets.pop_front()?;
        self.overwritten = self.overwritten.plus(missed);
        bytes.clone_from(&found);
        Some(record)
    }

    fn overwritten(&self) -> PacketCounts {
        self.overwritten
    }

    fn noted(&self) -> PacketCounts {
        self.noted
    }

    fn has_ended(&self) -> bool {
        self.packets.is_empty()
    }
}

fn gid(last: u8) -> Gid {
    Gid(0xffff_0a00_0000 + u128::from(last))
}

fn packet(operation: Operation, psn: u32) -> Vec<u8> {
    let opcode = Opcode::new(Transport::Rc, operation).expect("the operation exists for RC");
    let bth = Bth {
        opcode,
        p_key: PKey::DEFAULT,
        destination: Qpn::truncated(7),
        psn: Psn::truncated(psn),
        ..Bth::default()
    };
    let mut bytes = bth.to_bytes().to_vec();
    bytes.resize(bytes.len() + opcode.headers().expect("the opcode is known").length(), 0);
    bytes
}

fn noted(at: u64, direction: Direction, bytes: Vec<u8>) -> (PacketCounts, PacketRecord, Vec<u8>) {
    let route = Route { source: gid(1), destination: gid(2), is_global: true, ..Route::default() };
    let record = PacketRecord {
        number: at,
        direction,
        at: Instant::from_nanos(at),
        route,
        length: bytes.len() as u32,
        is_repeated: false,
        dropped: None,
        posted: None,
        is_lost: false,
    };
    (PacketCounts::default(), record, bytes)
}

fn script(qpn: u32, packets: Vec<(PacketCounts, PacketRecord, Vec<u8>)>) -> Box<Script> {
    let mut noted = PacketCounts::default();
    for (missed, record, _) in &packets {
        noted = noted.plus(*missed);
        *noted.of(record) += 1;
    }
    let packets = packets.into();
    Box::new(Script {
        qpn: Qpn::truncated(qpn),
        packets,
        overwritten: PacketCounts::default(),
        noted,
    })
}

fn begun(link: Link, epoch: u64) -> Collector {
    let mut collector = Collector::new(link, epoch);
    collector.begin(Instant::from_nanos(0));
    collector
}

fn finished(mut collector: Collector) -> (Vec<Counted>, Vec<u8>) {
    let mut file = Vec::new();
    collector.end(Instant::from_nanos(100));
    collector.output(&mut file);
    collector.settle(true);
    (collector.counted().collect(), file)
}

/// A packet in a file: its interface name, time, original length, number of overwritten packets
/// before it, and comments.
type Read = (String, u64, u32, Option<u64>, Vec<String>);

fn read(file: &[u8]) -> (Vec<Read>, Vec<Statistics>) {
    let mut reader = Reader::new(file).expect("the input is a pcapng file");
    let (mut packets, mut statistics) = (Vec::new(), Vec::new());
    let mut names: Vec<String> = Vec::new();
    while let Some(event) = reader.next_event().expect("the file has only whole blocks") {
        match event {
            Event::Interface(interface) => names.push(interface.name.clone().expect("name is set")),
            Event::Packet(packet) => packets.push((
                names[packet.interface as usize].clone(),
                packet.time.expect("each packet has a time"),
                packet.original_length,
                packet.dropped,
                packet.comments.iter().map(|&remark| remark.to_owned()).collect(),
            )),
            Event::Statistics(found) => statistics.push(found),
            _ => {}
        }
    }
    (packets, statistics)
}

#[test]
fn packets_are_in_order_of_time_and_lost_ones_are_counted() {
    let link = Link::Ethernet { own_port: 4791, peer_port: 4791 };
    let mut collector = begun(link, 1_000_000);
    let mut late = noted(30, Direction::Send, packet(Operation::SendOnly, 3));
    late.0.sent = 5;
    late.1.is_repeated = true;
    let mut dropped = noted(25, Direction::Receive, packet(Operation::SendOnly, 9));
    dropped.1.dropped = Some("psn");
    let mut nak = packet(Operation::Acknowledge, 4);
    let refused = Syndrome::new(Acknowledgement::Nak(NakCode::SEQUENCE));
    nak[12..16].copy_from_slice(&Aeth { syndrome: refused, msn: 1 }.to_bytes());
    let one = vec![noted(10, Direction::Send, packet(Operation::SendOnly, 1)), late];
    let other = vec![noted(20, Direction::Receive, nak), dropped];
    collector.add("qp 0x000007", script(7, one));
    collector.add("qp 0x000008", script(8, other));
    assert_eq!(collector.collect(Instant::NEVER, usize::MAX, u64::MAX), 4);
    let (counted, file) = finished(collector);
    let found: Vec<_> = counted
        .iter()
        .map(|it| (it.qpn.get(), it.captured.all(), it.overwritten.all(), it.noted.all()))
        .collect();
    assert_eq!(found, [(7, 2, 5, 7), (8, 2, 0, 2)]);
    let (packets, statistics) = read(&file);
    // A frame has Ethernet, IP and UDP headers, BTH and ICRC. An acknowledgement also has an AETH.
    let length = 14 + 20 + 8 + 12 + 4;
    type Expected<'a> = (&'a str, u64, u32, Option<u64>, &'a [&'a str]);
    let expected: [Expected<'_>; 4] = [
        ("qp 0x000007 send", 1_000_010, length, None, &[]),
        ("qp 0x000008 receive", 1_000_020, length + 4, None, &["NAK: PSN sequence error"]),
        ("qp 0x000008 receive", 1_000_025, length, None, &["dropped: psn"]),
        (
            "qp 0x000007 send",
            1_000_030,
            length,
            Some(5),
            &["5 packets sent before this one were overwritten", "sent again"],
        ),
    ];
    for (found, (name, time, length, missed, comments)) in packets.iter().zip(expected) {
        assert_eq!((found.0.as_str(), found.1, found.2, found.3), (name, time, length, missed));
        assert_eq!(found.4, comments);
    }
    assert_eq!(packets.len(), 4);
    let reported: Vec<_> = statistics.iter().map(|it| (it.received, it.dropped)).collect();
    assert_eq!(
        reported,
        [(Some(7), Some(5)), (Some(0), Some(0)), (Some(0), Some(0)), (Some(2), Some(0))]
    );
    assert_eq!(
        statistics[0].comments,
        ["7 packets noted in both directions, 2 captured, 5 overwritten"]
    );
}

#[test]
fn infiniband_packets_are_erf_records() {
    let mut collector = begun(Link::Infiniband, 0);
    let packets = vec![noted(10, Direction::Send, packet(Operation::SendOnly, 1))];
    collector.add("host-1", script(7, packets));
    collector.collect(Instant::NEVER, usize::MAX, u64::MAX);
    let (_, file) = finished(collector);
    let (packets, _) = read(&file);
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].0, "host-1 send");
}

#[test]
fn each_section_has_its_own_statistics() {
    let mut collector = begun(Link::Infiniband, 0);
    let mut lost = noted(15, Direction::Send, packet(Operation::SendOnly, 1));
    lost.1.is_lost = true;
    let mut second = noted(20, Direction::Send, packet(Operation::SendOnly, 2));
    second.1.posted = Some(Instant::from_nanos(8));
    second.0.sent = 3;
    let packets = vec![noted(10, Direction::Send, packet(Operation::SendOnly, 1)), lost, second];
    collector.add("qp", script(7, packets));
    assert_eq!(collector.collect(Instant::NEVER, 1, 9), 0, "the section header fills the section");
    let mut first = Vec::new();
    collector.output(&mut first);
    assert_eq!(collector.collect(Instant::NEVER, 1, 9), 1);
    assert_eq!(collector.collect(Instant::NEVER, usize::MAX, 1), 1);
    assert_eq!(collector.collect(Instant::NEVER, usize::MAX, 9), 1);
    collector.begin(Instant::from_nanos(50));
    let (counted, file) = finished(collector);
    let (packets, statistics) = read(&[first, file].concat());
    assert_eq!(packets[1].0, "qp lost");
    assert_eq!(packets[1].4, ["lost: "]);
    assert_eq!(packets[2].4[1], "posted 12 ns before");
    let reported: Vec<_> = statistics.iter().map(|it| (it.received, it.dropped)).collect();
    let first = [(Some(5), Some(3)), (Some(0), Some(0)), (Some(1), Some(0))];
    // A queue pair that has ended is not part of the second section.
    assert_eq!(reported, first);
    assert_eq!((counted[0].captured.all(), counted[0].overwritten.all()), (3, 3));
}

#[test]
fn packets_that_a_slow_stream_loses_are_counted() {
    let mut collector = begun(Link::Infiniband, 0);
    let send = |at| noted(at, Direction::Send, packet(Operation::SendOnly, 1));
    collector.add("qp", script(7, vec![send(1), send(2)]));
    collector.collect(Instant::NEVER, usize::MAX, u64::MAX);
    collector.abandon();
    collector.add("other", script(8, vec![send(3)]));
    assert_eq!(collector.collect(Instant::NEVER, usize::MAX, u64::MAX), 1);
    assert_eq!(collector.output_length(), 0);
    let counted: Vec<_> = collector
        .counted()
        .map(|it| (it.captured.all(), it.unwritten.all(), it.noted.all()))
        .collect();
    assert_eq!(counted, [(0, 2, 2), (0, 1, 1)]);
}

#[test]
fn packets_of_busy_and_idle_queue_pairs_are_merged_by_time() {
    let send = |at| noted(at, Direction::Send, packet(Operation::SendOnly, 1));
    let mut collector = begun(Link::Infiniband, 0);
    collector.add("many", script(7, (1..=5000).map(|number| send(10 * number)).collect()));
    collector.add("few", script(1, vec![send(5), send(6), send(49_995)]));
    // Packets later than `until` wait, because earlier packets may follow.
    assert_eq!(collector.collect(Instant::from_nanos(1004), usize::MAX, u64::MAX), 102);
    assert_eq!(collector.collect(Instant::NEVER, usize::MAX, u64::MAX), 4901);
    let (counted, file) = finished(collector);
    assert_eq!(counted.iter().map(|it| it.captured.all()).collect::<Vec<_>>(), [5000, 3]);
    let (packets, _) = read(&file);
    assert!(packets.is_sorted_by_key(|packet| packet.1), "packets are ordered by time");
    assert_eq!(packets[5001].0, "few send");
}

#[test]
fn overwritten_packets_are_reported_once_per_direction() {
    let both = |sent, received| PacketCounts { sent, received, lost: 0 };
    let at = |at, direction, missed| {
        (
            missed,
            noted(at, direction, packet(Operation::SendOnly, 1)).1,
            packet(Operation::SendOnly, 1),
        )
    };
    let mut collector = begun(Link::Infiniband, 0);
    let packets = vec![
        at(10, Direction::Receive, both(7, 2)),
        at(20, Direction::Send, both(1, 0)),
        at(30, Direction::Receive, both(4, 5)),
        at(40, Direction::Receive, both(0, 0)),
    ];
    collector.add("qp", script(7, packets));
    collector.collect(Instant::NEVER, usize::MAX, 3);
    collector.begin(Instant::from_nanos(35));
    collector.collect(Instant::NEVER, usize::MAX, u64::MAX);
    let (counted, file) = finished(collector);
    assert_eq!(counted[0].overwritten, both(12, 7));
    let (packets, statistics) = read(&file);
    let reported: Vec<_> = packets.iter().map(|packet| packet.3).collect();
    assert_eq!(reported, [Some(2), Some(8), Some(5), None]);
    assert_eq!(packets[1].4, ["8 packets sent before this one were overwritten"]);
    // No packet reports the last 4 overwritten packets. They are counted in the second section,
    // because the first one ended while a packet was read but not written.
    let reported: Vec<_> = statistics.iter().map(|it| it.dropped).collect();
    assert_eq!(reported, [Some(8), Some(7), Some(4), Some(0)]);
}
