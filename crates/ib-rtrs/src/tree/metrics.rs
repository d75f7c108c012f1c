//! Metrics of RTRS for Prometheus.

use ib_types::prometheus::{Family, MetricType, Page};

use crate::client::{Client, PathId, PathState};
use crate::server::{Server, ServerPathId};
use crate::stats::{ClientPathStats, Completions, LATENCIES, SG_LENGTHS, ServerPathStats};

/// Labels of a path: session and path.
type PathLabels = [(&'static str, String); 2];

fn path_labels(session: &str, path: &str) -> PathLabels {
    [("session", session.to_owned()), ("path", path.to_owned())]
}

/// Returns the labels of a path with one more.
fn with(
    labels: &PathLabels,
    name: &'static str,
    value: &dyn ToString,
) -> Vec<(&'static str, String)> {
    labels.iter().cloned().chain([(name, value.to_string())]).collect()
}

/// Adds a sample for each processor.
fn by_cpu(family: &mut Family<'_>, labels: &PathLabels, counts: &[u64]) {
    for (cpu, count) in counts.iter().enumerate() {
        family.sample(&with(labels, "cpu", &cpu), count);
    }
}

/// A number of a path: name, kind, meaning, value.
type Number<T> = (&'static str, MetricType, &'static str, fn(&T) -> u64);

/// What is told of a client's path.
struct Of<'a> {
    labels: PathLabels,
    is_up: bool,
    inflight: u32,
    stats: &'a ClientPathStats,
    heartbeat: Option<std::time::Duration>,
}

/// Returns the numbers of a client's path.
const fn of_client<'a>() -> [Number<Of<'a>>; 9] {
    [
        ("path_up", MetricType::Gauge, "Whether the path is connected", |it| it.is_up.into()),
        ("inflight", MetricType::Gauge, "Requests under way", |it| it.inflight.into()),
        ("reads_total", MetricType::Counter, "Reads", |it| it.stats.traffic.reads),
        ("read_bytes_total", MetricType::Counter, "Bytes of reads, with headers", |it| {
            it.stats.traffic.read_bytes
        }),
        ("writes_total", MetricType::Counter, "Writes", |it| it.stats.traffic.writes),
        ("write_bytes_total", MetricType::Counter, "Bytes of writes, with headers", |it| {
            it.stats.traffic.write_bytes
        }),
        (
            "failed_over_total",
            MetricType::Counter,
            "Requests that another path has taken over",
            |it| it.stats.failed_over,
        ),
        (
            "reconnects_total",
            MetricType::Counter,
            "Times that the path was connected again",
            |it| it.stats.reconnects.succeeded,
        ),
        (
            "failed_reconnects_total",
            MetricType::Counter,
            "Attempts at that which have failed",
            |it| it.stats.reconnects.failed,
        ),
    ]
}

/// Returns the page of a session.
pub(super) fn client(session: &str, client: &Client, paths: &[(String, PathId)]) -> String {
    let of = |(name, id): &(String, PathId)| {
        Some(Of {
            labels: path_labels(session, name),
            is_up: client.path_state(*id) == Some(PathState::Connected),
            inflight: client.inflight(*id)?,
            stats: client.stats(*id)?,
            heartbeat: client.latency(*id),
        })
    };
    let all: Vec<Of<'_>> = paths.iter().filter_map(of).collect();
    let mut page = Page::default();
    numbers(&mut page, CLIENT, &of_client(), &all, |it| &it.labels);
    completions(&mut page, CLIENT, &all, |it| &it.labels, |it| it.stats.completions);
    let mut family = page.family(
        "ibfabric_rtrs_client_heartbeat_seconds",
        MetricType::Gauge,
        "Round trip of the last heartbeat",
    );
    for it in &all {
        if let Some(took) = it.heartbeat {
            family.sample(&it.labels, took.as_secs_f64());
        }
    }
    latencies(&mut page, &all);
    let mut family = page.family(
        "ibfabric_rtrs_client_requests_by_entries_total",
        MetricType::Counter,
        "Requests by number of SGEs",
    );
    for it in &all {
        for (cpu, row) in it.stats.sg_entries.iter().enumerate() {
            for (at, count) in row.iter().enumerate() {
                let more = if at + 1 == SG_LENGTHS { ">=" } else { "" };
                let mut labels = with(&it.labels, "cpu", &cpu);
                labels.push(("entries", format!("{more}{}", at + 1)));
                family.sample(&labels, count);
            }
        }
    }
    let help = "Completions that were expected on a processor and came elsewhere";
    let mut family =
        page.family("ibfabric_rtrs_client_migrated_from_total", MetricType::Counter, help);
    for it in &all {
        by_cpu(&mut family, &it.labels, &it.stats.migrated_from);
    }
    let help = "Completions that came to a processor and were expected elsewhere";
    let mut family =
        page.family("ibfabric_rtrs_client_migrated_to_total", MetricType::Counter, help);
    for it in &all {
        by_cpu(&mut family, &it.labels, &it.stats.migrated_to);
    }
    page.into_text()
}

