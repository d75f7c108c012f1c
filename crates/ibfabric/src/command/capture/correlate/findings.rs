//! What there is to report of correlated captures.

use ib_capture::Correlation;
use ib_capture::correlate::{Clocks, FileCounts, Matched, Message, Part, QpEndpoint, Spread};

use crate::cli::capture::CorrelateArgs;
use crate::failure::Failure;

/// How many messages a page draws.
pub(crate) const DRAWN: usize = 4000;

/// Bins of a histogram: so many for each power of ten.
pub(crate) const BINS_PER_DECADE: usize = 4;

/// The powers of ten of nanoseconds that histograms have.
pub(crate) const DECADES: usize = 11;

/// How often times of each size are there.
#[derive(Clone, Copy)]
pub(crate) struct Histogram {
    /// From 1 ns to 100 s, in steps that are equal on a logarithmic scale.
    pub(crate) bins: [u64; BINS_PER_DECADE * DECADES],
    /// Times of nothing or less, which a logarithmic scale does not have.
    pub(crate) without: u64,
}

impl Histogram {
    const EMPTY: Self = Self { bins: [0; BINS_PER_DECADE * DECADES], without: 0 };

    fn add(&mut self, time: i64) {
        if time <= 0 {
            self.without += 1;
            return;
        }
        let bin = (time as f64).log10() * BINS_PER_DECADE as f64;
        self.bins[(bin as usize).min(BINS_PER_DECADE * DECADES - 1)] += 1;
    }
}

/// What was found in captures.
pub(crate) struct Findings {
    /// The files by name, with what is in them.
    pub(crate) files: Vec<(String, FileCounts)>,
    pub(crate) clocks: Clocks,
    /// All packets, of whatever queue pairs.
    pub(crate) matched: Matched,
    pub(crate) pairs: Vec<PairFindings>,
    /// All pairs together.
    pub(crate) spreads: [Option<Spread>; 6],
    pub(crate) histograms: [Histogram; 6],
    pub(crate) timing: Option<TimingFindings>,
    /// Whether both files are the same capture.
    is_twice_the_same: bool,
    pub(crate) notes: Vec<String>,
}

/// What was found of the messages from a queue pair to another one.
pub(crate) struct PairFindings {
    pub(crate) ends: [QpEndpoint; 2],
    pub(crate) requests: Matched,
    pub(crate) responses: Matched,
    pub(crate) messages: u64,
    /// Messages of which not all packets were captured.
    pub(crate) broken: u64,
    /// Messages whose acknowledgement is unknown, as packets are missing that can have been it.
    pub(crate) unacknowledged: u64,
    pub(crate) bytes: u64,
    pub(crate) spreads: [Option<Spread>; 6],
    /// All messages, or some of them for a page.
    pub(crate) listed: Vec<Message>,
}

/// The time between events.
pub(crate) struct TimingFindings {
    pub(crate) from: String,
    pub(crate) to: String,
    /// How many events of each kind there are; `None` where the clocks cannot be compared.
    pub(crate) events: Option<[u64; 2]>,
    pub(crate) spread: Option<Spread>,
}

impl Findings {
    pub(crate) fn new(
        correlation: &Correlation,
        names: Vec<String>,
        args: &CorrelateArgs,
    ) -> Result<Self, Failure> {
        let files: Vec<_> = names.into_iter().zip(correlation.files().iter().cloned()).collect();
        for (name, counts) in &files {
            if counts.captured == 0 {
                let what = match counts.foreign {
                    0 => "no packets".to_owned(),
                    foreign => format!("no RDMA packets among {foreign}"),
                };
                let hint = "expected RoCEv2 at UDP port 4791 or those of --udp-port, or InfiniBand";
                return Err(Failure::Unusable(format!("{name}: {what}: {hint}")));
            }
        }
        let mut findings = Self {
            files,
            clocks: *correlation.clocks(),
            matched: correlation.all_matched(),
            pairs: Vec::new(),
            spreads: [None; 6],
            histograms: [Histogram::EMPTY; 6],
            timing: None,
            is_twice_the_same: correlation.is_twice_the_same(),
            notes: Vec::new(),
        };
        let keep = match (args.messages, &args.html) {
            (true, _) => usize::MAX,
            (false, Some(_)) => DRAWN,
            (false, None) => 0,
        };
        let mut all: [Vec<i64>; 6] = Default::default();
        for &pair in correlation.pairs() {
            let mut times: [Vec<i64>; 6] = Default::default();
            let [requests, responses] = correlation.matched(pair);
            let ends = correlation.ends(pair);
            let (mut messages, mut bytes, mut listed) = (0, 0, Thinned::new(keep));
            let unknown = correlation.messages(pair, |message| {
                messages += 1;
                bytes += message.bytes;
                for part in Part::ALL {
                    times[part as usize].extend(message.part(part));
                }
                listed.push(message);
            });
            let spreads = Part::ALL.map(|part| Spread::of(&mut times[part as usize]));
            for (all, times) in all.iter_mut().zip(&mut times) {
                if all.is_empty() {
                    std::mem::swap(all, times);
                } else {
                    all.append(times);
                }
            }
            let listed = listed.kept;
            findings.pairs.push(PairFindings {
                ends,
                requests,
                responses,
                messages,
                broken: unknown.incomplete,
                unacknowledged: unknown.unacknowledged,
                bytes,
                spreads,
                listed,
            });
        }
        findings.spreads = Part::ALL.map(|part| Spread::of(&mut all[part as usize]));
        for (histogram, times) in findings.histograms.iter_mut().zip(&all) {
            for &time in times {
                histogram.add(time);
            }
        }
        drop(all);
        if let (Some(from), Some(to)) = (&args.from, &args.to) {
            let timing = correlation.timing(from, to);
            findings.timing = Some(TimingFindings {
                from: from.to_string(),
                to: to.to_string(),
                events: timing.as_ref().map(|timing| [timing.from, timing.to]),
                spread: timing.and_then(|mut timing| Spread::of(&mut timing.times)),
            });
        }
        findings.notes = notes(correlation, &findings);
        Ok(findings)
    }

