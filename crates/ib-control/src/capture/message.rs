//! Requests and responses of the capture socket, as JSON objects.

use ib_capture::Counted;
use ib_hca::trace::{PacketFilter, PacketTrace, Peer, Selection, Trigger};
use ib_link::{Direction, MessageBlock, PacketCounts};
use ib_types::{Gid, Qpn};
use ib_wire::packet::Opcode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::recorder::{Autostop, Recorded};
use super::target::Rotation;

/// Version of the protocol. Client and server must have the same version.
pub const VERSION: u32 = 2;

/// A request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureRequest {
    /// List HCAs, queue pairs and captures, beginning with the given numbers.
    Describe {
        /// Number of the first HCA to list, and number of its first queue pair to list.
        from: (u32, u32),
        /// Number of the first capture to list.
        captures_from: u64,
    },
    /// List the latest completed messages of a queue pair.
    Messages {
        /// Number of the HCA.
        adapter: u32,
        /// Queue pair number.
        qpn: u32,
        /// Index of the first message to list.
        from: u64,
    },
    /// Start a capture. If the client has opened the file, it passes the descriptor with the request.
    Start(Box<Start>),
    /// Change which packets, and how many payload bytes of a message, a capture keeps from now on. `None` leaves a
    /// setting unchanged.
    Change {
        /// Number of the capture.
        capture: u64,
        /// Number of payload bytes to keep of each message.
        payload: Option<u16>,
        /// Keep only sent packets, only received packets, or (`Some(None)`) both.
        direction: Option<Option<WireDirection>>,
        /// Operation codes of the packets to keep; empty for all.
        opcodes: Option<Vec<u8>>,
    },
    /// Query the progress of a capture.
    Status {
        /// Number of the capture.
        capture: u64,
    },
    /// Stop a capture.
    Stop {
        /// Number of the capture.
        capture: u64,
    },
}

/// Options of a capture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Start {
    /// Protocol version of the client: [`VERSION`].
    pub version: u32,
    /// Absolute path of the file; `None` if the client passes a descriptor instead.
    pub path: Option<String>,
    /// When to begin the next file, and how many files to keep.
    pub rotation: Rotation,
    /// Conditions that end the capture.
    pub autostop: Autostop,
    /// The HCAs to capture, by number; empty for all HCAs.
    pub adapters: Vec<u32>,
    /// Numbers of the queue pairs to capture; empty for all.
    pub qpns: Vec<u32>,
    /// Peers of the queue pairs to capture; empty for all.
    pub peers: Vec<WirePeer>,
    /// Service IDs of the connections to capture; empty for all.
    pub services: Vec<u64>,
    /// Options of the packet traces of the queue pairs.
    pub trace: WireTrace,
    /// If the trace has a trigger: number of packets to keep from before the trigger, per queue pair; `None` for all.
    pub keep: Option<u64>,
}

/// Options of a packet trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WireTrace {
    /// See [`PacketTrace::payload`].
    pub payload: u16,
    /// See [`PacketTrace::ring_bytes`].
    pub ring_bytes: usize,
    /// Keep only sent packets or only received packets; `None` for both.
    pub direction: Option<WireDirection>,
    /// Operation codes of the packets to keep; empty for all.
    pub opcodes: Vec<u8>,
    /// Event that ends the trace, and the number of packets to keep after it.
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
    /// The peer whose GID is this 128-bit number.
    Gid(u128),
    /// The peer with this LID.
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
        let (payload, ring_bytes) = (wire.payload, wire.ring_bytes);
        Self { payload, ring_bytes, filter, trigger, ..Self::default() }
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

/// A response.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureResponse {
    /// HCAs, queue pairs and captures of the program.
    Program(Box<ProgramInfo>),
    /// Completed messages of a queue pair, the oldest first.
    Messages(Vec<MessageInfo>),
    /// The state of a capture.
    Capture(Box<CaptureInfo>),
    /// The request failed.
    Refused {
        /// The reason for the refusal.
        why: String,
        /// True if the request was refused because the client belongs to another user.
        is_foreign: bool,
    },
}

/// A program, with as many of its HCAs, queue pairs and captures as fit into a response. Field names are JSON keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProgramInfo {
    /// Process ID of the program.
    pub pid: u32,
    /// Command line of the program.
    pub command: String,
    /// HCAs, in the order of their numbers.
    pub adapters: Vec<AdapterInfo>,
    /// The first HCA and the first of its queue pairs that did not fit into the response, by number; `None` if all
    /// fitted.
    pub more_from: Option<(u32, u32)>,
    /// Captures that were not stopped yet.
    pub captures: Vec<CaptureInfo>,
    /// Number of the first capture that did not fit into the response; `None` if all fitted.
    pub more_captures_from: Option<u64>,
}

