//! Trace ring of a queue pair: the HCA writes packets, and a collector (a thread that captures packets) reads them.
//!
//! The writer and the reader of the ring are in one file, because both rely on the same layout of the ring, and on the
//! order in which they access head and tail.
//!
//! Packets are stored consecutively, each with a header of [`HEADER`] bytes, at offsets that are multiples of 8. A
//! packet does not wrap around the end of the memory. A position is a number of bytes since the start of the trace.
//! Packets before position `head` are complete, and packets from position `tail` on are not overwritten. `noted` counts
//! the recorded packets.
//!
//! The HCA advances the tail before it overwrites packets. After copying packets, a reader reads the tail again. If the
//! tail has not passed the start of the copied packets, the copies are complete.
//!
//! Nearly all packets of a queue pair have the same route. The route of the first packet in a direction is the usual
//! route of the direction, and is stored once. If a packet has another route, that route is stored behind the packet's
//! header.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use ib_link::{Direction, PacketCounts, PacketRecord, PacketSource, Route};
use ib_types::{Gid, Instant, Qpn, ServiceLevel};

use super::options::TraceError;
use crate::counters::DropReason;
use crate::memory::Memory;

/// Size of the header of an entry in bytes.
const HEADER: usize = WORDS * 8;

/// Number of 64-bit words in a header.
const WORDS: usize = 6;

/// Size in bytes of the route that may follow a header.
const ROUTE: usize = 48;

/// Maximum number of bytes that the reader copies at once.
const CHUNK: usize = 32 << 10;

/// Page size of the system's memory.
const PAGE: usize = 4096;

/// Value of `PacketRing::triggered` before the trigger event.
const NEVER: u64 = u64::MAX;

/// Packet number that marks a filler entry. A filler entry occupies the rest of the ring's memory if the next packet
/// does not fit into it.
const FILLER: u64 = u64::MAX;

/// Metadata of a recorded packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketNote<'a> {
    pub(crate) direction: Direction,
    pub(crate) at: Instant,
    /// Time at which the message was posted, if the packet is its first.
    pub(crate) posted: Option<Instant>,
    pub(crate) route: &'a Route,
    /// True if `route` is the route of the queue pair's connection. The writer compares that route with the usual route
    /// once, and keeps the result in `is_own_usual`.
    pub(crate) is_own: bool,
    pub(crate) is_repeated: bool,
    pub(crate) dropped: Option<DropReason>,
    /// Where and why the packet was lost, if it was lost in the network.
    pub(crate) lost: Option<&'a str>,
}

impl<'a> PacketNote<'a> {
    /// Returns the metadata of a packet that was neither dropped nor lost nor retransmitted.
    pub(crate) const fn new(direction: Direction, at: Instant, route: &'a Route) -> Self {
        let (posted, dropped, lost) = (None, None, None);
        Self { direction, at, posted, route, is_own: false, is_repeated: false, dropped, lost }
    }
}

/// Ring of the recorded packets of a queue pair.
pub struct PacketRing {
    memory: Arc<Memory>,
    head: AtomicU64,
    tail: AtomicU64,
    /// Counts of recorded packets: sent, received and lost packets.
    noted: [AtomicU64; 3],
    ended: AtomicBool,
    /// Number of packets recorded before the trigger event; [`NEVER`] until the event happens.
    triggered: AtomicU64,
    /// The usual routes, which are not stored with the packets: the route of the first sent packet, and that of the
    /// first received packet.
    usual: [OnceLock<Route>; 2],
}

impl fmt::Debug for PacketRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketRing({} bytes)", self.memory.len())
    }
}

impl PacketRing {
    pub(super) fn new(length: usize) -> Result<Arc<Self>, TraceError> {
        let memory = Memory::zeroed(length).map_err(|_| TraceError::OutOfMemory(length))?;
        let (head, tail) = (AtomicU64::new(0), AtomicU64::new(0));
        let (noted, usual) = (Default::default(), Default::default());
        let (ended, triggered) = (AtomicBool::new(false), AtomicU64::new(NEVER));
        Ok(Arc::new(Self { memory, head, tail, noted, ended, triggered, usual }))
    }

    /// Returns the offset in the memory that corresponds to a position.
    fn offset(&self, position: u64) -> usize {
        (position & (self.memory.len() as u64 - 1)) as usize
    }
}

