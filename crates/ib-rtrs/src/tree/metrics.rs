//! The numbers for Prometheus.

use std::fmt::{Display, Write as _};

use crate::client::{Client, PathId, PathState};
use crate::server::{Server, ServerPathId};
use crate::stats::{ClientPathStats, LATENCIES, SG_LENGTHS, ServerPathStats};

/// A page in the making: families of samples.
struct Page {
    prefix: &'static str,
    text: String,
}

impl Page {
    const fn new(prefix: &'static str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// Begins the samples of a name.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        let _ = writeln!(self.text, "# HELP {prefix}_{name} {help}");
        let _ = writeln!(self.text, "# TYPE {prefix}_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let prefix = self.prefix;
        let _ = writeln!(self.text, "{prefix}_{name}{{{labels}}} {value}");
    }

    /// Writes a number for each processor.
    fn by_cpu(&mut self, name: &str, labels: &str, counts: &[u64]) {
        for (cpu, count) in counts.iter().enumerate() {
            self.sample(name, &format!("{labels},cpu=\"{cpu}\""), count);
        }
    }
}

/// A number of a path: name, kind, meaning, value.
type Number<T> = (&'static str, &'static str, &'static str, fn(&T) -> u64);

/// What is told of a client's path.
struct Of<'a> {
    labels: String,
    is_up: bool,
    inflight: u32,
    stats: &'a ClientPathStats,
    heartbeat: Option<std::time::Duration>,
}

/// Returns the numbers of a client's path.
const fn of_client<'a>() -> [Number<Of<'a>>; 9] {
    [
        ("path_up", "gauge", "Whether the path is connected", |it| it.is_up.into()),
        ("inflight", "gauge", "Requests under way", |it| it.inflight.into()),
        ("reads_total", "counter", "Reads", |it| it.stats.traffic.reads),
        ("read_bytes_total", "counter", "Bytes of reads, with headers", |it| {
            it.stats.traffic.read_bytes
        }),
        ("writes_total", "counter", "Writes", |it| it.stats.traffic.writes),
        ("write_bytes_total", "counter", "Bytes of writes, with headers", |it| {
            it.stats.traffic.write_bytes
        }),
        ("failed_over_total", "counter", "Requests that another path has taken over", |it| {
            it.stats.failed_over
        }),
        ("reconnects_total", "counter", "Times that the path was connected again", |it| {
            it.stats.reconnects.succeeded
        }),
        ("failed_reconnects_total", "counter", "Attempts at that which have failed", |it| {
            it.stats.reconnects.failed
        }),
    ]
}

/// Returns the page of a session.
pub(super) fn client(session: &str, client: &Client, paths: &[(String, PathId)]) -> String {
    let of = |(name, id): &(String, PathId)| {
        Some(Of {
            labels: format!("session=\"{}\",path=\"{}\"", escaped(session), escaped(name)),
            is_up: client.path_state(*id) == Some(PathState::Connected),
            inflight: client.inflight(*id)?,
            stats: client.stats(*id)?,
            heartbeat: client.latency(*id),
        })
    };
    let all: Vec<Of<'_>> = paths.iter().filter_map(of).collect();
    let mut page = Page::new("ibfabric_rtrs_client");
    numbers(&mut page, &of_client(), &all, |it| &it.labels);
    completions(&mut page, &all, |it| &it.labels, |it| it.stats.completions);
    page.family("heartbeat_seconds", "gauge", "How long the last heartbeat took, there and back");
    for it in &all {
        if let Some(took) = it.heartbeat {
            page.sample("heartbeat_seconds", &it.labels, took.as_secs_f64());
        }
    }
    latencies(&mut page, &all);
    page.family("requests_by_entries_total", "counter", "Requests by pieces of memory");
    for it in &all {
        for (cpu, row) in it.stats.sg_entries.iter().enumerate() {
            for (at, count) in row.iter().enumerate() {
                let more = if at + 1 == SG_LENGTHS { ">=" } else { "" };
                let labels = format!("{},cpu=\"{cpu}\",entries=\"{more}{}\"", it.labels, at + 1);
                page.sample("requests_by_entries_total", &labels, count);
            }
        }
    }
    let help = "Completions that were expected on a processor and came elsewhere";
    page.family("migrated_from_total", "counter", help);
    for it in &all {
        page.by_cpu("migrated_from_total", &it.labels, &it.stats.migrated_from);
    }
    let help = "Completions that came to a processor and were expected elsewhere";
    page.family("migrated_to_total", "counter", help);
    for it in &all {
        page.by_cpu("migrated_to_total", &it.labels, &it.stats.migrated_to);
    }
    page.text
}

