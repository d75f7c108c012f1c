//! Determines the messages of a queue pair, and the parts of their latency.

use ib_types::Psn;
use ib_wire::packet::{Operation, Position};

use super::clock::Clocks;
use super::gap;
use super::matching::{PositionPackets, SideBySide};
use super::stream::{CapturedPacket, REQUESTS, RESPONSES, Stream};

/// The operation that a message executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// Compare and swap, or fetch and add.
    Atomic,
}

impl Kind {
    /// Returns the kind of message that a request packet belongs to; `None` for responses.
    #[must_use]
    pub const fn of(operation: Operation) -> Option<Self> {
        use Operation as O;
        Some(match operation {
            O::SendFirst
            | O::SendMiddle
            | O::SendLast
            | O::SendLastImmediate
            | O::SendOnly
            | O::SendOnlyImmediate
            | O::SendLastInvalidate
            | O::SendOnlyInvalidate => Self::Send,
            O::WriteFirst
            | O::WriteMiddle
            | O::WriteLast
            | O::WriteLastImmediate
            | O::WriteOnly
            | O::WriteOnlyImmediate => Self::Write,
            O::ReadRequest => Self::Read,
            O::CompareSwap | O::FetchAdd => Self::Atomic,
            _ => return None,
        })
    }

    /// Returns the name of the operation, such as `SEND`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "SEND",
            Self::Write => "WRITE",
            Self::Read => "READ",
            Self::Atomic => "ATOMIC",
        }
    }
}

/// A part of the latency of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// From the post of the request until its first packet is sent.
    Queue,
    /// From the send of the first packet until the receiver accepts it.
    Wire,
    /// From when the receiver accepts the first packet until it accepts the last packet.
    Receive,
    /// From when the receiver accepts the last packet until the requester receives the
    /// acknowledgement or the last response packet.
    Completion,
    /// From the send of the first packet until the completion: sum of `Wire`, `Receive` and `Completion`.
    InFlight,
    /// From the post until the completion: sum of `Queue` and `InFlight`.
    Total,
}

impl Part {
    /// All parts: first the four consecutive parts, then the sums `InFlight` and `Total`.
    pub const ALL: [Self; 6] =
        [Self::Queue, Self::Wire, Self::Receive, Self::Completion, Self::InFlight, Self::Total];

    /// Returns the name of this part of the latency.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Wire => "wire",
            Self::Receive => "receive",
            Self::Completion => "completion",
            Self::InFlight => "in_flight",
            Self::Total => "total",
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Operation.
    pub kind: Kind,
    /// PSN of the message's first packet.
    pub first: Psn,
    /// Number of PSNs that the message uses. A READ uses one PSN for each response packet.
    pub packets: u32,
    /// Length of the message's data in bytes.
    pub bytes: u64,
    /// Number of retransmitted request packets.
    pub sent_again: u32,
    /// Time at which the first packet was sent, in nanoseconds since 1970 by the clock of the first
    /// file.
    pub sent: Option<u64>,
    /// Parts of the latency in nanoseconds, in the order of [`Part::ALL`]; `None` if the start or end of the part is
    /// unknown. A part that starts in one capture and ends in the other can be negative, since the clock offset is an
    /// estimate.
    pub parts: [Option<i64>; 6],
}

impl Message {
    /// Returns a part of the latency.
    #[must_use]
    pub const fn part(&self, part: Part) -> Option<i64> {
        self.parts[part as usize]
    }
}

/// Counts of messages that could not be measured completely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnmeasuredCounts {
    /// Number of messages with a packet that neither end captured.
    pub incomplete: u64,
    /// Number of messages whose time of acknowledgement is unknown. Packets are missing before the
    /// captured acknowledgement, and one of them could have acknowledged the message earlier.
    pub unacknowledged: u64,
}

/// Index of a file, and a time by the clock of this file.
type FileTime = (u8, u64);