    /// Returns whether there is an answer: packets that both ends have seen, and times between events where they
    /// were asked for.
    pub(crate) fn is_good(&self) -> bool {
        let timed = self.timing.as_ref().is_none_or(|timing| timing.spread.is_some());
        self.matched.matched > 0 && !self.is_twice_the_same && !self.pairs.is_empty() && timed
    }

    /// Returns the sum of something over all pairs.
    pub(crate) fn sum(&self, what: impl Fn(&PairFindings) -> u64) -> u64 {
        self.pairs.iter().map(what).sum()
    }
}

/// As many messages as there is room for: every one, every second one, every fourth ….
struct Thinned {
    kept: Vec<Message>,
    room: usize,
    every: usize,
    seen: usize,
}

impl Thinned {
    fn new(room: usize) -> Self {
        Self { kept: Vec::new(), room, every: 1, seen: 0 }
    }

    fn push(&mut self, message: &Message) {
        if self.room == 0 {
            return;
        }
        if self.seen.is_multiple_of(self.every) {
            if self.kept.len() == self.room {
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.every *= 2;
            }
            if self.seen.is_multiple_of(self.every) {
                self.kept.push(*message);
            }
        }
        self.seen += 1;
    }
}

/// Says what cannot be known, and why.
fn notes(correlation: &Correlation, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    let name = |file: u8| &findings.files[usize::from(file)].0;
    for &file in correlation.oriented() {
        notes.push(format!(
            "{} does not say which packets were sent and which were received: that was found by the times of answers, \
             which the side that asks waits longer for",
            name(file)
        ));
    }
    for &file in correlation.unknown_sides() {
        notes.push(if findings.files.len() == 1 {
            format!(
                "{} does not say which packets were sent and which were received, and there is no other one: times \
                 are those at the place where it was captured; what is on the wire cannot be told",
                name(file)
            )
        } else {
            format!(
                "{} does not say which packets were sent and which were received, and no answers tell it for some: \
                 they are taken as sent in the first file and as received in the second",
                name(file)
            )
        });
    }
    match findings.clocks {
        Clocks::Unknown => notes.push(
            "the clocks cannot be compared, as packets of both directions would have to be in both files: times \
             between the files are unknown"
                .to_owned(),
        ),
        Clocks::Estimated(estimate) if estimate.is_contradictory => notes.push(
            "the times of the files contradict each other, whatever the clocks' offset: a clock was set meanwhile, or \
             packets are stamped late; times between the files are wrong by as much as the uncertainty"
                .to_owned(),
        ),
        _ => {}
    }
    match correlation.ambiguous() {
        0 => {}
        number => notes.push(format!(
            "of {number} flows of packets it cannot be told which other ones answer them: their acknowledgements are \
             unknown"
        )),
    }
    if findings.pairs.is_empty() {
        notes.push(
            "no connection of the queue pairs that were asked for is in the files".to_owned(),
        );
    }
    if findings.is_twice_the_same {
        notes.push(
            "both files are the same capture: expected that of the other end as the second one"
                .to_owned(),
        );
    } else if findings.matched.matched == 0 && !findings.pairs.is_empty() {
        notes.push(unmatched(correlation, &findings.files));
    }
    match findings.sum(|pair| pair.unacknowledged) {
        0 => {}
        number => notes.push(format!(
            "of {number} messages it is unknown when they were acknowledged: packets are missing between them and the next \
             acknowledgement that was captured, which may have come much later than theirs"
        )),
    }
    for (name, counts) in &findings.files {
        if let Some(overwritten) = counts.overwritten.filter(|&overwritten| overwritten > 0) {
            notes.push(format!(
                "{name}: {overwritten} packets were written over before they could be captured: what is missing may \
                 have arrived"
            ));
        }
        if counts.foreign > 0 {
            notes.push(format!("{name}: {} frames are no RDMA packets", counts.foreign));
        }
    }
    if findings.sum(|pair| pair.messages) > 0
        && findings.matched.matched > 0
        && findings.spreads[Part::Queue as usize].is_none()
    {
        notes.push(
            "no packet says when its request was posted: queue times and totals are unknown"
                .to_owned(),
        );
    }
    notes
}

/// Says why no packet was seen at both ends.
fn unmatched(correlation: &Correlation, files: &[(String, FileCounts)]) -> String {
    if files.len() < 2 {
        return "no packet was captured at both ends: expected a second file, of the other end"
            .to_owned();
    }
    if correlation.common() == 0 {
        return "no packet is in both files: they have no queue pairs and addresses in common"
            .to_owned();
    }
    let overwritten: u64 = files.iter().filter_map(|(_, counts)| counts.overwritten).sum();
    let times = files.iter().filter_map(|(_, counts)| counts.times);
    let (start, end) =
        times.fold((0, u64::MAX), |(start, end), (first, last)| (start.max(first), end.min(last)));
    let common = "no packet is in both files, though packets of the same queue pairs are";
    if start > end {
        return format!("{common}: by their clocks the files are of different times");
    }
    match overwritten {
        0 => format!("{common}: no sequence numbers are the same"),
        _ => format!(
            "{common}: {overwritten} packets were overwritten before they could be captured, and what is left of one end \
             is not what is left of the other"
        ),
    }
}
