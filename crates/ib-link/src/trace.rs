//! Trace records of queue pairs: a message block for each completed message, and a record of each
//! packet.
//!
//! An HCA writes the records into rings without waiting for readers. It overwrites records that are
//! not read in time. Records are numbered, so a reader knows exactly how many it missed.

use ib_types::{Instant, Psn, Qpn};

use crate::route::Route;

/// The direction of a message or packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Sent by the local queue pair.
    Send,
    /// Received by the local queue pair.
    Receive,
}

impl Direction {
    /// Returns `"send"` or `"receive"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
        }
    }
}

/// The record of a completed message, which captures store as a message block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBlock {
    /// The number of the message, counted from 0 in the order of completion at the queue pair.
    pub number: u64,
    /// [`Direction::Send`] if the local queue pair has requested the message, even for READs.
    pub direction: Direction,
    /// The operation as named in completions: `Send`, `RdmaWrite`, `Recv` ….
    pub operation: &'static str,
    /// The completion status.
    pub status: &'static str,
    /// The ID of the work request; 0 if the message has no work request.
    pub wr_id: u64,
    /// The time at which the work request was posted. For messages of the peer, the time at which
    /// the first packet was processed.
    pub begin: Instant,
    /// The time at which the first packet was sent or processed; [`Instant::NEVER`] if there was no
    /// packet.
    pub started: Instant,
    /// The time at which the message was completed.
    pub end: Instant,
    /// The length of the message's data in bytes.
    pub length: u32,
    /// The PSN of the message's first packet.
    pub first: Psn,
    /// The number of PSNs that the message uses.
    pub packets: u32,
}

/// The record of a packet, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// The number of the packet among the recorded packets of the queue pair, counted from 0.
    pub number: u64,
    /// The direction.
    pub direction: Direction,
    /// The time at which the HCA sent or processed the packet.
    pub at: Instant,
    /// The time at which the work request was posted. Only the first packet of a message of the local queue pair has
    /// it.
    pub posted: Option<Instant>,
    /// The route of a sent packet, or the route back to the sender of a received packet.
    pub route: Route,
    /// The length of the packet in bytes, from the BTH to the pad. The captured bytes may be fewer.
    pub length: u32,
    /// True if the packet is a retransmission.
    pub is_repeated: bool,
    /// The reason why the HCA dropped a received packet; `None` if it did not.
    pub dropped: Option<&'static str>,
    /// True if the packet was sent earlier, and this record reports that the network has lost it.
    /// [`PacketSource::remark`] then returns where and why.
    pub is_lost: bool,
}

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Sent packets.
    pub sent: u64,
    /// Received packets.
    pub received: u64,
    /// Records that report lost packets.
    pub lost: u64,
}

impl PacketCounts {
    /// Returns the sum of the counts of sent, received and lost packets.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.sent + self.received + self.lost
    }

    /// Returns the count to which a record belongs: sent, received or lost packets.
    pub const fn of(&mut self, record: &PacketRecord) -> &mut u64 {
        match record.direction {
            _ if record.is_lost => &mut self.lost,
            Direction::Send => &mut self.sent,
            Direction::Receive => &mut self.received,
        }
    }

    /// Subtracts `earlier` from each count.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(earlier.sent),
            received: self.received.saturating_sub(earlier.received),
            lost: self.lost.saturating_sub(earlier.lost),
        }
    }

    /// Adds `other` to each count.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            lost: self.lost + other.lost,
        }
    }
}

/// Reads the recorded packets of a queue pair.
pub trait PacketSource {
    /// Returns the QPN of the queue pair.
    fn qpn(&self) -> Qpn;

    /// Returns the next packet; `None` if none is available yet.
    ///
    /// `bytes` is replaced by the captured bytes, from the BTH on.
    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord>;

    /// Returns a comment on the last returned packet. It is empty if there is no comment.
    fn remark(&self) -> &str {
        ""
    }

    /// Returns the number of packets that were overwritten before they were read.
    ///
    /// The result counts only overwritten packets that the HCA recorded before the last returned packet. After
    /// [`PacketSource::next_packet`] has returned `None` at the end of the capture, the result counts all overwritten
    /// packets.
    fn overwritten(&self) -> PacketCounts;

    /// Returns the number of recorded packets that are not part of the capture. No trigger followed them, or too many
    /// packets lie between them and the trigger.
    fn skipped(&self) -> PacketCounts {
        PacketCounts::default()
    }

    /// Returns the number of all recorded packets.
    fn noted(&self) -> PacketCounts;

    /// Returns the number of unread bytes, and the ring size in bytes.
    fn waiting(&self) -> (u64, u64) {
        (0, 1)
    }

    /// Prefaults the memory of the ring, so that the HCA does not wait for page faults.
    fn prepare(&self) {}

    /// Returns the number of packets that were recorded before the trigger; `None` if no trigger
    /// occurred.
    fn triggered(&self) -> Option<u64> {
        None
    }

    /// Returns true if the trace of the queue pair has ended: no further packets are recorded.
    /// Recorded packets can still be unread.
    fn has_ended(&self) -> bool;
}