/// The writer of the ring, used by the HCA.
#[derive(Debug)]
pub(super) struct PacketWriter {
    ring: Arc<PacketRing>,
    head: u64,
    tail: u64,
    /// Position of the first packet of each part of the ring, without the oldest part. The tail moves to the next of
    /// these positions, so that the HCA need not read old headers.
    starts: VecDeque<u64>,
    /// The first packet at or after this position begins the next part of the ring.
    next_part: u64,
    noted: PacketCounts,
    /// Copy of `PacketRing::usual`. A route is `None` before the first packet of its direction.
    usual: [Option<Route>; 2],
    /// True if the route of the queue pair's connection is the usual route; `None` if the writer has to compare these
    /// two routes at the next packet.
    is_own_usual: Option<bool>,
    /// Position up to which packets are written without a call of `make_room`. The end of the memory, the end of the
    /// free space, and `next_part` limit it.
    free_until: u64,
}

/// Number of parts into which a ring is divided. The writer frees whole parts, the oldest first.
const PARTS: u64 = 64;

impl PacketWriter {
    pub(super) fn new(ring: Arc<PacketRing>) -> Self {
        let (starts, noted) = (VecDeque::new(), PacketCounts::default());
        let next_part = ring.memory.len() as u64 / PARTS;
        let (usual, is_own_usual, free_until) = ([None; 2], None, 0);
        Self { ring, head: 0, tail: 0, starts, next_part, noted, usual, is_own_usual, free_until }
    }

    #[inline(always)]
    pub(super) fn write(&mut self, note: &PacketNote<'_>, length: u32, bytes: &[u8]) {
        let is_usual = match self.is_own_usual.filter(|_| note.is_own) {
            Some(is_usual) => is_usual,
            None => self.is_usual(note),
        };
        if !is_usual || note.lost.is_some() {
            return self.write_more(note, is_usual, length, bytes);
        }
        let whole = (HEADER + bytes.len()).next_multiple_of(8);
        if self.head + whole as u64 > self.free_until {
            self.make_room(whole);
        }
        let sizes = EntrySizes { whole, length, recorded: bytes.len(), comment: 0 };
        let header = header(&self.noted, true, note, sizes);
        let written = self.ring.memory.write_words(self.ring.offset(self.head), &header, bytes);
        written.expect("`make_room` has left room before the end of the memory");
        let (kind, count) = match note.direction {
            Direction::Send => (0, &mut self.noted.sent),
            Direction::Receive => (1, &mut self.noted.received),
        };
        *count += 1;
        self.ring.noted[kind].store(*count, Ordering::Relaxed);
        self.publish(whole);
    }

    #[inline]
    fn publish(&mut self, whole: usize) {
        self.head += whole as u64;
        self.ring.head.store(self.head, Ordering::Release);
    }

    /// Returns true if a packet has the usual route: that of the first packet in its direction.
    #[inline(never)]
    fn is_usual(&mut self, note: &PacketNote<'_>) -> bool {
        let is_usual = match &self.usual[note.direction as usize] {
            Some(usual) => usual == note.route,
            None => self.set_usual(note),
        };
        if note.is_own {
            self.is_own_usual = Some(is_usual);
        }
        is_usual
    }

    /// Discards `is_own_usual`, the result of the route comparison, because the route of the queue pair's connection
    /// may have changed.
    pub(super) const fn forget_route(&mut self) {
        self.is_own_usual = None;
    }

    /// Writes a packet whose entry also holds a comment, or the route because it is not the usual route.
    #[cold]
    #[inline(never)]
    fn write_more(&mut self, note: &PacketNote<'_>, is_usual: bool, length: u32, bytes: &[u8]) {
        let comment = note.lost.map_or("", |text| &text[..text.floor_char_boundary(LONGEST)]);
        let mut behind = Vec::new();
        if !is_usual {
            behind.extend(route_to_bytes(note.route));
        }
        behind.extend(bytes);
        behind.extend(comment.as_bytes());
        let whole = (HEADER + behind.len()).next_multiple_of(8);
        self.make_room(whole);
        let sizes = EntrySizes { whole, length, recorded: bytes.len(), comment: comment.len() };
        let header = header(&self.noted, is_usual, note, sizes);
        let at = self.ring.offset(self.head);
        self.ring
            .memory
            .write_words(at, &header, &behind)
            .expect("the range ends within the memory");
        let (kind, count) = match note.direction {
            _ if note.lost.is_some() => (2, &mut self.noted.lost),
            Direction::Send => (0, &mut self.noted.sent),
            Direction::Receive => (1, &mut self.noted.received),
        };
        *count += 1;
        self.ring.noted[kind].store(*count, Ordering::Relaxed);
        self.publish(whole);
    }

