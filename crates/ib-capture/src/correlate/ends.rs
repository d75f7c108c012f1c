//! Finds the two streams that contain the same packets, one captured at each end, and the two flows that form the
//! directions of one connection.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ib_pcap::Statistics;
use ib_types::Qpn;
use ib_wire::packet::{Opcode, Transport};

use crate::correlate::stream::{Address, CapturedPacket, Key, REQUESTS, RESPONSES, Side, Stream};

/// Maximum number of packets of a stream that are compared with another stream.
const COMPARED: usize = 4096;

/// The packets of one direction between two queue pairs, as captured at both ends.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) source: Address,
    pub(super) destination: Address,
    pub(super) to: Qpn,
    pub(super) sender: Option<Qpn>,
    /// Index of the stream captured at the sender, and of the stream captured at the receiver.
    pub(super) views: [Option<usize>; 2],
    /// Index, among all flows, of the flow in the other direction; `None` if it is unknown.
    pub(super) back: Option<usize>,
}

/// Index in [`Flow::views`] of the stream captured at the sender.
pub(super) const SENT: usize = 0;
/// Index in [`Flow::views`] of the stream captured at the receiver.
pub(super) const RECEIVED: usize = 1;

impl Flow {
    fn of(stream: &Stream, number: usize) -> Self {
        let Key { source, destination, to, datagrams_of, sender, .. } = stream.key;
        let mut views = [None; 2];
        views[usize::from(stream.key.side == Side::Received)] = Some(number);
        Self { source, destination, to, sender: sender.or(datagrams_of), views, back: None }
    }
}

/// Returns true if there are two files with the same packets at the same times.
pub(super) fn are_same(streams: &[Stream], files: &[FileCounts]) -> bool {
    let [one, other] = files else { return false };
    if one != other || one.captured == 0 {
        return false;
    }
    let of = |file: u8| {
        let own = streams.iter().filter(move |stream| stream.key.file == file);
        own.map(|stream| (Key { file: 0, ..stream.key }, &stream.lanes)).collect::<BTreeMap<_, _>>()
    };
    of(0) == of(1)
}

