//! The results of correlated captures: pairs of queue pairs, percentiles, messages and notes.

use ib_capture::Correlation;
use ib_capture::correlate::{
    Clocks, Estimate, EventKind, FileCounts, MatchCounts, Message, Part, Percentiles, QpEndpoint,
};

/// Maximum number of messages that the HTML page draws.
pub const DRAWN: usize = 4000;

/// Number of bins of a histogram for each power of ten.
pub const BINS_PER_DECADE: usize = 4;

/// Number of powers of ten in a histogram. The first one starts at 1 ns.
pub const DECADES: usize = 11;

/// A histogram of times with bins of equal width on a logarithmic scale.
#[derive(Clone, Copy)]
pub struct Histogram {
    /// Number of measured times in each bin. The bins cover 1 ns to 100 s.
    pub bins: [u64; BINS_PER_DECADE * DECADES],
    /// Number of measured times that are zero or negative; these times have no bin.
    pub without: u64,
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

/// Options of [`Findings::new`].
#[derive(Clone, Copy, Debug)]
pub struct FindingsOptions<'a> {
    /// Maximum number of messages to list for each pair of queue pairs: 0 for none, [`DRAWN`] for an HTML page,
    /// `usize::MAX` for all.
    pub listed: usize,
    /// The two kinds of events between which times are measured: from each event of the first kind to the next event of
    /// the second kind.
    pub timing: Option<(&'a EventKind, &'a EventKind)>,
}

/// Error: a capture file has no RDMA packets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{file}: {}: expected RoCEv2 at UDP port 4791 or a port given by --udp-port, or InfiniBand",
    if *other == 0 { "no packets".to_owned() } else { format!("no RDMA packets among {other}") }
)]
pub struct NoPackets {
    /// The name of the file.
    pub file: String,
    /// Number of frames in the file that are not RDMA packets.
    pub other: u64,
}

/// The results of correlated captures.
pub struct Findings {
    /// Name and packet counts of each file.
    pub files: Vec<(String, FileCounts)>,
    /// Offset and drift of the second file's clock relative to the first file's clock.
    pub clocks: Clocks,
    /// Number of packets of all queue pairs, by the files in which they were captured.
    pub matched: MatchCounts,
    /// Results of each pair of queue pairs. The two directions of a connection are different pairs.
    pub pairs: Vec<PairFindings>,
    /// Distribution of the time of each [`Part`] of a message, over all pairs; indexed by `Part`.
    pub spreads: [Option<Percentiles>; 6],
    /// Histogram of the time of each [`Part`] of a message, over all pairs; indexed by `Part`.
    pub histograms: [Histogram; 6],
    /// Times between events of the two kinds in [`FindingsOptions::timing`]; `None` if no kinds were requested.
    pub timing: Option<TimingFindings>,
    /// True if both files are the same capture.
    are_duplicates: bool,
    /// Notes on which results are unknown and why, one sentence each.
    pub notes: Vec<String>,
}

/// The results of the messages that one queue pair sends to another.
pub struct PairFindings {
    /// The queue pair that sends the messages, and the one that receives them.
    pub ends: [QpEndpoint; 2],
    /// Number of request packets, by the files in which they were captured.
    pub requests: MatchCounts,
    /// Number of response packets, by the files in which they were captured.
    pub responses: MatchCounts,
    /// Number of complete messages: each of their packets was captured at one end at least.
    pub messages: u64,
    /// Number of incomplete messages: at least one of their packets was captured at neither end.
    pub broken: u64,
    /// Number of messages whose acknowledgement time is unknown, because a missing packet may have been the first
    /// acknowledgement.
    pub unacknowledged: u64,
    /// Total payload of the complete messages in bytes.
    pub bytes: u64,
    /// Distribution of the time of each [`Part`] of a message; indexed by `Part`.
    pub spreads: [Option<Percentiles>; 6],
    /// The listed messages: a regular sample of at most [`FindingsOptions::listed`] messages.
    pub listed: Vec<Message>,
}

/// Times from each event of one kind to the next event of another kind.
pub struct TimingFindings {
    /// The kind of event at which a measured time begins, in the notation of the command line.
    pub from: String,
    /// The kind of event at which a measured time ends, in the notation of the command line.
    pub to: String,
    /// Number of events of each of the two kinds; `None` if the clocks cannot be compared.
    pub events: Option<[u64; 2]>,
    /// Distribution of the times in nanoseconds; `None` if there are no times.
    pub spread: Option<Percentiles>,
}