/// The packets of a queue pair's messages.
pub(super) struct Exchange<'a> {
    /// The stream of requests in the sender's capture, and in the receiver's capture.
    pub(super) requests: [Option<&'a Stream>; 2],
    /// The stream of responses in the requester's capture.
    pub(super) responses: Option<&'a Stream>,
    /// Periods (start and end time) in which packets are missing in the file that contains `responses`. The first list
    /// has the gaps in the packets that the requester receives. The second list has the gaps whose queue pair is
    /// unknown.
    pub(super) gaps: [&'a [(u64, u64)]; 2],
    pub(super) mtu: u16,
    pub(super) clocks: &'a Clocks,
}

/// A message that is being assembled from its packets.
struct Open {
    kind: Kind,
    first: u32,
    next: u32,
    bytes: u64,
    sent_again: u32,
    sent: Option<FileTime>,
    /// Time of the first transmission of the packet that was added last.
    sent_last: Option<FileTime>,
    began: Option<FileTime>,
    arrived: Option<FileTime>,
    posted: Option<u64>,
    is_whole: bool,
}

impl Exchange<'_> {
    /// Calls `found` for each message whose packets were all captured, each at one end at least. The messages are in
    /// the order of PSNs.
    pub(super) fn messages(&self, mut found: impl FnMut(&Message)) -> UnmeasuredCounts {
        let mut unacknowledged = 0;
        let incomplete = self.each_message(&mut unacknowledged, &mut found);
        UnmeasuredCounts { incomplete, unacknowledged }
    }

    fn each_message(&self, unacknowledged: &mut u64, found: &mut impl FnMut(&Message)) -> u64 {
        let (steps, holes) = (self.acknowledged(), self.holes());
        let (mut steps, mut passed) = (&steps[..], 0);
        let mut end = |open: &Open| {
            let last = open.next.wrapping_sub(1);
            while let Some((_, time)) = steps.first().filter(|(through, _)| *through < last) {
                passed = *time;
                steps = &steps[1..];
            }
            let acknowledged = match (open.kind, self.responses) {
                (_, None) => None,
                (Kind::Send | Kind::Write, Some(responses)) => {
                    let of_file = |&(file, _): &FileTime| file == responses.key.file;
                    let since = open.sent_last.filter(of_file).map_or(passed, |(_, time)| time);
                    let is_sure = |&&(through, time): &&(u32, u64)| {
                        // Acknowledgements are cumulative: a missing one can have acknowledged the message earlier.
                        // The time is known only if no packets are missing between the message and the captured
                        // acknowledgement.
                        !self.gaps.iter().any(|gaps| gap::is_between(gaps, since, time))
                            && (through == last || !gap::is_between(&holes, last, through))
                    };
                    let step = steps.first();
                    let sure = step.filter(is_sure);
                    *unacknowledged += u64::from(step.is_some() && sure.is_none());
                    sure.map(|(_, time)| *time)
                }
                (Kind::Read | Kind::Atomic, Some(responses)) => {
                    answer(open, responses.at(RESPONSES, last))
                }
            };
            found(&self.message(open, acknowledged));
        };
        let [sent, received] = self.requests;
        if sent.or(received).is_some_and(|stream| stream.key.datagrams_of.is_some()) {
            for both in SideBySide::new(sent, received, REQUESTS) {
                each(&both, |one| end(&self.open(Kind::Send, one)));
            }
            return 0;
        }
        let (mut broken, mut in_broken) = (0, false);
        let mut open: Option<Open> = None;
        for both in SideBySide::new(sent, received, REQUESTS) {
            let operation = both.any().operation();
            let Some(kind) = Kind::of(operation) else { continue };
            if let Some(read) = open.as_mut().filter(|open| open.is_whole) {
                if both.position < read.next {
                    // The requester re-requests the remaining part of a READ.
                    read.sent_again += both.sent.len() as u32;
                    continue;
                }
                end(read);
                open = None;
            }
            match operation.position() {
                Position::First | Position::Only => {
                    broken += u64::from(open.take().is_some());
                    in_broken = false;
                    open = Some(self.open(kind, &both));
                }
                Position::Middle | Position::Last => {
                    let fits = |open: &&mut Open| open.next == both.position && open.kind == kind;
                    if let Some(open) = open.as_mut().filter(fits) {
                        self.extend(open, &both);
                    } else {
                        open = None;
                        broken += u64::from(!in_broken);
                        in_broken = true;
                    }
                }
            }
            match (operation.position(), &mut open) {
                (Position::Last, _) if in_broken => in_broken = false,
                (Position::Only, Some(message)) if kind == Kind::Read => {
                    message.next = message.first.wrapping_add(self.responses_to(message.bytes));
                    message.is_whole = true;
                }
                (Position::Last | Position::Only, Some(message)) => {
                    end(message);
                    open = None;
                }
                _ => {}
            }
        }
        match open {
            Some(read) if read.is_whole => end(&read),
            Some(_) => broken += 1,
            None => {}
        }
        broken
    }

    fn open(&self, kind: Kind, both: &PositionPackets<'_>) -> Open {
        let [sent, received] = self.requests;
        let asked =
            || [sent, received].into_iter().flatten().find_map(|it| it.asked(both.position));
        let began = accepted(both, None).and_then(|time| Some((received?.key.file, time)));
        let sent_first = self.sent_first(both);
        Open {
            kind,
            first: both.position,
            next: both.position.wrapping_add(1),
            bytes: match kind {
                Kind::Send | Kind::Write => both.any().payload.into(),
                Kind::Read => asked().map_or(0, u64::from),
                Kind::Atomic => 8,
            },
            sent_again: both.sent_again(),
            sent: sent_first,
            sent_last: sent_first,
            began,
            arrived: began,
            posted: sent.and_then(|sent| sent.posted(both.position)),
            is_whole: false,
        }
    }

    /// Returns the time of a packet's first transmission.
    fn sent_first(&self, both: &PositionPackets<'_>) -> Option<FileTime> {
        let seen = both.sent.first()?;
        // If the first captured packet with a PSN is marked as a retransmission, the first transmission was not
        // captured.
        (!seen.is(CapturedPacket::AGAIN)).then_some((self.requests[0]?.key.file, seen.time))
    }

    fn extend(&self, open: &mut Open, both: &PositionPackets<'_>) {
        open.sent_last = self.sent_first(both);
        open.next = open.next.wrapping_add(1);
        open.bytes += u64::from(both.any().payload);
        open.sent_again += both.sent_again();
        let [_, received] = self.requests;
        let after = open.arrived.map(|(_, time)| time);
        open.arrived = accepted(both, after).and_then(|time| Some((received?.key.file, time)));
    }

    /// Returns the number of response packets of a READ of `bytes` bytes.
    fn responses_to(&self, bytes: u64) -> u32 {
        match self.mtu {
            0 => 1,
            mtu => bytes.div_ceil(mtu.into()).clamp(1, 1 << 23) as u32,
        }
    }

    /// Returns the PSN ranges in which the sender's capture lacks requests. The capture can also lack the responses to
    /// these requests.
    fn holes(&self) -> Vec<(u32, u32)> {
        let Some(sent) = self.requests[0] else { return Vec::new() };
        let mut holes = Vec::new();
        let mut next = None;
        for seen in &sent.lanes[REQUESTS] {
            let after = match sent.asked(seen.position) {
                Some(bytes) => seen.position.wrapping_add(self.responses_to(bytes.into())),
                None => seen.position.wrapping_add(1),
            };
            if let Some(next) = next.filter(|&next| next < seen.position) {
                holes.push((next - 1, seen.position));
            }
            next = next.max(Some(after));
        }
        holes
    }

    /// Returns the acknowledged PSNs with the times of acknowledgement. Both PSNs and times ascend.
    fn acknowledged(&self) -> Vec<(u32, u64)> {
        let responses = self.responses.map_or(&[][..], |responses| &responses.lanes[RESPONSES]);
        let mut all: Vec<(u32, u64)> = responses
            .iter()
            .filter(|seen| !seen.is(CapturedPacket::DROPPED))
            .map(|seen| {
                (seen.position.wrapping_sub(u32::from(seen.is(CapturedPacket::REFUSAL))), seen.time)
            })
            .collect();
        all.sort_unstable();
        // Drops an acknowledgement if an earlier one acknowledges a later PSN.
        let mut earliest = u64::MAX;
        all.reverse();
        all.retain(|&(_, time)| {
            let is_earlier = time < earliest;
            earliest = earliest.min(time);
            is_earlier
        });
        all.reverse();
        all
    }

    fn message(&self, open: &Open, acknowledged: Option<u64>) -> Message {
        let back = acknowledged.and_then(|time| Some((self.responses?.key.file, time)));
        // Ignores an acknowledgement that was received before the message was sent.
        let back =
            back.filter(|&back| self.between(open.sent, Some(back)).is_none_or(|time| time >= 0));
        let queue = open.posted.and_then(|posted| i64::try_from(posted).ok());
        let in_flight = self.between(open.sent, back);
        let parts = [
            queue,
            self.between(open.sent, open.began),
            self.between(open.began, open.arrived),
            self.between(open.arrived, back),
            in_flight,
            queue.zip(in_flight).and_then(|(queue, in_flight)| queue.checked_add(in_flight)),
        ];
        Message {
            kind: open.kind,
            first: CapturedPacket::psn(open.first),
            packets: open.next.wrapping_sub(open.first),
            bytes: open.bytes,
            sent_again: open.sent_again,
            sent: open.sent.and_then(|sent| self.to_first_clock(sent)),
            parts,
        }
    }

    /// Returns the time in nanoseconds from event `from` to event `to`.
    fn between(&self, from: Option<FileTime>, to: Option<FileTime>) -> Option<i64> {
        let (from, to) = (from?, to?);
        let (start, end) = match (self.to_first_clock(from), self.to_first_clock(to)) {
            (Some(start), Some(end)) => (start, end),
            _ if from.0 == to.0 => (from.1, to.1),
            _ => return None,
        };
        Some(end.wrapping_sub(start).cast_signed())
    }

    fn to_first_clock(&self, (file, time): FileTime) -> Option<u64> {
        if file == 0 { Some(time) } else { self.clocks.to_first_clock(time) }
    }
}

