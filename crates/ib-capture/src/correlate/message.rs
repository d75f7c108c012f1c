//! Messages, and the parts of the time that they take.

use ib_types::Psn;
use ib_wire::packet::{Operation, Position};

use super::clock::Clocks;
use super::gap;
use super::matching::{Both, SideBySide};
use super::stream::{REQUESTS, RESPONSES, Seen, Stream};

/// Operation of a message.
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
    /// Returns what a packet belongs to; `None` for responses.
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

    /// Returns the kind as a word.
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

/// A part of the time that a message takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// From its posting until its first packet is sent.
    Queue,
    /// Until its first packet is received: the first one that has an effect.
    Wire,
    /// Until its last packet is received.
    Receive,
    /// Until the acknowledgement, or all of the response, is back.
    Completion,
    /// From its first packet until that: all parts but the first.
    InFlight,
    /// All of it.
    Total,
}

impl Part {
    /// All parts in the order of their times, and both sums.
    pub const ALL: [Self; 6] =
        [Self::Queue, Self::Wire, Self::Receive, Self::Completion, Self::InFlight, Self::Total];

    /// Returns the name.
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
    /// The sequence number of its first packet.
    pub first: Psn,
    /// How many sequence numbers it has; a READ has those of its responses.
    pub packets: u32,
    /// Its length in bytes.
    pub bytes: u64,
    /// How often packets of it were sent again.
    pub sent_again: u32,
    /// When its first packet was sent, in nanoseconds since 1970 by the clock of the first file.
    pub sent: Option<u64>,
    /// The parts of its time in nanoseconds, in the order of [`Part::ALL`]; `None` where something of it was not
    /// captured. Those between two captures can be negative by as much as their clocks are uncertain.
    pub parts: [Option<i64>; 6],
}

impl Message {
    /// Returns a part of its time.
    #[must_use]
    pub const fn part(&self, part: Part) -> Option<i64> {
        self.parts[part as usize]
    }
}

/// Counters of messages whose packets were not all captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// How many messages there are besides, of which not all packets were captured at one end or the other.
    pub incomplete: u64,
    /// Of how many messages it is unknown when they were acknowledged: before the acknowledgement that is there,
    /// packets are missing that can have acknowledged them earlier.
    pub unacknowledged: u64,
}

/// A time by the clock of a file.
type Moment = (u8, u64);

