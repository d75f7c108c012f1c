//! Traces of queue pairs. A message block is the record of a completed message, and is always written. Packets are
//! recorded on request.
//!
//! | module | holds |
//! |---|---|
//! | `messages` | [`MessageRing`]: message blocks of the last 64 messages |
//! | `packets` | [`PacketRing`]: headers and the first payload bytes of packets |
//! | `options` | [`PacketTrace`]: which packets and bytes are recorded; [`Selection`]: which queue pairs are traced |
//!
//! Both rings are lock-free: the HCA overwrites the oldest entries, and another thread may read at the same time. The
//! HCA never waits for a reader.

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
    /// True if the filter includes all packets.
    includes_all: bool,
    writer: PacketWriter,
    /// Number of payload bytes recorded so far of the current message. The first index is the direction. The second
    /// index is 0 for a request, and 1 for a response.
    recorded: [[u32; 2]; 2],
    /// Number of packets still to be recorded after the trigger event; `None` before the event.
    left: Option<u32>,
    /// The selection that the queue pair is traced for; `None` if it is traced by ID.
    pub(crate) selection: Option<SelectionId>,
    /// Cost of recording packets that `settle` has not yet charged to a burst of the queue pair. The unit is the cost
    /// of sending a byte.
    debt: usize,
}

/// Cost of recording a packet and of copying it out of the ring later. The unit is the cost of sending a byte.
const COST: usize = 256;

/// Recording this many bytes costs as much as sending one byte.
const RECORDED_PER_SENT: usize = 4;

/// Maximum of [`PacketTracer::debt`]. The unit is the cost of sending a byte. The debt is charged to sent bursts, so it
/// would grow indefinitely in a queue pair that only receives.
const MOST_DEBT: usize = 1 << 20;

/// Cost of sending a packet without payload. The unit is the cost of sending a byte.
const BARE: usize = 512;

/// Properties of an opcode. A table has one entry for each of the 256 opcodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpcodeLayout {
    /// Offset of the payload from the BTH; 0 for an unknown opcode.
    payload_offset: u8,
    pub(crate) is_response: bool,
    /// True if the packet is the first of its message.
    is_first: bool,
}

impl OpcodeLayout {
    /// Returns the layout of a packet, given its first bytes; `None` if these are too few or the opcode is unknown.
    #[inline]
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let layout = OPCODE_LAYOUTS[usize::from(*head.first()?)];
        (layout.payload_offset > 0 && head.len() >= Bth::LENGTH).then_some(layout)
    }

    const fn of_opcode(code: Opcode) -> Self {
        let Some(headers) = code.headers() else {
            return Self { payload_offset: 0, is_response: false, is_first: false };
        };
        let payload_offset = (Bth::LENGTH + headers.length()) as u8;
        let (is_response, is_first) = match code.operation() {
            Some(it) => {
                (it.is_response(), matches!(it.position(), Position::First | Position::Only))
            }
            None => (false, true),
        };
        Self { payload_offset, is_response, is_first }
    }
}

static OPCODE_LAYOUTS: [OpcodeLayout; 256] = {
    let mut layouts = [OpcodeLayout::of_opcode(Opcode(0)); 256];
    let mut code = 0;
    while code < layouts.len() {
        layouts[code] = OpcodeLayout::of_opcode(Opcode(code as u8));
        code += 1;
    }
    layouts
};

impl PacketTracer {
    /// Starts a trace. Also returns the reader of its packets.
    pub(crate) fn start(
        options: PacketTrace,
        qpn: Qpn,
    ) -> Result<(Self, PacketReader), TraceError> {
        options.check()?;
        let ring = PacketRing::new(options.ring_bytes)?;
        let reader = PacketReader::new(Arc::clone(&ring), qpn);
        let writer = PacketWriter::new(ring);
        let (includes_all, recorded) = (options.filter.includes_all(), [[0; 2]; 2]);
        let (left, selection, debt) = (None, None, 0);
        Ok((Self { options, includes_all, writer, recorded, left, selection, debt }, reader))
    }

    /// Returns the maximum number of recorded payload bytes of a message.
    pub(crate) fn payload(&self) -> usize {
        self.options.payload.into()
    }

