//! `--pcap`: writes all sent and lost packets to a pcapng file.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::time::SystemTime;

use ib_pcap::{Interface, LinkType, Packet, PacketFlags, Section, WriteError, Writer};
use ib_sim::{CapturedPacket, Sim};
use ib_topology::PortId;

use super::sink::Sink;
use crate::error::DaemonError;
use crate::message::{note, say};
use crate::own_capture;

/// A capture file that is being written.
pub(super) struct Capture {
    writer: Writer<Sink>,
    interfaces: BTreeMap<PortId, u32>,
    /// The system time at which the simulation started, in nanoseconds since 1970.
    start: u64,
}

impl Capture {
    pub(super) fn create(path: &Path) -> Result<Self, DaemonError> {
        let out = Sink::create(path, std::io::stdout())?;
        let section = Section {
            application: Some(concat!("ibfabric ", env!("CARGO_PKG_VERSION")).to_owned()),
            ..Section::default()
        };
        let failed =
            |error| DaemonError::failed(format!("cannot write {}: {error}", path.display()));
        let writer = Writer::new(out, &section).map_err(failed)?;
        let start = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |time| time.as_nanos() as u64);
        Ok(Self { writer, interfaces: BTreeMap::new(), start })
    }

    /// Returns true if the capture is written to standard output.
    pub(super) fn is_on_stdout(&self) -> bool {
        self.writer.get_ref().path() == Path::new("-")
    }

    /// Writes and flushes the packets that were sent and lost since the last call. If the reader has disconnected or a
    /// write has failed, prints the reason and returns false: the capture has stopped.
    pub(super) fn write(&mut self, sim: &mut Sim) -> bool {
        let packets = sim.take_packets();
        let Err(error) = self.add(sim, packets) else { return true };
        let is_left =
            matches!(&error, WriteError::Io(error) if error.kind() == ErrorKind::BrokenPipe);
        if is_left {
            note!("the reader of the capture has disconnected: the capture stops");
        } else {
            let path = self.writer.get_ref().path().display();
            say!("{path}: {error}: the capture stops, the fabric keeps running");
            own_capture::note_failure();
        }
        false
    }

    fn add(&mut self, sim: &Sim, packets: Vec<CapturedPacket>) -> Result<(), WriteError> {
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
            self.writer.get_mut().end_part()?;
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
}
