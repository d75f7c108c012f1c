use std::net::Ipv4Addr;

use ib_pcap::{Interface, LinkType, Packet as Captured, PacketFlags, Section, Writer};
use ib_types::Psn;
use ib_wire::packet::roce::{RoceAddresses, RoceHop, RoceNetwork};
use ib_wire::packet::{Aeth, Bth, Builder, Opcode, Operation, Reth, Syndrome, Transport};

use super::stream::CapturedPacket;
use super::*;

mod files;
mod holes;

const START: u64 = 1_700_000_000_000_000_000;
const MTU: usize = 1024;

/// An end of a connection: its address and queue pair, and the index of the file that captures its
/// packets.
#[derive(Clone, Copy)]
struct Host {
    address: Ipv4Addr,
    qpn: u32,
    file: usize,
}

const A: Host = Host { address: Ipv4Addr::new(10, 0, 0, 1), qpn: 0x11, file: 0 };
const B: Host = Host { address: Ipv4Addr::new(10, 0, 0, 2), qpn: 0x12, file: 1 };

/// A packet as captured at one end.
struct Written {
    time: u64,
    bytes: Vec<u8>,
    end: Host,
    is_sent: bool,
    /// True if the file does not contain the packet, but only counts it as missing.
    is_missed: bool,
    comments: Vec<String>,
}

/// Builds two captures.
#[derive(Default)]
struct TwoCaptures {
    written: [Vec<Written>; 2],
    /// Offset of the second file's clock in nanoseconds.
    offset: i64,
    /// True if both ends are captured in one file.
    is_one_file: bool,
    /// True if files report the number of missed packets.
    tells_missed: bool,
}

/// Properties of a test packet: loss, drop, retransmission and capture.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// True if the network loses the packet.
    is_lost: bool,
    /// True if the receiver drops the packet.
    is_dropped: bool,
    /// True if the packet is a retransmission.
    is_again: bool,
    /// File index ([`Host::file`]) of the end whose file lacks the packet, although the end sent or received it.
    is_missed_by: Option<usize>,
    /// Time from the post of the request to the packet, in nanoseconds.
    posted: Option<u64>,
}

fn frame(
    from: Host,
    to: Host,
    operation: Operation,
    psn: u32,
    payload: usize,
    reth: u32,
) -> Vec<u8> {
    let bth = Bth {
        opcode: Opcode::new(Transport::Rc, operation).unwrap(),
        destination: Qpn::truncated(to.qpn),
        psn: Psn::truncated(psn),
        ..Bth::default()
    };
    let zeros = vec![0; payload];
    let mut builder = Builder::new(bth).payload(&zeros);
    let headers = bth.opcode.headers().unwrap();
    if headers.offset(ib_wire::packet::Header::Reth).is_some() {
        builder = builder.reth(Reth { virtual_address: 0, r_key: 0, dma_length: reth });
    }
    if headers.offset(ib_wire::packet::Header::Aeth).is_some() {
        builder = builder.aeth(Aeth { syndrome: Syndrome(reth as u8), msn: 0 });
    }
    let network = RoceNetwork {
        addresses: RoceAddresses::V4 {
            source: from.address,
            destination: to.address,
            identification: 0,
            fragment: 0x4000,
        },
        source_port: 4791,
        destination_port: 4791,
    };
    let mut packet = vec![0; 4096 + 128];
    let length = builder.emit_roce(&network, &mut packet).unwrap();
    let mut frame = vec![0; 12];
    frame.extend([8, 0]);
    let mut headers = [0; RoceNetwork::MAX_LENGTH];
    let used = network.emit(RoceHop::default(), length, &mut headers);
    frame.extend(&headers[..used]);
    frame.extend(&packet[..length]);
    frame
}

impl TwoCaptures {
    /// Adds a packet with the times at which it was sent and received.
    fn packet(
        &mut self,
        (from, to): (Host, Host),
        (operation, psn, payload, reth): (Operation, u32, usize, u32),
        (sent, received): (u64, u64),
        fate: Fate,
    ) {
        let bytes = frame(from, to, operation, psn, payload, reth);
        for (end, is_sent, time) in [(from, true, sent), (to, false, received)] {
            let is_missed = fate.is_missed_by == Some(end.file);
            if is_missed && !self.tells_missed || fate.is_lost && !is_sent {
                continue;
            }
            let mut comments = Vec::new();
            if fate.is_again && is_sent {
                comments.push("sent again".to_owned());
            }
            if let Some(posted) = fate.posted.filter(|_| is_sent) {
                comments.push(format!("posted {posted} ns before"));
            }
            if fate.is_dropped && !is_sent {
                comments.push("dropped: psn".to_owned());
            }
            let offset = if end.file == 1 && !self.is_one_file { self.offset } else { 0 };
            let time = (START + time).wrapping_add_signed(offset);
            let file = if self.is_one_file { 0 } else { end.file };
            let bytes = bytes.clone();
            self.written[file].push(Written { time, bytes, end, is_sent, is_missed, comments });
        }
    }