    /// Stores the route of the first packet of a direction as the usual route.
    #[cold]
    fn set_usual(&mut self, note: &PacketNote<'_>) -> bool {
        let direction = note.direction as usize;
        self.usual[direction] = Some(*self.ring.usual[direction].get_or_init(|| *note.route));
        true
    }

    /// Writes a filler entry into the last `skipped` bytes of the ring's memory.
    #[cold]
    fn skip(&mut self, skipped: usize) {
        let mut filler = [0; 16];
        filler[..8].copy_from_slice(&FILLER.to_ne_bytes());
        filler[8..].copy_from_slice(&(skipped as u64).to_ne_bytes());
        // If fewer than 16 bytes of the memory remain, readers skip them without parsing them.
        let length = skipped.min(filler.len());
        self.put(self.head, &filler[..length]);
        self.head += skipped as u64;
    }

    /// Frees memory for an entry of `whole` bytes at the head. If the entry does not fit before the end of the memory,
    /// first moves the head to the start of the memory.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, whole: usize) {
        let size = self.ring.memory.len();
        let rest = size - self.ring.offset(self.head);
        let skipped = if rest < whole { rest } else { 0 };
        self.free((skipped + whole) as u64);
        if skipped > 0 {
            self.skip(skipped);
        }
        if self.head >= self.next_part {
            self.starts.push_back(self.head);
            self.next_part = self.head + size as u64 / PARTS;
        }
        let end = self.head + (size - self.ring.offset(self.head)) as u64;
        // `make_room` is called again for the first packet that extends beyond `free_until`.
        self.free_until = end.min(self.tail + size as u64).min(self.next_part);
    }

    /// Drops the oldest packets: advances the tail until `needed` bytes from the head on are free.
    fn free(&mut self, needed: u64) {
        let size = self.ring.memory.len() as u64;
        if self.head + needed - self.tail <= size {
            return;
        }
        while self.head + needed - self.tail > size {
            // An entry is much smaller than the ring, so a ring without space for it has several parts. Therefore
            // `starts` is not empty.
            self.tail = self.starts.pop_front().unwrap_or(self.head);
        }
        self.ring.tail.store(self.tail, Ordering::Relaxed);
        // A reader that sees any byte written after this fence also sees the new tail.
        fence(Ordering::Release);
    }

    fn put(&self, position: u64, bytes: &[u8]) {
        self.ring
            .memory
            .write(self.ring.offset(position), bytes)
            .expect("the range ends within the memory");
    }

    /// Records the trigger event.
    pub(super) fn trigger(&self) {
        self.ring.triggered.store(self.noted.all(), Ordering::Relaxed);
    }

    /// Notifies the reader that the trace has ended.
    pub(super) fn end(&self) {
        self.ring.ended.store(true, Ordering::Release);
    }
}

impl Drop for PacketWriter {
    fn drop(&mut self) {
        self.end();
    }
}

/// Flag of a header: the packet was received.
const RECEIVED: u8 = 1;

/// Flag of a header: the packet was a retransmission.
const REPEATED: u8 = 2;

/// Flag of a header: the route of the packet follows the header.
const UNUSUAL: u8 = 4;

/// Flag of a header: the packet was lost in the network.
const LOST: u8 = 8;

/// Maximum size of a comment in bytes.
const LONGEST: usize = 512;

/// Sizes in bytes of a packet's entry in the ring.
struct EntrySizes {
    /// Size of the whole entry, a multiple of 8.
    whole: usize,
    /// Size of the whole packet, of which the entry may hold only the first bytes.
    length: u32,
    /// Number of recorded bytes of the packet.
    recorded: usize,
    /// Size of the comment, which states where and why the packet was lost; 0 for no comment.
    comment: usize,
}

/// Returns the header of a packet's entry in the ring. `before` counts the packets recorded before this packet.
///
/// | word | holds |
/// |---|---|
/// | 0 | number of the packet |
/// | 1 | size of the entry (32 bits), number of lost packets before this packet (32) |
/// | 2, 3 | time of the packet, post time of its message |
/// | 4 | number of received packets before this packet |
/// | 5 | sizes of packet (16 bits), recorded bytes (16) and comment (16), flags (8), drop reason + 1 (8) |
#[inline]
fn header(
    before: &PacketCounts,
    is_usual: bool,
    note: &PacketNote<'_>,
    EntrySizes { whole, length, recorded, comment }: EntrySizes,
) -> [u64; WORDS] {
    let PacketNote { direction, at, posted, is_repeated, dropped, lost, .. } = note;
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags = flag(*direction == Direction::Receive, RECEIVED)
        | flag(*is_repeated, REPEATED)
        | flag(!is_usual, UNUSUAL)
        | flag(lost.is_some(), LOST);
    let dropped = dropped.map_or(0, |why| why as u8 + 1);
    [
        before.all(),
        whole as u64 | before.lost << 32,
        at.as_nanos(),
        posted.unwrap_or(Instant::NEVER).as_nanos(),
        before.received,
        u64::from(length as u16)
            | u64::from(recorded as u16) << 16
            | u64::from(comment as u16) << 32
            | u64::from(flags) << 48
            | u64::from(dropped) << 56,
    ]
}