/// The packets that a queue pair's messages are made of.
pub(super) struct Exchange<'a> {
    /// Requests as they were sent and as they were received.
    pub(super) requests: [Option<&'a Stream>; 2],
    /// Responses as they came back.
    pub(super) responses: Option<&'a Stream>,
    /// When responses are missing in their file.
    pub(super) gaps: [&'a [(u64, u64)]; 2],
    pub(super) mtu: u16,
    pub(super) clocks: &'a Clocks,
}

/// A message of which not all packets were seen yet.
struct Open {
    kind: Kind,
    first: u32,
    next: u32,
    bytes: u64,
    sent_again: u32,
    sent: Option<Moment>,
    /// When its last packet was sent, as far as it goes.
    sent_last: Option<Moment>,
    began: Option<Moment>,
    arrived: Option<Moment>,
    posted: Option<u64>,
    is_whole: bool,
}

impl Exchange<'_> {
    /// Hands out all messages of which all packets were captured at one end or the other, in the order of their
    /// sequence numbers.
    pub(super) fn messages(&self, mut found: impl FnMut(&Message)) -> Unknown {
        let mut unacknowledged = 0;
        let incomplete = self.each_message(&mut unacknowledged, &mut found);
        Unknown { incomplete, unacknowledged }
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
                    let of_file = |&(file, _): &Moment| file == responses.key.file;
                    let since = open.sent_last.filter(of_file).map_or(passed, |(_, time)| time);
                    let is_sure = |&&(through, time): &&(u32, u64)| {
                        // Acknowledgements are of all that is before them: a later one does for any that is missing.
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
                if both.place < read.next {
                    // A part of what was to be read is asked for once more.
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
                    let fits = |open: &&mut Open| open.next == both.place && open.kind == kind;
                    if let Some(open) = open.as_mut().filter(fits) {
                        self.go_on(open, &both);
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

    fn open(&self, kind: Kind, both: &Both<'_>) -> Open {
        let [sent, received] = self.requests;
        let asked = || [sent, received].into_iter().flatten().find_map(|it| it.asked(both.place));
        let began = accepted(both, None).and_then(|time| Some((received?.key.file, time)));
        let sent_first = self.sent_first(both);
        Open {
            kind,
            first: both.place,
            next: both.place.wrapping_add(1),
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
            posted: sent.and_then(|sent| sent.posted(both.place)),
            is_whole: false,
        }
    }

    /// Returns when a packet was sent for the first time.
    fn sent_first(&self, both: &Both<'_>) -> Option<Moment> {
        let seen = both.sent.first()?;
        // Of what was sent before, the first time was not captured.
        (!seen.is(Seen::AGAIN)).then_some((self.requests[0]?.key.file, seen.time))
    }

    fn go_on(&self, open: &mut Open, both: &Both<'_>) {
        open.sent_last = self.sent_first(both);
        open.next = open.next.wrapping_add(1);
        open.bytes += u64::from(both.any().payload);
        open.sent_again += both.sent_again();
        let [_, received] = self.requests;
        let after = open.arrived.map(|(_, time)| time);
        open.arrived = accepted(both, after).and_then(|time| Some((received?.key.file, time)));
    }

    /// Returns how many responses a READ of so many bytes has.
    fn responses_to(&self, bytes: u64) -> u32 {
        match self.mtu {
            0 => 1,
            mtu => bytes.div_ceil(mtu.into()).clamp(1, 1 << 23) as u32,
        }
    }

    /// Returns between which places the capture of the sender has no requests: what was missed there may have been
    /// missed of the responses, too.
    fn holes(&self) -> Vec<(u32, u32)> {
        let Some(sent) = self.requests[0] else { return Vec::new() };
        let mut holes = Vec::new();
        let mut next = None;
        for seen in &sent.lanes[REQUESTS] {
            let after = match sent.asked(seen.place) {
                Some(bytes) => seen.place.wrapping_add(self.responses_to(bytes.into())),
                None => seen.place.wrapping_add(1),
            };
            if let Some(next) = next.filter(|&next| next < seen.place) {
                holes.push((next - 1, seen.place));
            }
            next = next.max(Some(after));
        }
        holes
    }

    /// Returns up to which place everything was acknowledged when: both rise.
    fn acknowledged(&self) -> Vec<(u32, u64)> {
        let responses = self.responses.map_or(&[][..], |responses| &responses.lanes[RESPONSES]);
        let mut all: Vec<(u32, u64)> = responses
            .iter()
            .filter(|seen| !seen.is(Seen::DROPPED))
            .map(|seen| (seen.place.wrapping_sub(u32::from(seen.is(Seen::REFUSAL))), seen.time))
            .collect();
        all.sort_unstable();
        // An earlier acknowledgement of a later packet makes a later one of an earlier packet redundant.
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
        // Nothing is acknowledged before it was sent.
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
            first: Seen::psn(open.first),
            packets: open.next.wrapping_sub(open.first),
            bytes: open.bytes,
            sent_again: open.sent_again,
            sent: open.sent.and_then(|sent| self.by_first(sent)),
            parts,
        }
    }

    /// Returns the time from one moment to another.
    fn between(&self, from: Option<Moment>, to: Option<Moment>) -> Option<i64> {
        let (from, to) = (from?, to?);
        let (start, end) = match (self.by_first(from), self.by_first(to)) {
            (Some(start), Some(end)) => (start, end),
            _ if from.0 == to.0 => (from.1, to.1),
            _ => return None,
        };
        Some(end.wrapping_sub(start).cast_signed())
    }

    fn by_first(&self, (file, time): Moment) -> Option<u64> {
        if file == 0 { Some(time) } else { self.clocks.by_first(time) }
    }
}

/// Takes datagrams of one number apart: to some services all have the same. They come in the order in which they
/// were sent, but which were lost cannot be told.
fn each(both: &Both<'_>, mut one: impl FnMut(&Both<'_>)) {
    let Both { place, sent, received } = *both;
    let are_paired = sent.len() == received.len();
    for at in 0..sent.len() {
        let received = if are_paired { &received[at..=at] } else { &[] };
        one(&Both { place, sent: &sent[at..=at], received });
    }
    if sent.is_empty() {
        received.chunks(1).for_each(|received| one(&Both { place, sent, received }));
    }
}

/// Returns when a packet that has an effect was received, not before what comes before it.
fn accepted(both: &Both<'_>, after: Option<u64>) -> Option<u64> {
    let times =
        || both.received.iter().filter(|seen| !seen.is(Seen::DROPPED)).map(|seen| seen.time);
    times().find(|&time| Some(time) >= after).or(times().next())
}

/// Returns when the last packet of a response came.
fn answer(open: &Open, responses: &[Seen]) -> Option<u64> {
    let is_last = |seen: &&Seen| match open.kind {
        Kind::Atomic => seen.operation() == Operation::AtomicAcknowledge,
        _ => matches!(seen.operation(), Operation::ReadResponseLast | Operation::ReadResponseOnly),
    };
    responses.iter().filter(is_last).find(|seen| !seen.is(Seen::DROPPED)).map(|seen| seen.time)
}
