//! Metrics of RTRS for Prometheus.

use ib_types::prometheus::MetricType::{self, Counter, Gauge, Histogram};
use ib_types::prometheus::{Family, Page};

use crate::client::{Client, PathId, PathState};
use crate::server::{Server, ServerPathId};
use crate::stats::{ClientPathStats, Completions, LATENCY_RANGES, SG_COLUMNS, ServerPathStats};

/// The labels `session` and `path` of a sample.
type PathLabels = [(&'static str, String); 2];

fn path_labels(session: &str, path: &str) -> PathLabels {
    [("session", session.to_owned()), ("path", path.to_owned())]
}

/// Returns the Prometheus labels of a path, and one more label.
fn with(
    labels: &PathLabels,
    name: &'static str,
    value: &dyn ToString,
) -> Vec<(&'static str, String)> {
    labels.iter().cloned().chain([(name, value.to_string())]).collect()
}

/// Adds one sample for each processor.
fn by_cpu(family: &mut Family<'_>, labels: &PathLabels, counts: &[u64]) {
    for (cpu, count) in counts.iter().enumerate() {
        family.sample(&with(labels, "cpu", &cpu), count);
    }
}

/// A metric: its name without the prefix, its type, its help text, and the function that computes it from a `T`.
type Metric<T> = (&'static str, MetricType, &'static str, fn(&T) -> u64);

/// The state and statistics of a client's path.
struct ClientPath<'a> {
    labels: PathLabels,
    is_up: bool,
    inflight: u32,
    stats: &'a ClientPathStats,
    heartbeat: Option<std::time::Duration>,
}

/// Returns the metrics of a client's path.
const fn of_client<'a>() -> [Metric<ClientPath<'a>>; 9] {
    [
        ("path_up", Gauge, "Whether the path is connected", |it| it.is_up.into()),
        ("inflight", Gauge, "Requests in flight", |it| it.inflight.into()),
        ("reads_total", Counter, "Reads", |it| it.stats.traffic.reads),
        ("read_bytes_total", Counter, "Bytes of reads, with headers", |it| {
            it.stats.traffic.read_bytes
        }),
        ("writes_total", Counter, "Writes", |it| it.stats.traffic.writes),
        ("write_bytes_total", Counter, "Bytes of writes, with headers", |it| {
            it.stats.traffic.write_bytes
        }),
        ("failed_over_total", Counter, "Requests that were in flight when the path failed", |it| {
            it.stats.failed_over
        }),
        ("reconnects_total", Counter, "Successful reconnects of the path", |it| {
            it.stats.reconnects.succeeded
        }),
        ("failed_reconnects_total", Counter, "Failed attempts to reconnect the path", |it| {
            it.stats.reconnects.failed
        }),
    ]
}

/// Returns the metrics of a client's session.
pub(super) fn client(session: &str, client: &Client, paths: &[(String, PathId)]) -> String {
    let of = |(name, id): &(String, PathId)| {
        Some(ClientPath {
            labels: path_labels(session, name),
            is_up: client.path_state(*id) == Some(PathState::Connected),
            inflight: client.inflight(*id)?,
            stats: client.stats(*id)?,
            heartbeat: client.latency(*id),
        })
    };
    let all: Vec<ClientPath<'_>> = paths.iter().filter_map(of).collect();
    let mut page = Page::default();
    path_metrics(&mut page, CLIENT, &of_client(), &all, |it| &it.labels);
    completions(&mut page, CLIENT, &all, |it| &it.labels, |it| it.stats.completions);
    let mut family = page.family(
        "ibfabric_rtrs_client_heartbeat_seconds",
        Gauge,
        "Round-trip time of the last heartbeat",
    );
    for it in &all {
        if let Some(took) = it.heartbeat {
            family.sample(&it.labels, took.as_secs_f64());
        }
    }
    latencies(&mut page, &all);
    let mut family = page.family(
        "ibfabric_rtrs_client_requests_by_entries_total",
        Counter,
        "Requests by number of SGEs",
    );
    for it in &all {
        for (cpu, row) in it.stats.sg_entries.iter().enumerate() {
            for (at, count) in row.iter().enumerate() {
                let more = if at + 1 == SG_COLUMNS { ">=" } else { "" };
                let mut labels = with(&it.labels, "cpu", &cpu);
                labels.push(("entries", format!("{more}{}", at + 1)));
                family.sample(&labels, count);
            }
        }
    }
    let help = "Completions that arrived on another processor than that of their request";
    let mut family = page.family("ibfabric_rtrs_client_migrated_from_total", Counter, help);
    for it in &all {
        by_cpu(&mut family, &it.labels, &it.stats.migrated_from);
    }
    let help = "Completions that arrived on this processor for requests of another one";
    let mut family = page.family("ibfabric_rtrs_client_migrated_to_total", Counter, help);
    for it in &all {
        by_cpu(&mut family, &it.labels, &it.stats.migrated_to);
    }
    page.into_text()
}