fn route_to_bytes(route: &Route) -> [u8; ROUTE] {
    let mut bytes = [0; ROUTE];
    bytes[..16].copy_from_slice(&route.source.0.to_ne_bytes());
    bytes[16..32].copy_from_slice(&route.destination.0.to_ne_bytes());
    bytes[32..34].copy_from_slice(&route.slid.to_ne_bytes());
    bytes[34..36].copy_from_slice(&route.dlid.to_ne_bytes());
    bytes[36..40].copy_from_slice(&route.flow_label.to_ne_bytes());
    bytes[40..42].copy_from_slice(&route.source_port.to_ne_bytes());
    bytes[42] = route.sl.get();
    bytes[43] = u8::from(route.is_global);
    bytes[44] = route.traffic_class;
    bytes[45] = route.hop_limit;
    bytes
}

fn route_from_bytes(bytes: &[u8]) -> Option<Route> {
    let bytes: &[u8; ROUTE] = bytes.first_chunk()?;
    let gid = |at: usize| {
        Gid(u128::from_ne_bytes(*bytes[at..].first_chunk().expect("a GID has 16 bytes")))
    };
    Some(Route {
        source: gid(0),
        destination: gid(16),
        slid: two(bytes, 32),
        dlid: two(bytes, 34),
        sl: ServiceLevel::new(bytes[42])?,
        is_global: bytes[43] != 0,
        traffic_class: bytes[44],
        flow_label: four(bytes, 36),
        hop_limit: bytes[45],
        source_port: two(bytes, 40),
        is_weak: false,
    })
}

fn two(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(*bytes[at..].first_chunk().expect("a 16-bit field has 2 bytes"))
}

fn four(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(*bytes[at..].first_chunk().expect("a 32-bit field has 4 bytes"))
}

/// The reader of the ring. A collector can use it in any thread.
#[derive(Debug)]
pub struct PacketReader {
    ring: Arc<PacketRing>,
    qpn: Qpn,
    /// Copies of complete ring entries.
    chunk: Vec<u8>,
    /// Number of bytes of `chunk` that `next_packet` has processed.
    done: usize,
    /// Position at which the chunk ends, and from which the next chunk is copied.
    position: u64,
    /// Packet counts expected in the header of the next entry. If the header has higher counts, the packets in between
    /// were overwritten.
    expected: PacketCounts,
    overwritten: PacketCounts,
    /// Comment of the last returned packet.
    comment: String,
}

impl PacketReader {
    pub(super) fn new(ring: Arc<PacketRing>, qpn: Qpn) -> Self {
        let (chunk, comment) = (Vec::new(), String::new());
        let (expected, overwritten) = Default::default();
        Self { ring, qpn, chunk, done: 0, position: 0, expected, overwritten, comment }
    }

    /// Copies unread packets from the ring into `chunk`. Returns false if all packets were read.
    fn refill(&mut self) -> bool {
        let ring = &*self.ring;
        loop {
            let head = ring.head.load(Ordering::Acquire);
            self.position = self.position.max(ring.tail.load(Ordering::Relaxed));
            self.done = 0;
            self.chunk.clear();
            if self.position >= head {
                return false;
            }
            let at = ring.offset(self.position);
            let length = (head - self.position).min((ring.memory.len() - at).min(CHUNK) as u64);
            self.chunk.resize(length as usize, 0);
            ring.memory.read(at, &mut self.chunk).expect("the range ends within the memory");
            // The copied bytes are valid if the tail has not passed them during the copying.
            fence(Ordering::Acquire);
            let lost = ring.tail.load(Ordering::Relaxed).saturating_sub(self.position);
            if lost >= length {
                continue;
            }
            self.done = lost as usize;
            // If the chunk ends with an incomplete entry, that entry is copied again with the next chunk.
            let mut end = self.done;
            while let Some(whole) = whole_length(&self.chunk[end..], ring.memory.len() - at - end)
                && end + whole <= self.chunk.len()
            {
                end += whole;
            }
            self.chunk.truncate(end);
            self.position += end as u64;
            if end > self.done {
                return true;
            }
        }
    }