    /// Returns the capture files. If `is_named` is true, interfaces are named after queue pairs. Otherwise the
    /// interface is `eth0`, and packets have no directions and comments, as in files of other programs.
    fn files(&self, is_named: bool) -> Vec<Vec<u8>> {
        let files = self.written.iter().take(if self.is_one_file { 1 } else { 2 });
        files.map(|written| write(written, is_named)).collect()
    }

    fn correlate(&self, is_named: bool) -> Correlation {
        let mut correlator = Correlator::default();
        for file in self.files(is_named) {
            correlator.read(&mut CaptureFile::new(&file[..], &[]).unwrap()).unwrap();
        }
        correlator.finish(&[])
    }
}

fn write(written: &[Written], is_named: bool) -> Vec<u8> {
    let mut order: Vec<&Written> = written.iter().collect();
    order.sort_by_key(|written| written.time);
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &Section::default()).unwrap();
    let mut names = Vec::<String>::new();
    let mut missed = [0; 8];
    for Written { time, bytes, end, is_sent, is_missed, comments } in order {
        let direction = if *is_sent { "send" } else { "receive" };
        let name =
            if is_named { format!("qp {:#08x} {direction}", end.qpn) } else { "eth0".to_owned() };
        let interface = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            writer.interface(&Interface::new(LinkType::ETHERNET).named(&name)).unwrap();
            names.push(name);
            names.len() - 1
        });
        let flags = if *is_sent { PacketFlags::OUTBOUND } else { PacketFlags::INBOUND };
        if *is_missed {
            missed[interface] += 1;
            continue;
        }
        let dropped = Some(std::mem::take(&mut missed[interface])).filter(|&missed| missed > 0);
        let captured = Captured { dropped, ..Captured::new(interface as u32, *time, bytes) };
        let captured = if is_named { captured.flags(flags) } else { captured };
        let comments =
            if is_named { comments.iter().map(String::as_str).collect() } else { Vec::new() };
        writer.packet(&Captured { comments, ..captured }).unwrap();
    }
    out
}

fn found(correlation: &Correlation, pair: Pair) -> Vec<Message> {
    let mut messages = Vec::new();
    correlation.messages(pair, |message| messages.push(*message));
    messages
}

const WHOLE: Fate =
    Fate { is_lost: false, is_dropped: false, is_again: false, is_missed_by: None, posted: None };

/// Sends a message of three packets from `A` to `B` every 20 µs. Each message is acknowledged. Packets take 5 µs to
/// `B` and 7 µs to `A`.
fn sends(bench: &mut TwoCaptures, count: u32, first: u32) {
    for number in 0..count {
        let (psn, time) = (first.wrapping_add(3 * number), 20_000 * u64::from(number));
        let parts = [Operation::SendFirst, Operation::SendMiddle, Operation::SendLast];
        for (part, operation) in (0..).zip(parts) {
            let sent = time + 100 * u64::from(part);
            let payload = if part == 2 { 100 } else { MTU };
            let posted = (part == 0).then_some(1_234);
            bench.packet(
                (A, B),
                (operation, psn + part, payload, 0),
                (sent, sent + 5_000),
                Fate { posted, ..WHOLE },
            );
        }
        let ack = time + 200 + 5_000 + 300;
        bench.packet((B, A), (Operation::Acknowledge, psn + 2, 0, 0), (ack, ack + 7_000), WHOLE);
    }
}

