//! Merges the packets of many queue pairs into one pcapng stream.
//!
//! | module | contents |
//! |---|---|
//! | `merge` | merges the packets of all queue pairs by time |

use std::fmt::Write as _;
use std::mem;

use ib_link::{Direction, PacketCounts, PacketRecord, PacketSource};
use ib_pcap::{Interface, Packet, PacketFlags, Section, Statistics, Writer};
use ib_types::{Instant, Qpn};
use ib_wire::packet::{Acknowledgement, Aeth, Bth, Header};

use crate::frame::Link;

mod merge;

use merge::{Merge, MergedPacket, Source};

/// Packet counts of a queue pair. Each traced packet counts as captured, overwritten, not written,
/// or skipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Name of the queue pair in the capture.
    pub name: String,
    /// Queue pair number.
    pub qpn: Qpn,
    /// Packets that were written to the stream.
    pub captured: PacketCounts,
    /// Packets that the HCA overwrote in its ring before the collector read them.
    pub overwritten: PacketCounts,
    /// Packets that the collector read, but could not write to the stream.
    pub unwritten: PacketCounts,
    /// Packets that the HCA recorded, but that are not part of the capture: no trigger followed them,
    /// or too many packets lie between them and the trigger.
    pub skipped: PacketCounts,
    /// Packets that the HCA has traced.
    pub noted: PacketCounts,
    /// True if the queue pair will trace no further packets.
    pub has_ended: bool,
}

/// A packet in the output: the offset of its end, the index of its queue pair, and its interface.
struct OutputPacket {
    end: usize,
    source: u32,
    /// Index of the packet's interface in [`INTERFACE_SUFFIXES`].
    place: u32,
}

/// Writes the packets of queue pairs as pcapng, with one interface for each queue pair and
/// direction.
///
/// The owner calls [`Collector::collect`] repeatedly, and writes the bytes of [`Collector::output`]. The collector
/// counts packets that the HCAs have overwritten. It adds these counts to the next packet and to the end of a section.
pub struct Collector {
    writer: Option<Writer<Vec<u8>>>,
    /// Output of completed sections. Within a section, `writer` owns the output.
    out: Vec<u8>,
    link: Link,
    /// Time in nanoseconds since 1970 at which the HCAs' clock was zero.
    epoch: u64,
    merge: Merge,
    /// Packets that were added to the output since the last call of [`Collector::settle`].
    output_packets: Vec<OutputPacket>,
    /// Number of bytes that [`Collector::output`] has returned since the last call of
    /// [`Collector::settle`].
    handed: usize,
    frame: Vec<u8>,
    comments: Vec<String>,
    /// Size of the section in bytes, including bytes that [`Collector::output`] has returned.
    length: u64,
    /// Maximum size of the section in bytes.
    limit: u64,
    /// True if a packet did not fit into the section.
    is_full: bool,
    /// Number of packets in the section.
    packets: u64,
}

/// Maximum length of a statistics block in bytes.
const STATISTICS: u64 = 200;
/// Maximum length of an interface block in bytes, without the name of the interface.
const INTERFACE: u64 = 48;

/// Maximum length of a packet block in bytes, without its data and comments.
const PACKET: u64 = 88;
/// Maximum length of a comment option in bytes, without its text.
const COMMENT: u64 = 8;

impl Collector {
    /// Creates a collector that has not begun a section. `epoch` is the time in nanoseconds since
    /// 1970 at which the HCAs' clock was zero.
    #[must_use]
    pub const fn new(link: Link, epoch: u64) -> Self {
        Self {
            writer: None,
            out: Vec::new(),
            link,
            epoch,
            merge: Merge::new(),
            output_packets: Vec::new(),
            handed: 0,
            frame: Vec::new(),
            comments: Vec::new(),
            length: 0,
            limit: u64::MAX,
            is_full: false,
            packets: 0,
        }
    }

    /// Limits the size of each section in bytes, including the statistics at its end. The section
    /// header and the first packet are written even if they exceed the limit.
    pub const fn set_limit(&mut self, bytes: u64) {
        self.limit = bytes;
    }