/// For files that do not report the direction of packets, determines the end at which each stream was captured.
/// Returns the files with a stream whose end was determined, and the files with a stream whose end remains unknown.
///
/// The requester waits longer for a response than the responder needs to send it. Of two captures
/// of the same packets, the capture with the longer response times was therefore taken at the
/// requester.
pub(super) fn orient(streams: &mut [Stream], files: usize) -> (BTreeSet<u8>, BTreeSet<u8>) {
    let mut of = BTreeMap::<_, BTreeMap<u8, usize>>::new();
    let mut nameless = BTreeSet::new();
    for (number, stream) in streams.iter().enumerate() {
        let Key { source, destination, to, datagrams_of, file, side, .. } = stream.key;
        if side == Side::Unknown {
            nameless.insert(file);
            of.entry((source, destination, to, datagrams_of)).or_default().insert(file, number);
        }
    }
    if nameless.is_empty() {
        return (nameless, BTreeSet::new());
    }
    if files < 2 {
        for stream in streams.iter_mut().filter(|stream| stream.key.side == Side::Unknown) {
            stream.key.side = Side::Sent;
        }
        return (BTreeSet::new(), nameless);
    }
    // For each pair of addresses: how many comparisons of response times indicate that file 0 was
    // captured at the lower address, minus how many indicate the higher address.
    let mut votes = BTreeMap::<(Address, Address), i64>::new();
    for (&(source, destination, _, datagrams_of), views) in &of {
        let (Some(&a), Some(&b)) = (views.get(&0), views.get(&1)) else { continue };
        if datagrams_of.is_some() {
            continue;
        }
        let backs = of
            .range((destination, source, Qpn::default(), None)..)
            .take_while(|(key, _)| (key.0, key.1) == (destination, source));
        for (_, back) in backs {
            let (Some(&back_a), Some(&back_b)) = (back.get(&0), back.get(&1)) else { continue };
            let waits = [(a, back_a), (b, back_b)]
                .map(|(asked, answered)| answer_time(&streams[asked], &streams[answered]));
            if let [Some(first), Some(second)] = waits {
                let is_lower = source < destination;
                let key = if is_lower { (source, destination) } else { (destination, source) };
                *votes.entry(key).or_default() += if (first > second) == is_lower { 1 } else { -1 };
            }
        }
    }
    let (mut oriented, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for stream in streams.iter_mut().filter(|stream| stream.key.side == Side::Unknown) {
        let Key { source, destination, file, .. } = stream.key;
        let lower = source.min(destination);
        let vote = votes.get(&(lower, source.max(destination))).copied().unwrap_or(0);
        if vote == 0 {
            unknown.insert(file);
            // The end is unknown: file 0 counts as captured at the sender, file 1 as captured at
            // the receiver.
            stream.key.side = if file == 0 { Side::Sent } else { Side::Received };
            continue;
        }
        oriented.insert(file);
        let own_is_lower = (vote > 0) == (file == 0);
        let is_own = (source == lower) == own_is_lower;
        stream.key.side = if is_own { Side::Sent } else { Side::Received };
    }
    (oriented, unknown)
}

/// Returns the median time from requests to their responses, in nanoseconds.
fn answer_time(asked: &Stream, answered: &Stream) -> Option<u64> {
    let requests = asked.lanes[REQUESTS].iter().take(COMPARED);
    let sent: HashMap<u32, u64> =
        requests.map(|seen| (CapturedPacket::psn(seen.position).get(), seen.time)).collect();
    let answers = answered.lanes[RESPONSES].iter().take(COMPARED);
    let mut waits: Vec<u64> = answers
        .filter_map(|seen| {
            seen.time.checked_sub(*sent.get(&CapturedPacket::psn(seen.position).get())?)
        })
        .collect();
    waits.sort_unstable();
    waits.get(waits.len() / 2).copied()
}

/// Combines streams into flows. A flow has the packets of one direction, as captured at the sender
/// and at the receiver.
pub(super) fn flows(streams: &[Stream]) -> Vec<Flow> {
    let mut groups = BTreeMap::<_, [Vec<usize>; 2]>::new();
    for (number, stream) in streams.iter().enumerate() {
        let Key { source, destination, to, datagrams_of, side, .. } = stream.key;
        let view = usize::from(side == Side::Received);
        let group = groups.entry((source, destination, to, datagrams_of)).or_default();
        group[view].push(number);
    }
    let mut flows = Vec::new();
    for [sent, received] in groups.into_values() {
        let mut made: Vec<Flow> = sent.iter().map(|&n| Flow::of(&streams[n], n)).collect();
        for &number in &received {
            let stream = &streams[number];
            let free = |flow: &Flow| {
                let sent = flow.views[SENT].map(|sent| &streams[sent]);
                flow.views[RECEIVED].is_none() && sent.is_some_and(|sent| can_match(sent, stream))
            };
            let fits: Vec<usize> = (0..made.len()).filter(|&at| free(&made[at])).collect();
            let best = match fits[..] {
                [] => None,
                [only] => Some(only),
                // Several connections have used the same queue pair number: chooses the flow whose
                // stream at the sender has most packets in common with `stream`.
                _ => {
                    let score = |at: usize| {
                        made[at].views[SENT].map_or(0, |sent| common(&streams[sent], stream))
                    };
                    let best = fits.iter().copied().max_by_key(|&at| score(at));
                    best.filter(|&at| score(at) > 0)
                }
            };
            match best {
                Some(at) => made[at].views[RECEIVED] = Some(number),
                None => made.push(Flow::of(stream, number)),
            }
        }
        flows.append(&mut made);
    }
    flows
}

/// Returns true if `received` can contain the packets of `sent` as captured at the receiver. Two streams of the same
/// file match only if the source queue pair is known (`Key::sender` or `Key::datagrams_of`).
fn can_match(sent: &Stream, received: &Stream) -> bool {
    sent.key.file != received.key.file
        || sent.key.sender.is_some()
        || sent.key.datagrams_of.is_some()
}

/// Returns the number of common PSNs among the first packets of two streams.
fn common(one: &Stream, other: &Stream) -> usize {
    let lanes = [REQUESTS, RESPONSES].map(|lane| {
        let numbers = |stream: &Stream| -> HashSet<u32> {
            let seen = stream.lanes[lane].iter().take(COMPARED);
            seen.map(|seen| CapturedPacket::psn(seen.position).get()).collect()
        };
        let (one, other) = (numbers(one), numbers(other));
        one.intersection(&other).count()
    });
    lanes.iter().sum()
}

/// Finds for each flow the flow in the other direction. Returns the number of flows that have candidates, but no best
/// candidate.
pub(super) fn connect(flows: &mut [Flow], streams: &[Stream]) -> u64 {
    let mut between = BTreeMap::<_, Vec<usize>>::new();
    for (number, flow) in flows.iter().enumerate() {
        if is_connected(flow, streams) {
            between.entry((flow.source, flow.destination)).or_default().push(number);
        }
    }
    let samples = vec![OnceCell::new(); flows.len()];
    let sample = |number: usize, flows: &[Flow]| -> &Sample {
        samples[number].get_or_init(|| Sample::of(&flows[number], streams))
    };
    let mut ambiguous = 0;
    for number in 0..flows.len() {
        let flow = &flows[number];
        if flow.back.is_some() || !is_connected(flow, streams) {
            continue;
        }
        let candidates = between.get(&(flow.destination, flow.source)).map_or(&[][..], |all| all);
        let names = |other: &Flow| {
            (
                flow.sender.is_none_or(|own| own == other.to),
                other.sender.is_none_or(|own| own == flow.to),
            )
        };
        let known = |other: &Flow| flow.sender.is_some() || other.sender.is_some();
        let fits: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|&other| flows[other].back.is_none() && names(&flows[other]) == (true, true))
            .collect();
        let best = match fits[..] {
            [] => None,
            [only] if known(&flows[only]) => Some(only),
            _ => {
                let own = sample(number, flows);
                let scores = fits.iter().map(|&other| (own.score(sample(other, flows)), other));
                let mut scores: Vec<(usize, usize)> = scores.collect();
                scores.sort_unstable_by(|a, b| b.cmp(a));
                match scores[..] {
                    [(best, other), ..] if best > scores.get(1).map_or(0, |next| next.0) => {
                        Some(other)
                    }
                    _ => {
                        ambiguous += 1;
                        None
                    }
                }
            }
        };
        if let Some(other) = best {
            let (to, back_to) = (flows[number].to, flows[other].to);
            flows[number].sender.get_or_insert(back_to);
            flows[other].sender.get_or_insert(to);
            flows[number].back = Some(other);
            flows[other].back = Some(number);
        }
    }
    ambiguous
}

