//! `--capture`: the packets of a program's queue pairs, collected beside it into a file.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use ib_capture::{Collector, Counted, Link};
use ib_hca::trace::{PacketReader, PacketTrace};
use ib_link::PacketSource as _;
use ib_net::clock;
use ib_net::device::Device;
use ib_pcap::WriteError;

use crate::cli::rdma::AdapterArgs;
use crate::failure::{Failure, say};

/// How often what was noted is collected.
const PAUSE: Duration = Duration::from_millis(1);

/// How much of a processor the collector may take from the program: as little as can be.
const NICE: i32 = 19;

/// A thread that collects.
pub(super) struct Capture {
    readers: Option<Sender<PacketReader>>,
    thread: Option<JoinHandle<Result<Vec<Counted>, WriteError>>>,
    options: PacketTrace,
    path: PathBuf,
}

impl Capture {
    /// Starts to collect what an adapter notes, if that is wanted.
    pub(super) fn start(args: &AdapterArgs, device: &mut Device) -> Result<Option<Self>, Failure> {
        let Some(path) = &args.capture else { return Ok(None) };
        let options = PacketTrace {
            payload: args.capture_payload as u16,
            ring_bytes: args.capture_ring as usize,
            ..PacketTrace::default()
        };
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::Unusable(format!("cannot write {}: {error}", path.display()))
        };
        if path == Path::new("-") {
            return Err(cannot(&"standard output is for the results: expected a file"));
        }
        let file = BufWriter::new(File::create(path).map_err(|error| cannot(&error))?);
        let link = match device.socket() {
            Some(socket) => Link::Ethernet {
                own_port: socket.port(),
                peer_port: args.peer_udp_port.unwrap_or(args.udp_port),
            },
            None => Link::Infiniband,
        };
        let today = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let today = today.map_or(0, |time| time.as_nanos() as u64);
        let epoch = today.saturating_sub(clock::now().as_nanos());
        let collector = Collector::new(file, link, epoch).map_err(|error| cannot(&error))?;
        let (readers, added) = channel();
        let general = device.hca().trace_general(options.clone()).map_err(Failure::unusable)?;
        readers.send(general).expect("it is not yet started");
        let thread = std::thread::Builder::new().name("capture".to_owned());
        let thread = thread.spawn(move || collect(collector, &added));
        let thread = thread.map_err(|error| cannot(&error))?;
        let (readers, thread) = (Some(readers), Some(thread));
        Ok(Some(Self { readers, thread, options, path: path.clone() }))
    }

    /// Has the packets of a queue pair collected from now on.
    pub(super) fn add(&self, device: &mut Device, qp: ib_hca::QpId) -> Result<(), Failure> {
        let reader = device.hca().trace_packets(qp, self.options.clone());
        let reader = reader.map_err(Failure::unusable)?;
        if let Some(readers) = &self.readers {
            // A collector that has failed says so at the end; the program goes on.
            readers.send(reader).ok();
        }
        Ok(())
    }

    /// Ends, and says what there is in the file.
    fn finish(&mut self) {
        self.readers = None;
        let Some(thread) = self.thread.take() else { return };
        let path = self.path.display();
        match thread.join() {
            Ok(Ok(counted)) => {
                let sum = |what: fn(&Counted) -> u64| counted.iter().map(what).sum::<u64>();
                let (captured, overwritten) = (sum(|it| it.captured), sum(|it| it.overwritten));
                let noted = sum(|it| it.noted);
                say!("{path}: {captured} packets captured, {overwritten} overwritten, of {noted}");
            }
            Ok(Err(error)) => say!("{path}: the capture has ended before the program: {error}"),
            Err(_) => say!("{path}: the capture has ended before the program"),
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Collects until no more queue pairs can come, and what is left then.
fn collect(
    mut collector: Collector<BufWriter<File>>,
    added: &Receiver<PacketReader>,
) -> Result<Vec<Counted>, WriteError> {
    // Where that is not allowed, it takes its share of the processor.
    let _ = rustix::process::nice(NICE);
    loop {
        match added.recv_timeout(PAUSE) {
            Ok(reader) => {
                let name = format!("qp {:#08x}", reader.qpn().get());
                collector.add(&name, Box::new(reader))?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if collector.collect()? > 0 {
            collector.flush()?;
        }
    }
    let (counted, _) = collector.finish(clock::now())?;
    Ok(counted)
}
