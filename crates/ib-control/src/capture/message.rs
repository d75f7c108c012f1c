//! What is asked of a program whose queue pairs can be captured, and what it answers: JSON objects.

use ib_capture::Counted;
use ib_hca::trace::{PacketFilter, PacketTrace, Peer, Selection, Trigger};
use ib_link::{Direction, MessageBlock, PacketCounts};
use ib_types::{Gid, Qpn};
use ib_wire::packet::Opcode;
use serde::{Deserialize, Serialize};

use super::recorder::{Autostop, Recorded};
use super::target::Rotation;

/// The version of what is told, which both sides have to share.
pub const VERSION: u32 = 2;

/// A question.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What HCAs are there, from a queue pair of one of them on, and which captures?
    Describe {
        /// The number of the HCA, and that of the queue pair.
        from: (u32, u32),
        /// That of the captures.
        captures_from: u64,
    },
    /// Which were the last messages of a queue pair?
    Messages {
        /// The number of its HCA.
        adapter: u32,
        /// Its number.
        qpn: u32,
        /// From which of them on.
        from: u64,
    },
    /// Capture. The file comes beside the question when it is open already.
    Start(Box<Start>),
    /// Keep something else of the packets from now on; what is not said stays as it is.
    Change {
        /// The capture.
        capture: u64,
        /// How much of the payload of each message.
        payload: Option<u16>,
        /// Only what is sent, only what is received, or both.
        direction: Option<Option<WireDirection>>,
        /// These operation codes; all where there is none.
        opcodes: Option<Vec<u8>>,
    },
    /// How far is a capture?
    Status {
        /// The capture.
        capture: u64,
    },
    /// End a capture.
    Stop {
        /// The capture.
        capture: u64,
    },
}

/// What is captured, and where to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// [`VERSION`].
    pub version: u32,
    /// The file, as a path from the root on; without it the file that comes beside the question.
    pub path: Option<String>,
    /// How much is in one file.
    pub rotation: Rotation,
    /// When it ends by itself.
    pub autostop: Autostop,
    /// The numbers of the HCAs; all without any.
    pub adapters: Vec<u32>,
    /// The queue pairs' numbers.
    pub qpns: Vec<u32>,
    /// The ports that they are connected to.
    pub peers: Vec<WirePeer>,
    /// The services.
    pub services: Vec<u64>,
    /// What is kept.
    pub trace: WireTrace,
    /// With a trigger, how many packets from before it are kept.
    pub keep: Option<u64>,
}

/// How packets are traced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireTrace {
    /// See [`PacketTrace::payload`].
    pub payload: u16,
    /// See [`PacketTrace::ring_bytes`].
    pub ring_bytes: usize,
    /// Only what is sent, or only what is received.
    pub direction: Option<WireDirection>,
    /// Only these operation codes.
    pub opcodes: Vec<u8>,
    /// What ends the trace, and after how many more packets.
    pub trigger: Option<(WireTrigger, u32)>,
}

/// A [`Direction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireDirection {
    /// [`Direction::Send`].
    Send,
    /// [`Direction::Receive`].
    Receive,
}

/// A [`Trigger`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireTrigger {
    /// [`Trigger::Error`].
    Error,
    /// [`Trigger::Retransmission`].
    Retransmission,
    /// [`Trigger::Drop`].
    Drop,
}

/// A [`Peer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WirePeer {
    /// By its GID, as a number.
    Gid(u128),
    /// By its LID.
    Lid(u16),
}

impl From<WireDirection> for Direction {
    fn from(wire: WireDirection) -> Self {
        match wire {
            WireDirection::Send => Self::Send,
            WireDirection::Receive => Self::Receive,
        }
    }
}

impl From<&WireTrace> for PacketTrace {
    fn from(wire: &WireTrace) -> Self {
        let direction = wire.direction.map(Direction::from);
        let trigger = wire.trigger.map(|(trigger, after)| {
            let trigger = match trigger {
                WireTrigger::Error => Trigger::Error,
                WireTrigger::Retransmission => Trigger::Retransmission,
                WireTrigger::Drop => Trigger::Drop,
            };
            (trigger, after)
        });
        let opcodes = wire.opcodes.iter().map(|&code| Opcode(code)).collect();
        let filter = PacketFilter { direction, opcodes, peers: Vec::new() };
        Self { payload: wire.payload, ring_bytes: wire.ring_bytes, filter, trigger }
    }
}