/// Returns true if the flow's transport service acknowledges packets.
fn is_connected(flow: &Flow, streams: &[Stream]) -> bool {
    let view = flow.views.iter().flatten().next();
    view.is_some_and(|&view| {
        let seen = streams[view].lanes.iter().flatten().next();
        let service = seen.map(|seen| Opcode::transport(seen.opcode));
        !matches!(service, Some(Transport::Ud | Transport::Uc) | None)
    })
}

/// The PSNs of a flow's first packets, and the files that contain the flow. A comparison with the
/// samples of other flows finds the flow in the other direction.
#[derive(Clone)]
struct Sample {
    requests: HashSet<u32>,
    responses: Vec<u32>,
    files: [Option<u8>; 2],
}

impl Sample {
    fn of(flow: &Flow, streams: &[Stream]) -> Self {
        let numbers = |lane: usize, count: usize| {
            let views = flow.views.iter().flatten();
            let seen = views.flat_map(move |&view| streams[view].lanes[lane].iter().take(count));
            seen.map(|seen| CapturedPacket::psn(seen.position).get())
        };
        Self {
            requests: numbers(REQUESTS, COMPARED).collect(),
            responses: numbers(RESPONSES, COMPARED / 16).collect(),
            files: flow.views.map(|view| Some(streams[view?].key.file)),
        }
    }

    /// Returns a score of how likely two flows are the two directions of one connection. The score
    /// is 0 if no packet of one flow responds to the other flow. Otherwise it grows with the number
    /// of such packets; for equal numbers, it is higher if one file contains both flows.
    fn score(&self, other: &Self) -> usize {
        let answered = |asked: &Self, answers: &Self| {
            answers.responses.iter().filter(|number| asked.requests.contains(number)).count()
        };
        let is_near = self.files.iter().flatten().any(|&file| other.files.contains(&Some(file)));
        match answered(self, other) + answered(other, self) {
            0 => 0,
            answers => 2 * answers + usize::from(is_near),
        }
    }
}

/// Counters of a capture file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCounts {
    /// Number of RDMA packets.
    pub captured: u64,
    /// Number of frames that contain no RDMA packet or have no timestamp.
    pub foreign: u64,
    /// Number of packets that were overwritten before they could be captured; `None` if the file
    /// does not report it.
    pub overwritten: Option<u64>,
    /// Number of packets that HCAs have traced; `None` if the file does not report it.
    pub noted: Option<u64>,
    /// Number of frames that report packets lost in the network.
    pub lost: u64,
    /// Timestamps of the earliest and the latest packet.
    pub times: Option<(u64, u64)>,
    /// True if the file reports the direction of all its packets.
    pub has_directions: bool,
}

impl FileCounts {
    /// Adds the counters of an interface.
    pub(super) fn count(&mut self, statistics: &Statistics) {
        let Some(dropped) = statistics.dropped else { return };
        *self.overwritten.get_or_insert(0) += dropped;
        // Other programs may count other packets as received. `received` is therefore added to `noted` only if the
        // statistics have the comment that ibfabric writes.
        let is_noted = |comment: &String| comment.contains(" packets noted in both directions");
        if let Some(noted) =
            statistics.received.filter(|_| statistics.comments.iter().any(is_noted))
        {
            *self.noted.get_or_insert(0) += noted;
        }
    }
}
