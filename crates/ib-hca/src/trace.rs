//! The trace of a queue pair: command blocks of its messages, always; its packets, where that is wanted.
//!
//! | module | holds |
//! |---|---|
//! | `messages` | [`MessageRing`]: the last messages, 64 bytes each |
//! | `packets` | [`PacketRing`]: headers and a part of the payload of packets |
//! | `options` | [`PacketTrace`]: which packets are kept, and how much of them; [`Selection`]: of which queue pairs |
//!
//! Both are rings that the adapter writes into as it goes on, over what is oldest, and that another thread may read
//! meanwhile. Neither has a lock, and the adapter looks at nothing that a reader does.

use std::sync::Arc;

use ib_link::{Direction, Route};
use ib_types::{Instant, Qpn};
use ib_wire::packet::{Bth, Opcode, Position};

mod messages;
mod options;
mod packets;

pub use messages::MessageRing;
pub(crate) use messages::{Message, MessageLog};
pub use options::{
    PacketFilter, PacketTrace, Peer, Selection, SelectionId, SelectionStatus, TraceError, Trigger,
};
pub(crate) use packets::PacketNote;
pub use packets::{PacketReader, PacketRing};

use packets::PacketWriter;

/// The packet trace of a queue pair.
#[derive(Debug)]
pub(crate) struct PacketTracer {
    options: PacketTrace,
    /// Whether no packet is left out.
    takes_all: bool,
    writer: PacketWriter,
    /// How much of the message that is under way was kept, each way, of requests and of responses.
    kept: [[u32; 2]; 2],
    /// How many packets are still kept after the trigger; `None` before it.
    left: Option<u32>,
    /// The selection that has chosen the queue pair, if one has.
    pub(crate) selection: Option<SelectionId>,
    /// What keeping packets has cost and was not taken off the queue pair's turns yet, as bytes that could have been
    /// sent instead.
    debt: usize,
}

/// What it costs to keep a packet, and every so many bytes of it, as bytes that could be sent instead; what those
/// cost who read and write the packets is a part of it.
const COST: usize = 256;
const KEPT_FOR_ONE: usize = 4;

/// How much a queue pair can owe: what comes in costs, too, and it may send nothing.
const MOST_DEBT: usize = 1 << 20;

/// What a packet costs beside its bytes when it is sent.
const BARE: usize = 512;

/// What a trace has to know of an operation code, so that a packet costs one look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Where the payload starts; 0 for a code that is unknown.
    start: u8,
    pub(crate) is_response: bool,
    is_first: bool,
}

impl Shape {
    /// Returns that of the packet that starts with some bytes; `None` when they are too few or the code is unknown.
    #[inline]
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let shape = SHAPES[usize::from(*head.first()?)];
        (shape.start > 0 && head.len() >= Bth::LENGTH).then_some(shape)
    }

    const fn find(code: Opcode) -> Self {
        let Some(headers) = code.headers() else {
            return Self { start: 0, is_response: false, is_first: false };
        };
        let start = (Bth::LENGTH + headers.length()) as u8;
        let (is_response, is_first) = match code.operation() {
            Some(it) => {
                (it.is_response(), matches!(it.position(), Position::First | Position::Only))
            }
            None => (false, true),
        };
        Self { start, is_response, is_first }
    }
}

static SHAPES: [Shape; 256] = {
    let mut shapes = [Shape::find(Opcode(0)); 256];
    let mut code = 0;
    while code < shapes.len() {
        shapes[code] = Shape::find(Opcode(code as u8));
        code += 1;
    }
    shapes
};

impl PacketTracer {
    /// Starts to keep packets; returns what reads them.
    pub(crate) fn start(
        options: PacketTrace,
        qpn: Qpn,
    ) -> Result<(Self, PacketReader), TraceError> {
        options.check()?;
        let ring = PacketRing::new(options.ring_bytes)?;
        let reader = PacketReader::new(Arc::clone(&ring), qpn);
        let writer = PacketWriter::new(ring);
        let (takes_all, kept) = (options.filter.takes_all(), [[0; 2]; 2]);
        let (left, selection, debt) = (None, None, 0);
        Ok((Self { options, takes_all, writer, kept, left, selection, debt }, reader))
    }