impl From<&Start> for Selection {
    fn from(start: &Start) -> Self {
        let peer = |peer: &WirePeer| match *peer {
            WirePeer::Gid(gid) => Peer::Gid(Gid(gid)),
            WirePeer::Lid(lid) => Peer::Lid(lid),
        };
        Self {
            qpns: start.qpns.iter().map(|&number| Qpn::truncated(number)).collect(),
            peers: start.peers.iter().map(peer).collect(),
            services: start.services.clone(),
            trace: PacketTrace::from(&start.trace),
        }
    }
}

/// An answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What HCAs there are.
    Program(Box<ProgramInfo>),
    /// Messages, the oldest first.
    Messages(Vec<MessageInfo>),
    /// A capture goes on, or has ended.
    Capture(Box<CaptureInfo>),
    /// It cannot be done.
    Refused {
        /// Why.
        why: String,
        /// Whether that is because of who asks.
        is_foreign: bool,
    },
}

/// A program, some of its HCAs, and their queue pairs. The names of all of these are keys of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// The process.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// HCAs, in the order of their numbers.
    pub adapters: Vec<AdapterInfo>,
    /// The HCA and the queue pair from which on there are more.
    pub more_from: Option<(u32, u32)>,
    /// Captures that were not stopped.
    pub captures: Vec<CaptureInfo>,
    /// The number from which on there are more.
    pub more_captures_from: Option<u64>,
}

/// An HCA and its queue pairs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdapterInfo {
    /// Its number in the program.
    pub adapter: u32,
    /// Its address.
    pub address: String,
    /// The UDP port, 0 in a simulated fabric.
    pub udp_port: u16,
    /// What its packets go over.
    pub link: String,
    /// Queue pairs, in the order of their numbers.
    pub qps: Vec<QpInfo>,
}

/// A queue pair.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QpInfo {
    /// Its number.
    pub qpn: u32,
    /// Its transport.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its state.
    pub state: String,
    /// The address of the other end, where it is connected.
    pub peer: Option<String>,
    /// The number of the other end's queue pair.
    pub peer_qpn: Option<u32>,
    /// The service that it is connected to.
    pub service_id: Option<u64>,
    /// How many messages have ended.
    pub messages: u64,
    /// Whether its packets are captured.
    pub captured: bool,
}

/// A message that has ended: its command block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MessageInfo {
    /// Which of the queue pair's messages it is.
    pub number: u64,
    /// `send` or `receive`.
    pub direction: String,
    /// What was done.
    pub operation: String,
    /// What became of it.
    pub status: String,
    /// The number that the program has given it.
    pub wr_id: u64,
    /// Its length in bytes.
    pub bytes: u32,
    /// Its first sequence number.
    pub psn: u32,
    /// How many sequence numbers it has.
    pub packets: u32,
    /// When it began, in nanoseconds of the HCA's clock.
    pub begin_ns: u64,
    /// From then until its first packet, if there was one.
    pub queued_ns: Option<u64>,
    /// From its beginning to its end.
    pub total_ns: u64,
}

impl From<&MessageBlock> for MessageInfo {
    fn from(block: &MessageBlock) -> Self {
        let started = block.started != ib_types::Instant::NEVER;
        Self {
            number: block.number,
            direction: block.direction.name().to_owned(),
            operation: block.operation.to_owned(),
            status: block.status.to_owned(),
            wr_id: block.wr_id,
            bytes: block.length,
            psn: block.first.get(),
            packets: block.packets,
            begin_ns: block.begin.as_nanos(),
            queued_ns: started.then(|| block.started.since(block.begin).as_nanos() as u64),
            total_ns: block.end.since(block.begin).as_nanos() as u64,
        }
    }
}

