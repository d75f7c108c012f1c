//! Correlates two captures, or both ends in one capture: lost packets, clock offset, and the parts
//! of message latency.
//!
//! | module | contents |
//! |---|---|
//! | `extract` | extracts the packets from frames |
//! | `stream` | the captured packets, 16 bytes each |
//! | `gap` | times at which packets are missing in a file |
//! | `ends` | finds captures of the same packets at both ends, and both directions of a connection |
//! | `matching` | packets of both captures, matched by PSN |
//! | `clock` | [`Clocks`]: offset and drift, from the fastest packets of both directions |
//! | `message` | [`Message`]: messages and the [`Part`]s of their latency |
//! | `event` | [`EventKind`]: events on queue pairs; [`Correlation::timing`] measures times between events |
//! | `percentiles` | [`Percentiles`]: percentiles of times |
//!
//! ```
//! use ib_capture::CaptureFile;
//! use ib_capture::correlate::Correlator;
//!
//! # fn correlate(first: &[u8], second: &[u8]) -> Result<(), ib_pcap::ReadError> {
//! let mut correlator = Correlator::default();
//! correlator.read(&mut CaptureFile::new(first, &[])?)?;
//! correlator.read(&mut CaptureFile::new(second, &[])?)?;
//! let correlation = correlator.finish(&[]);
//! for &pair in correlation.pairs() {
//!     correlation.messages(pair, |message| assert!(message.packets > 0));
//! }
//! # Ok(())
//! # }
//! ```

use std::collections::{BTreeSet, HashMap};
use std::io::Read;

use ib_link::Direction;
use ib_pcap::ReadError;
use ib_types::Qpn;

mod clock;
mod ends;
mod event;
mod extract;
mod gap;
mod matching;
mod message;
mod percentiles;
mod stream;

pub use clock::{ClockPoints, Clocks, Estimate};
pub use ends::FileCounts;
pub use event::{EventError, EventFilter, EventKind};
pub use matching::MatchCounts;
pub use message::{Kind, Message, Part, UnmeasuredCounts};
pub use percentiles::{PERCENTILES, Percentiles};
pub use stream::{Address, Side};

use crate::file::{CaptureFile, Item};
use ends::{Flow, RECEIVED, SENT};
use extract::{ExtractedPacket, Names, extract, side};
use gap::Gaps;
use message::Exchange;
use stream::{Key, REQUESTS, RESPONSES, Stream};

/// Collects the packets of capture files.
#[derive(Debug, Default)]
pub struct Correlator {
    files: Vec<FileCounts>,
    streams: Vec<Stream>,
    by_key: HashMap<Key, usize>,
    gaps: Vec<Gaps>,
}

impl Correlator {
    /// Reads a file to its end. Each packet takes 16 bytes of memory. Each request with a known
    /// post time takes 12 bytes more.
    ///
    /// # Errors
    /// Fails if the file cannot be read further.
    ///
    /// # Panics
    /// Panics for a third file.
    pub fn read<R: Read>(&mut self, file: &mut CaptureFile<R>) -> Result<(), ReadError> {
        assert!(self.files.len() < 2, "a third file was passed: expected at most two");
        let number = self.files.len() as u8;
        let (mut counts, mut names) = (FileCounts::default(), Names::default());
        let (mut gaps, mut reported) = (Gaps::default(), 0_u64);
        let mut has_unknown = false;
        while let Some(item) = file.next_item()? {
            let frame = match item {
                Item::Statistics(statistics) => {
                    counts.count(&statistics);
                    continue;
                }
                Item::Frame(frame) => frame,
            };
            if frame.comments.iter().any(|comment| comment.starts_with("lost: ")) {
                // This frame reports a loss in the network, and is not a packet.
                counts.lost += 1;
                continue;
            }
            let (packet, interface) = (extract(&frame, number), frame.interface);
            let (time, lost) = (frame.time, frame.lost);
            drop(frame);
            let named = names.of(file, interface);
            reported = reported.saturating_add(lost);
            gaps.frame((file.sections(), interface), named, time, lost);
            let Some(mut packet) = packet else {
                counts.foreign += 1;
                continue;
            };
            if let Some((qpn, direction)) = named {
                packet.key.side = side(direction);
                packet.key.sender = (direction == Direction::Send).then_some(qpn);
            }
            has_unknown |= packet.key.side == Side::Unknown;
            counts.captured += 1;
            let time = packet.packet.time;
            let (first, last) = counts.times.unwrap_or((time, time));
            counts.times = Some((first.min(time), last.max(time)));
            self.add(&packet);
        }
        counts.has_directions = !has_unknown;
        if reported > counts.overwritten.unwrap_or(0) {
            // The file lacks statistics at its end: uses the sum of the counts that its packets
            // report.
            counts.overwritten = Some(reported);
        }
        self.files.push(counts);
        self.gaps.push(gaps.sorted());
        Ok(())
    }

    fn add(&mut self, packet: &ExtractedPacket) {
        let streams = &mut self.streams;
        let number = *self.by_key.entry(packet.key).or_insert_with(|| {
            streams.push(Stream::new(packet.key));
            streams.len() - 1
        });
        streams[number].push(&packet.packet);
    }

