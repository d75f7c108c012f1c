//! The packets of many queue pairs in one stream.

use std::io::Write;

use ib_link::{Direction, PacketRecord, PacketSource};
use ib_pcap::{Interface, Packet, PacketFlags, Section, Statistics, WriteError, Writer};
use ib_types::Qpn;
use ib_wire::packet::{Acknowledgement, Aeth, Bth, Header};

use crate::frame::Link;

/// How many packets are taken before they are put into order and written.
const ROUND: usize = 4096;

/// What a collector has counted of a queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The name of the queue pair in the capture.
    pub name: String,
    /// Its number.
    pub qpn: Qpn,
    /// Packets that were written.
    pub captured: u64,
    /// Packets that were written over before they could be read.
    pub overwritten: u64,
    /// Packets that the adapter has noted.
    pub noted: u64,
    /// Whether no more will come.
    pub has_ended: bool,
}

/// A queue pair whose packets are collected.
struct Source {
    packets: Box<dyn PacketSource + Send>,
    name: String,
    /// Its interfaces in the stream: what was sent, and what was received.
    interfaces: [u32; 2],
    captured: [u64; 2],
    /// How many were known to be overwritten when the last packet was written.
    overwritten: u64,
}

/// A packet that waits to be written.
struct Taken {
    record: PacketRecord,
    source: usize,
    /// Where its bytes are.
    bytes: std::ops::Range<usize>,
    missed: u64,
}

/// Writes the packets of queue pairs into a pcapng stream, an interface for each queue pair and direction.
///
/// Its owner calls [`Collector::collect`] as often as it likes: what the adapters have written over meanwhile is
/// counted and told in the stream, before the next packet and at the end.
pub struct Collector<W: Write> {
    writer: Writer<W>,
    link: Link,
    /// What is added to the times of packets to get nanoseconds since 1970.
    epoch: u64,
    sources: Vec<Source>,
    taken: Vec<Taken>,
    bytes: Vec<u8>,
    packet: Vec<u8>,
    frame: Vec<u8>,
}

impl<W: Write> Collector<W> {
    /// Starts a stream; `epoch` is the time in nanoseconds since 1970 at which the adapters' clock was zero.
    ///
    /// # Errors
    /// Returns an error of the stream.
    pub fn new(out: W, link: Link, epoch: u64) -> Result<Self, WriteError> {
        let section = Section {
            application: Some(concat!("ibfabric ", env!("CARGO_PKG_VERSION")).to_owned()),
            ..Section::default()
        };
        Ok(Self {
            writer: Writer::new(out, &section)?,
            link,
            epoch,
            sources: Vec::new(),
            taken: Vec::new(),
            bytes: Vec::new(),
            packet: Vec::new(),
            frame: Vec::new(),
        })
    }

    /// Adds a queue pair by a name, from which and the direction the names of its interfaces are made.
    ///
    /// # Errors
    /// Returns an error of the stream.
    pub fn add(
        &mut self,
        name: &str,
        packets: Box<dyn PacketSource + Send>,
    ) -> Result<(), WriteError> {
        let mut interfaces = [0; 2];
        for direction in [Direction::Send, Direction::Receive] {
            let name = format!("{name} {}", direction.name());
            let interface = Interface::new(self.link.link_type()).named(&name);
            interfaces[direction as usize] = self.writer.interface(&interface)?;
        }
        let (name, captured, overwritten) = (name.to_owned(), [0; 2], 0);
        self.sources.push(Source { packets, name, interfaces, captured, overwritten });
        Ok(())
    }

    /// Writes what there is now, the packets of a round in the order of their times; returns how many packets that
    /// were.
    ///
    /// # Errors
    /// Returns an error of the stream.
    pub fn collect(&mut self) -> Result<u64, WriteError> {
        let mut written = 0;
        loop {
            self.take();
            if self.taken.is_empty() {
                return Ok(written);
            }
            written += self.taken.len() as u64;
            self.write()?;
        }
    }

    /// Takes up to a round of packets, in turn from all queue pairs.
    fn take(&mut self) {
        self.bytes.clear();
        let mut goes_on = true;
        while goes_on && self.taken.len() < ROUND {
            goes_on = false;
            for (number, source) in self.sources.iter_mut().enumerate() {
                let Some(record) = source.packets.next_packet(&mut self.packet) else { continue };
                goes_on = true;
                let overwritten = source.packets.overwritten();
                let missed = overwritten - std::mem::replace(&mut source.overwritten, overwritten);
                let start = self.bytes.len();
                self.bytes.extend(&self.packet);
                let bytes = start..self.bytes.len();
                self.taken.push(Taken { record, source: number, bytes, missed });
            }
        }
        self.taken.sort_by_key(|taken| taken.record.at);
    }

