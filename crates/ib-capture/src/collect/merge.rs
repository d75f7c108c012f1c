//! Queue pairs, and their packets in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use ib_link::{PacketCounts, PacketRecord, PacketSource};
use ib_types::{Instant, Qpn};

/// How many packets of a queue pair are taken at once, which are in the processor's cache then; and how many packets of
/// all queue pairs together may wait, where there are less queue pairs than that.
const BATCH: usize = 16;
const MOST: usize = 4096;

/// A queue pair whose packets are collected.
pub(super) struct Source {
    /// What reads them; with its end its ring goes, and only what was counted is left.
    pub(super) packets: Box<dyn PacketSource + Send>,
    is_over: bool,
    pub(super) name: String,
    /// Its interfaces in the section: what was sent, what was received, and what was lost on its way.
    pub(super) interfaces: [Option<u32>; 3],
    /// What was written and taken by the stream, what is on its way there, and what it has not taken.
    pub(super) captured: PacketCounts,
    pub(super) pending: PacketCounts,
    pub(super) unwritten: PacketCounts,
    /// What was captured, and what was told to be overwritten, when the section began.
    pub(super) before: [PacketCounts; 2],
    /// What of the overwritten packets the packets tell that were taken, and what was told by the stream.
    told: PacketCounts,
    pub(super) settled: PacketCounts,
    /// Packets that were taken, and how many of them are done; the bytes of all.
    taken: Vec<MergedPacket>,
    done: usize,
    pub(super) bytes: Vec<u8>,
}

/// A packet that waits to be written.
#[derive(Clone)]
pub(super) struct MergedPacket {
    pub(super) record: PacketRecord,
    /// Where its bytes are, and behind them what is to be said of it.
    pub(super) bytes: std::ops::Range<usize>,
    pub(super) remark: usize,
    /// How many of its kind before it were overwritten.
    pub(super) missed: u64,
}

/// The packets of all queue pairs.
pub(super) struct Merge {
    pub(super) sources: Vec<Source>,
    /// The next packet of each queue pair that has one, by its time.
    heads: BinaryHeap<Reverse<(Instant, usize)>>,
    packet: Vec<u8>,
}

impl Merge {
    pub(super) const fn new() -> Self {
        Self { sources: Vec::new(), heads: BinaryHeap::new(), packet: Vec::new() }
    }

    /// Looks at the queue pairs that had nothing.
    pub(super) fn look(&mut self) {
        for number in 0..self.sources.len() {
            let source = &self.sources[number];
            if !source.is_over && source.is_done() {
                self.refill(number);
            }
        }
    }

    /// Returns the next packet up to a time, and whose it is.
    pub(super) fn next(&self, until: Instant) -> Option<(usize, MergedPacket)> {
        let &Reverse((at, number)) = self.heads.peek()?;
        let source = &self.sources[number];
        (at <= until).then(|| (number, source.taken[source.done].clone()))
    }

    /// Goes on behind a packet that was returned.
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
        let most = (MOST / self.sources.len()).clamp(1, BATCH);
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
            is_over: false,
            name: name.to_owned(),
            interfaces: [None; 3],
            captured: PacketCounts::default(),
            pending: PacketCounts::default(),
            unwritten: PacketCounts::default(),
            before: Default::default(),
            told: PacketCounts::default(),
            settled: PacketCounts::default(),
            taken: Vec::new(),
            done: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns whether nothing of it is left to be written.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over && self.is_done()
    }

    const fn is_done(&self) -> bool {
        self.done == self.taken.len()
    }

    /// Has all overwritten packets told that are known, unless packets that were taken will tell them.
    pub(super) fn settle_overwritten(&mut self) {
        if self.is_done() {
            self.settled = self.packets.overwritten();
            self.told = self.settled;
        }
    }

    /// Takes the next packets, when all before are done.
    fn refill(&mut self, most: usize, packet: &mut Vec<u8>) {
        self.taken.clear();
        self.bytes.clear();
        self.done = 0;
        let has_ended = self.packets.has_ended();
        while self.taken.len() < most {
            let Some(record) = self.packets.next_packet(packet) else {
                if has_ended {
                    let over = Over::of(&*self.packets);
                    (self.packets, self.is_over) = (Box::new(over), true);
                    // They may be many, and nothing more comes.
                    self.bytes.shrink_to_fit();
                    self.taken.shrink_to_fit();
                }
                return;
            };
            let mut overwritten = self.packets.overwritten();
            let known = *overwritten.of(&record);
            let missed = known - mem::replace(self.told.of(&record), known);
            let start = self.bytes.len();
            self.bytes.extend(&*packet);
            let bytes = start..self.bytes.len();
            let remark = self.packets.remark();
            self.bytes.extend(remark.as_bytes());
            self.taken.push(MergedPacket { record, bytes, remark: remark.len(), missed });
        }
    }
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