    /// Returns how much of the payload of a message is kept.
    pub(crate) fn payload(&self) -> usize {
        self.options.payload.into()
    }

    /// Returns how many packets of a length could have been sent instead of what was kept, up to a number of them,
    /// which are settled by that.
    #[inline]
    pub(crate) fn settle(&mut self, length: usize, most: u32) -> u32 {
        // Most packets owe less than one, which needs no division.
        if self.debt < BARE + length {
            return 0;
        }
        let packets = (self.debt / (BARE + length)).min(most as usize);
        self.debt -= packets * (BARE + length);
        packets as u32
    }

    /// Changes what is kept from now on; the ring stays as it is.
    pub(crate) fn change(&mut self, options: PacketTrace) -> Result<(), TraceError> {
        options.check()?;
        self.options = PacketTrace { ring_bytes: self.options.ring_bytes, ..options };
        self.takes_all = self.options.filter.takes_all();
        Ok(())
    }

    /// Something has happened that a trigger may wait for.
    pub(crate) fn trigger(&mut self, what: Trigger) {
        if let Some((on, after)) = self.options.trigger
            && on == what
            && self.left.is_none()
        {
            self.left = Some(after);
            self.writer.trigger();
            if after == 0 {
                self.writer.end();
            }
        }
    }

    /// Keeps a packet, if it is one that is wanted; `head` is its headers or more.
    #[inline(never)]
    pub(crate) fn note(&mut self, note: &PacketNote<'_>, head: &[u8], bytes: &[u8]) {
        if let Some(shape) = Shape::of(head) {
            self.keep(note, shape, head, bytes);
        }
    }

    /// Keeps a packet of a shape, if it is one that is wanted.
    #[inline(always)]
    pub(crate) fn keep(&mut self, note: &PacketNote<'_>, shape: Shape, head: &[u8], bytes: &[u8]) {
        let start = usize::from(shape.start);
        let payload = bytes.len().saturating_sub(start) as u32;
        // What a queue pair asks for and what it answers go beside each other.
        let kept = &mut self.kept[note.direction as usize][usize::from(shape.is_response)];
        // An acknowledgement begins no message.
        if shape.is_first && payload > 0 {
            *kept = 0;
        }
        if !self.takes_all
            && !self.options.filter.takes(note.direction, note.route, Opcode(head[0]))
        {
            return;
        }
        if self.left == Some(0) {
            return;
        }
        // The first bytes of each message, in however many packets.
        let wanted = payload.min(u32::from(self.options.payload).saturating_sub(*kept));
        *kept += wanted;
        let end = if wanted == payload { bytes.len() } else { start + wanted as usize };
        let kept = head.get(..end).unwrap_or_else(|| &bytes[..end]);
        self.write(note, bytes.len(), kept);
    }

    /// Invalidates the usual route, because the queue pair's route may have changed.
    pub(crate) const fn forget_route(&mut self) {
        self.writer.forget_route();
    }

    /// Keeps the news that a packet was lost on its way: its headers.
    pub(crate) fn note_lost(
        &mut self,
        at: Instant,
        why: &str,
        route: &Route,
        headers: &[u8],
        length: usize,
    ) {
        let Some(bth) = headers.first_chunk().map(Bth::parse) else { return };
        let Some(known) = bth.opcode.headers() else { return };
        if !self.options.filter.takes(Direction::Send, route, bth.opcode) || self.left == Some(0) {
            return;
        }
        let note = PacketNote { lost: Some(why), ..PacketNote::new(Direction::Send, at, route) };
        let start = headers.len().min(Bth::LENGTH + known.length());
        self.write(&note, length, &headers[..start]);
    }

    #[inline(always)]
    fn write(&mut self, note: &PacketNote<'_>, length: usize, bytes: &[u8]) {
        // A later packet would overwrite packets that the trace is to keep.
        if note.at > self.options.until {
            return;
        }
        self.writer.write(note, length as u32, bytes);
        self.debt = (self.debt + COST + bytes.len() / KEPT_FOR_ONE).min(MOST_DEBT);
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                self.writer.end();
            }
        }
    }
}