    /// Returns true if a packet or an interface did not fit into the section
    /// ([`Collector::set_limit`]).
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Begins a section. Each section can be the start of a capture file.
    pub fn begin(&mut self, now: Instant) {
        self.end(now);
        let section = Section {
            application: Some(concat!("ibfabric ", env!("CARGO_PKG_VERSION")).to_owned()),
            ..Section::default()
        };
        let before = self.out.len();
        let writer = Writer::new(mem::take(&mut self.out), &section).expect(IN_MEMORY);
        self.length = (writer.get_ref().len() - before) as u64;
        (self.is_full, self.packets) = (false, 0);
        self.writer = Some(writer);
        for at in 0..self.merge.sources.len() {
            let source = &mut self.merge.sources[at];
            source.before = [source.captured.plus(source.pending), source.settled];
            if !source.has_ended_and_is_written() {
                self.describe(at);
            }
        }
    }

    /// Ends the section, if one has begun, and writes its packet counts to the stream. `now` is the time of the
    /// HCAs' clock.
    pub fn end(&mut self, now: Instant) {
        let Some(mut writer) = self.writer.take() else { return };
        let time = self.epoch + now.as_nanos();
        for source in &mut self.merge.sources {
            if source.interfaces == [None; 3] {
                // The section has no interface for this queue pair, so the next section reports the
                // counts of the queue pair.
                continue;
            }
            source.settle_overwritten();
            let captured = source.captured.plus(source.pending).since(source.before[0]);
            let overwritten = source.settled.since(source.before[1]);
            let counts = [
                (captured.sent, overwritten.sent),
                (captured.received, overwritten.received),
                (captured.lost, overwritten.lost),
            ];
            let comment = format!(
                "{} packets noted in both directions, {} captured, {} overwritten",
                captured.plus(overwritten).all(),
                captured.all(),
                overwritten.all()
            );
            for (interface, (captured, overwritten)) in source.interfaces.iter().zip(counts) {
                let Some(interface) = *interface else { continue };
                let statistics = Statistics {
                    interface,
                    time,
                    received: Some(captured + overwritten),
                    dropped: Some(overwritten),
                    delivered: Some(captured),
                    comments: vec![comment.clone()],
                    ..Statistics::default()
                };
                writer.statistics(&statistics).expect(IN_MEMORY);
            }
        }
        self.out = writer.finish().expect(IN_MEMORY);
        for source in &mut self.merge.sources {
            source.interfaces = [None; 3];
        }
    }

    /// Adds a queue pair. The names of its interfaces are `name` followed by the direction.
    pub fn add(&mut self, name: &str, packets: Box<dyn PacketSource + Send>) {
        self.merge.sources.push(Source::new(name, packets));
        if self.writer.is_some() {
            self.describe(self.merge.sources.len() - 1);
        }
    }

    /// Writes the two interfaces of a queue pair for sent and received packets.
    fn describe(&mut self, source: usize) {
        for place in [Direction::Send, Direction::Receive].map(|it| it as usize) {
            // The interfaces that precede the first packet are written even if the section then
            // exceeds its size limit.
            if self.packets > 0 && !self.has_room(self.interface_length(source, place)) {
                self.is_full = true;
                return;
            }
            self.interface(source, place);
        }
    }

    /// Returns the maximum length in bytes of an interface block and its statistics block.
    fn interface_length(&self, source: usize, place: usize) -> u64 {
        let name = self.merge.sources[source].name.len() + 1 + INTERFACE_SUFFIXES[place].len();
        INTERFACE + STATISTICS + name.next_multiple_of(4) as u64
    }

    /// Returns the ID of a queue pair's pcapng interface; `None` if no section has begun. If the section does not have
    /// the interface yet, writes the interface block. `place` is an index of [`INTERFACE_SUFFIXES`].
    fn interface(&mut self, source: usize, place: usize) -> Option<u32> {
        let writer = self.writer.as_mut()?;
        let Source { name, interfaces, .. } = &mut self.merge.sources[source];
        if interfaces[place].is_none() {
            let name = format!("{name} {}", INTERFACE_SUFFIXES[place]);
            let interface = Interface::new(self.link.link_type()).named(&name);
            let before = writer.get_ref().len();
            interfaces[place] = Some(writer.interface(&interface).expect(IN_MEMORY));
            self.length += (writer.get_ref().len() - before) as u64 + STATISTICS;
        }
        interfaces[place]
    }

    /// Returns true if the section has room for this many bytes.
    const fn has_room(&self, bytes: u64) -> bool {
        self.length.saturating_add(bytes) <= self.limit
    }

