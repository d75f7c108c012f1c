//! Names and formats of the sysfs files of RTRS in Linux 6.1.

use super::ibtrs::{reconnects_and_traffic, traffic};
use super::layout::{File, Formats, Layout, SERVER_PATH};
use crate::client::Policy;
use crate::stats::{ClientPathStats, ServerPathStats};

pub(super) static CLIENT: Layout = Layout {
    root: "rtrs-client",
    session: &[
        ("add_path", File::AddPath),
        ("max_reconnect_attempts", File::MaxReconnectAttempts),
        ("mpath_policy", File::Policy),
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
        ("cur_latency", File::HeartbeatLatency),
    ],
    stats: &[
        ("reset_all", File::ResetAll),
        ("cpu_migration_from", File::MigratedFrom),
        ("cpu_migration_to", File::MigratedTo),
        ("reconnects", File::Reconnects),
        ("rdma", File::Traffic),
    ],
    formats: FORMATS,
};

pub(super) static SERVER: Layout = Layout {
    root: "rtrs-server",
    session: &[],
    path: SERVER_PATH,
    stats: &[("rdma", File::Traffic)],
    formats: FORMATS,
};

const FORMATS: Formats = Formats { policy, reset: "1", client, server };

fn policy(policy: Policy) -> String {
    let text = match policy {
        Policy::RoundRobin => "round-robin (RR: 0)",
        Policy::MinInflight => "min-inflight (MI: 1)",
        Policy::MinLatency => "min-latency (ML: 2)",
    };
    format!("{text}\n")
}

fn client(file: File, stats: &ClientPathStats, inflight: u32) -> String {
    // Linux prints a space after the count of each processor, even after the last count.
    let row = |row: &[u64]| row.iter().map(|count| format!("{count} ")).collect::<String>() + "\n";
    match file {
        File::MigratedFrom => row(&stats.migrated_from),
        File::MigratedTo => row(&stats.migrated_to),
        _ => reconnects_and_traffic(file, stats, inflight),
    }
}

fn server(file: File, stats: &ServerPathStats, _: u32) -> String {
    match file {
        File::Traffic => format!("{}\n", traffic(&stats.traffic)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