/// Prefix of the metrics of a client.
const CLIENT: &str = "ibfabric_rtrs_client";
/// Prefix of the metrics of a server.
const SERVER: &str = "ibfabric_rtrs_server";

fn path_metrics<T>(
    page: &mut Page,
    prefix: &str,
    metrics: &[Metric<T>],
    all: &[T],
    labels: fn(&T) -> &PathLabels,
) {
    for (name, kind, help, value) in metrics {
        let mut family = page.family(&format!("{prefix}_{name}"), *kind, help);
        for it in all {
            family.sample(labels(it), value(it));
        }
    }
}

fn completions<T>(
    page: &mut Page,
    prefix: &str,
    all: &[T],
    labels: fn(&T) -> &PathLabels,
    of: fn(&T) -> Completions,
) {
    let columns: [Metric<Completions>; 3] = [
        ("completions_total", Counter, "Completions", |it| it.total),
        ("completion_calls_total", Counter, "Polls that have returned completions", |it| it.calls),
        ("completions_most", Gauge, "Most completions in one poll", |it| it.most),
    ];
    for (name, kind, help, value) in columns {
        let mut family = page.family(&format!("{prefix}_{name}"), kind, help);
        for it in all {
            family.sample(labels(it), value(&of(it)));
        }
    }
}

/// Adds the latency histograms of reads and writes.
fn latencies(page: &mut Page, all: &[ClientPath<'_>]) {
    let mut family =
        page.family("ibfabric_rtrs_client_latency_seconds", Histogram, "Latencies of requests");
    for it in all {
        for (column, direction) in ["read", "write"].into_iter().enumerate() {
            let labels = with(&it.labels, "direction", &direction);
            let mut sum = 0;
            for (range, counts) in it.stats.latencies.counts.iter().enumerate() {
                sum += counts[column];
                let limit = if range + 1 < LATENCY_RANGES {
                    (f64::from(1_u32 << range) / 1000.0).to_string()
                } else {
                    "+Inf".to_owned()
                };
                let mut labels = labels.clone();
                labels.push(("le", limit));
                family.sample_of("_bucket", &labels, sum);
            }
            let total = it.stats.latencies.total[column].as_secs_f64();
            family.sample_of("_sum", &labels, total);
            family.sample_of("_count", &labels, sum);
        }
    }
}

/// The state and statistics of a server's path.
struct ServerPath<'a> {
    labels: PathLabels,
    inflight: u32,
    stats: &'a ServerPathStats,
}

/// Returns the metrics of a server's path.
const fn of_server<'a>() -> [Metric<ServerPath<'a>>; 5] {
    [
        ("inflight", Gauge, "Outstanding requests", |it| it.inflight.into()),
        ("reads_total", Counter, "Reads", |it| it.stats.traffic.reads),
        ("read_bytes_total", Counter, "Bytes of reads, with headers", |it| {
            it.stats.traffic.read_bytes
        }),
        ("writes_total", Counter, "Writes", |it| it.stats.traffic.writes),
        ("write_bytes_total", Counter, "Bytes of writes, with headers", |it| {
            it.stats.traffic.write_bytes
        }),
    ]
}

/// Returns the metrics of a server. `sessions` has the sessions and their paths, each with its name.
pub(super) fn server(
    server: &Server,
    sessions: &[(String, Vec<(String, ServerPathId)>)],
) -> String {
    let mut all = Vec::new();
    for (session, paths) in sessions {
        for (name, id) in paths {
            let (Some(stats), Some(inflight)) = (server.stats(*id), server.inflight(*id)) else {
                continue;
            };
            let labels = path_labels(session, name);
            all.push(ServerPath { labels, inflight, stats });
        }
    }
    let mut page = Page::default();
    page.family("ibfabric_rtrs_server_sessions", Gauge, "Sessions").sample(&[], sessions.len());
    path_metrics(&mut page, SERVER, &of_server(), &all, |it| &it.labels);
    completions(&mut page, SERVER, &all, |it| &it.labels, |it| it.stats.completions);
    page.into_text()
}
