//! Names and formats of the original IBTRS driver. Formats that its description leaves open are defined here.

use std::fmt::Write as _;

use super::layout::{File, Formats, Layout, SERVER_PATH};
use crate::Direction;
use crate::client::Policy;
use crate::stats::{
    ClientPathStats, Completions, LATENCIES, Latencies, SG_LENGTHS, ServerPathStats, Traffic,
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

/// As the README lists policies; the third one is of Linux.
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

/// Returns the two files of a client's path that Linux has as well.
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

/// Returns the four numbers that `rdma` begins with everywhere.
pub(super) fn traffic(traffic: &Traffic) -> String {
    let Traffic { reads, read_bytes, writes, write_bytes } = traffic;
    format!("{reads} {read_bytes} {writes} {write_bytes}")
}

/// The README leaves the format open. Here it is a line for each processor, below one that tells the numbers of entries.
fn sg_entries(rows: &[[u64; SG_LENGTHS]]) -> String {
    let mut head: Vec<String> = (1..SG_LENGTHS).map(|length| length.to_string()).collect();
    head.push(format!(">={SG_LENGTHS}"));
    let mut lines = vec![("entries:".to_owned(), head)];
    for (cpu, row) in rows.iter().enumerate() {
        lines.push((format!("cpu{cpu}:"), row.iter().map(u64::to_string).collect()));
    }
    table(&lines)
}

/// The README has the names `from:` and `to:`; here each has a column for each processor, below one that tells which.
fn cpu_migration(from: &[u64], to: &[u64]) -> String {
    let numbers = |row: &[u64]| row.iter().map(u64::to_string).collect();
    table(&[
        (String::new(), (0..from.len()).map(|cpu| format!("cpu{cpu}")).collect()),
        ("from:".to_owned(), numbers(from)),
        ("to:".to_owned(), numbers(to)),
    ])
}

/// Returns lines of a name and cells, in columns with the numbers on the right.
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

/// A line for each range, and one for the longest in whole milliseconds, of which begun ones count.
fn latencies(latencies: &Latencies) -> String {
    let mut text = String::new();
    for (range, [reads, writes]) in latencies.counts.iter().enumerate() {
        if range + 1 < LATENCIES {
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
