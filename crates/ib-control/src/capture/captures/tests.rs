use std::fs;
use std::io;
use std::sync::atomic::AtomicU64;
use std::time::Instant as WallClock;

use ib_hca::{Hca, HcaConfig};
use ib_link::{Direction, Remote, Route};
use ib_os::inbox::Inbox;
use ib_pcap::{Event, Reader};
use ib_types::{Gid, Guid, Instant};
use ib_wire::mad::{Mad, Method, MgmtClass, TransactionId};

use super::super::hca_owner;
use super::super::message::AdapterInfo;
use super::*;

/// A program with one HCA. The test sets the time of its clock.
struct Program {
    hca: Hca,
    clock: Arc<AtomicU64>,
    inbox: Inbox<Self>,
    on_reader: Option<hca_owner::OnReader>,
}

impl Program {
    fn new() -> Self {
        let hca = Hca::new(HcaConfig::new(Guid(1), vec![Gid(1)]), [1; 32]);
        let inbox = Inbox::new().expect("an inbox can be created");
        Self { hca, clock: Arc::default(), inbox, on_reader: None }
    }

    /// Sends `count` datagrams at the time `at`, in milliseconds.
    fn send_datagrams(&mut self, count: u64, at: u64) {
        let mad = Mad::new(MgmtClass::PERFORMANCE, Method::GET, TransactionId(1));
        for _ in 0..count {
            let (route, remote) = (Route::default(), Remote::gsi(2));
            self.hca.note_datagram(Direction::Send, millis(at), &route, &remote, &mad);
        }
    }
}

impl HcaOwner for Program {
    fn handle(&mut self) -> io::Result<Handle<Self>> {
        Ok(self.inbox.handle())
    }

    fn set_on_reader(&mut self, on_reader: hca_owner::OnReader) {
        self.on_reader = Some(on_reader);
    }

    fn hand_over(&mut self) {
        while let Some((selection, reader)) = self.hca.poll_selected() {
            let on_reader = self.on_reader.as_mut().expect("`Captures::new` has set `on_reader`");
            assert!(on_reader(0, selection, reader).is_none());
        }
    }

    fn next_adapter(&self, from: u32) -> Option<u32> {
        (from == 0).then_some(0)
    }

    fn engine(&mut self, adapter: u32) -> Option<&mut Hca> {
        (adapter == 0).then_some(&mut self.hca)
    }

    fn describe(&self, _: u32) -> Option<AdapterInfo> {
        None
    }

    fn name_among(&self, _: u32) -> Option<String> {
        None
    }

    fn link(&self) -> Link {
        Link::Infiniband
    }

    fn clock(&self) -> Clock {
        let clock = Arc::clone(&self.clock);
        Clock::new(move || Instant::from_nanos(clock.load(Ordering::SeqCst)))
    }
}

fn millis(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// The recorder thread may detect the end of the duration late. By then the HCA has sent many more packets.
#[test]
fn packets_after_the_duration_do_not_overwrite_earlier_ones() {
    const BEFORE: u64 = 150;
    let place = tempfile::tempdir().expect("a temporary directory can be created");
    let path = place.path().join("a.pcapng");
    let mut program = Program::new();
    let captures = Captures::new(&mut program).expect("captures can be created");
    let duration = Duration::from_secs(3600);
    let selection = Selection {
        trace: PacketTrace { ring_bytes: 64 << 10, ..PacketTrace::default() },
        ..Selection::default()
    };
    let options = CaptureOptions {
        target: Target::File(path.clone()),
        adapters: Vec::new(),
        selection,
        autostop: Autostop { duration: Some(duration), ..Autostop::default() },
        keep: None,
    };
    let number = captures.start_with(&mut program, options).expect("the capture starts");
    // The first 150 datagrams nearly fill the ring. The recorder collects a packet only once the clock has reached its
    // timestamp, so the ring still holds them when the other datagrams are sent.
    program.send_datagrams(BEFORE, 3_600_000);
    program.send_datagrams(10_000, 3_600_001);
    program.hand_over();
    program.clock.store(millis(3_700_000).as_nanos(), Ordering::SeqCst);
    let end = WallClock::now() + Duration::from_secs(20);
    while !captures.recorded(number).expect("the capture exists").has_ended {
        assert!(WallClock::now() < end, "the capture has not ended after 20 s");
        std::thread::sleep(Duration::from_millis(1));
        while let Some(work) = program.inbox.next() {
            work(&mut program);
        }
    }
    let recorded = captures.stop_with(&mut program, number).expect("the capture is stopped");
    let counted = &recorded.counted[0];
    assert_eq!((counted.captured.sent, counted.overwritten.sent), (BEFORE, 0));
    assert_eq!((counted.noted.sent, counted.unwritten.sent), (BEFORE, 0));
    let file = fs::read(path).expect("the capture file is readable");
    let mut reader = Reader::new(&file[..]).expect("the file is a pcapng file");
    let mut packets = 0;
    while let Some(event) = reader.next_event().expect("the file has only complete blocks") {
        packets += u64::from(matches!(event, Event::Packet(_)));
    }
    assert_eq!(packets, BEFORE);
}