/// Prefixes of the metrics.
const CLIENT: &str = "ibfabric_rtrs_client";
const SERVER: &str = "ibfabric_rtrs_server";

fn numbers<T>(
    page: &mut Page,
    prefix: &str,
    numbers: &[Number<T>],
    all: &[T],
    labels: fn(&T) -> &PathLabels,
) {
    for (name, kind, help, value) in numbers {
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
    let columns: [Number<Completions>; 3] = [
        ("completions_total", MetricType::Counter, "Completions", |it| it.total),
        (
            "completion_calls_total",
            MetricType::Counter,
            "Times that there were completions",
            |it| it.calls,
        ),
        ("completions_most", MetricType::Gauge, "Most completions at once", |it| it.most),
    ];
    for (name, kind, help, value) in columns {
        let mut family = page.family(&format!("{prefix}_{name}"), kind, help);
        for it in all {
            family.sample(labels(it), value(&of(it)));
        }
    }
}

/// Adds the histograms of requests' latencies.
fn latencies(page: &mut Page, all: &[Of<'_>]) {
    let mut family = page.family(
        "ibfabric_rtrs_client_latency_seconds",
        MetricType::Histogram,
        "Latencies of requests",
    );
    for it in all {
        for (column, direction) in ["read", "write"].into_iter().enumerate() {
            let labels = with(&it.labels, "direction", &direction);
            let mut sum = 0;
            for (range, counts) in it.stats.latencies.counts.iter().enumerate() {
                sum += counts[column];
                let limit = if range + 1 < LATENCIES {
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

/// What is told of a server's path.
struct Served<'a> {
    labels: PathLabels,
    inflight: u32,
    stats: &'a ServerPathStats,
}

/// Returns the numbers of a server's path.
const fn of_server<'a>() -> [Number<Served<'a>>; 5] {
    [
        ("inflight", MetricType::Gauge, "Requests that are not answered", |it| it.inflight.into()),
        ("reads_total", MetricType::Counter, "Reads", |it| it.stats.traffic.reads),
        ("read_bytes_total", MetricType::Counter, "Bytes of reads, with headers", |it| {
            it.stats.traffic.read_bytes
        }),
        ("writes_total", MetricType::Counter, "Writes", |it| it.stats.traffic.writes),
        ("write_bytes_total", MetricType::Counter, "Bytes of writes, with headers", |it| {
            it.stats.traffic.write_bytes
        }),
    ]
}

/// Returns the page of a server: of sessions by name, with their paths.
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
            all.push(Served { labels, inflight, stats });
        }
    }
    let mut page = Page::default();
    page.family("ibfabric_rtrs_server_sessions", MetricType::Gauge, "Sessions")
        .sample(&[], sessions.len());
    numbers(&mut page, SERVER, &of_server(), &all, |it| &it.labels);
    completions(&mut page, SERVER, &all, |it| &it.labels, |it| it.stats.completions);
    page.into_text()
}