    /// Charges the cost of recording packets (`debt`) to a burst of the queue pair. Returns how many packets of
    /// `length` bytes cost as much, at most `most`. The caller counts these packets as sent in the burst. Their cost is
    /// subtracted from `debt`.
    #[inline]
    pub(crate) fn settle(&mut self, length: usize, most: u32) -> u32 {
        // Avoids the division in the usual case: `debt` is less than the cost of sending one packet.
        if self.debt < BARE + length {
            return 0;
        }
        let packets = (self.debt / (BARE + length)).min(most as usize);
        self.debt -= packets * (BARE + length);
        packets as u32
    }

    /// Changes the options. The size of the ring is unchanged.
    pub(crate) fn change(&mut self, options: PacketTrace) -> Result<(), TraceError> {
        options.check()?;
        self.options = PacketTrace { ring_bytes: self.options.ring_bytes, ..options };
        self.includes_all = self.options.filter.includes_all();
        Ok(())
    }

    /// Processes an event. If it is the trigger event, the trace ends after the configured number of further packets.
    pub(crate) fn trigger(&mut self, event: Trigger) {
        if let Some((on, after)) = self.options.trigger
            && on == event
            && self.left.is_none()
        {
            self.left = Some(after);
            self.writer.trigger();
            if after == 0 {
                self.writer.end();
            }
        }
    }

    /// Records a packet, if the filter includes it. `head` is a copy of at least the packet's headers.
    #[inline(never)]
    pub(crate) fn note(&mut self, note: &PacketNote<'_>, head: &[u8], bytes: &[u8]) {
        if let Some(layout) = OpcodeLayout::of(head) {
            self.note_parsed(note, layout, head, bytes);
        }
    }

    /// Records a packet whose opcode has been looked up, if the filter includes it.
    #[inline(always)]
    pub(crate) fn note_parsed(
        &mut self,
        note: &PacketNote<'_>,
        layout: OpcodeLayout,
        head: &[u8],
        bytes: &[u8],
    ) {
        let start = usize::from(layout.payload_offset);
        let payload = bytes.len().saturating_sub(start) as u32;
        // Packets of requests and of READ responses may alternate, so their bytes are counted separately.
        let recorded = &mut self.recorded[note.direction as usize][usize::from(layout.is_response)];
        // An acknowledgement has no payload and starts no message.
        if layout.is_first && payload > 0 {
            *recorded = 0;
        }
        if !self.includes_all
            && !self.options.filter.includes(note.direction, note.route, Opcode(head[0]))
        {
            return;
        }
        if self.left == Some(0) {
            return;
        }
        // Only the first payload bytes of each message are recorded. They may extend over several packets.
        let added = payload.min(u32::from(self.options.payload).saturating_sub(*recorded));
        *recorded += added;
        let end = if added == payload { bytes.len() } else { start + added as usize };
        let recorded = head.get(..end).unwrap_or_else(|| &bytes[..end]);
        self.write(note, bytes.len(), recorded);
    }

    /// Notifies the writer that the route of the queue pair's connection may have changed.
    pub(crate) const fn forget_route(&mut self) {
        self.writer.forget_route();
    }

    /// Records the headers of a packet that was lost in the network. `why` states where and why it was lost.
    pub(crate) fn note_lost(
        &mut self,
        at: Instant,
        why: &str,
        route: &Route,
        headers: &[u8],
        length: usize,
    ) {
        let Some(bth) = headers.first_chunk().map(Bth::parse) else { return };
        let Some(extended) = bth.opcode.headers() else { return };
        if !self.options.filter.includes(Direction::Send, route, bth.opcode) || self.left == Some(0)
        {
            return;
        }
        let note = PacketNote { lost: Some(why), ..PacketNote::new(Direction::Send, at, route) };
        let start = headers.len().min(Bth::LENGTH + extended.length());
        self.write(&note, length, &headers[..start]);
    }

    #[inline(always)]
    fn write(&mut self, note: &PacketNote<'_>, length: usize, bytes: &[u8]) {
        // A packet recorded after the end time would overwrite older packets.
        if note.at > self.options.until {
            return;
        }
        self.writer.write(note, length as u32, bytes);
        self.debt = (self.debt + COST + bytes.len() / RECORDED_PER_SENT).min(MOST_DEBT);
        if let Some(left) = &mut self.left {
            *left -= 1;
            if *left == 0 {
                self.writer.end();
            }
        }
    }
}
