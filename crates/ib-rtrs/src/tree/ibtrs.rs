//! File names and formats of the IBTRS driver, the predecessor of RTRS. This module also defines the formats that the
//! README of IBTRS leaves open.

use std::fmt::Write as _;

use super::layout::{File, Formats, Layout, SERVER_PATH};
use crate::Direction;
use crate::client::Policy;
use crate::stats::{
    ClientPathStats, Completions, LATENCY_RANGES, Latencies, SG_COLUMNS, ServerPathStats, Traffic,
};

pub(super) static CLIENT: Layout = Layout {
    root: "ibtrs-client",
    session: &[
        ("add_path", File::AddPath),
        ("max_reconnect_attempts", File::MaxReconnectAttempts),
        ("mp_policy", File::Policy),
    ],
    path: &[
        ("state", File::State),
        ("reconnect", File::Reconnect),
        ("disconnect", File::Disconnect),
        ("remove_path", File::RemovePath),
        ("hca_name", File::HcaName),
        ("hca_port", File::HcaPort),
        ("src_addr", File::SourceAddress),
        ("dst_addr", File::DestinationAddress),
    ],
    stats: &[
        ("reset_all", File::ResetAll),
        ("sg_entries", File::SgEntries),
        ("cpu_migration", File::CpuMigration),
        ("reconnects", File::Reconnects),
        ("rdma_lat", File::Latencies),
        ("wc_completion", File::Completions),
        ("rdma", File::Traffic),
    ],
    formats: FORMATS,
};

pub(super) static SERVER: Layout = Layout {
    root: "ibtrs-server",
    session: &[],
    path: SERVER_PATH,
    stats: &[
        ("reset_all", File::ResetAll),
        ("rdma", File::Traffic),
        ("wc_completion", File::Completions),
    ],
    formats: FORMATS,
};

const FORMATS: Formats = Formats { policy, reset: "0", client, server };

/// Formats a policy. The README of IBTRS defines round-robin and min-inflight, and Linux defines min-latency.
fn policy(policy: Policy) -> String {
    let text = match policy {
        Policy::RoundRobin => "round-robin (0)",
        Policy::MinInflight => "min-inflight (1)",
        Policy::MinLatency => "min-latency (2)",
    };
    format!("{text}\n")
}

fn client(file: File, stats: &ClientPathStats, inflight: u32) -> String {
    match file {
        File::SgEntries => sg_entries(&stats.sg_entries),
        File::CpuMigration => cpu_migration(&stats.migrated_from, &stats.migrated_to),
        File::Latencies => latencies(&stats.latencies),
        File::Completions => {
            format!("{} {}\n", stats.completions.most, stats.completions.average())
        }
        _ => reconnects_and_traffic(file, stats, inflight),
    }
}

fn server(file: File, stats: &ServerPathStats, inflight: u32) -> String {
    match file {
        File::Traffic => format!("{} {inflight}\n", traffic(&stats.traffic)),
        File::Completions => {
            let Completions { most, total, calls } = stats.completions;
            format!("{most} {total} {calls}\n")
        }
        _ => String::new(),
    }
}

/// Formats the files `reconnects` and `rdma` of a client's path, which are the same in IBTRS and Linux.
pub(super) fn reconnects_and_traffic(file: File, stats: &ClientPathStats, inflight: u32) -> String {
    match file {
        File::Reconnects => {
            format!("{} {}\n", stats.reconnects.succeeded, stats.reconnects.failed)
        }
        File::Traffic => {
            format!("{} {inflight} {}\n", traffic(&stats.traffic), stats.failed_over)
        }
        _ => String::new(),
    }
}

/// Formats the start of the file `rdma`: reads, bytes of reads, writes, and bytes of writes.
pub(super) fn traffic(traffic: &Traffic) -> String {
    let Traffic { reads, read_bytes, writes, write_bytes } = traffic;
    format!("{reads} {read_bytes} {writes} {write_bytes}")
}

/// Formats the file `sg_entries`: a header line with the possible numbers of SGEs, and a line of request counts for
/// each processor.
fn sg_entries(rows: &[[u64; SG_COLUMNS]]) -> String {
    let mut head: Vec<String> = (1..SG_COLUMNS).map(|length| length.to_string()).collect();
    head.push(format!(">={SG_COLUMNS}"));
    let mut lines = vec![("entries:".to_owned(), head)];
    for (cpu, row) in rows.iter().enumerate() {
        lines.push((format!("cpu{cpu}:"), row.iter().map(u64::to_string).collect()));
    }
    table(&lines)
}

/// Formats the file `cpu_migration`: a line with the names of processors, and the lines `from:` and `to:`.
fn cpu_migration(from: &[u64], to: &[u64]) -> String {
    let numbers = |row: &[u64]| row.iter().map(u64::to_string).collect();
    table(&[
        (String::new(), (0..from.len()).map(|cpu| format!("cpu{cpu}")).collect()),
        ("from:".to_owned(), numbers(from)),
        ("to:".to_owned(), numbers(to)),
    ])
}

/// Formats lines, each with a name and cells, as a table with right-aligned columns.
fn table(lines: &[(String, Vec<String>)]) -> String {
    let first = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let columns = lines.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|(_, cells)| cells.get(column));
        cells.map(String::len).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (name, cells) in lines {
        let _ = write!(text, "{name:first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(text, " {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

/// Formats the file `rdma_lat`: a line for each latency range, and a line for the maximum latency, rounded up to
/// milliseconds.
fn latencies(latencies: &Latencies) -> String {
    let mut text = String::new();
    for (range, [reads, writes]) in latencies.counts.iter().enumerate() {
        if range + 1 < LATENCY_RANGES {
            let _ = writeln!(text, "{:>2} ms: {reads} {writes}", 1_u32 << range);
        } else {
            let _ = writeln!(text, ">= {} ms: {reads} {writes}", 1_u32 << (range - 1));
        }
    }
    let longest =
        |direction: Direction| latencies.longest[direction as usize].as_nanos().div_ceil(1_000_000);
    let (reads, writes) = (longest(Direction::Read), longest(Direction::Write));
    let _ = writeln!(text, "maximum ms: {reads} {writes}");
    text
}

#[cfg(test)]
mod tests;