#[test]
fn message_times_are_right_across_the_wrap_of_psns() {
    for (offset, is_one_file) in [(0, true), (0, false), (987_654_321, false), (-5_000_000, false)]
    {
        let mut bench = TwoCaptures { offset, is_one_file, ..TwoCaptures::default() };
        sends(&mut bench, 1000, 0xff_ffff - 1500);
        let correlation = bench.correlate(true);
        let &[pair] = correlation.pairs() else { panic!("{:?}", correlation.pairs()) };
        assert_eq!(correlation.ends(pair).map(|end| end.qpn.unwrap().get()), [A.qpn, B.qpn]);
        let [requests, responses] = correlation.matched(pair);
        assert_eq!((requests.matched, responses.matched), (3000, 1000));
        assert_eq!(
            correlation.all_matched(),
            MatchCounts { matched: 4000, ..MatchCounts::default() }
        );
        let doubt = match correlation.clocks() {
            Clocks::Same => 0,
            Clocks::Estimated(estimate) => {
                assert!((estimate.offset - offset as f64).abs() <= estimate.uncertainty);
                assert!((estimate.round_trip - 12_000.0).abs() < 10.0, "{estimate:?}");
                estimate.uncertainty as i64 + 2
            }
            Clocks::Unknown => panic!("the clock offset is unknown"),
        };
        let messages = found(&correlation, pair);
        assert_eq!(messages.len(), 1000);
        for message in messages {
            assert_eq!(
                (message.kind, message.packets, message.bytes),
                (Kind::Send, 3, 2 * 1024 + 100)
            );
            let part = |part| message.part(part).unwrap();
            assert_eq!((part(Part::Queue), part(Part::InFlight)), (1234, 12_500));
            assert_eq!(part(Part::Total), 1234 + 12_500);
            assert!((part(Part::Wire) - 5_000).abs() <= doubt);
            assert!((part(Part::Receive) - 200).abs() <= 2);
            assert!((part(Part::Completion) - 7_300).abs() <= doubt);
            let sum = part(Part::Wire) + part(Part::Receive) + part(Part::Completion);
            assert_eq!(sum, part(Part::InFlight));
        }
    }
}

#[test]
fn lost_and_retransmitted_packets_are_counted() {
    let mut bench = TwoCaptures::default();
    sends(&mut bench, 3, 100);
    // A WRITE has two packets. The first packet is lost and the second one dropped, then both are
    // retransmitted.
    let again = Fate { is_again: true, ..WHOLE };
    let write = [(Operation::WriteFirst, 109, MTU, 1100), (Operation::WriteLast, 110, 76, 0)];
    let t = 100_000;
    bench.packet((A, B), write[0], (t, 0), Fate { is_lost: true, ..WHOLE });
    bench.packet((A, B), write[1], (t + 100, t + 5_100), Fate { is_dropped: true, ..WHOLE });
    bench.packet((B, A), (Operation::Acknowledge, 109, 0, 0x60), (t + 5_200, t + 12_200), WHOLE);
    bench.packet((A, B), write[0], (t + 13_000, t + 18_000), again);
    bench.packet((A, B), write[1], (t + 13_100, t + 18_100), again);
    bench.packet((B, A), (Operation::Acknowledge, 110, 0, 0), (t + 18_200, t + 25_200), WHOLE);
    let correlation = bench.correlate(true);
    let pair = correlation.pairs()[0];
    let [requests, _] = correlation.matched(pair);
    let expected = MatchCounts { matched: 9 + 3, sent_only: 1, received_only: 0, sent_again: 2 };
    assert_eq!(requests, expected);
    let write = found(&correlation, pair)[3];
    assert_eq!((write.kind, write.sent_again, write.bytes), (Kind::Write, 2, 1100));
    assert_eq!(write.part(Part::InFlight), Some(25_200));
    assert!((write.part(Part::Wire).unwrap() - 18_000).abs() < 6_010);
    assert!((write.part(Part::Receive).unwrap() - 100).abs() <= 2);
    // The post time of the request is not in the capture.
    assert_eq!((write.part(Part::Queue), write.part(Part::Total)), (None, None));
}

#[test]
fn uncaptured_packets_leave_times_unknown() {
    let mut bench = TwoCaptures::default();
    sends(&mut bench, 10, 0);
    let once = |file, time, psn, bench: &mut TwoCaptures| {
        let missed = Fate { is_missed_by: Some(file), ..WHOLE };
        let what = (Operation::SendOnly, psn, 8, 0);
        bench.packet((A, B), what, (time, time + 5_000), missed);
        let ack = (Operation::Acknowledge, psn, 0, 0);
        bench.packet((B, A), ack, (time + 5_100, time + 12_100), WHOLE);
    };
    once(0, 300_000, 30, &mut bench);
    once(1, 400_000, 31, &mut bench);
    // Of this message, only the middle packet was captured.
    let middle = (Operation::SendMiddle, 33, MTU, 0);
    bench.packet((A, B), middle, (500_000, 505_000), WHOLE);
    let correlation = bench.correlate(true);
    let pair = correlation.pairs()[0];
    let [requests, _] = correlation.matched(pair);
    assert_eq!((requests.sent_only, requests.received_only, requests.matched), (1, 1, 31));
    let mut messages = Vec::new();
    let unknown = correlation.messages(pair, |message| messages.push(*message));
    assert_eq!(unknown, UnmeasuredCounts { incomplete: 1, unacknowledged: 0 });
    let known = |message: &Message| Part::ALL.map(|part| message.part(part).is_some());
    assert_eq!(known(&messages[9]), [true; 6]);
    assert_eq!(known(&messages[10]), [false, false, true, true, false, false]);
    assert_eq!(known(&messages[11]), [false, false, false, false, true, false]);
}

