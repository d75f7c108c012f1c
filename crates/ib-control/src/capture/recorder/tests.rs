use std::fs;
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ib_link::{Direction, PacketCounts, PacketRecord, Route};
use ib_pcap::{Event, Reader};
use ib_types::{Instant, Qpn};

use super::super::Rotation;
use super::*;

/// A queue pair that sends `left` packets, as fast as they are read.
struct Flood {
    left: u64,
    sent: Arc<AtomicU64>,
    /// Timestamp of the first packet in nanoseconds.
    since: u64,
    /// Interval between packets in nanoseconds.
    every: u64,
    /// How long the first read of the ring takes.
    delay: Duration,
}

impl PacketSource for Flood {
    fn qpn(&self) -> Qpn {
        Qpn::truncated(5)
    }

    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord> {
        self.left = self.left.checked_sub(1)?;
        std::thread::sleep(std::mem::take(&mut self.delay));
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        bytes.clear();
        // Header of an RC SEND Only packet.
        bytes.extend([4, 0, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, number as u8]);
        Some(PacketRecord {
            number,
            direction: Direction::Send,
            at: Instant::from_nanos(self.since + number * self.every),
            posted: None,
            route: Route::default(),
            length: bytes.len() as u32,
            is_repeated: false,
            dropped: None,
            is_lost: false,
        })
    }

    fn overwritten(&self) -> PacketCounts {
        PacketCounts::default()
    }

    fn noted(&self) -> PacketCounts {
        PacketCounts { sent: self.sent.load(Ordering::Relaxed), ..PacketCounts::default() }
    }

    fn has_ended(&self) -> bool {
        self.left == 0
    }
}

fn flood(left: u64) -> Box<Flood> {
    Box::new(Flood { left, sent: Arc::default(), since: 0, every: 1, delay: Duration::ZERO })
}

fn started(target: Target, autostop: Autostop) -> (Recorder, Arc<AtomicBool>) {
    let ended = Arc::new(AtomicBool::new(false));
    let tell = Arc::clone(&ended);
    let on_end = move || tell.store(true, Ordering::SeqCst);
    let link = (Link::Infiniband, Clock::system());
    let recorder =
        Recorder::start(target, link, autostop, on_end).expect("the target can be opened");
    (recorder, ended)
}

/// Returns the number of packets in a capture file.
fn packets(file: &[u8]) -> u64 {
    let mut reader = Reader::new(file).expect("the capture is valid");
    let mut count = 0;
    while let Some(event) = reader.next_event().expect("all blocks are whole") {
        count += u64::from(matches!(event, Event::Packet(_)));
    }
    count
}