    /// Matches the packets. If `qpns` is not empty, only connections of these queue pairs are
    /// reported.
    #[must_use]
    pub fn finish(self, qpns: &[Qpn]) -> Correlation {
        let Self { files, mut streams, gaps, .. } = self;
        for stream in &mut streams {
            stream.sort();
        }
        let are_duplicates = ends::are_same(&streams, &files);
        let (oriented, unknown_sides) = ends::orient(&mut streams, files.len());
        let mut flows = ends::flows(&streams);
        let ambiguous = ends::connect(&mut flows, &streams);
        align(&flows, &mut streams);
        let (start, end) = files.first().and_then(|file| file.times).unwrap_or((0, 0));
        let mut points = ClockPoints::new(start, end);
        let mut matched = Vec::with_capacity(flows.len());
        for flow in &flows {
            let view = |view: usize| flow.views[view].map(|number| &streams[number]);
            let lanes = [REQUESTS, RESPONSES]
                .map(|lane| matching::compare(view(SENT), view(RECEIVED), lane, &mut points));
            matched.push(lanes);
        }
        let clocks = if files.len() < 2 { Clocks::Same } else { points.estimate() };
        let is_passing = files.len() == 1 && !unknown_sides.is_empty();
        let mut correlation = Correlation {
            files,
            streams,
            flows,
            matched,
            clocks,
            oriented,
            unknown_sides,
            ambiguous,
            is_passing,
            are_duplicates,
            gaps,
            pairs: Vec::new(),
        };
        let is_wanted = |qpn: Qpn| qpns.is_empty() || qpns.contains(&qpn);
        correlation.pairs = (0..correlation.flows.len())
            .filter(|&flow| {
                let Flow { sender, to, views, .. } = &correlation.flows[flow];
                let mut views = views.iter().flatten();
                let has_requests = views.any(|&view| !correlation.streams[view].is_empty(REQUESTS));
                has_requests && (is_wanted(*to) || sender.is_some_and(is_wanted))
            })
            .map(Pair)
            .collect();
        let mut pairs = std::mem::take(&mut correlation.pairs);
        pairs.sort_by_key(|&pair| correlation.ends(pair));
        correlation.pairs = pairs;
        correlation
    }
}

/// Aligns the streams that share PSNs (requests, and the responses to them): packets with the same PSN
/// then have the same `CapturedPacket::position` in all these streams.
fn align(flows: &[Flow], streams: &mut [Stream]) {
    for flow in flows {
        let back = flow.back.map_or([None; 2], |back| flows[back].views);
        let lanes: Vec<(usize, usize)> = [(flow.views, REQUESTS), (back, RESPONSES)]
            .into_iter()
            .flat_map(|(views, lane)| views.into_iter().flatten().map(move |view| (view, lane)))
            .collect();
        let Some(first) = lanes.iter().find_map(|&(view, lane)| streams[view].first[lane]) else {
            continue;
        };
        for (view, lane) in lanes {
            streams[view].align(lane, first);
        }
    }
    // The loop above aligns the responses of a flow with the requests of the flow in the other direction. If there is
    // no such flow, aligns the responses captured at their receiver with the responses captured at their sender.
    for flow in flows.iter().filter(|flow| flow.back.is_none()) {
        if let [Some(sent), Some(received)] = flow.views
            && let Some(first) = streams[sent].first[RESPONSES]
        {
            streams[received].align(RESPONSES, first);
        }
    }
}

/// The matched packets of all captures.
#[derive(Debug)]
pub struct Correlation {
    files: Vec<FileCounts>,
    streams: Vec<Stream>,
    flows: Vec<Flow>,
    /// For each flow, the counters of its requests and of its responses.
    matched: Vec<[MatchCounts; 2]>,
    clocks: Clocks,
    oriented: BTreeSet<u8>,
    unknown_sides: BTreeSet<u8>,
    ambiguous: u64,
    is_passing: bool,
    are_duplicates: bool,
    /// For each file, the times at which packets are missing.
    gaps: Vec<Gaps>,
    pairs: Vec<Pair>,
}

/// A queue pair that sends requests, and its peer. The value is the index of a flow in the [`Correlation`] that
/// returned the pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair(usize);

/// A queue pair and the address of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QpEndpoint {
    /// Address of the queue pair's port.
    pub address: Address,
    /// Queue pair number; `None` if it is unknown.
    pub qpn: Option<Qpn>,
}

/// The times from each event of one kind to the next event of another kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Number of `from` events. Each of them starts a measurement ([`Correlation::timing`]).
    pub from: u64,
    /// Number of `to` events. The first one after a `from` event ends the measurement.
    pub to: u64,
    /// Time in nanoseconds from each `from` event to the next `to` event. `from` events that no
    /// `to` event follows are left out.
    pub times: Vec<i64>,
}

impl Correlation {
    /// Returns the counters of each file.
    #[must_use]
    pub fn files(&self) -> &[FileCounts] {
        &self.files
    }

