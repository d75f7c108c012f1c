//! JSON output of correlated captures. A key that ends with `_us` or `_ns` has a time in this unit. Unknown values are
//! null.

use std::collections::BTreeMap;

use ib_capture::correlate::{
    Clocks, MatchCounts, Message, PERCENTILES, Part, Percentiles, QpEndpoint,
};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use ib_report::findings::{Findings, PairFindings};

#[derive(Serialize, JsonSchema)]
pub(super) struct Report {
    files: Vec<FileReport>,
    captured: u64,
    overwritten: Option<u64>,
    sent: Option<u64>,
    clock: ClockReport,
    packets: Packets,
    messages: u64,
    incomplete: u64,
    unacknowledged: u64,
    latency_us: BTreeMap<&'static str, Option<BTreeMap<&'static str, f64>>>,
    pairs: Vec<PairReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<TimingReport>,
    notes: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct FileReport {
    name: String,
    captured: u64,
    overwritten: Option<u64>,
    /// Number of packets that the HCAs traced, sent and received together.
    sent: Option<u64>,
    lost: u64,
    foreign: u64,
    has_directions: bool,
    begin_ns: Option<u64>,
    end_ns: Option<u64>,
}

#[derive(Default, Serialize, JsonSchema)]
struct ClockReport {
    state: &'static str,
    offset_us: Option<f64>,
    uncertainty_us: Option<f64>,
    drift_ppm: Option<f64>,
    drift_uncertainty_ppm: Option<f64>,
    round_trip_us: Option<f64>,
    at_ns: Option<u64>,
    packets_forward: u64,
    packets_backward: u64,
}

#[derive(Serialize, JsonSchema)]
struct Packets {
    matched: u64,
    sent_only: u64,
    received_only: u64,
    sent_again: u64,
}

#[derive(Serialize, JsonSchema)]
struct EndReport {
    address: String,
    qpn: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct PairReport {
    from: EndReport,
    to: EndReport,
    requests: Packets,
    responses: Packets,
    messages: u64,
    incomplete: u64,
    unacknowledged: u64,
    bytes: u64,
    latency_us: BTreeMap<&'static str, Option<BTreeMap<&'static str, f64>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Vec<MessageReport>>,
}

#[derive(Serialize, JsonSchema)]
struct MessageReport {
    operation: &'static str,
    psn: u32,
    packets: u32,
    bytes: u64,
    sent_again: u32,
    sent_ns: Option<u64>,
    queue_us: Option<f64>,
    wire_us: Option<f64>,
    receive_us: Option<f64>,
    completion_us: Option<f64>,
    in_flight_us: Option<f64>,
    total_us: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct TimingReport {
    from: String,
    to: String,
    from_events: Option<u64>,
    to_events: Option<u64>,
    latency_us: Option<BTreeMap<&'static str, f64>>,
}

impl Report {
    pub(super) fn new(findings: &Findings, lists: bool) -> Self {
        let files: Vec<FileReport> = findings
            .files
            .iter()
            .map(|(name, counts)| FileReport {
                name: name.clone(),
                captured: counts.captured,
                overwritten: counts.overwritten,
                sent: counts.noted,
                lost: counts.lost,
                foreign: counts.foreign,
                has_directions: counts.has_directions,
                begin_ns: counts.times.map(|(begin, _)| begin),
                end_ns: counts.times.map(|(_, end)| end),
            })
            .collect();
        // The sum over all files is `None` if one of the files does not record the number.
        let sum =
            |what: fn(&FileReport) -> Option<u64>| files.iter().map(what).sum::<Option<u64>>();
        Self {
            captured: files.iter().map(|file| file.captured).sum(),
            overwritten: sum(|file| file.overwritten),
            sent: sum(|file| file.sent),
            files,
            clock: clock(&findings.clocks),
            packets: packets(findings.matched),
            messages: findings.sum(|pair| pair.messages),
            incomplete: findings.sum(|pair| pair.broken),
            unacknowledged: findings.sum(|pair| pair.unacknowledged),
            latency_us: latency(&findings.spreads),
            pairs: findings.pairs.iter().map(|it| pair(it, lists)).collect(),
            timing: findings.timing.as_ref().map(|timing| TimingReport {
                from: timing.from.clone(),
                to: timing.to.clone(),
                from_events: timing.events.map(|[from, _]| from),
                to_events: timing.events.map(|[_, to]| to),
                latency_us: timing.spread.as_ref().map(spread),
            }),
            notes: findings.notes.clone(),
        }
    }
}

fn clock(clocks: &Clocks) -> ClockReport {
    match clocks {
        Clocks::Same => ClockReport {
            state: "same",
            offset_us: Some(0.0),
            uncertainty_us: Some(0.0),
            drift_ppm: Some(0.0),
            ..ClockReport::default()
        },
        Clocks::Unknown => ClockReport { state: "unknown", ..ClockReport::default() },
        Clocks::Estimated(it) => {
            let of_line = |value: f64| (!it.is_contradictory).then_some(value);
            let [packets_forward, packets_backward] = it.packets;
            ClockReport {
                state: if it.is_contradictory { "contradictory" } else { "estimated" },
                offset_us: Some(it.offset / 1e3),
                uncertainty_us: Some(it.uncertainty / 1e3),
                drift_ppm: of_line(it.drift_ppm),
                drift_uncertainty_ppm: of_line(it.drift_uncertainty_ppm),
                round_trip_us: of_line(it.round_trip / 1e3),
                at_ns: Some(it.at),
                packets_forward,
                packets_backward,
            }
        }
    }
}

fn packets(matched: MatchCounts) -> Packets {
    let MatchCounts { matched, sent_only, received_only, sent_again } = matched;
    Packets { matched, sent_only, received_only, sent_again }
}

fn pair(pair: &PairFindings, lists: bool) -> PairReport {
    let end = |end: QpEndpoint| EndReport {
        address: end.address.to_string(),
        qpn: end.qpn.map(ib_types::Qpn::get),
    };
    let [from, to] = pair.ends.map(end);
    PairReport {
        from,
        to,
        requests: packets(pair.requests),
        responses: packets(pair.responses),
        messages: pair.messages,
        incomplete: pair.broken,
        unacknowledged: pair.unacknowledged,
        bytes: pair.bytes,
        latency_us: latency(&pair.spreads),
        list: lists.then(|| pair.listed.iter().map(message).collect()),
    }
}

fn message(message: &Message) -> MessageReport {
    let [queue_us, wire_us, receive_us, completion_us, in_flight_us, total_us] =
        message.parts.map(|part| part.map(micros));
    MessageReport {
        operation: message.kind.name(),
        psn: message.first.get(),
        packets: message.packets,
        bytes: message.bytes,
        sent_again: message.sent_again,
        sent_ns: message.sent,
        queue_us,
        wire_us,
        receive_us,
        completion_us,
        in_flight_us,
        total_us,
    }
}

fn latency(
    spreads: &[Option<Percentiles>; 6],
) -> BTreeMap<&'static str, Option<BTreeMap<&'static str, f64>>> {
    let parts = Part::ALL.iter().zip(spreads);
    parts.map(|(part, it)| (part.name(), it.as_ref().map(spread))).collect()
}

fn spread(spread: &Percentiles) -> BTreeMap<&'static str, f64> {
    let fractions = PERCENTILES.iter().zip(spread.fractions).map(|((name, _), time)| (*name, time));
    let all = fractions.chain([("min", spread.min), ("max", spread.max)]);
    let times = all.map(|(name, time)| (name, micros(time)));
    times.chain([("count", spread.count as f64)]).collect()
}

fn micros(nanos: i64) -> f64 {
    nanos as f64 / 1e3
}

/// Returns the JSON Schema of the output with `--json`.
pub(crate) fn schema() -> Schema {
    crate::schemas::of::<Report>()
}