    /// Adds the packets with times up to `until` to the output, in the order of time, and returns their number. `until`
    /// is a time of the HCAs' clock.
    ///
    /// Stops when the output has `most_bytes` bytes, or after `most_packets` packets. If no section
    /// has begun, counts the packets as not written. Also stops before a packet that would exceed
    /// the size limit of the section ([`Collector::is_full`]).
    ///
    /// The packets of the whole stream are ordered by time under two conditions. The owner reads the clock before each
    /// call, and passes the result as `until`. Each source returns its packets in the order of time. A source can
    /// withhold packets, for example until a trigger. They are written after the source has returned them.
    pub fn collect(&mut self, until: Instant, most_bytes: usize, most_packets: u64) -> u64 {
        self.merge.poll_sources();
        let mut written = 0;
        while written < most_packets
            && self.output_length() < most_bytes
            && let Some((source, taken)) = self.merge.next(until)
        {
            if !self.write_packet(source, &taken) {
                self.is_full = true;
                break;
            }
            self.merge.done(source);
            written += 1;
        }
        written
    }

    /// Returns true if a section has begun and has not ended yet.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Returns true if the traces of all queue pairs have ended. Their last packets can still be
    /// unread.
    #[must_use]
    pub fn have_all_ended(&self) -> bool {
        self.merge.sources.iter().all(|source| source.packets.has_ended())
    }

    /// Returns the total size in bytes of the trace rings, without those of queue pairs that have
    /// ended and whose packets are all written.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let live = self.merge.sources.iter().filter(|source| !source.has_ended_and_is_written());
        live.map(|source| source.packets.waiting().1).sum()
    }

    /// Returns the fill level of the fullest trace ring, from 0 to 1.
    #[must_use]
    pub fn fullness(&self) -> f64 {
        let part = |source: &Source| {
            let (waiting, size) = source.packets.waiting();
            waiting as f64 / size.max(1) as f64
        };
        self.merge.sources.iter().map(part).fold(0.0, f64::max)
    }

    /// Writes a packet; returns false if the section has no room for it.
    fn write_packet(&mut self, number: usize, taken: &MergedPacket) -> bool {
        let MergedPacket { record, bytes, missed, .. } = taken;
        if self.writer.is_none() {
            let source = &mut self.merge.sources[number];
            *source.settled.of(record) += missed;
            *source.unwritten.of(record) += 1;
            return true;
        }
        let place = if record.is_lost { 2 } else { record.direction as usize };
        let source = &self.merge.sources[number];
        let is_known = source.interfaces[place].is_some();
        let remark = &source.bytes[bytes.end..bytes.end + taken.remark];
        let bytes = &source.bytes[bytes.clone()];
        let length = self.link.frame(record, bytes, &mut self.frame);
        let count = comments(record, bytes, (*missed, remark), &mut self.comments);
        let texts =
            self.comments[..count].iter().map(|text| COMMENT + text.len() as u64).sum::<u64>();
        let interface = if is_known { 0 } else { self.interface_length(number, place) };
        // The size limit of the section covers the packet and its comments. It also covers the
        // block of the packet's interface if the section does not have this block yet.
        if self.packets > 0 && !self.has_room(PACKET + self.frame.len() as u64 + texts + interface)
        {
            return false;
        }
        let interface = self.interface(number, place).expect("a section has begun");
        let flags = match record.direction {
            Direction::Send => PacketFlags::OUTBOUND,
            Direction::Receive => PacketFlags::INBOUND,
        };
        let packet = Packet {
            original_length: length as u32,
            dropped: (*missed > 0).then_some(*missed),
            comments: self.comments[..count].iter().map(String::as_str).collect(),
            ..Packet::new(interface, self.epoch + record.at.as_nanos(), &self.frame).flags(flags)
        };
        let writer = self.writer.as_mut().expect("a section has begun");
        let before = writer.get_ref().len();
        let written = match self.link {
            Link::Ethernet { .. } => writer.packet(&packet),
            Link::Infiniband => writer.infiniband(&packet, 0),
        };
        written.expect(IN_MEMORY);
        self.length += (writer.get_ref().len() - before) as u64;
        self.packets += 1;
        let source = &mut self.merge.sources[number];
        *source.settled.of(record) += missed;
        *source.pending.of(record) += 1;
        let end = self.handed + writer.get_ref().len();
        self.output_packets.push(OutputPacket { end, source: number as u32, place: place as u32 });
        true
    }

    /// Returns the packet counts of each queue pair. Packets returned by [`Collector::output`]
    /// count as captured only after [`Collector::settle`].
    pub fn counted(&self) -> impl Iterator<Item = Counted> {
        self.merge.sources.iter().map(|source| Counted {
            name: source.name.clone(),
            qpn: source.packets.qpn(),
            captured: source.captured,
            overwritten: source.packets.overwritten(),
            unwritten: source.unwritten,
            skipped: source.packets.skipped(),
            noted: source.packets.noted(),
            has_ended: source.packets.has_ended(),
        })
    }

    /// Returns the size of the output in bytes.
    #[must_use]
    pub fn output_length(&self) -> usize {
        self.writer.as_ref().map_or(self.out.len(), |writer| writer.get_ref().len())
    }

    /// Moves the output to the end of `to`. The output consists of whole pcapng blocks.
    pub fn output(&mut self, to: &mut Vec<u8>) {
        let out = match &mut self.writer {
            Some(writer) => writer.get_mut(),
            None => &mut self.out,
        };
        self.handed += out.len();
        if to.is_empty() {
            mem::swap(to, out);
        } else {
            to.append(out);
        }
        out.clear();
    }

    /// Counts the packets that were added to the output since the last call: as captured if
    /// `is_written` is true, otherwise as not written.
    pub fn settle(&mut self, is_written: bool) {
        self.output_packets.clear();
        self.handed = 0;
        for source in &mut self.merge.sources {
            let pending = mem::take(&mut source.pending);
            let sum = if is_written { &mut source.captured } else { &mut source.unwritten };
            *sum = sum.plus(pending);
        }
    }

    /// Counts the packets that were added to the output since the last call. Packets within the first
    /// `bytes` bytes of this output count as captured, later packets as not written.
    pub fn settle_first(&mut self, bytes: usize) {
        for OutputPacket { source, place, .. } in
            self.output_packets.iter().take_while(|mark| mark.end <= bytes)
        {
            let source = &mut self.merge.sources[*source as usize];
            let one = match place {
                0 => PacketCounts { sent: 1, ..PacketCounts::default() },
                1 => PacketCounts { received: 1, ..PacketCounts::default() },
                _ => PacketCounts { lost: 1, ..PacketCounts::default() },
            };
            source.pending = source.pending.since(one);
            source.captured = source.captured.plus(one);
        }
        self.settle(false);
    }

    /// Ends the stream. Packets that the collector reads afterwards count as not written.
    pub fn abandon(&mut self) {
        self.settle(false);
        self.writer = None;
        self.out.clear();
    }
}