/// Calls `one` for each of the UD packets at a position, since some services use the same PSN for all packets. Sent
/// and received packets are paired only if there are equally many.
fn each(both: &PositionPackets<'_>, mut one: impl FnMut(&PositionPackets<'_>)) {
    let PositionPackets { position, sent, received } = *both;
    let are_paired = sent.len() == received.len();
    for at in 0..sent.len() {
        let received = if are_paired { &received[at..=at] } else { &[] };
        one(&PositionPackets { position, sent: &sent[at..=at], received });
    }
    if sent.is_empty() {
        received.chunks(1).for_each(|received| one(&PositionPackets { position, sent, received }));
    }
}

/// Returns the time at which the receiver first accepted the packet at or after `after`. If the receiver accepted the
/// packet only before `after`, returns the time of the first acceptance.
fn accepted(both: &PositionPackets<'_>, after: Option<u64>) -> Option<u64> {
    let times = || {
        both.received.iter().filter(|seen| !seen.is(CapturedPacket::DROPPED)).map(|seen| seen.time)
    };
    times().find(|&time| Some(time) >= after).or(times().next())
}

/// Returns the time at which the requester accepted the last response packet.
fn answer(open: &Open, responses: &[CapturedPacket]) -> Option<u64> {
    let is_last = |seen: &&CapturedPacket| match open.kind {
        Kind::Atomic => seen.operation() == Operation::AtomicAcknowledge,
        _ => matches!(seen.operation(), Operation::ReadResponseLast | Operation::ReadResponseOnly),
    };
    responses
        .iter()
        .filter(is_last)
        .find(|seen| !seen.is(CapturedPacket::DROPPED))
        .map(|seen| seen.time)
}