impl Findings {
    /// Evaluates correlated captures; `names` are the names of the capture files.
    ///
    /// # Errors
    /// Fails if a file has no RDMA packets.
    pub fn new(
        correlation: &Correlation,
        names: Vec<String>,
        options: &FindingsOptions<'_>,
    ) -> Result<Self, NoPackets> {
        let files: Vec<_> = names.into_iter().zip(correlation.files().iter().cloned()).collect();
        for (name, counts) in &files {
            if counts.captured == 0 {
                return Err(NoPackets { file: name.clone(), other: counts.foreign });
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
            are_duplicates: correlation.are_duplicates(),
            notes: Vec::new(),
        };
        let mut all: [Vec<i64>; 6] = Default::default();
        for &pair in correlation.pairs() {
            let mut times: [Vec<i64>; 6] = Default::default();
            let [requests, responses] = correlation.matched(pair);
            let ends = correlation.ends(pair);
            let (mut messages, mut bytes, mut listed) = (0, 0, Thinned::new(options.listed));
            let unknown = correlation.messages(pair, |message| {
                messages += 1;
                bytes += message.bytes;
                for part in Part::ALL {
                    times[part as usize].extend(message.part(part));
                }
                listed.push(message);
            });
            let spreads = Part::ALL.map(|part| Percentiles::of(&mut times[part as usize]));
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
        findings.spreads = Part::ALL.map(|part| Percentiles::of(&mut all[part as usize]));
        for (histogram, times) in findings.histograms.iter_mut().zip(&all) {
            for &time in times {
                histogram.add(time);
            }
        }
        drop(all);
        if let Some((from, to)) = options.timing {
            let timing = correlation.timing(from, to);
            findings.timing = Some(TimingFindings {
                from: from.to_string(),
                to: to.to_string(),
                events: timing.as_ref().map(|timing| [timing.from, timing.to]),
                spread: timing.and_then(|mut timing| Percentiles::of(&mut timing.times)),
            });
        }
        findings.notes = notes(correlation, &findings);
        Ok(findings)
    }

    /// Returns true if the correlation has a result:
    /// - The files are not the same capture, and have the requested queue pairs.
    /// - At least one packet was captured at both ends.
    /// - If times between events were requested, at least one time is known.
    pub fn is_good(&self) -> bool {
        let timed = self.timing.as_ref().is_none_or(|timing| timing.spread.is_some());
        self.matched.matched > 0 && !self.are_duplicates && !self.pairs.is_empty() && timed
    }

    /// Returns the sum of `number` over all pairs.
    pub fn sum(&self, number: impl Fn(&PairFindings) -> u64) -> u64 {
        self.pairs.iter().map(number).sum()
    }
}

/// A regular sample of at most `room` messages: all messages or, if there are more, every second, every fourth, and so
/// on.
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

/// Returns notes on which results are unknown and why, one sentence each.
fn notes(correlation: &Correlation, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    let name = |file: u8| &findings.files[usize::from(file)].0;
    for &file in correlation.oriented() {
        notes.push(format!(
            "{} does not record the direction of packets: directions were derived from the times between requests \
             and responses, which are longer at the requester",
            name(file)
        ));
    }
    for &file in correlation.unknown_sides() {
        notes.push(if findings.files.len() == 1 {
            format!(
                "{} does not record the direction of packets, and there is no second file: times are those at the \
                 point of capture, and wire times are unknown",
                name(file)
            )
        } else {
            format!(
                "{} does not record the direction of packets, and it cannot be derived for packets without a response: \
                 these packets count as sent in the first file, and as received in the second",
                name(file)
            )
        });
    }
    match findings.clocks {
        Clocks::Unknown => notes.push(
            "the clocks cannot be compared, because this requires packets of both directions in both files: times \
             between the files are unknown"
                .to_owned(),
        ),
        Clocks::Estimated(estimate) if estimate.is_contradictory => notes.push(
            "the times of the files contradict each other at every offset between the clocks: a clock was set during the \
             capture, or packets have late timestamps; times between the files are wrong by up to the uncertainty"
                .to_owned(),
        ),
        _ => {}
    }
    match correlation.ambiguous() {
        0 => {}
        number => notes.push(format!(
            "{number} flows of packets have unknown acknowledgements: several flows in the other direction may contain \
             these acknowledgements"
        )),
    }
    if findings.pairs.is_empty() {
        notes.push("the requested queue pairs have no connection in the files".to_owned());
    }
    if findings.are_duplicates {
        notes.push(
            "both files are the same capture: expected the capture of the other end as the second file"
                .to_owned(),
        );
    } else if findings.matched.matched == 0 && !findings.pairs.is_empty() {
        notes.push(unmatched(correlation, &findings.files));
    }
    match findings.sum(|pair| pair.unacknowledged) {
        0 => {}
        number => notes.push(format!(
            "the acknowledgement times of {number} messages are unknown: packets are missing, so the next captured \
             acknowledgement may not be the first one"
        )),
    }
    for (name, counts) in &findings.files {
        if let Some(overwritten) = counts.overwritten.filter(|&overwritten| overwritten > 0) {
            notes.push(format!(
                "{name}: {overwritten} packets were overwritten before they could be captured, so packets that are \
                 missing in this file may have arrived"
            ));
        }
        if counts.foreign > 0 {
            notes.push(format!("{name}: {} frames are not RDMA packets", counts.foreign));
        }
    }
    if findings.sum(|pair| pair.messages) > 0
        && findings.matched.matched > 0
        && findings.spreads[Part::Queue as usize].is_none()
    {
        notes.push(
            "the file does not record when requests were posted: queue times and totals are unknown"
                .to_owned(),
        );
    }
    notes
}

/// Returns the reason why no packet was captured at both ends.
fn unmatched(correlation: &Correlation, files: &[(String, FileCounts)]) -> String {
    if files.len() < 2 {
        return "no packet was captured at both ends: expected a second file, captured at the other end"
            .to_owned();
    }
    if correlation.common() == 0 {
        return "no packet is in both files: the files have no addresses and queue pairs in common"
            .to_owned();
    }
    let overwritten: u64 = files.iter().filter_map(|(_, counts)| counts.overwritten).sum();
    let times = files.iter().filter_map(|(_, counts)| counts.times);
    let (start, end) =
        times.fold((0, u64::MAX), |(start, end), (first, last)| (start.max(first), end.min(last)));
    let common = "no packet is in both files, although both have packets of the same queue pairs";
    if start > end {
        return format!("{common}: the times of the files do not overlap");
    }
    match overwritten {
        0 => format!("{common}: the files have no PSNs in common"),
        _ => format!(
            "{common}: {overwritten} packets were overwritten before they could be captured, and the remaining packets of \
             the two ends differ"
        ),
    }
}

/// Uncertainty of the clock drift in ppm from which the drift is reported as unknown. A capture that is too short has
/// such an uncertainty.
const UNKNOWN_DRIFT: f64 = 99.0;

/// Formats the offset and drift between the clocks.
pub fn clocks(clocks: &Clocks) -> String {
    match clocks {
        Clocks::Same => "one file, one clock".to_owned(),
        Clocks::Unknown => "unknown".to_owned(),
        Clocks::Estimated(it) => {
            let (offset, uncertainty) = (it.offset / 1e3, it.uncertainty / 1e3);
            let [there, back] = it.packets;
            let drift = drift(it);
            format!(
                "file 2 is offset by {offset:+.3} us from file 1, +- {uncertainty:.3} us; drift {drift}; fastest round trip {:.3} us, \
                 from {there} packets sent in file 1 and {back} sent in file 2",
                it.round_trip / 1e3
            )
        }
    }
}

/// Formats the drift of a clock, or `unknown`.
pub fn drift(it: &Estimate) -> String {
    if it.is_contradictory || it.drift_uncertainty_ppm >= UNKNOWN_DRIFT {
        "unknown".to_owned()
    } else {
        format!("{:+.3} ppm, +- {:.3}", it.drift_ppm, it.drift_uncertainty_ppm)
    }
}

/// Formats the address and number of a queue pair.
pub fn end(end: QpEndpoint) -> String {
    let qpn = end.qpn.map_or_else(|| "?".to_owned(), |qpn| qpn.to_string());
    format!("{} qp {qpn}", end.address)
}

/// Formats nanoseconds as microseconds.
pub fn micros(nanos: i64) -> String {
    format!("{:.3}", nanos as f64 / 1e3)
}