    /// Counts the packets from `expected` up to `before` as overwritten.
    const fn miss_until(&mut self, before: PacketCounts) {
        self.overwritten = self.overwritten.plus(before.since(self.expected));
        self.expected = before;
    }

    /// Parses the next entry of the chunk, which has `whole` bytes. Copies the recorded bytes of its packet into
    /// `bytes`. Returns `None` for a filler entry.
    fn parse(&mut self, whole: usize, bytes: &mut Vec<u8>) -> Option<PacketRecord> {
        let packet = &self.chunk[self.done..self.done + whole];
        let header: &[u8; HEADER] = packet.first_chunk()?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(header.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has 8 bytes"));
        }
        let [number, second, at, posted, received, last] = words;
        if number == FILLER {
            return None;
        }
        let flags = (last >> 48) as u8;
        let direction = if flags & RECEIVED == 0 { Direction::Send } else { Direction::Receive };
        let (route, start) = if flags & UNUSUAL == 0 {
            (*self.ring.usual[direction as usize].get()?, HEADER)
        } else {
            (route_from_bytes(&packet[HEADER..])?, HEADER + ROUTE)
        };
        let dropped = match (last >> 56) as u8 {
            0 => None,
            why => Some(DropReason::ALL.get(usize::from(why) - 1)?.name()),
        };
        let posted = Instant::from_nanos(posted);
        let recorded = usize::from((last >> 16) as u16);
        let (data, rest) = packet[start..].split_at_checked(recorded)?;
        bytes.clear();
        bytes.extend(data);
        self.comment.clear();
        self.comment
            .push_str(std::str::from_utf8(rest.get(..usize::from((last >> 32) as u16))?).ok()?);
        let lost = second >> 32;
        let before = PacketCounts { sent: number - received - lost, received, lost };
        let record = PacketRecord {
            number,
            direction,
            at: Instant::from_nanos(at),
            posted: (posted != Instant::NEVER).then_some(posted),
            route,
            length: u32::from(last as u16),
            is_repeated: flags & REPEATED != 0,
            dropped,
            is_lost: flags & LOST != 0,
        };
        self.miss_until(before);
        *self.expected.of(&record) += 1;
        Some(record)
    }
}

/// Returns the size of the entry at the start of `bytes`; `None` if `bytes` does not contain it completely. `rest` is
/// the number of bytes up to the end of the memory.
fn whole_length(bytes: &[u8], rest: usize) -> Option<usize> {
    if rest < 16 {
        return (!bytes.is_empty()).then_some(rest);
    }
    (bytes.len() >= 16).then(|| entry_size(bytes))
}

/// Returns the size of the entry at the start of `bytes`, which must have at least 16 bytes.
fn entry_size(bytes: &[u8]) -> usize {
    u64::from_ne_bytes(*bytes[8..].first_chunk().expect("the entry has 16 bytes")) as u32 as usize
}

impl PacketSource for PacketReader {
    fn qpn(&self) -> Qpn {
        self.qpn
    }

    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord> {
        loop {
            if self.done == self.chunk.len() {
                let has_ended = self.has_ended();
                if !self.refill() {
                    if has_ended {
                        self.miss_until(self.noted());
                    }
                    return None;
                }
            }
            let rest = &self.chunk[self.done..];
            // Less than 16 bytes remain only for a filler entry at the end of the ring's memory.
            let whole = if rest.len() < 16 { rest.len() } else { entry_size(rest) };
            let record = self.parse(whole, bytes);
            self.done += whole;
            if record.is_some() {
                return record;
            }
        }
    }

    fn remark(&self) -> &str {
        &self.comment
    }

    fn overwritten(&self) -> PacketCounts {
        self.overwritten
    }

    fn noted(&self) -> PacketCounts {
        let [sent, received, lost] =
            self.ring.noted.each_ref().map(|count| count.load(Ordering::Acquire));
        PacketCounts { sent, received, lost }
    }

    fn prepare(&self) {
        for page in (0..self.ring.memory.len()).step_by(PAGE) {
            self.ring.memory.populate_page(page);
        }
    }

    fn triggered(&self) -> Option<u64> {
        let triggered = self.ring.triggered.load(Ordering::Relaxed);
        (triggered != NEVER).then_some(triggered)
    }

    fn waiting(&self) -> (u64, u64) {
        let head = self.ring.head.load(Ordering::Relaxed);
        (head.saturating_sub(self.position), self.ring.memory.len() as u64)
    }

    fn has_ended(&self) -> bool {
        self.ring.ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