fn numbers<T>(page: &mut Page, numbers: &[Number<T>], all: &[T], labels: fn(&T) -> &String) {
    for (name, kind, help, value) in numbers {
        page.family(name, kind, help);
        for it in all {
            page.sample(name, labels(it), value(it));
        }
    }
}

fn completions<T>(
    page: &mut Page,
    all: &[T],
    labels: fn(&T) -> &String,
    of: fn(&T) -> crate::stats::Completions,
) {
    page.family("completions_total", "counter", "Completions");
    for it in all {
        page.sample("completions_total", labels(it), of(it).total);
    }
    page.family("completion_calls_total", "counter", "Times that there were completions");
    for it in all {
        page.sample("completion_calls_total", labels(it), of(it).calls);
    }
    page.family("completions_most", "gauge", "The most completions at once");
    for it in all {
        page.sample("completions_most", labels(it), of(it).most);
    }
}

/// Histograms of how long requests took.
fn latencies(page: &mut Page, all: &[Of<'_>]) {
    const NAME: &str = "latency_seconds";
    page.family(NAME, "histogram", "How long requests took");
    for it in all {
        for (column, direction) in ["read", "write"].into_iter().enumerate() {
            let labels = format!("{},direction=\"{direction}\"", it.labels);
            let mut sum = 0;
            for (range, counts) in it.stats.latencies.counts.iter().enumerate() {
                sum += counts[column];
                let limit = if range + 1 < LATENCIES {
                    (f64::from(1_u32 << range) / 1000.0).to_string()
                } else {
                    "+Inf".to_owned()
                };
                page.sample("latency_seconds_bucket", &format!("{labels},le=\"{limit}\""), sum);
            }
            let total = it.stats.latencies.total[column].as_secs_f64();
            page.sample("latency_seconds_sum", &labels, total);
            page.sample("latency_seconds_count", &labels, sum);
        }
    }
}

/// What is told of a server's path.
struct Served<'a> {
    labels: String,
    inflight: u32,
    stats: &'a ServerPathStats,
}

/// Returns the numbers of a server's path.
const fn of_server<'a>() -> [Number<Served<'a>>; 5] {
    [
        ("inflight", "gauge", "Requests that are not answered", |it| it.inflight.into()),
        ("reads_total", "counter", "Reads", |it| it.stats.traffic.reads),
        ("read_bytes_total", "counter", "Bytes of reads, with headers", |it| {
            it.stats.traffic.read_bytes
        }),
        ("writes_total", "counter", "Writes", |it| it.stats.traffic.writes),
        ("write_bytes_total", "counter", "Bytes of writes, with headers", |it| {
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
            let labels = format!("session=\"{}\",path=\"{}\"", escaped(session), escaped(name));
            all.push(Served { labels, inflight, stats });
        }
    }
    let mut page = Page::new("ibfabric_rtrs_server");
    page.family("sessions", "gauge", "Sessions");
    let _ = writeln!(page.text, "ibfabric_rtrs_server_sessions {}", sessions.len());
    numbers(&mut page, &of_server(), &all, |it| &it.labels);
    completions(&mut page, &all, |it| &it.labels, |it| it.stats.completions);
    page.text
}

/// Returns what stands between the quotes of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