/// Text for `expect` where a block is written to memory.
const IN_MEMORY: &str = "writing a block to memory does not fail";

/// Suffixes of interface names: for sent packets, received packets, and reports of lost packets.
const INTERFACE_SUFFIXES: [&str; 3] = ["send", "receive", "lost"];

/// Writes the comments of a packet to the beginning of `texts`. Returns their number.
fn comments(
    record: &PacketRecord,
    bytes: &[u8],
    (missed, remark): (u64, &[u8]),
    texts: &mut Vec<String>,
) -> usize {
    let mut count = 0;
    let mut write_comment = |text: std::fmt::Arguments<'_>| {
        if texts.len() == count {
            texts.push(String::new());
        }
        texts[count].clear();
        texts[count].write_fmt(text).expect("writing to a string does not fail");
        count += 1;
    };
    if missed > 0 {
        let what = match record.direction {
            _ if record.is_lost => "losses reported",
            Direction::Send => "packets sent",
            Direction::Receive => "packets received",
        };
        write_comment(format_args!("{missed} {what} before this one were overwritten"));
    }
    if let Some(posted) = record.posted {
        write_comment(format_args!("posted {} ns before", record.at.since(posted).as_nanos()));
    }
    if record.is_repeated {
        write_comment(format_args!("sent again"));
    }
    if let Some(why) = record.dropped {
        write_comment(format_args!("dropped: {why}"));
    }
    if record.is_lost {
        write_comment(format_args!("lost: {}", String::from_utf8_lossy(remark)));
        return count;
    }
    match acknowledgement(bytes) {
        Some(Acknowledgement::RnrNak(timer)) => {
            let micros = timer.nanoseconds() / 1000;
            write_comment(format_args!("receiver not ready: again in {micros} us"));
        }
        Some(Acknowledgement::Nak(code)) => write_comment(format_args!("NAK: {code}")),
        _ => {}
    }
    count
}

/// Returns the acknowledgement in a packet, if any.
fn acknowledgement(bytes: &[u8]) -> Option<Acknowledgement> {
    let bth = Bth::parse(bytes.first_chunk()?);
    let at = Bth::LENGTH + bth.opcode.headers()?.offset(Header::Aeth)?;
    Some(Aeth::parse(bytes.get(at..)?.first_chunk()?).syndrome.decode())
}

#[cfg(test)]
mod tests;
