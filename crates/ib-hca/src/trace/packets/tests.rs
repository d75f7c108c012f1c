use std::thread;

use super::*;

const SMALL: usize = 64 << 10;

fn route(number: u64) -> Route {
    Route {
        source: Gid(u128::from(number) << 64 | 5),
        destination: Gid(u128::MAX - u128::from(number)),
        slid: number as u16,
        dlid: 7,
        sl: ServiceLevel::new((number % 16) as u8).expect("the SL is below 16"),
        is_global: number.is_multiple_of(2),
        traffic_class: 3,
        flow_label: number as u32 & 0xf_ffff,
        hop_limit: 9,
        source_port: 0xc000 + (number % 1000) as u16,
        is_weak: false,
    }
}

fn length(number: u64) -> usize {
    (number * 37 % 4200) as usize
}

fn write(writer: &mut PacketWriter, number: u64) {
    let lost = format!("lost at h{number}:1, on a rainy day: Привет");
    let note = PacketNote {
        direction: if number.is_multiple_of(3) { Direction::Receive } else { Direction::Send },
        at: Instant::from_nanos(number),
        posted: number.is_multiple_of(4).then_some(Instant::from_nanos(number / 2)),
        route: &route(number / 10),
        is_own: false,
        is_repeated: number.is_multiple_of(5),
        dropped: number.is_multiple_of(7).then_some(DropReason::ALL[(number % 15) as usize]),
        lost: number.is_multiple_of(11).then_some(lost.as_str()),
    };
    let length = length(number);
    writer.write(&note, length as u32 + 5, &vec![number as u8; length]);
}

fn check(record: &PacketRecord, remark: &str, bytes: &[u8]) {
    let number = record.number;
    assert_eq!((record.route, record.at.as_nanos()), (route(number / 10), number));
    let posted = number.is_multiple_of(4).then_some(Instant::from_nanos(number / 2));
    assert_eq!(record.posted, posted);
    assert_eq!(record.is_lost, number.is_multiple_of(11));
    let lost = format!("lost at h{number}:1, on a rainy day: Привет");
    assert_eq!(remark, if record.is_lost { lost.as_str() } else { "" });
    assert_eq!(record.direction == Direction::Receive, number.is_multiple_of(3));
    assert_eq!(record.is_repeated, number.is_multiple_of(5));
    let dropped =
        number.is_multiple_of(7).then_some(DropReason::ALL[(number % 15) as usize].name());
    assert_eq!(record.dropped, dropped);
    assert_eq!((record.length as usize, bytes.len()), (length(number) + 5, length(number)));
    assert!(bytes.iter().all(|&byte| byte == number as u8), "packet {number}");
}

#[test]
fn packets_are_read_back_and_overwritten_ones_counted() {
    let ring = PacketRing::new(SMALL).expect("memory");
    let mut reader = PacketReader::new(Arc::clone(&ring), Qpn::truncated(9));
    let mut writer = PacketWriter::new(ring);
    let (mut bytes, mut read, mut written) = (Vec::new(), 0, 0);
    assert_eq!(reader.next_packet(&mut bytes), None);
    // Numbers of packets per burst. Short bursts fit into the ring, and long ones exceed it.
    for burst in [1, 2, 10, 20, 40, 100, 3, 1000, 1, 5] {
        for _ in 0..burst {
            write(&mut writer, written);
            written += 1;
        }
        let before = reader.overwritten().all();
        while let Some(record) = reader.next_packet(&mut bytes) {
            check(&record, reader.remark(), &bytes);
            read += 1;
        }
        assert_eq!(read + reader.overwritten().all(), written);
        assert_eq!(reader.overwritten().all() > before, burst >= 40, "{burst}");
    }
    assert_eq!(reader.noted().all(), written);
    for _ in 0..200 {
        write(&mut writer, written);
        written += 1;
    }
    assert!(!reader.has_ended());
    drop(writer);
    assert!(reader.has_ended());
    while reader.next_packet(&mut bytes).is_some() {
        read += 1;
    }
    assert_eq!(read + reader.overwritten().all(), written);
}

/// A concurrent reader gets consistent packets, and the exact number of overwritten packets.
#[test]
fn concurrent_reader_gets_consistent_packets() {
    const COUNT: u64 = 100_000;
    let ring = PacketRing::new(SMALL).expect("memory");
    let mut reader = PacketReader::new(Arc::clone(&ring), Qpn::truncated(9));
    let mut writer = PacketWriter::new(ring);
    let other = thread::spawn(move || {
        let (mut bytes, mut read) = (Vec::new(), 0);
        loop {
            let ended = reader.has_ended();
            match reader.next_packet(&mut bytes) {
                Some(record) => {
                    check(&record, reader.remark(), &bytes);
                    read += 1;
                }
                None if ended => return (read, reader.overwritten().all()),
                None => thread::yield_now(),
            }
        }
    });
    for number in 0..COUNT {
        write(&mut writer, number);
    }
    drop(writer);
    let (read, overwritten) = other.join().expect("the reader has not panicked");
    assert_eq!(read + overwritten, COUNT);
    assert!(read > 0);
}

/// The route of a connection is compared with the usual route only once, and again after `forget_route`.
#[test]
fn connection_route_is_compared_again_after_a_change() {
    let ring = PacketRing::new(SMALL).expect("memory");
    let mut reader = PacketReader::new(Arc::clone(&ring), Qpn::truncated(9));
    let mut writer = PacketWriter::new(ring);
    let (mut bytes, at) = (Vec::new(), Instant::from_nanos(1));
    // The connection uses routes 1, 2, 1 and 3 in turn. In each turn, one packet has route 77 instead. Each record must
    // hold the route of its own packet.
    for number in [1, 2, 1, 3] {
        writer.forget_route();
        for is_own in [true, true, false, true] {
            let route = if is_own { route(number) } else { route(77) };
            let note = PacketNote { is_own, ..PacketNote::new(Direction::Send, at, &route) };
            writer.write(&note, 4, b"data");
            let record = reader.next_packet(&mut bytes).expect("the packet was written");
            assert_eq!((record.route, &bytes[..]), (route, &b"data"[..]));
        }
    }
    assert_eq!(reader.noted().sent, 16);
}
