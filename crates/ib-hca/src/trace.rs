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

use std::cell::OnceCell;
use std::sync::Arc;

use ib_link::{Direction, Route};
use ib_types::{Instant, Qpn};
use ib_wire::packet::{Bth, Opcode, Position};

use crate::counters::Drop;

mod messages;
mod options;
mod packets;

pub(crate) use messages::Message;
pub use messages::MessageRing;
pub use options::{
    PacketFilter, PacketTrace, Peer, Selection, SelectionId, Standing, TraceError, Trigger,
};
pub use packets::{PacketReader, PacketRing};

use packets::PacketWriter;

/// What is noted of a packet beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted<'a> {
    pub(crate) direction: Direction,
    pub(crate) at: Instant,
    /// For the first packet of a message, when it was posted.
    pub(crate) posted: Option<Instant>,
    pub(crate) route: &'a Route,
    /// Whether the way is that of the queue pair's connection, which need not be looked at for each packet.
    pub(crate) is_own: bool,
    pub(crate) is_repeated: bool,
    pub(crate) dropped: Option<Drop>,
    /// For a packet that was lost on its way, where and why.
    pub(crate) lost: Option<&'a str>,
}

impl<'a> Noted<'a> {
    /// Returns what is noted of a packet of which nothing is to be said.
    pub(crate) const fn new((direction, at): (Direction, Instant), route: &'a Route) -> Self {
        let (posted, dropped, lost) = (None, None, None);
        Self { direction, at, posted, route, is_own: false, is_repeated: false, dropped, lost }
    }
}

/// The packets of a queue pair, while they are kept.
#[derive(Debug)]
pub(crate) struct Packets {
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

/// The messages of a queue pair; there is no ring before the first one.
#[derive(Debug, Default)]
pub(crate) struct Messages(OnceCell<Arc<MessageRing>>);

impl Messages {
    /// Notes a message that has ended.
    #[inline]
    pub(crate) fn note(&self, message: &Message) {
        #[cfg(not(without_message_blocks))]
        self.ring().write(message);
        #[cfg(without_message_blocks)]
        let _ = message;
    }

    /// Returns the ring.
    #[inline]
    pub(crate) fn ring(&self) -> &Arc<MessageRing> {
        self.0.get_or_init(Arc::default)
    }
}

impl Packets {
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
    pub(crate) fn note(&mut self, noted: &Noted<'_>, head: &[u8], bytes: &[u8]) {
        if let Some(shape) = Shape::of(head) {
            self.keep(noted, shape, head, bytes);
        }
    }

    /// Keeps a packet of a shape, if it is one that is wanted.
    #[inline(always)]
    pub(crate) fn keep(&mut self, noted: &Noted<'_>, shape: Shape, head: &[u8], bytes: &[u8]) {
        let start = usize::from(shape.start);
        let payload = bytes.len().saturating_sub(start) as u32;
        // What a queue pair asks for and what it answers go beside each other.
        let kept = &mut self.kept[noted.direction as usize][usize::from(shape.is_response)];
        // An acknowledgement begins no message.
        if shape.is_first && payload > 0 {
            *kept = 0;
        }
        if !self.takes_all
            && !self.options.filter.takes(noted.direction, noted.route, Opcode(head[0]))
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
        self.write(noted, (bytes.len(), kept));
    }

    /// The queue pair's connection may take another way from now on.
    pub(crate) const fn forget_way(&mut self) {
        self.writer.forget_way();
    }

    /// Keeps the news that a packet was lost on its way: its headers.
    pub(crate) fn note_lost(
        &mut self,
        (at, why): (Instant, &str),
        route: &Route,
        (bytes, length): (&[u8], usize),
    ) {
        let Some(bth) = bytes.first_chunk().map(Bth::parse) else { return };
        let Some(headers) = bth.opcode.headers() else { return };
        if !self.options.filter.takes(Direction::Send, route, bth.opcode) || self.left == Some(0) {
            return;
        }
        let noted = Noted { lost: Some(why), ..Noted::new((Direction::Send, at), route) };
        let start = bytes.len().min(Bth::LENGTH + headers.length());
        self.write(&noted, (length, &bytes[..start]));
    }

    #[inline(always)]
    fn write(&mut self, noted: &Noted<'_>, (length, bytes): (usize, &[u8])) {
        // A later packet would overwrite packets that the trace is to keep.
        if noted.at > self.options.until {
            return;
        }
        self.writer.write(noted, length as u32, bytes);
        self.debt = (self.debt + COST + bytes.len() / KEPT_FOR_ONE).min(MOST_DEBT);
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                self.writer.end();
            }
        }
    }
}
