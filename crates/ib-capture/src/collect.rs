//! The packets of many queue pairs in one stream.

use std::fmt::Write as _;
use std::mem;

use ib_link::{Direction, PacketCounts, PacketRecord, PacketSource};
use ib_pcap::{Interface, Packet, PacketFlags, Section, Statistics, Writer};
use ib_types::{Instant, Qpn};
use ib_wire::packet::{Acknowledgement, Aeth, Bth, Header};

use crate::frame::Link;

/// How many packets are taken before they are put into order and written.
const ROUND: usize = 1024;

/// What a collector has counted of a queue pair. What was captured, overwritten, not written and skipped is what was
/// noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The name of the queue pair in the capture.
    pub name: String,
    /// Its number.
    pub qpn: Qpn,
    /// Packets that were written.
    pub captured: PacketCounts,
    /// Packets that were written over before they could be read.
    pub overwritten: PacketCounts,
    /// Packets that were read, and which the stream has not taken.
    pub unwritten: PacketCounts,
    /// Packets that were kept for something that has not happened, or happened later.
    pub skipped: PacketCounts,
    /// Packets that the adapter has noted.
    pub noted: PacketCounts,
    /// Whether no more will come.
    pub has_ended: bool,
}

/// A queue pair whose packets are collected.
struct Source {
    /// What reads them; with its end its ring goes, and only what was counted is left.
    packets: Box<dyn PacketSource + Send>,
    is_over: bool,
    name: String,
    /// Its interfaces in the section: what was sent, what was received, and what was lost on its way.
    interfaces: [Option<u32>; 3],
    /// What was written and taken by the stream, what is on its way there, and what it has not taken.
    captured: PacketCounts,
    pending: PacketCounts,
    unwritten: PacketCounts,
    /// What was captured and what was overwritten when the section began.
    before: [PacketCounts; 2],
    /// How many were known to be overwritten when the last packet was taken.
    overwritten: u64,
}

/// What is left of the packets of a queue pair when all of them were read: numbers.
struct Over {
    qpn: Qpn,
    overwritten: PacketCounts,
    skipped: PacketCounts,
    noted: PacketCounts,
}

impl Over {
    fn of(packets: &dyn PacketSource) -> Self {
        let (qpn, overwritten) = (packets.qpn(), packets.overwritten());
        Self { qpn, overwritten, skipped: packets.skipped(), noted: packets.noted() }
    }
}

impl PacketSource for Over {
    fn qpn(&self) -> Qpn {
        self.qpn
    }

    fn next_packet(&mut self, _: &mut Vec<u8>) -> Option<PacketRecord> {
        None
    }

    fn overwritten(&self) -> PacketCounts {
        self.overwritten
    }

    fn skipped(&self) -> PacketCounts {
        self.skipped
    }

    fn noted(&self) -> PacketCounts {
        self.noted
    }

    fn has_ended(&self) -> bool {
        true
    }
}

/// A packet that waits to be written.
struct Taken {
    record: PacketRecord,
    source: usize,
    /// Where its bytes are, and behind them what is to be said of it.
    bytes: std::ops::Range<usize>,
    remark: usize,
    missed: u64,
}

/// Writes the packets of queue pairs as pcapng, an interface for each queue pair and direction.
///
/// Its owner calls [`Collector::collect`] as often as it likes, and hands on what [`Collector::output`] then has.
/// What the adapters have written over meanwhile is counted, and told in the stream before the next packet and
/// at the end of a section.
pub struct Collector {
    writer: Option<Writer<Vec<u8>>>,
    /// What was written of sections that are over.
    out: Vec<u8>,
    link: Link,
    /// What is added to the times of packets to get nanoseconds since 1970.
    epoch: u64,
    sources: Vec<Source>,
    taken: Vec<Taken>,
    /// How many of them were written.
    done: usize,
    bytes: Vec<u8>,
    packet: Vec<u8>,
    frame: Vec<u8>,
    remarks: Vec<String>,
}

impl Collector {
    /// Makes a collector whose stream has not begun; `epoch` is the time in nanoseconds since 1970 at which the
    /// adapters' clock was zero.
    #[must_use]
    pub const fn new(link: Link, epoch: u64) -> Self {
        Self {
            writer: None,
            out: Vec::new(),
            link,
            epoch,
            sources: Vec::new(),
            taken: Vec::new(),
            done: 0,
            bytes: Vec::new(),
            packet: Vec::new(),
            frame: Vec::new(),
            remarks: Vec::new(),
        }
    }

    /// Begins a section: with it a file can begin.
    pub fn begin(&mut self, now: Instant) {
        self.end(now);
        let section = Section {
            application: Some(concat!("ibfabric ", env!("CARGO_PKG_VERSION")).to_owned()),
            ..Section::default()
        };
        self.writer = Some(Writer::new(mem::take(&mut self.out), &section).expect(IN_MEMORY));
        for at in 0..self.sources.len() {
            let source = &mut self.sources[at];
            source.before = [source.captured.plus(source.pending), source.packets.overwritten()];
            if !source.is_over {
                self.describe(at);
            }
        }
    }

