//! A ring of packets that the adapter writes and a collector reads.
//!
//! Packets stand one behind the other, each with a header of [`HEADER`] bytes, and start at multiples of 8; none
//! is cut in two by the end of the memory. Three numbers tell where they are, as bytes since the start: up to
//! where they are whole (`head`), from where on they are not written over (`tail`), and how many there were.
//! The adapter moves the tail on before it writes over what is there. So whoever has copied a packet and finds
//! then that the tail is still before it has copied it whole.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use ib_link::{Direction, PacketRecord, PacketSource, Route};
use ib_types::{Gid, Instant, Qpn, ServiceLevel};

use super::TraceError;
use crate::counters::Drop;
use crate::memory::Memory;

/// The length of what stands before a packet.
const HEADER: usize = 88;

/// Marks what is left before the end of the memory, in the place of a packet's number.
const FILLER: u64 = u64::MAX;

/// The packets of a queue pair.
pub struct PacketRing {
    memory: Arc<Memory>,
    head: AtomicU64,
    tail: AtomicU64,
    noted: AtomicU64,
    ended: AtomicBool,
}

impl fmt::Debug for PacketRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketRing({} bytes)", self.memory.len())
    }
}

impl PacketRing {
    pub(super) fn new(length: usize) -> Result<Arc<Self>, TraceError> {
        let memory = Memory::zeroed(length).map_err(|_| TraceError::OutOfMemory(length))?;
        let number = || AtomicU64::new(0);
        let (head, tail, noted) = (number(), number(), number());
        Ok(Arc::new(Self { memory, head, tail, noted, ended: AtomicBool::new(false) }))
    }

    /// Returns where in the memory a place is.
    fn at(&self, place: u64) -> usize {
        (place & (self.memory.len() as u64 - 1)) as usize
    }
}

/// What is written of a packet.
pub(super) struct Written<'a> {
    pub(super) direction: Direction,
    pub(super) at: Instant,
    pub(super) route: &'a Route,
    pub(super) length: u32,
    pub(super) is_repeated: bool,
    pub(super) dropped: Option<Drop>,
}

/// The adapter's side.
#[derive(Debug)]
pub(super) struct PacketWriter {
    ring: Arc<PacketRing>,
    head: u64,
    tail: u64,
    noted: u64,
}

impl PacketWriter {
    pub(super) const fn new(ring: Arc<PacketRing>) -> Self {
        Self { ring, head: 0, tail: 0, noted: 0 }
    }

    pub(super) fn write(&mut self, written: &Written<'_>, bytes: &[u8]) {
        let size = self.ring.memory.len();
        let whole = (HEADER + bytes.len()).next_multiple_of(8);
        let rest = size - self.ring.at(self.head);
        let skipped = if rest < whole { rest } else { 0 };
        self.make_room((skipped + whole) as u64);
        if skipped > 0 {
            let mut filler = [0; 16];
            filler[..8].copy_from_slice(&FILLER.to_ne_bytes());
            filler[8..].copy_from_slice(&(skipped as u64).to_ne_bytes());
            // Where there is no room for both numbers a place behind says nothing, and readers know it.
            let length = skipped.min(filler.len());
            self.put(self.head, &filler[..length]);
            self.head += skipped as u64;
        }
        let header = header(self.noted, whole, written, bytes.len());
        self.put(self.head, &header);
        self.put(self.head + HEADER as u64, bytes);
        self.head += whole as u64;
        self.noted += 1;
        self.ring.noted.store(self.noted, Ordering::Relaxed);
        self.ring.head.store(self.head, Ordering::Release);
    }

    /// Moves the tail on until so many bytes are free.
    fn make_room(&mut self, needed: u64) {
        let size = self.ring.memory.len() as u64;
        if self.head + needed - self.tail <= size {
            return;
        }
        while self.head + needed - self.tail > size {
            self.tail += self.length_at(self.tail);
        }
        self.ring.tail.store(self.tail, Ordering::Relaxed);
        // Whoever sees one of the bytes that are written now sees the new tail, too.
        fence(Ordering::Release);
    }

    /// Returns how many bytes what stands at a place takes.
    fn length_at(&self, place: u64) -> u64 {
        let at = self.ring.at(place);
        let rest = self.ring.memory.len() - at;
        let mut numbers = [0; 16];
        if rest < numbers.len() {
            return rest as u64;
        }
        self.ring.memory.read(at, &mut numbers).expect("it is within the memory");
        u64::from_ne_bytes(*numbers[8..].first_chunk().expect("8 bytes"))
    }

    fn put(&self, place: u64, bytes: &[u8]) {
        self.ring.memory.write(self.ring.at(place), bytes).expect("it does not reach the end");
    }

    /// No more will come.
    pub(super) fn end(&self) {
        self.ring.ended.store(true, Ordering::Release);
    }
}

