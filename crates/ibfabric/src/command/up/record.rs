//! The packets of the device's queue pairs, in a file.

use std::fs::File;
use std::io::{BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ib_capture::{CaptureFile, Collector, Item, Link};
use ib_hca::trace::{PacketTrace, Selection};
use ib_net::hosts::Hosts;
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::Instant;

use crate::failure::Failure;

/// How often rings are looked at.
const EVERY: Duration = Duration::from_millis(5);

/// The ring of each queue pair in bytes.
const RING: usize = 1 << 20;

/// How many packets were in a file, and how many others there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) noted: u64,
    pub(super) captured: u64,
    pub(super) overwritten: u64,
}

/// A file that is written.
pub(super) struct Record {
    collector: Collector,
    file: File,
    path: PathBuf,
    /// Whether nobody wants it afterwards.
    is_scratch: bool,
    bytes: Vec<u8>,
    due: Instant,
}

impl Record {
    /// Starts to capture what queue pairs of a service at some ports send and receive.
    pub(super) fn start(
        (path, is_scratch): (PathBuf, bool),
        payload: u16,
        (sim, hosts): (&Sim, &mut Hosts),
        ports: &[PortId],
        service: u64,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::Unusable(format!("{}: {error}", path.display()));
        let file = File::create(&path).map_err(failed)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = sim.now();
        let epoch = since.saturating_sub(now.since(Instant::ZERO)).as_nanos() as u64;
        let mut collector = Collector::new(Link::Infiniband, epoch);
        collector.begin(now);
        for &port in ports {
            let trace = PacketTrace { payload, ring_bytes: RING, ..PacketTrace::default() };
            let selection = Selection { services: vec![service], trace, ..Selection::default() };
            if let Some(device) = hosts.device(port) {
                device.hca().select(selection).map_err(Failure::unusable)?;
            }
        }
        Ok(Self { collector, file, path, is_scratch, bytes: Vec::new(), due: now })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) const fn due(&self) -> Instant {
        self.due
    }

    /// Writes what has come.
    pub(super) fn work(&mut self, sim: &Sim, hosts: &mut Hosts) -> Result<(), Failure> {
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

    fn write(&mut self) -> Result<(), Failure> {
        self.collector.output(&mut self.bytes);
        let written = self.file.write_all(&self.bytes);
        self.collector.settle(written.is_ok());
        self.bytes.clear();
        written.map_err(|error| Failure::Unusable(format!("{}: {error}", self.path.display())))
    }

    /// Ends the file; returns how many packets there were.
    pub(super) fn finish(&mut self, sim: &Sim, hosts: &mut Hosts) -> Result<Counted, Failure> {
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

    /// Reads the file back; returns how many packets of queue pairs are in it.
    pub(super) fn read_back(&self) -> Result<u64, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::Unusable(format!("{}: {error}", self.path.display()))
        };
        let file = File::open(&self.path).map_err(|error| failed(&error))?;
        let mut file =
            CaptureFile::new(BufReader::new(file), &[]).map_err(|error| failed(&error))?;
        let mut packets = 0;
        while let Some(item) = file.next_item().map_err(|error| failed(&error))? {
            packets += u64::from(matches!(item, Item::Frame(_)));
        }
        Ok(packets)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.is_scratch {
            // Somebody may have removed it.
            std::fs::remove_file(&self.path).ok();
        }
    }
}