#[test]
fn read_completes_with_its_last_response() {
    let mut bench = TwoCaptures::default();
    sends(&mut bench, 2, 0);
    // A READ of 2500 bytes has three responses. The second READ request requests the last two responses again.
    let t = 100_000;
    bench.packet((A, B), (Operation::ReadRequest, 6, 0, 2500), (t, t + 5_000), WHOLE);
    let first = (Operation::ReadResponseFirst, 6, MTU, 0);
    bench.packet((B, A), first, (t + 5_500, t + 12_500), WHOLE);
    let middle = (Operation::ReadResponseMiddle, 7, MTU, 0);
    bench.packet((B, A), middle, (t + 5_600, 0), Fate { is_lost: true, ..WHOLE });
    let again = Fate { is_again: true, ..WHOLE };
    let rest = (Operation::ReadRequest, 7, 0, 2500 - 1024);
    bench.packet((A, B), rest, (t + 20_000, t + 25_000), again);
    let first = (Operation::ReadResponseFirst, 7, MTU, 0);
    bench.packet((B, A), first, (t + 25_500, t + 32_500), WHOLE);
    let last = (Operation::ReadResponseLast, 8, 2500 - 2048, 0);
    bench.packet((B, A), last, (t + 25_600, t + 32_600), WHOLE);
    // A SEND after the READ.
    let t = 200_000;
    bench.packet((A, B), (Operation::SendOnly, 9, 10, 0), (t, t + 5_000), WHOLE);
    let ack = (Operation::Acknowledge, 9, 0, 0);
    bench.packet((B, A), ack, (t + 5_100, t + 12_100), WHOLE);
    let correlation = bench.correlate(true);
    let pair = correlation.pairs()[0];
    let messages = found(&correlation, pair);
    let read = messages[2];
    assert_eq!((read.kind, read.bytes, read.packets, read.sent_again), (Kind::Read, 2500, 3, 1));
    assert_eq!(read.part(Part::InFlight), Some(32_600));
    assert_eq!((messages[3].kind, messages[3].first.get()), (Kind::Send, 9));
    assert_eq!(messages[3].part(Part::InFlight), Some(12_100));
    assert_eq!(messages.len(), 4);
}

#[test]
fn ack_completes_all_earlier_requests() {
    let mut bench = TwoCaptures::default();
    for number in 0..8 {
        let (psn, sent) = (50 + number, 1_000 * u64::from(number));
        bench.packet((A, B), (Operation::SendOnly, psn, 8, 0), (sent, sent + 5_000), WHOLE);
    }
    let ack = (Operation::Acknowledge, 57, 0, 0);
    bench.packet((B, A), ack, (13_000, 20_000), WHOLE);
    let correlation = bench.correlate(true);
    let messages = found(&correlation, correlation.pairs()[0]);
    let back: Vec<_> =
        messages.iter().map(|message| message.part(Part::InFlight).unwrap()).collect();
    assert_eq!(back, [20_000, 19_000, 18_000, 17_000, 16_000, 15_000, 14_000, 13_000]);
}

