//! Merges the packets of all queue pairs by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use ib_link::{PacketCounts, PacketRecord, PacketSource};
use ib_types::{Instant, Qpn};

/// Maximum number of packets that are read from one queue pair at once, so that they stay in the
/// processor's cache.
const BATCH: usize = 16;
/// Maximum number of packets of all queue pairs that wait to be written. If there are more queue pairs
/// than this, one packet of each queue pair can wait.
const MAX_WAITING_PACKETS: usize = 4096;

/// A queue pair whose packets are collected.
pub(super) struct Source {
    /// The source of the packets. It is replaced by an [`EndedSource`] when the queue pair has ended and all packets
    /// are read, so that the trace ring is freed.
    pub(super) packets: Box<dyn PacketSource + Send>,
    has_ended_and_is_written: bool,
    pub(super) name: String,
    /// IDs of the pcapng interfaces for sent, received and lost packets in the current section; `None` if the interface
    /// is not written yet.
    pub(super) interfaces: [Option<u32>; 3],
    /// Packets that were written to the stream.
    pub(super) captured: PacketCounts,
    /// Packets that were added to the output since the last call of `Collector::settle`. The next call
    /// adds them to `captured` or `unwritten`.
    pub(super) pending: PacketCounts,
    /// Packets that could not be written to the stream.
    pub(super) unwritten: PacketCounts,
    /// Counts at the beginning of the section: captured packets (`captured` plus `pending`), and overwritten packets
    /// (`settled`).
    pub(super) before: [PacketCounts; 2],
    /// Overwritten packets that are already counted, either in `missed` of a packet or in the statistics of a section.
    reported: PacketCounts,
    /// Overwritten packets before the last packet that was written or counted as not written.
    pub(super) settled: PacketCounts,
    /// The batch of packets that was read last.
    taken: Vec<MergedPacket>,
    /// Number of packets in `taken` that were written.
    done: usize,
    /// The data and comments of the packets in `taken`.
    pub(super) bytes: Vec<u8>,
}

/// A packet that waits to be written.
#[derive(Clone)]
pub(super) struct MergedPacket {
    pub(super) record: PacketRecord,
    /// Range of the packet's bytes in `Source::bytes`. The packet's comment (`remark` bytes)
    /// follows this range.
    pub(super) bytes: std::ops::Range<usize>,
    pub(super) remark: usize,
    /// Number of packets in the direction of this packet that were overwritten before it.
    pub(super) missed: u64,
}

/// Merges the unwritten packets of all queue pairs by time.
pub(super) struct Merge {
    pub(super) sources: Vec<Source>,
    /// The time of each queue pair's next packet, with the index of the queue pair. The earliest
    /// time is first.
    heads: BinaryHeap<Reverse<(Instant, usize)>>,
    packet: Vec<u8>,
}

impl Merge {
    pub(super) const fn new() -> Self {
        Self { sources: Vec::new(), heads: BinaryHeap::new(), packet: Vec::new() }
    }

    /// Reads packets of the queue pairs that have no packet waiting.
    pub(super) fn poll_sources(&mut self) {
        for number in 0..self.sources.len() {
            let source = &self.sources[number];
            if !source.has_ended_and_is_written && source.is_done() {
                self.refill(number);
            }
        }
    }

    /// Returns the next packet and the index of its queue pair; `None` if the packet's time is
    /// later than `until`.
    pub(super) fn next(&self, until: Instant) -> Option<(usize, MergedPacket)> {
        let &Reverse((at, number)) = self.heads.peek()?;
        let source = &self.sources[number];
        (at <= until).then(|| (number, source.taken[source.done].clone()))
    }

    /// Removes the packet that `next` returned, and makes the next packet of the same queue pair
    /// available.
    pub(super) fn done(&mut self, number: usize) {
        self.heads.pop();
        let source = &mut self.sources[number];
        source.done += 1;
        match source.taken.get(source.done) {
            Some(next) => self.heads.push(Reverse((next.record.at, number))),
            None => self.refill(number),
        }
    }

    fn refill(&mut self, number: usize) {
        let most = (MAX_WAITING_PACKETS / self.sources.len()).clamp(1, BATCH);
        let source = &mut self.sources[number];
        source.refill(most, &mut self.packet);
        if let Some(first) = source.taken.first() {
            self.heads.push(Reverse((first.record.at, number)));
        }
    }
}

impl Source {
    pub(super) fn new(name: &str, packets: Box<dyn PacketSource + Send>) -> Self {
        Self {
            packets,
            has_ended_and_is_written: false,
            name: name.to_owned(),
            interfaces: [None; 3],
            captured: PacketCounts::default(),
            pending: PacketCounts::default(),
            unwritten: PacketCounts::default(),
            before: Default::default(),
            reported: PacketCounts::default(),
            settled: PacketCounts::default(),
            taken: Vec::new(),
            done: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns true if the queue pair has ended and all its packets are written.
    pub(super) const fn has_ended_and_is_written(&self) -> bool {
        self.has_ended_and_is_written && self.is_done()
    }

    const fn is_done(&self) -> bool {
        self.done == self.taken.len()
    }

    /// If all packets read so far are written, sets `settled` to the number of all overwritten
    /// packets. The statistics at the end of the section are computed from `settled`.
    pub(super) fn settle_overwritten(&mut self) {
        if self.is_done() {
            self.settled = self.packets.overwritten();
            self.reported = self.settled;
        }
    }

    /// Reads the next packets into `taken`. The caller must already have written the packets in `taken`.
    fn refill(&mut self, most: usize, packet: &mut Vec<u8>) {
        self.taken.clear();
        self.bytes.clear();
        self.done = 0;
        let has_ended = self.packets.has_ended();
        while self.taken.len() < most {
            let Some(record) = self.packets.next_packet(packet) else {
                if has_ended {
                    let over = EndedSource::of(&*self.packets);
                    (self.packets, self.has_ended_and_is_written) = (Box::new(over), true);
                    // The queue pair no longer needs these buffers, which can be large.
                    self.bytes.shrink_to_fit();
                    self.taken.shrink_to_fit();
                }
                return;
            };
            let mut overwritten = self.packets.overwritten();
            let known = *overwritten.of(&record);
            let missed = known - mem::replace(self.reported.of(&record), known);
            let start = self.bytes.len();
            self.bytes.extend(&*packet);
            let bytes = start..self.bytes.len();
            let remark = self.packets.remark();
            self.bytes.extend(remark.as_bytes());
            self.taken.push(MergedPacket { record, bytes, remark: remark.len(), missed });
        }
    }
}

/// The counters of a queue pair that has ended.
struct EndedSource {
    qpn: Qpn,
    overwritten: PacketCounts,
    skipped: PacketCounts,
    noted: PacketCounts,
}

impl EndedSource {
    fn of(packets: &dyn PacketSource) -> Self {
        let (qpn, overwritten) = (packets.qpn(), packets.overwritten());
        Self { qpn, overwritten, skipped: packets.skipped(), noted: packets.noted() }
    }
}

impl PacketSource for EndedSource {
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