/// A capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaptureInfo {
    /// Its number in its program.
    pub capture: u64,
    /// The file that is written.
    pub file: String,
    /// How many files there were.
    pub files: u64,
    /// How many bytes were written to them.
    pub bytes: u64,
    /// Whether nothing will be written any more.
    pub ended: bool,
    /// Why it has ended where it is, if something went wrong.
    pub error: Option<String>,
    /// Whether that is only that its reader has left.
    pub reader_left: bool,
    /// Why nothing is captured yet, where that is so and it was just started.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waits: Option<String>,
    /// All queue pairs together.
    #[serde(flatten)]
    pub all: CountInfo,
    /// How many queue pairs it has.
    pub queue_pairs: usize,
    /// Each queue pair, as many as there is room for.
    pub qps: Vec<QpCounts>,
}

/// What was counted of a queue pair's packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QpCounts {
    /// Its number.
    pub qpn: u32,
    /// What was counted.
    #[serde(flatten)]
    pub counts: CountInfo,
}

/// Numbers of packets. What was captured, overwritten, not written and skipped is what was sent, received and lost, in all
/// and for each of these.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CountInfo {
    /// Packets in the files.
    pub captured: u64,
    /// Packets that were written over in their ring before they were read.
    pub overwritten: u64,
    /// Packets that were read, and which the file has not taken.
    pub unwritten: u64,
    /// Packets that were kept for a trigger, and not wanted in the end.
    pub skipped: u64,
    /// Packets that were sent while they were traced.
    pub sent: u64,
    /// Packets that were received while they were traced.
    pub received: u64,
    /// News of packets that were lost on their way.
    pub lost: u64,
    /// Of those sent.
    pub sent_counts: DirectionInfo,
    /// Of those received.
    pub received_counts: DirectionInfo,
    /// Of the news.
    pub lost_counts: DirectionInfo,
}

/// What has become of packets.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct DirectionInfo {
    /// In the files.
    pub captured: u64,
    /// Written over.
    pub overwritten: u64,
    /// Not written.
    pub unwritten: u64,
    /// Not wanted.
    pub skipped: u64,
}

impl CountInfo {
    /// Returns the numbers of some queue pairs together.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a Counted>) -> Self {
        let mut sums = [PacketCounts::default(); 5];
        for it in all {
            let parts = [it.captured, it.overwritten, it.unwritten, it.noted, it.skipped];
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = sum.plus(part);
            }
        }
        let [captured, overwritten, unwritten, noted, skipped] = sums;
        let each = |of: fn(PacketCounts) -> u64| DirectionInfo {
            captured: of(captured),
            overwritten: of(overwritten),
            unwritten: of(unwritten),
            skipped: of(skipped),
        };
        Self {
            captured: captured.all(),
            overwritten: overwritten.all(),
            unwritten: unwritten.all(),
            skipped: skipped.all(),
            sent: noted.sent,
            received: noted.received,
            lost: noted.lost,
            sent_counts: each(|it| it.sent),
            received_counts: each(|it| it.received),
            lost_counts: each(|it| it.lost),
        }
    }
}

/// How many queue pairs there is room for in an answer, and how many HCAs.
pub(super) const MOST_QPS: usize = 64;
pub(super) const MOST_ADAPTERS: usize = 32;

impl CaptureInfo {
    /// Returns what there is to tell of a capture; `most` is how many queue pairs are told one by one.
    #[must_use]
    pub fn new(capture: u64, recorded: &Recorded, most: usize) -> Self {
        let each = |it: &Counted| QpCounts { qpn: it.qpn.get(), counts: CountInfo::of([it]) };
        Self {
            capture,
            file: recorded.file.clone(),
            files: recorded.files,
            bytes: recorded.bytes,
            ended: recorded.has_ended,
            error: recorded.error.clone(),
            reader_left: recorded.reader_left,
            waits: None,
            all: CountInfo::of(&recorded.counted),
            queue_pairs: recorded.counted.len(),
            qps: recorded.counted.iter().take(most).map(each).collect(),
        }
    }
}