    /// Returns the relation between the clocks of both files, such as their offset and drift.
    #[must_use]
    pub const fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    /// Returns the indices of the files that do not report packet directions, but whose response times showed at which
    /// end of the connections they were captured.
    #[must_use]
    pub const fn oriented(&self) -> &BTreeSet<u8> {
        &self.oriented
    }

    /// Returns the indices of files in which the direction of some packets remains unknown.
    #[must_use]
    pub const fn unknown_sides(&self) -> &BTreeSet<u8> {
        &self.unknown_sides
    }

    /// Returns the number of flows for which the flow in the other direction could not be determined, although
    /// candidates exist.
    #[must_use]
    pub const fn ambiguous(&self) -> u64 {
        self.ambiguous
    }

    /// Returns the pairs, each of a requesting queue pair and its peer.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Returns both ends of a pair: the requester, then its peer.
    #[must_use]
    pub fn ends(&self, pair: Pair) -> [QpEndpoint; 2] {
        let Flow { source, destination, to, sender, .. } = self.flows[pair.0];
        [
            QpEndpoint { address: source, qpn: sender },
            QpEndpoint { address: destination, qpn: Some(to) },
        ]
    }

    /// Returns the counters of a pair's requests and of its responses.
    #[must_use]
    pub fn matched(&self, pair: Pair) -> [MatchCounts; 2] {
        let responses = self.flows[pair.0].back.map(|back| self.matched[back][RESPONSES]);
        [self.matched[pair.0][REQUESTS], responses.unwrap_or_default()]
    }

    /// Returns the counters of all packets, including packets of pairs that [`Correlation::pairs`]
    /// does not return.
    #[must_use]
    pub fn all_matched(&self) -> MatchCounts {
        let mut all = MatchCounts::default();
        for lane in self.matched.iter().flatten() {
            all += *lane;
        }
        all
    }

    /// Returns true if both files contain the same packets with the same times.
    #[must_use]
    pub const fn are_duplicates(&self) -> bool {
        self.are_duplicates
    }

    /// Returns the number of flows that were captured at both ends, even if no packet is in both
    /// captures.
    #[must_use]
    pub fn common(&self) -> usize {
        self.flows.iter().filter(|flow| flow.views.iter().all(Option::is_some)).count()
    }

    /// Calls `found` for each message of a pair, in the order of PSNs. Returns how many messages
    /// could not be measured.
    pub fn messages(&self, pair: Pair, found: impl FnMut(&Message)) -> UnmeasuredCounts {
        let flow = &self.flows[pair.0];
        let back = flow.back.map(|back| &self.flows[back]);
        let stream = |number: Option<usize>| number.map(|number| &self.streams[number]);
        let responses = back.and_then(|back| {
            // A single capture without packet directions has one stream per direction. The stream is
            // stored as if it was captured at the sender.
            let view = if self.is_passing { SENT } else { RECEIVED };
            back.views[view]
        });
        let views = flow.views.iter().chain(back.iter().flat_map(|back| &back.views));
        let mtu = views.flatten().map(|&view| self.streams[view].mtu).max().unwrap_or(0);
        let requests = flow.views.map(stream);
        let responses = stream(responses);
        let gaps = responses.map(|responses| {
            let Key { file, to, .. } = responses.key;
            Some(self.gaps.get(usize::from(file))?.of(to, Direction::Receive))
        });
        let gaps = gaps.flatten().unwrap_or_default();
        Exchange { requests, responses, gaps, mtu, clocks: &self.clocks }.messages(found)
    }

    /// Measures the time from each `from` event to the next `to` event; `None` if the clocks of the
    /// files that contain the events cannot be compared.
    #[must_use]
    pub fn timing(&self, from: &EventKind, to: &EventKind) -> Option<Timing> {
        let (from, to) = (self.events(from)?, self.events(to)?);
        let mut times = Vec::new();
        let mut next = 0;
        for &start in &from {
            next += to[next..].iter().take_while(|&&end| end <= start).count();
            let Some(&end) = to.get(next) else { break };
            times.push((end - start).cast_signed());
        }
        Some(Timing { from: from.len() as u64, to: to.len() as u64, times })
    }

    /// Returns the times of events by the clock of the first file.
    fn events(&self, kind: &EventKind) -> Option<Vec<u64>> {
        let mut times = Vec::new();
        for flow in &self.flows {
            let (own, view) = match kind.direction {
                Direction::Send => (flow.sender, SENT),
                Direction::Receive => (Some(flow.to), RECEIVED),
            };
            let Some(view) = flow.views[view].filter(|_| own == Some(kind.qpn)) else { continue };
            let stream = &self.streams[view];
            if kind.file.is_some_and(|file| file != stream.key.file) {
                continue;
            }
            for seen in stream.lanes.iter().flatten().filter(|seen| kind.is(seen)) {
                let is_first = stream.key.file == 0;
                times.push(if is_first {
                    seen.time
                } else {
                    self.clocks.to_first_clock(seen.time)?
                });
            }
        }
        times.sort_unstable();
        Some(times)
    }
}

#[cfg(test)]
mod tests;
