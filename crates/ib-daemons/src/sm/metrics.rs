//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;

use ib_sm::{AlarmKind, PortStatus};
use ib_types::Guid;
use ib_types::prometheus::MetricType::{self, Counter, Gauge};
use ib_types::prometheus::Page;
use ib_wire::mad::pm::{PortCounters, PortCountersExtended};
use ib_wire::mad::sm::{PortState, SmState};

use super::shared::{PortCounts, State, lock};

/// A port counter: its name, its description, and how its value is read from the 32-bit and the 64-bit counters.
struct PortCounter {
    name: &'static str,
    help: &'static str,
    narrow: Option<fn(&PortCounters) -> u64>,
    wide: Option<fn(&PortCountersExtended) -> u64>,
}

macro_rules! counters {
    ($($name:literal $help:literal $narrow:expr, $wide:expr;)*) => {
        const COUNTERS: &[PortCounter] = &[
            $(PortCounter { name: $name, help: $help, narrow: $narrow, wide: $wide },)*
        ];
    };
}

/// Number of bytes in one unit of the data counters.
const WORD: u64 = 4;

// The names are those of infiniband_exporter, without the prefix `infiniband_port_` and the suffix `_total`.
counters! {
    "transmit_data_bytes" "Bytes sent"
        Some(|c| u64::from(c.xmit_data) * WORD), Some(|c| c.xmit_data.wrapping_mul(WORD));
    "receive_data_bytes" "Bytes received"
        Some(|c| u64::from(c.rcv_data) * WORD), Some(|c| c.rcv_data.wrapping_mul(WORD));
    "transmit_packets" "Packets sent"
        Some(|c| c.xmit_packets.into()), Some(|c| c.xmit_packets);
    "receive_packets" "Packets received"
        Some(|c| c.rcv_packets.into()), Some(|c| c.rcv_packets);
    "unicast_transmit_packets" "Unicast packets sent" None, Some(|c| c.unicast_xmit_packets);
    "unicast_receive_packets" "Unicast packets received" None, Some(|c| c.unicast_rcv_packets);
    "multicast_transmit_packets" "Multicast packets sent" None, Some(|c| c.multicast_xmit_packets);
    "multicast_receive_packets" "Multicast packets received" None,
        Some(|c| c.multicast_rcv_packets);
    "symbol_error" "Symbol errors" Some(|c| c.symbol_errors.into()), None;
    "link_error_recovery" "Recoveries of the link" Some(|c| c.link_error_recoveries.into()), None;
    "link_downed" "Failed recoveries of the link" Some(|c| c.link_downed.into()), None;
    "receive_errors" "Packets with errors" Some(|c| c.rcv_errors.into()), None;
    "receive_remote_physical_errors" "Received packets that the sender had marked as bad"
        Some(|c| c.rcv_remote_physical_errors.into()), None;
    "receive_switch_relay_errors" "Packets that the switch could not relay"
        Some(|c| c.rcv_switch_relay_errors.into()), None;
    "transmit_discards" "Packets dropped before they were sent"
        Some(|c| c.xmit_discards.into()), None;
    "transmit_constraint_errors" "Packets not sent because of partition or raw packet filters"
        Some(|c| c.xmit_constraint_errors.into()), None;
    "receive_constraint_errors" "Received packets dropped because of partition or raw packet filters"
        Some(|c| c.rcv_constraint_errors.into()), None;
    "local_link_integrity_errors" "Times that local physical errors exceeded their threshold"
        Some(|c| c.local_link_integrity_errors.into()), None;
    "excessive_buffer_overrun_errors" "Times that buffer overruns exceeded their threshold"
        Some(|c| c.excessive_buffer_overrun_errors.into()), None;
    "vl15_dropped" "SMPs dropped because buffers were full" Some(|c| c.vl15_dropped.into()), None;
    "qp1_dropped" "GMPs dropped because buffers were full" Some(|c| c.qp1_dropped.into()), None;
    "transmit_wait" "Ticks in which data waited for credits"
        Some(|c| c.xmit_wait.into()), None;
}

/// A value of a metric with its labels.
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: f64,
}