    /// Ends the section, if one has begun: what was counted of it is told. `now` is the time of the adapters'
    /// clock.
    pub fn end(&mut self, now: Instant) {
        let Some(mut writer) = self.writer.take() else { return };
        let time = self.epoch + now.as_nanos();
        for source in &self.sources {
            let captured = source.captured.plus(source.pending).since(source.before[0]);
            let overwritten = source.packets.overwritten().since(source.before[1]);
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
        for source in &mut self.sources {
            source.interfaces = [None; 3];
        }
    }

    /// Adds a queue pair by a name, from which and the direction the names of its interfaces are made.
    pub fn add(&mut self, name: &str, packets: Box<dyn PacketSource + Send>) {
        self.sources.push(Source {
            packets,
            is_over: false,
            name: name.to_owned(),
            interfaces: [None; 3],
            captured: PacketCounts::default(),
            pending: PacketCounts::default(),
            unwritten: PacketCounts::default(),
            before: Default::default(),
            overwritten: 0,
        });
        if self.writer.is_some() {
            self.describe(self.sources.len() - 1);
        }
    }

    /// Writes the interfaces that every queue pair has.
    fn describe(&mut self, source: usize) {
        let Some(writer) = &mut self.writer else { return };
        let Source { name, interfaces, .. } = &mut self.sources[source];
        for direction in [Direction::Send, Direction::Receive] {
            let name = format!("{name} {}", direction.name());
            let interface = Interface::new(self.link.link_type()).named(&name);
            interfaces[direction as usize] = Some(writer.interface(&interface).expect(IN_MEMORY));
        }
    }

    /// Writes what there is now, the packets of a round in the order of their times, until there are so many bytes of
    /// output, or so many packets are written; returns how many that were. Without a section they are counted as
    /// not written.
    pub fn collect(&mut self, most_bytes: usize, most_packets: u64) -> u64 {
        let mut written = 0;
        while written < most_packets && self.output_length() < most_bytes {
            if self.done == self.taken.len() {
                self.take();
                if self.taken.is_empty() {
                    break;
                }
            }
            let taken = mem::take(&mut self.taken);
            while self.done < taken.len()
                && written < most_packets
                && self.output_length() < most_bytes
            {
                self.write_packet(&taken[self.done]);
                self.done += 1;
                written += 1;
            }
            self.taken = taken;
        }
        written
    }

    /// Returns whether a section has begun.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// Returns how many bytes the rings have that may still be written.
    #[must_use]
    pub fn ring_bytes(&self) -> u64 {
        let live = self.sources.iter().filter(|source| !source.is_over);
        live.map(|source| source.packets.waiting().1).sum()
    }

    /// Returns how full the fullest of the rings is, from 0 to 1.
    #[must_use]
    pub fn fullness(&self) -> f64 {
        let part = |source: &Source| {
            let (waiting, size) = source.packets.waiting();
            waiting as f64 / size.max(1) as f64
        };
        self.sources.iter().map(part).fold(0.0, f64::max)
    }

    /// Takes up to a round of packets, in turn from all queue pairs.
    fn take(&mut self) {
        self.bytes.clear();
        self.taken.clear();
        self.done = 0;
        let mut goes_on = true;
        while goes_on && self.taken.len() < ROUND {
            goes_on = false;
            for (number, source) in self.sources.iter_mut().enumerate() {
                if source.is_over {
                    continue;
                }
                let has_ended = source.packets.has_ended();
                let packets = &mut source.packets;
                // A few at once are in the processor's cache.
                for _ in 0..16 {
                    let Some(record) = packets.next_packet(&mut self.packet) else {
                        if has_ended {
                            let over = Over::of(&**packets);
                            (*packets, source.is_over) = (Box::new(over), true);
                        }
                        break;
                    };
                    goes_on = true;
                    let overwritten = packets.overwritten().all();
                    let missed = overwritten - mem::replace(&mut source.overwritten, overwritten);
                    let start = self.bytes.len();
                    self.bytes.extend(&self.packet);
                    let bytes = start..self.bytes.len();
                    let remark = packets.remark();
                    self.bytes.extend(remark.as_bytes());
                    let remark = remark.len();
                    self.taken.push(Taken { record, source: number, bytes, remark, missed });
                }
            }
        }
        if self.sources.len() > 1 {
            self.taken.sort_by_key(|taken| taken.record.at);
        }
    }

    fn write_packet(&mut self, taken: &Taken) {
        let Taken { record, bytes, missed, .. } = taken;
        let source = &mut self.sources[taken.source];
        let Some(writer) = &mut self.writer else {
            *source.unwritten.of(record) += 1;
            return;
        };
        *source.pending.of(record) += 1;
        let place = if record.is_lost { 2 } else { record.direction as usize };
        let interface = *source.interfaces[place].get_or_insert_with(|| {
            // Losses are news, and what has ended may have something left for the next section.
            let name = format!("{} {}", source.name, ["send", "receive", "lost"][place]);
            let interface = Interface::new(self.link.link_type()).named(&name);
            writer.interface(&interface).expect(IN_MEMORY)
        });
        let remark = &self.bytes[bytes.end..bytes.end + taken.remark];
        let bytes = &self.bytes[bytes.clone()];
        let length = self.link.frame(record, bytes, &mut self.frame);
        let flags = match record.direction {
            Direction::Send => PacketFlags::OUTBOUND,
            Direction::Receive => PacketFlags::INBOUND,
        };
        let count = remarks(record, bytes, (*missed, remark), &mut self.remarks);
        let packet = Packet {
            original_length: length as u32,
            dropped: (*missed > 0).then_some(*missed),
            comments: self.remarks[..count].iter().map(String::as_str).collect(),
            ..Packet::new(interface, self.epoch + record.at.as_nanos(), &self.frame).flags(flags)
        };
        let written = match self.link {
            Link::Ethernet { .. } => writer.packet(&packet),
            Link::Infiniband => writer.infiniband(&packet, 0),
        };
        written.expect(IN_MEMORY);
    }

    /// Returns what was counted of each queue pair. What is in [`Collector::output`] counts as captured only when
    /// [`Collector::settle`] says so.
    pub fn counted(&self) -> impl Iterator<Item = Counted> {
        self.sources.iter().map(|source| Counted {
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

    /// Returns how many bytes of output there are.
    #[must_use]
    pub fn output_length(&self) -> usize {
        self.writer.as_ref().map_or(self.out.len(), |writer| writer.get_ref().len())
    }

    /// Puts what was written, whole blocks, behind what is in `to`.
    pub fn output(&mut self, to: &mut Vec<u8>) {
        let out = match &mut self.writer {
            Some(writer) => writer.get_mut(),
            None => &mut self.out,
        };
        if to.is_empty() {
            mem::swap(to, out);
        } else {
            to.append(out);
        }
        out.clear();
    }

    /// Tells what became of the packets in all output since it was told last: they are in the stream, or it has not
    /// taken them.
    pub fn settle(&mut self, is_written: bool) {
        for source in &mut self.sources {
            let pending = mem::take(&mut source.pending);
            let sum = if is_written { &mut source.captured } else { &mut source.unwritten };
            *sum = sum.plus(pending);
        }
    }

    /// Ends the stream where it is: what comes from now on is counted as not written.
    pub fn abandon(&mut self) {
        self.settle(false);
        self.writer = None;
        self.out.clear();
    }
}

/// Why nothing can go wrong with blocks that are written into memory: interfaces are known, and packets short.
const IN_MEMORY: &str = "memory takes every block that a packet makes";

/// Writes what is to be said of a packet into the first of some texts; returns how many those are.
fn remarks(
    record: &PacketRecord,
    bytes: &[u8],
    (missed, remark): (u64, &[u8]),
    texts: &mut Vec<String>,
) -> usize {
    let mut count = 0;
    let mut say = |text: std::fmt::Arguments<'_>| {
        if texts.len() == count {
            texts.push(String::new());
        }
        texts[count].clear();
        texts[count].write_fmt(text).expect("a text takes everything");
        count += 1;
    };
    if missed > 0 {
        say(format_args!("{missed} packets of the queue pair before this one were overwritten"));
    }
    if let Some(posted) = record.posted {
        say(format_args!("posted {} ns before", record.at.since(posted).as_nanos()));
    }
    if record.is_repeated {
        say(format_args!("sent again"));
    }
    if let Some(why) = record.dropped {
        say(format_args!("dropped: {why}"));
    }
    if record.is_lost {
        say(format_args!("lost: {}", String::from_utf8_lossy(remark)));
        return count;
    }
    match acknowledgement(bytes) {
        Some(Acknowledgement::RnrNak(timer)) => {
            let micros = timer.nanoseconds() / 1000;
            say(format_args!("receiver not ready: again in {micros} us"));
        }
        Some(Acknowledgement::Nak(code)) => say(format_args!("NAK: {code}")),
        _ => {}
    }
    count
}

/// Returns what a packet acknowledges, if it does.
fn acknowledgement(bytes: &[u8]) -> Option<Acknowledgement> {
    let bth = Bth::parse(bytes.first_chunk()?);
    let at = Bth::LENGTH + bth.opcode.headers()?.offset(Header::Aeth)?;
    Some(Aeth::parse(bytes.get(at..)?.first_chunk()?).syndrome.decode())
}

#[cfg(test)]
mod tests;