#[test]
fn requester_and_responder_captures_are_distinguished() {
    for files_are_swapped in [false, true] {
        let mut bench = TwoCaptures { offset: 40_000_000, ..TwoCaptures::default() };
        sends(&mut bench, 200, 5);
        if files_are_swapped {
            bench.written.swap(0, 1);
        }
        let correlation = bench.correlate(false);
        assert_eq!(correlation.oriented().len(), 2);
        let &[pair] = correlation.pairs() else { panic!("{:?}", correlation.pairs()) };
        // The requester's queue pair number is known from the responses.
        assert_eq!(correlation.ends(pair).map(|end| end.qpn.unwrap().get()), [A.qpn, B.qpn]);
        assert_eq!(correlation.all_matched().matched, 800);
        let Clocks::Estimated(estimate) = correlation.clocks() else {
            panic!("the clock offset is not estimated")
        };
        let truth = if files_are_swapped { -40_000_000.0 } else { 40_000_000.0 };
        assert!((estimate.offset - truth).abs() <= estimate.uncertainty, "{estimate:?}");
        let message = found(&correlation, pair)[7];
        assert_eq!(message.part(Part::InFlight), Some(12_500));
        assert!((message.part(Part::Wire).unwrap() - 5_000).abs() <= 6_020);
        assert_eq!(message.part(Part::Queue), None);
    }
}

#[test]
fn single_capture_of_another_program_is_analyzed() {
    let mut bench = TwoCaptures::default();
    sends(&mut bench, 20, 5);
    let file = &bench.files(false)[0];
    let mut correlator = Correlator::default();
    correlator.read(&mut CaptureFile::new(&file[..], &[]).unwrap()).unwrap();
    let correlation = correlator.finish(&[]);
    assert_eq!(correlation.all_matched().matched, 0);
    assert!(correlation.unknown_sides().contains(&0));
    let message = found(&correlation, correlation.pairs()[0])[3];
    assert_eq!(message.part(Part::InFlight), Some(12_500));
    assert_eq!((message.part(Part::Wire), message.part(Part::Receive)), (None, None));
}

#[test]
fn reused_queue_pair_numbers_are_distinguished() {
    // Two server queue pairs of one address communicate with queue pair 0x11 of the client, one
    // after the other. The second file is captured at the client during the second connection only.
    let other = Host { qpn: 0x99, file: 0, ..B };
    let (server, client) = (Host { file: 0, ..B }, Host { file: 1, ..A });
    let mut bench = TwoCaptures::default();
    let exchange = |bench: &mut TwoCaptures, server: Host, start: u64, psn: u32, fate: Fate| {
        for number in 0..50 {
            let (psn, t) = (psn + number, start + 30_000 * u64::from(number));
            let send = (Operation::SendOnly, psn, 8, 0);
            bench.packet((server, client), send, (t, t + 5_000), fate);
            let ack = (Operation::Acknowledge, psn, 0, 0);
            bench.packet((client, server), ack, (t + 5_100, t + 12_100), fate);
        }
    };
    let missed = Fate { is_missed_by: Some(1), ..WHOLE };
    exchange(&mut bench, other, 0, 1_000, missed);
    exchange(&mut bench, server, 10_000_000, 700_000, WHOLE);
    let correlation = bench.correlate(true);
    let matched: Vec<(u32, u64)> = correlation
        .pairs()
        .iter()
        .map(|&pair| {
            let [from, _] = correlation.ends(pair);
            (from.qpn.unwrap().get(), correlation.matched(pair)[0].matched)
        })
        .collect();
    assert_eq!(matched, [(0x12, 50), (0x99, 0)]);
}

#[test]
fn files_without_common_packets_do_not_match() {
    let mut bench = TwoCaptures::default();
    sends(&mut bench, 10, 0);
    let own = bench.files(true).swap_remove(0);
    let mut correlator = Correlator::default();
    for _ in 0..2 {
        correlator.read(&mut CaptureFile::new(&own[..], &[]).unwrap()).unwrap();
    }
    let correlation = correlator.finish(&[]);
    assert_eq!(correlation.all_matched().matched, 0);
    assert_eq!(*correlation.clocks(), Clocks::Unknown);
    // Times within one file are known, although the clocks of both files cannot be compared.
    let message = found(&correlation, correlation.pairs()[0])[0];
    assert_eq!(message.part(Part::InFlight), Some(12_500));
    assert_eq!(message.part(Part::Wire), None);
    assert!(Correlator::default().finish(&[]).pairs().is_empty());
}

#[test]
fn packets_and_messages_have_the_documented_size() {
    assert_eq!((size_of::<CapturedPacket>(), size_of::<Message>()), (16, 136));
}

#[test]
fn percentiles_are_measured_values() {
    let mut times: Vec<i64> = (1..=1000).rev().collect();
    let spread = Percentiles::of(&mut times).unwrap();
    assert_eq!((spread.min, spread.fractions, spread.max), (1, [500, 900, 990, 999], 1000));
    assert_eq!(Percentiles::of(&mut [7]).unwrap().fractions, [7; 4]);
    assert_eq!(Percentiles::of(&mut []), None);
}
