//! `--pcap`: every packet that is sent or lost, as pcapng.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ib_pcap::{Interface, LinkType, Packet, PacketFlags, Section, WriteError, Writer};
use ib_sim::{Sim, Tapped};
use ib_topology::PortId;

use crate::failure::Failure;

/// A capture file that grows.
pub(super) struct Capture {
    writer: Writer<Box<dyn Write>>,
    interfaces: BTreeMap<PortId, u32>,
    path: PathBuf,
    /// The time of day at the start of the fabric's clock, in nanoseconds.
    start: u64,
}

impl Capture {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::Unusable(format!("cannot write {}: {error}", path.display()))
        };
        let out: Box<dyn Write> = if path == Path::new("-") {
            Box::new(std::io::stdout())
        } else {
            Box::new(BufWriter::new(File::create(path).map_err(|error| cannot(&error))?))
        };
        let section = Section {
            application: Some(concat!("ibfabric ", env!("CARGO_PKG_VERSION")).to_owned()),
            ..Section::default()
        };
        let writer = Writer::new(out, &section).map_err(|error| cannot(&error))?;
        let start = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        Ok(Self { writer, interfaces: BTreeMap::new(), path: path.to_owned(), start })
    }

    fn failed(&self, error: &WriteError) -> Failure {
        Failure::Unusable(format!("cannot write {}: {error}", self.path.display()))
    }

    /// Tells whether it goes to standard output.
    pub(super) fn is_on_stdout(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Writes what was sent and lost since the last time; whoever reads the file finds all of it.
    /// Returns false when nobody reads it any more.
    pub(super) fn write(&mut self, sim: &mut Sim) -> Result<bool, Failure> {
        let packets = sim.take_packets();
        match self.add(sim, packets) {
            Ok(()) => Ok(true),
            Err(WriteError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn add(&mut self, sim: &Sim, packets: Vec<Tapped>) -> Result<(), WriteError> {
        if packets.is_empty() {
            return Ok(());
        }
        for tapped in packets {
            let interface = self.interface(sim, tapped.port)?;
            let time = self.start + tapped.at.as_nanos();
            let comment = tapped.lost.map(|why| format!("lost: {why}"));
            let flags =
                if comment.is_some() { PacketFlags::INBOUND } else { PacketFlags::OUTBOUND };
            let mut packet = Packet::new(interface, time, &tapped.bytes).flags(flags);
            if let Some(comment) = &comment {
                packet = packet.comment(comment);
            }
            self.writer.infiniband(&packet, 0)?;
        }
        self.writer.flush()
    }

    fn interface(&mut self, sim: &Sim, port: PortId) -> Result<u32, WriteError> {
        if let Some(&known) = self.interfaces.get(&port) {
            return Ok(known);
        }
        let (node, number) = sim.place(port);
        let name = format!("{}[{number}]", sim.node_name(node));
        let interface = Interface::new(LinkType::ERF).named(&name);
        let added = self.writer.interface(&interface)?;
        self.interfaces.insert(port, added);
        Ok(added)
    }

    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.writer.flush().map_err(|error| self.failed(&error))
    }
}
