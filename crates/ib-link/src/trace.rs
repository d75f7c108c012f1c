//! What an adapter notes of its queue pairs while it works: the command blocks of their messages, and, where
//! that is wanted, their packets.
//!
//! Whoever collects reads them beside the adapter, which never waits: what is not read in time is written
//! over. Everything has a number, so that what was missed is known exactly.

use ib_types::{Instant, Psn, Qpn};

use crate::route::Route;

/// Which way something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the own queue pair.
    Send,
    /// To it.
    Receive,
}

impl Direction {
    /// Returns the direction as a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
        }
    }
}

/// The command block of a message: what an adapter notes of each when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageBlock {
    /// Which of the queue pair's messages it is, by their ends, from 0 on.
    pub number: u64,
    /// Whether the own side has asked for it.
    pub direction: Direction,
    /// What was done, as completions name it: `Send`, `RdmaWrite`, `Recv` ….
    pub operation: &'static str,
    /// What became of it, as completions name it.
    pub status: &'static str,
    /// The number that the program has given the request or the receive; 0 where it gave none.
    pub wr_id: u64,
    /// When it was posted; for messages of the other side when their first packet was taken.
    pub begin: Instant,
    /// When its first packet was sent or taken; [`Instant::NEVER`] when none was.
    pub started: Instant,
    /// When it was completed.
    pub end: Instant,
    /// Its length in bytes.
    pub length: u32,
    /// The sequence number of its first packet.
    pub first: Psn,
    /// How many sequence numbers it has.
    pub packets: u32,
}

/// What is known of a packet beside its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Which of the queue pair's traced packets it is, from 0 on.
    pub number: u64,
    /// Which way it went.
    pub direction: Direction,
    /// When the adapter sent it or took it.
    pub at: Instant,
    /// For the first packet of a message that the own side has asked for, when that was posted.
    pub posted: Option<Instant>,
    /// The way that it took, or the way back to where it came from.
    pub route: Route,
    /// How many bytes it has from the BTH to the end of the pad; fewer may be kept.
    pub length: u32,
    /// Whether its sequence number was sent before.
    pub is_repeated: bool,
    /// Why a packet that came in had no effect.
    pub dropped: Option<&'static str>,
    /// Whether this is the news that a packet which was sent before has been lost on its way;
    /// [`PacketSource::remark`] tells where and why.
    pub is_lost: bool,
}

/// Numbers of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Those that were sent.
    pub sent: u64,
    /// Those that were received.
    pub received: u64,
    /// The news of those that were lost on their way.
    pub lost: u64,
}

impl PacketCounts {
    /// Returns how many there are in all.
    #[must_use]
    pub const fn all(self) -> u64 {
        self.sent + self.received + self.lost
    }

    /// Returns the number that a packet counts into.
    pub const fn of(&mut self, record: &PacketRecord) -> &mut u64 {
        match record.direction {
            _ if record.is_lost => &mut self.lost,
            Direction::Send => &mut self.sent,
            Direction::Receive => &mut self.received,
        }
    }

    /// Returns by how many each number is greater than that of others.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(earlier.sent),
            received: self.received.saturating_sub(earlier.received),
            lost: self.lost.saturating_sub(earlier.lost),
        }
    }

    /// Returns the sums of each number with that of others.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            lost: self.lost + other.lost,
        }
    }
}

/// The packets of a queue pair, as a collector reads them.
pub trait PacketSource {
    /// Returns the number of the queue pair.
    fn qpn(&self) -> Qpn;

    /// Returns the next packet, whose bytes from the BTH on are put into `bytes` in place of what was there;
    /// `None` when there is none yet.
    fn next_packet(&mut self, bytes: &mut Vec<u8>) -> Option<PacketRecord>;

    /// Returns what is to be said of the packet that was returned last.
    fn remark(&self) -> &str {
        ""
    }

    /// Returns how many packets were written over before they were read, as far as it is known: all of those
    /// before the packet that was returned last, and everything once [`PacketSource::next_packet`] has
    /// returned `None` after the end.
    fn overwritten(&self) -> PacketCounts;

    /// Returns how many packets nobody wanted: those that were kept for something that has not happened, or happened
    /// later.
    fn skipped(&self) -> PacketCounts {
        PacketCounts::default()
    }

    /// Returns how many packets were noted in all.
    fn noted(&self) -> PacketCounts;

    /// Returns how many bytes wait to be read, and for how many there is room before some are written over.
    fn waiting(&self) -> (u64, u64) {
        (0, 1)
    }

    /// Has the system provide the memory for what waits, so that the adapter does not have to wait for it.
    fn prepare(&self) {}

    /// Returns how many packets were noted before that happened which has ended the trace, if something has that
    /// it was to wait for.
    fn triggered(&self) -> Option<u64> {
        None
    }

    /// Returns whether no more will come.
    fn has_ended(&self) -> bool;
}