impl std::ops::Drop for PacketWriter {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns what stands before a packet: its number, the length of both, and what is known of it.
#[inline]
fn header(number: u64, whole: usize, written: &Written<'_>, kept: usize) -> [u8; HEADER] {
    let Written { direction, at, route, length, is_repeated, dropped } = written;
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&number.to_ne_bytes());
    bytes[8..16].copy_from_slice(&(whole as u64).to_ne_bytes());
    bytes[16..24].copy_from_slice(&at.as_nanos().to_ne_bytes());
    bytes[24..28].copy_from_slice(&length.to_ne_bytes());
    bytes[28..32].copy_from_slice(&(kept as u32).to_ne_bytes());
    bytes[32..48].copy_from_slice(&route.source.0.to_ne_bytes());
    bytes[48..64].copy_from_slice(&route.destination.0.to_ne_bytes());
    bytes[64..66].copy_from_slice(&route.slid.to_ne_bytes());
    bytes[66..68].copy_from_slice(&route.dlid.to_ne_bytes());
    bytes[68..72].copy_from_slice(&route.flow_label.to_ne_bytes());
    bytes[72..74].copy_from_slice(&route.source_port.to_ne_bytes());
    bytes[74] = route.sl.get();
    bytes[75] = u8::from(route.is_global);
    bytes[76] = route.traffic_class;
    bytes[77] = route.hop_limit;
    bytes[78] = *direction as u8;
    bytes[79] = u8::from(*is_repeated);
    bytes[80] = dropped.map_or(0, |why| why as u8 + 1);
    bytes
}

/// Returns what a header says of a packet, how much the packet takes, and how many of its bytes are kept.
fn parse(bytes: &[u8; HEADER]) -> Option<(PacketRecord, u64, usize)> {
    let two = |at: usize| u16::from_ne_bytes(*bytes[at..].first_chunk().expect("2 bytes"));
    let four = |at: usize| u32::from_ne_bytes(*bytes[at..].first_chunk().expect("4 bytes"));
    let eight = |at: usize| u64::from_ne_bytes(*bytes[at..].first_chunk().expect("8 bytes"));
    let gid = |at: usize| Gid(u128::from_ne_bytes(*bytes[at..].first_chunk().expect("16 bytes")));
    let route = Route {
        source: gid(32),
        destination: gid(48),
        slid: two(64),
        dlid: two(66),
        sl: ServiceLevel::new(bytes[74])?,
        is_global: bytes[75] != 0,
        traffic_class: bytes[76],
        flow_label: four(68),
        hop_limit: bytes[77],
        source_port: two(72),
    };
    let dropped = match bytes[80] {
        0 => None,
        why => Some(Drop::ALL.get(usize::from(why) - 1)?.name()),
    };
    let record = PacketRecord {
        number: eight(0),
        direction: if bytes[78] == 0 { Direction::Send } else { Direction::Receive },
        at: Instant::from_nanos(eight(16)),
        route,
        length: four(24),
        is_repeated: bytes[79] != 0,
        dropped,
    };
    Some((record, eight(8), four(28) as usize))
}

/// The collector's side: reads the packets of a queue pair, from any thread.
#[derive(Debug)]
pub struct PacketReader {
    ring: Arc<PacketRing>,
    qpn: Qpn,
    place: u64,
    /// The number of the packet that comes next, when none is missed.
    expected: u64,
    overwritten: u64,
}

impl PacketReader {
    pub(super) const fn new(ring: Arc<PacketRing>, qpn: Qpn) -> Self {
        Self { ring, qpn, place: 0, expected: 0, overwritten: 0 }
    }

    /// Copies what stands at the own place; `None` when that was written over meanwhile.
    fn copy(&self, bytes: &mut Vec<u8>) -> Option<Copied> {
        let ring = &*self.ring;
        let at = ring.at(self.place);
        let rest = ring.memory.len() - at;
        let mut header = [0; HEADER];
        let length = rest.min(HEADER);
        ring.memory.read(at, &mut header[..length]).ok()?;
        let number = u64::from_ne_bytes(*header.first_chunk().expect("8 bytes"));
        let copied = if rest < HEADER || number == FILLER {
            Some(Copied::Filler(rest as u64))
        } else {
            parse(&header).and_then(|(record, whole, kept)| {
                bytes.clear();
                bytes.resize(kept.min(ring.memory.len()), 0);
                ring.memory.read(at + HEADER, bytes).ok()?;
                Some(Copied::Packet(record, whole))
            })
        };
        // What was copied before counts if the tail has not passed.
        fence(Ordering::Acquire);
        if ring.tail.load(Ordering::Relaxed) > self.place { None } else { copied }
    }

    /// What was noted and is not there any more is known to be lost.
    fn miss_until(&mut self, number: u64) {
        self.overwritten += number - self.expected;
        self.expected = number;
    }
}

/// What stood at a place.
enum Copied {
    Packet(PacketRecord, u64),
    Filler(u64),
}

impl PacketSource for PacketReader {
    fn qpn(&self) -> Qpn {
        self.qpn
    }

    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord> {
        loop {
            let has_ended = self.has_ended();
            let head = self.ring.head.load(Ordering::Acquire);
            self.place = self.place.max(self.ring.tail.load(Ordering::Relaxed));
            if self.place >= head {
                if has_ended && self.place == self.ring.head.load(Ordering::Acquire) {
                    self.miss_until(self.noted());
                }
                return None;
            }
            match self.copy(bytes) {
                Some(Copied::Packet(record, whole)) => {
                    self.place += whole;
                    self.miss_until(record.number);
                    self.expected += 1;
                    return Some(record);
                }
                Some(Copied::Filler(length)) => self.place += length,
                None => {}
            }
        }
    }

    fn overwritten(&self) -> u64 {
        self.overwritten
    }

    fn noted(&self) -> u64 {
        self.ring.noted.load(Ordering::Acquire)
    }

    fn has_ended(&self) -> bool {
        self.ring.ended.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests;