/// An HCA and its queue pairs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AdapterInfo {
    /// Number of the HCA in the program.
    pub adapter: u32,
    /// IP address of the HCA; in a simulated fabric, the GID of its port as an IPv6 address.
    pub address: String,
    /// UDP port of the HCA; 0 in a simulated fabric.
    pub udp_port: u16,
    /// Link to which the HCA is attached, in words.
    pub link: String,
    /// Queue pairs, in the order of their numbers.
    pub qps: Vec<QpInfo>,
}

/// A queue pair.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QpInfo {
    /// Queue pair number.
    pub qpn: u32,
    /// Transport of the queue pair.
    #[serde(rename = "type")]
    pub kind: String,
    /// State of the queue pair.
    pub state: String,
    /// Address of the peer, if the queue pair is connected.
    pub peer: Option<String>,
    /// Queue pair number of the peer.
    pub peer_qpn: Option<u32>,
    /// Service ID with which the connection was established, if any.
    pub service_id: Option<u64>,
    /// Number of messages that the queue pair has completed.
    pub messages: u64,
    /// True if packets of the queue pair are being captured.
    pub captured: bool,
}

/// A completed message.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageInfo {
    /// Index of the message in the order of completion at the queue pair, from 0.
    pub number: u64,
    /// `send` if the local queue pair has requested the message, even for a READ; otherwise `receive`.
    pub direction: String,
    /// Operation as completions name it: `Send`, `RdmaWrite`, `Recv` ….
    pub operation: String,
    /// Completion status.
    pub status: String,
    /// ID of the work request; 0 if the message has no work request.
    pub wr_id: u64,
    /// Size of the message in bytes.
    pub bytes: u32,
    /// First PSN of the message.
    pub psn: u32,
    /// Number of PSNs that the message uses.
    pub packets: u32,
    /// Time at which the work request was posted, in nanoseconds of the HCA's clock. For messages that the peer has
    /// requested: time at which the first packet was processed.
    pub begin_ns: u64,
    /// Time from `begin_ns` to the first packet, in nanoseconds; `None` if there was no packet.
    pub queued_ns: Option<u64>,
    /// Time from `begin_ns` to the completion of the message, in nanoseconds.
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
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CaptureInfo {
    /// Number of the capture in its program.
    pub capture: u64,
    /// Path of the newest file of the capture; `the stream` if the target is a stream.
    pub file: String,
    /// Number of files that were begun.
    pub files: u64,
    /// Number of bytes written to all files.
    pub bytes: u64,
    /// True if the capture has ended.
    pub ended: bool,
    /// The error that ended the capture.
    pub error: Option<String>,
    /// True if the only error is that the reader of a stream has disconnected.
    pub reader_left: bool,
    /// The reason why no queue pair is captured yet. Only the response to [`CaptureRequest::Start`] has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub waits: Option<String>,
    /// Sums of the counters of all queue pairs.
    #[serde(flatten)]
    pub all: CountInfo,
    /// Number of queue pairs in the capture.
    pub queue_pairs: usize,
    /// Counters per queue pair, for as many queue pairs as fit into the response.
    pub qps: Vec<QpCounts>,
}

/// Counters of a queue pair.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QpCounts {
    /// Queue pair number.
    pub qpn: u32,
    /// The counters.
    #[serde(flatten)]
    pub counts: CountInfo,
}

/// Packet counts. When the capture has ended, each sent, received or lost packet is counted as one of: captured,
/// overwritten, unwritten, skipped.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CountInfo {
    /// Packets that were written to the files.
    pub captured: u64,
    /// Packets that were overwritten in their ring before they were read.
    pub overwritten: u64,
    /// Packets that were read, but not written to the file.
    pub unwritten: u64,
    /// Packets that were kept for a trigger and then discarded.
    pub skipped: u64,
    /// Packets sent during the trace.
    pub sent: u64,
    /// Packets received during the trace.
    pub received: u64,
    /// Packets that the simulated fabric lost, according to its notifications.
    pub lost: u64,
    /// Counters of sent packets.
    pub sent_counts: DirectionInfo,
    /// Counters of received packets.
    pub received_counts: DirectionInfo,
    /// Counters of lost packets.
    pub lost_counts: DirectionInfo,
}

/// Counts of the sent packets, of the received ones, or of the lost ones.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct DirectionInfo {
    /// Packets that were written to the files.
    pub captured: u64,
    /// Packets that were overwritten in their ring before they were read.
    pub overwritten: u64,
    /// Packets that were read, but not written to the file.
    pub unwritten: u64,
    /// Packets that were kept for a trigger and then discarded.
    pub skipped: u64,
}

impl CountInfo {
    /// Returns the sums of the counters of the given queue pairs.
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

/// Maximum numbers of queue pairs and of HCAs in a response.
pub(super) const MOST_QPS: usize = 64;
pub(super) const MOST_ADAPTERS: usize = 32;

impl CaptureInfo {
    /// Returns the state of a capture, with counters of at most `most` queue pairs.
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