fn ended(recorder: &Recorder) {
    let end = WallClock::now() + Duration::from_secs(20);
    while !recorder.recorded().has_ended {
        assert!(WallClock::now() < end, "the capture keeps running");
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn all_packets_are_in_the_file() {
    let place = tempfile::tempdir().expect("a directory can be created");
    let path = place.path().join("a.pcapng");
    let (recorder, by_itself) = started(Target::File(path.clone()), Autostop::default());
    recorder.handle().add("one".to_owned(), flood(30_000));
    recorder.handle().add("two".to_owned(), flood(5));
    let recorded = recorder.finish();
    let captured: Vec<_> = recorded.counted.iter().map(|it| it.captured.sent).collect();
    assert_eq!((captured, recorded.error), (vec![30_000, 5], None));
    let file = fs::read(path).expect("the file can be read");
    assert_eq!((packets(&file), recorded.bytes), (30_005, file.len() as u64));
    assert!(!by_itself.load(Ordering::SeqCst));
}

#[test]
fn rotated_files_respect_their_limits() {
    let place = tempfile::tempdir().expect("a directory can be created");
    let rotation = Rotation { packets: Some(700), ..Rotation::default() };
    let target = Target::Files(place.path().join("a.pcapng"), rotation);
    let (recorder, _) = started(target, Autostop::default());
    recorder.handle().add("one".to_owned(), flood(1500));
    let recorded = recorder.finish();
    assert_eq!((recorded.files, recorded.counted[0].captured.sent), (3, 1500));
    let mut files: Vec<_> = fs::read_dir(place.path())
        .expect("the directory can be read")
        .map(|it| it.expect("the entry can be read").path())
        .collect();
    files.sort();
    let counts: Vec<_> =
        files.iter().map(|path| packets(&fs::read(path).expect("the file can be read"))).collect();
    assert_eq!(counts, [700, 700, 100]);
}

#[test]
fn capture_ends_at_its_conditions() {
    let place = tempfile::tempdir().expect("a directory can be created");
    let path = place.path().join("a.pcapng");
    let autostop = Autostop { packets: Some(10), ..Autostop::default() };
    let (recorder, by_itself) = started(Target::File(path.clone()), autostop);
    recorder.handle().add("one".to_owned(), flood(1000));
    ended(&recorder);
    assert!(by_itself.load(Ordering::SeqCst));
    let recorded = recorder.finish();
    assert_eq!(packets(&fs::read(&path).expect("the file can be read")), 10);
    let counted = &recorded.counted[0];
    assert_eq!((counted.captured.sent, counted.unwritten.sent), (10, 990));
    let autostop = Autostop { duration: Some(Duration::from_millis(1)), ..Autostop::default() };
    let (recorder, by_itself) = started(Target::File(path), autostop);
    ended(&recorder);
    assert!(by_itself.load(Ordering::SeqCst));
}

#[test]
fn late_thread_writes_all_packets_of_the_duration() {
    let place = tempfile::tempdir().expect("a directory can be created");
    let path = place.path().join("a.pcapng");
    let most = Duration::from_millis(50);
    let autostop = Autostop { duration: Some(most), ..Autostop::default() };
    let before = ib_os::clock::now();
    let (recorder, by_itself) = started(Target::File(path.clone()), autostop);
    let after = ib_os::clock::now();
    // The queue pair sends a packet each microsecond. The first read of its ring takes longer than the capture's
    // duration.
    let source = Flood {
        since: before.as_nanos(),
        every: 1000,
        delay: Duration::from_millis(100),
        ..*flood(100_000)
    };
    recorder.handle().add("one".to_owned(), Box::new(source));
    ended(&recorder);
    assert!(by_itself.load(Ordering::SeqCst));
    let recorded = recorder.finish();
    let counted = &recorded.counted[0];
    let least = most.as_micros() as u64;
    let within = least..=least + after.since(before).as_micros() as u64 + 1;
    assert!(within.contains(&counted.captured.sent), "{counted:?}");
    assert_eq!(counted.captured.plus(counted.unwritten), counted.noted);
    assert_eq!(packets(&fs::read(&path).expect("the file can be read")), counted.captured.sent);
}

#[test]
fn files_with_statistics_do_not_exceed_their_limit() {
    for (limit, queue_pairs) in [(20_000, 8), (100_000, 64), (1_000_000, 64)] {
        let place = tempfile::tempdir().expect("a directory can be created");
        let path = place.path().join("a.pcapng");
        let rotation = Rotation { bytes: Some(limit), ..Rotation::default() };
        let autostop = Autostop { bytes: Some(limit), ..Autostop::default() };
        let by_limit = (Target::File(path.clone()), autostop);
        let in_a_row = (Target::Files(path, rotation), Autostop::default());
        for (target, autostop) in [by_limit, in_a_row] {
            let (recorder, _) = started(target, autostop);
            for number in 0..queue_pairs {
                recorder.handle().add(format!("qp {number:#08x}"), flood(limit / 50 / queue_pairs));
            }
            if autostop.bytes.is_some() {
                ended(&recorder);
            }
            let recorded = recorder.finish();
            for counted in &recorded.counted {
                assert_eq!(counted.captured.plus(counted.unwritten), counted.noted);
                assert!(autostop.bytes.is_some() || counted.unwritten.all() == 0, "{counted:?}");
            }
        }
        for file in fs::read_dir(place.path()).expect("the directory can be read") {
            let file = fs::read(file.expect("the entry can be read").path())
                .expect("the file can be read");
            assert!(file.len() as u64 <= limit, "a file has {} bytes, limit {limit}", file.len());
            assert!(packets(&file) > 0);
        }
        let first = fs::metadata(place.path().join("a.pcapng")).expect("the file exists").len();
        assert!(
            first > limit - limit / 10 - 20_000 * queue_pairs / 64,
            "the first file has {first} bytes, limit {limit}"
        );
    }
}

#[test]
fn full_disk_ends_the_capture_and_the_rest_is_counted() {
    let (recorder, by_itself) = started(Target::File("/dev/full".into()), Autostop::default());
    recorder.handle().add("one".to_owned(), flood(100));
    ended(&recorder);
    recorder.handle().add("two".to_owned(), flood(50));
    let recorded = recorder.finish();
    assert!(by_itself.load(Ordering::SeqCst));
    let error = recorded.error.expect("the capture has failed");
    assert!(error.starts_with("/dev/full: byte 0: No space left"), "{error}");
    let unwritten: Vec<_> = recorded.counted.iter().map(|it| it.unwritten.sent).collect();
    assert_eq!(unwritten, [100, 50]);
}

#[test]
fn stalled_reader_does_not_block_and_loses_the_rest() {
    let (mut reader, writer) = io::pipe().expect("a pipe can be created");
    let (recorder, _) = started(Target::Stream(writer.into()), Autostop::default());
    recorder.handle().add("one".to_owned(), flood(100_000));
    let before = WallClock::now();
    let recorded = recorder.finish();
    assert!(before.elapsed() < READER_TIMEOUT * 5);
    let counted = &recorded.counted[0];
    assert!(counted.unwritten.sent > 0);
    assert_eq!(counted.captured.plus(counted.unwritten), counted.noted);
    let error = recorded.error.expect("the capture has failed");
    assert!(error.contains("the reader has not read for 2 seconds"), "{error}");
    // The data that the reader has received is a valid capture.
    let mut taken = Vec::new();
    reader.read_to_end(&mut taken).expect("the pipe can be read");
    let mut capture = Reader::new(&taken[..]).expect("the capture is valid");
    let mut count = 0;
    while let Ok(Some(event)) = capture.next_event() {
        count += u64::from(matches!(event, Event::Packet(_)));
    }
    assert!(count > 100, "{count}");
    // Only packets that the reader has received completely count as captured.
    assert_eq!(recorded.counted[0].captured.sent, count);
}

#[test]
fn disconnected_reader_ends_the_capture() {
    let (reader, writer) = io::pipe().expect("a pipe can be created");
    drop(reader);
    let (recorder, by_itself) = started(Target::Stream(writer.into()), Autostop::default());
    recorder.handle().add("one".to_owned(), flood(100));
    ended(&recorder);
    assert!(by_itself.load(Ordering::SeqCst));
    let recorded = recorder.finish();
    assert!(recorded.error.is_some() && recorded.reader_left);
}