/// A metric with all its samples.
struct Family {
    name: String,
    help: &'static str,
    kind: MetricType,
    samples: Vec<Sample>,
}

/// Returns the page of metrics.
pub(super) fn page(state: &State) -> String {
    let mut page = Page::default();
    for Family { name, help, kind, samples } in families(state) {
        let mut family = page.family(&name, kind, help);
        for Sample { labels, value, .. } in &samples {
            family.sample(labels, value);
        }
    }
    page.into_text()
}

/// Returns all values of the metrics, for output as JSON.
pub(super) fn samples(state: &State) -> Vec<Sample> {
    families(state).into_iter().flat_map(|family| family.samples).collect()
}

fn families(state: &State) -> Vec<Family> {
    let mut families = Vec::new();
    let mut add = |name: &str, kind: MetricType, help, samples: Vec<(Labels, f64)>| {
        let name = format!("ibfabric_sm_{name}");
        let sample = |(labels, value)| Sample { name: name.clone(), labels, value };
        let samples = samples.into_iter().map(sample).collect();
        families.push(Family { name, help, kind, samples });
    };
    type Labels = Vec<(&'static str, String)>;
    let one = |value: f64| vec![(Labels::new(), value)];
    let states = [
        ("discovering", SmState::DISCOVERING),
        ("master", SmState::MASTER),
        ("standby", SmState::STANDBY),
        ("not_active", SmState::NOT_ACTIVE),
    ];
    let own = state.info.as_ref().map(|info| info.state);
    let in_state = |(name, code): (&str, SmState)| {
        (vec![("state", name.to_owned())], f64::from(own == Some(code)))
    };
    let all = states.into_iter().map(in_state).collect();
    add("state", Gauge, "1 if the SM is in this state", all);
    let (traffic, counters) = (&state.traffic, &state.counters);
    for (name, kind, help, value) in [
        ("smps_total", Counter, "SMPs sent", traffic.sent),
        ("smp_retries_total", Counter, "SMPs retransmitted", traffic.retries),
        ("smps_lost_total", Counter, "SMPs without a response", traffic.lost),
        ("sweeps_total", Counter, "Completed heavy sweeps", counters.sweeps),
        ("light_sweeps_total", Counter, "Light sweeps", counters.light_sweeps),
        ("routings_total", Counter, "Computations of routes", counters.routings),
        (
            "followed_total",
            Counter,
            "Partial sweeps of changed nodes",
            counters.partial_discoveries,
        ),
        ("cached_routings_total", Counter, "Routes taken from the cache", counters.cached_plans),
        ("traps_total", Counter, "Received traps", counters.traps),
        ("faults_total", Counter, "Faults and errors since the SM was started", state.fault_count),
        ("faults", Gauge, "Faults that the last sweep has found", state.faults.len() as u64),
        ("managers", Gauge, "Other SMs", state.managers.len() as u64),
        (
            "no_plan",
            Gauge,
            "1 if the present subnet cannot be routed",
            state.no_plan.is_some().into(),
        ),
    ] {
        add(name, kind, help, one(value as f64));
    }
    let raised = |kind: AlarmKind| state.alarms.iter().find(|it| it.alarm.kind() == kind);
    let alarm = |kind: AlarmKind| {
        (vec![("kind", kind.name().to_owned())], f64::from(raised(kind).is_some()))
    };
    let alarms = AlarmKind::ALL.into_iter().map(alarm).collect();
    add("alarm", Gauge, "1 if the alarm is raised", alarms);
    let since = |kind: AlarmKind| {
        let at = raised(kind)?.since.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Some((vec![("kind", kind.name().to_owned())], at.as_secs_f64()))
    };
    let since = AlarmKind::ALL.into_iter().filter_map(since).collect();
    let help = "Time at which the alarm was raised, in seconds since 1970";
    add("alarm_since_timestamp_seconds", Gauge, help, since);
    if let Some(quality) = state.quality {
        for (name, help, value) in [
            (
                "unreachable",
                "Pairs of a switch and a LID without a route in the present LFTs",
                quality.unreachable,
            ),
            (
                "unreachable_host_pairs",
                "Pairs of hosts without a route in the present LFTs",
                quality.unreachable_host_pairs,
            ),
            ("credit_loops", "Credit loops of the present LFTs", quality.credit_loops as u64),
        ] {
            add(name, Gauge, help, one(value as f64));
        }
    }
    if let Some(last) = &state.last {
        let report = &last.report;
        let steps = [
            ("discover", report.discover),
            ("plan", report.plan_time),
            ("program", report.program),
        ];
        let step = |(name, time): (&str, std::time::Duration)| {
            (vec![("step", name.to_owned())], time.as_secs_f64())
        };
        let steps = steps.into_iter().map(step).collect();
        add("sweep_seconds", Gauge, "Durations of the steps of the last heavy sweep", steps);
        let at = last.at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let help = "Time of the last SUBNET UP, in seconds since 1970";
        add("subnet_up_timestamp_seconds", Gauge, help, one(at.as_secs_f64()));
        add("sweep_smps", Gauge, "SMPs of the last heavy sweep", one(report.smps as f64));
        let retries = one(report.retries as f64);
        add("sweep_retries", Gauge, "SMPs retransmitted in the last heavy sweep", retries);
        add("nodes", Gauge, "Nodes", one(report.nodes as f64));
        add("switches", Gauge, "Switches", one(report.plan.switches.len() as f64));
        let engine = vec![("engine", report.plan.routing.engine.name().to_owned())];
        add("engine", Gauge, "The routing engine in use", vec![(engine, 1.0)]);
    }
    let mut by_state: BTreeMap<&str, f64> = BTreeMap::new();
    for port in state.ports.iter().filter(|port| port.number > 0) {
        let name = port.info.as_ref().map_or("unknown", |info| state_name(info.port_state));
        *by_state.entry(name).or_default() += 1.0;
    }
    let by_state = by_state.into_iter();
    let by_state = by_state.map(|(name, n)| (vec![("state", name.to_owned())], n)).collect();
    add("ports", Gauge, "Ports by state, after the last heavy sweep", by_state);
    // The counters are locked only while they are copied, not while the page is formatted.
    let (counts, rounds, failures, seconds) = {
        let counts = lock(&state.counts);
        (counts.ports.clone(), counts.rounds, counts.failures, counts.seconds)
    };
    add("perf_rounds_total", Counter, "Collections of counters", one(rounds as f64));
    let help = "Queries for port counters without a response";
    add("perf_failures_total", Counter, help, one(failures as f64));
    add(
        "perf_seconds",
        Gauge,
        "Duration of the last collection of port counters in seconds",
        one(seconds),
    );
    families.extend(ports(&state.ports, &counts));
    families
}

/// Returns the name of a port's state.
pub(super) fn state_name(state: PortState) -> &'static str {
    match state {
        PortState::DOWN => "down",
        PortState::INIT => "init",
        PortState::ARMED => "armed",
        PortState::ACTIVE => "active",
        _ => "unknown",
    }
}

/// Returns the metrics of the port counters.
fn ports(ports: &[PortStatus], counts: &BTreeMap<(Guid, u8), PortCounts>) -> Vec<Family> {
    let mut families = Vec::new();
    for counter in COUNTERS {
        let name = format!("infiniband_port_{}_total", counter.name);
        let mut samples = Vec::new();
        for port in ports {
            let Some(found) = counts.get(&(port.node_guid, port.number)) else { continue };
            let wide = counter.wide.and_then(|read| found.wide.as_ref().map(read));
            let narrow = || counter.narrow.and_then(|read| found.narrow.as_ref().map(read));
            let Some(value) = wide.or_else(narrow) else { continue };
            let labels = vec![
                ("guid", port.node_guid.to_string()),
                ("port", port.number.to_string()),
                ("node", port.description.clone()),
            ];
            samples.push(Sample { name: name.clone(), labels, value: value as f64 });
        }
        if !samples.is_empty() {
            families.push(Family { name, help: counter.help, kind: Counter, samples });
        }
    }
    families
}

#[cfg(test)]
mod tests;
