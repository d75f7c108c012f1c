//! A capture file with the packets of the block device's QPs.

use std::fs::{self, File};
use std::io::{self, BufReader, Seek as _, Write as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ib_capture::{CaptureFile, Collector, Item, Link};
use ib_control::capture::create_alone;
use ib_hca::trace::{PacketTrace, Selection, SelectionId};
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::DaemonError;
use crate::up::hosts::Hosts;

/// Interval in simulated time at which captured packets are read from the ring buffers.
const EVERY: Duration = Duration::from_millis(5);

/// Size in bytes of the ring buffer of each QP.
const RING: usize = 1 << 20;

/// Packet counts of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) noted: u64,
    pub(super) captured: u64,
    pub(super) overwritten: u64,
}

/// Counts of the frames in a capture file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadBack {
    /// Number of RDMA packets.
    pub(super) packets: u64,
    /// Number of frames that are not RDMA packets.
    pub(super) other: u64,
}

/// The file to which captured packets are written.
pub(super) struct Target {
    file: File,
    /// Path of the file; `None` for a file in memory, which only the self-test uses.
    path: Option<PathBuf>,
}

impl Target {
    /// Opens and truncates a file. Fails for pipes and sockets, because writing to them could block the process.
    pub(super) fn named(path: PathBuf) -> Result<Self, DaemonError> {
        let failed = |error| DaemonError::Failed(format!("{}: {error}", path.display()));
        if path == Path::new("-") {
            let message =
                "standard output is used by `up`, and the packets are read back: expected a file";
            return Err(failed(io::Error::other(message)));
        }
        let waits = |kind: fs::FileType| kind.is_fifo() || kind.is_socket();
        if fs::metadata(&path).is_ok_and(|known| waits(known.file_type())) {
            let message =
                "found a pipe or a socket, expected a file: writes could block the fabric";
            return Err(failed(io::Error::other(message)));
        }
        let file = create_alone(&path, File::options().read(true).write(true));
        Ok(Self { file: file.map_err(failed)?, path: Some(path) })
    }

    /// Creates a file in memory, so that the self-test needs no writable directory.
    pub(super) fn in_memory() -> Result<Self, DaemonError> {
        let file = memfd_create("ibfabric-capture", MemfdFlags::CLOEXEC).map_err(|error| {
            DaemonError::Failed(format!("cannot create a file in memory: {error}"))
        })?;
        Ok(Self { file: file.into(), path: None })
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> DaemonError {
        let path = self.path.as_deref().unwrap_or(Path::new("the capture"));
        DaemonError::Failed(format!("{}: {error}", path.display()))
    }
}

/// A capture that is being written.
pub(super) struct Record {
    collector: Collector,
    target: Target,
    bytes: Vec<u8>,
    due: Instant,
    selected: Vec<(PortId, SelectionId)>,
}

impl Record {
    /// Starts to capture the packets of the QPs that have the given service ID, at the HCAs of the given ports.
    pub(super) fn start(
        target: Target,
        payload: u16,
        (sim, hosts): (&Sim, &mut Hosts),
        ports: &[PortId],
        service: u64,
    ) -> Result<Self, DaemonError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = sim.now();
        let epoch = since.saturating_sub(now.since(Instant::ZERO)).as_nanos() as u64;
        let mut collector = Collector::new(Link::Infiniband, epoch);
        collector.begin(now);
        let mut selected = Vec::new();
        for &port in ports {
            let trace = PacketTrace { payload, ring_bytes: RING, ..PacketTrace::default() };
            let selection = Selection { services: vec![service], trace, ..Selection::default() };
            if let Some(device) = hosts.device(port) {
                let id = device.hca().select(selection).map_err(DaemonError::failed)?;
                selected.push((port, id));
            }
        }
        Ok(Self { collector, target, bytes: Vec::new(), due: now, selected })
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Stops the capture without writing the remaining packets.
    pub(super) fn abandon(self, hosts: &mut Hosts) {
        for (port, id) in self.selected {
            hosts.device(port).into_iter().for_each(|device| device.hca().deselect(id));
        }
    }

    /// Adds new QPs to the capture. At intervals of [`EVERY`], also writes the captured packets to the file.
    pub(super) fn work(&mut self, sim: &Sim, hosts: &mut Hosts) -> Result<(), DaemonError> {
        let now = sim.now();
        while let Some((port, reader)) = hosts.poll_selected() {
            let (node, number) = sim.place(port);
            let qpn = ib_link::PacketSource::qpn(&reader).get();
            let name = format!("{}[{number}] qp {qpn:#08x}", sim.node_name(node));
            self.collector.add(&name, Box::new(reader));
        }
        if now < self.due {
            return Ok(());
        }
        self.due = now + EVERY;
        self.collector.collect(now, usize::MAX, u64::MAX);
        self.write()
    }

    fn write(&mut self) -> Result<(), DaemonError> {
        self.collector.output(&mut self.bytes);
        let written = self.target.file.write_all(&self.bytes);
        self.collector.settle(written.is_ok());
        self.bytes.clear();
        written.map_err(|error| self.target.failed(&error))
    }

    /// Finishes the capture file; returns the packet counts.
    pub(super) fn finish(&mut self, sim: &Sim, hosts: &mut Hosts) -> Result<Counted, DaemonError> {
        self.due = Instant::ZERO;
        self.work(sim, hosts)?;
        self.collector.end(sim.now());
        self.write()?;
        let mut sum = Counted::default();
        for counted in self.collector.counted() {
            sum.noted += counted.noted.all();
            sum.captured += counted.captured.all();
            sum.overwritten += counted.overwritten.all();
        }
        Ok(sum)
    }

    /// Reads the capture file back and counts its frames.
    pub(super) fn read_back(&self) -> Result<ReadBack, DaemonError> {
        let mut file = &self.target.file;
        file.rewind().map_err(|error| self.target.failed(&error))?;
        let mut file = CaptureFile::new(BufReader::new(file), &[])
            .map_err(|error| self.target.failed(&error))?;
        let mut found = ReadBack::default();
        while let Some(item) = file.next_item().map_err(|error| self.target.failed(&error))? {
            if let Item::Frame(frame) = item {
                let is_packet = frame.content.is_ok();
                found.packets += u64::from(is_packet);
                found.other += u64::from(!is_packet);
            }
        }
        Ok(found)
    }
}