    fn write(&mut self) -> Result<(), WriteError> {
        let mut taken = std::mem::take(&mut self.taken);
        for Taken { record, source, bytes, missed } in taken.drain(..) {
            let bytes = &self.bytes[bytes];
            let length = self.link.frame(&record, bytes, &mut self.frame);
            let source = &mut self.sources[source];
            let direction = record.direction as usize;
            source.captured[direction] += 1;
            let (interface, time) =
                (source.interfaces[direction], self.epoch + record.at.as_nanos());
            let flags = match record.direction {
                Direction::Send => PacketFlags::OUTBOUND,
                Direction::Receive => PacketFlags::INBOUND,
            };
            let remarks = remarks(&record, bytes, missed);
            let packet = Packet {
                original_length: length as u32,
                dropped: (missed > 0).then_some(missed),
                comments: remarks.iter().map(String::as_str).collect(),
                ..Packet::new(interface, time, &self.frame).flags(flags)
            };
            match self.link {
                Link::Ethernet { .. } => self.writer.packet(&packet)?,
                Link::Infiniband => self.writer.infiniband(&packet, 0)?,
            }
        }
        self.taken = taken;
        Ok(())
    }

    /// Returns what was counted of each queue pair.
    pub fn counted(&self) -> impl Iterator<Item = Counted> {
        self.sources.iter().map(|source| Counted {
            name: source.name.clone(),
            qpn: source.packets.qpn(),
            captured: source.captured.iter().sum(),
            overwritten: source.packets.overwritten(),
            noted: source.packets.noted(),
            has_ended: source.packets.has_ended(),
        })
    }

    /// Flushes the stream.
    ///
    /// # Errors
    /// Returns an error of the stream.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Writes what is left, and what was counted; returns that and the stream. `now` is the time of the
    /// adapters' clock.
    ///
    /// # Errors
    /// Returns an error of the stream.
    pub fn finish(mut self, now: ib_types::Instant) -> Result<(Vec<Counted>, W), WriteError> {
        self.collect()?;
        let counted: Vec<Counted> = self.counted().collect();
        for (source, counted) in self.sources.iter().zip(&counted) {
            for direction in [Direction::Send, Direction::Receive] {
                let is_first = direction == Direction::Send;
                // The ring is one for both directions.
                let Counted { captured, overwritten, noted, .. } = counted;
                let comment = format!(
                    "{noted} packets noted in both directions, {captured} captured, \
                     {overwritten} overwritten"
                );
                self.writer.statistics(&Statistics {
                    interface: source.interfaces[direction as usize],
                    time: self.epoch + now.as_nanos(),
                    received: Some(source.captured[direction as usize]),
                    delivered: Some(source.captured[direction as usize]),
                    dropped: is_first.then_some(*overwritten),
                    comments: vec![comment],
                    ..Statistics::default()
                })?;
            }
        }
        Ok((counted, self.writer.finish()?))
    }
}

/// Returns what is to be said of a packet.
fn remarks(record: &PacketRecord, bytes: &[u8], missed: u64) -> Vec<String> {
    let mut remarks = Vec::new();
    if missed > 0 {
        remarks
            .push(format!("{missed} packets of the queue pair before this one were overwritten"));
    }
    if record.is_repeated {
        remarks.push("sent again".to_owned());
    }
    if let Some(why) = record.dropped {
        remarks.push(format!("dropped: {why}"));
    }
    match acknowledgement(bytes) {
        Some(Acknowledgement::RnrNak(timer)) => {
            let micros = timer.nanoseconds() / 1000;
            remarks.push(format!("receiver not ready: again in {micros} us"));
        }
        Some(Acknowledgement::Nak(code)) => remarks.push(format!("NAK: {code}")),
        _ => {}
    }
    remarks
}

/// Returns what a packet acknowledges, if it does.
fn acknowledgement(bytes: &[u8]) -> Option<Acknowledgement> {
    let bth = Bth::parse(bytes.first_chunk()?);
    let at = Bth::LENGTH + bth.opcode.headers()?.offset(Header::Aeth)?;
    Some(Aeth::parse(bytes.get(at..)?.first_chunk()?).syndrome.decode())
}

#[cfg(test)]
mod tests;
