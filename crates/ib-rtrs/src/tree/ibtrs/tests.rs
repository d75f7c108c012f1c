use std::time::Duration;

use super::*;

fn stats() -> ClientPathStats {
    let mut stats = ClientPathStats::new(2);
    stats.count_sg_entries(0, 1);
    for _ in 0..12 {
        stats.count_sg_entries(1, 3);
    }
    stats.count_sg_entries(1, 99);
    stats.count_migration(0, 1);
    (stats.reconnects.succeeded, stats.reconnects.failed) = (2, 5);
    stats.latencies.count(Direction::Read, Duration::from_micros(700));
    stats.latencies.count(Direction::Write, Duration::from_millis(9));
    stats.latencies.count(Direction::Write, Duration::from_micros(70_000_001));
    stats.completions.count(7);
    stats.completions.count(2);
    stats.traffic.count(Direction::Read, 4128);
    stats.traffic.count(Direction::Write, 544);
    stats.traffic.count(Direction::Write, 544);
    stats.failed_over = 3;
    stats
}

#[test]
fn client_statistics_have_the_format_of_the_readme() {
    let read = |file| client(file, &stats(), 4);
    assert_eq!(read(File::Traffic), "1 4128 2 1088 4 3\n");
    assert_eq!(read(File::Reconnects), "2 5\n");
    assert_eq!(read(File::Completions), "7 4\n");
    assert_eq!(
        read(File::Latencies),
        " 1 ms: 1 0\n 2 ms: 0 0\n 4 ms: 0 0\n 8 ms: 0 0\n16 ms: 0 1\n32 ms: 0 0\n64 ms: 0 0\n128 ms: 0 0\n\
         256 ms: 0 0\n512 ms: 0 0\n1024 ms: 0 0\n2048 ms: 0 0\n4096 ms: 0 0\n8192 ms: 0 0\n16384 ms: 0 0\n\
         32768 ms: 0 0\n65536 ms: 0 0\n>= 65536 ms: 0 1\nmaximum ms: 1 70001\n"
    );
    assert_eq!(read(File::CpuMigration), "      cpu0 cpu1\nfrom:    1    0\nto:      0    1\n");
    assert_eq!(
        read(File::SgEntries),
        "entries: 1 2  3 4 5 6 7 8 9 10 11 12 13 14 15 >=16\n\
         cpu0:    1 0  0 0 0 0 0 0 0  0  0  0  0  0  0    0\n\
         cpu1:    0 0 12 0 0 0 0 0 0  0  0  0  0  0  0    1\n"
    );
}

#[test]
fn server_statistics_have_the_format_of_the_readme() {
    let mut stats = ServerPathStats::default();
    stats.traffic.count(Direction::Read, 4128);
    stats.completions.count(9);
    stats.completions.count(2);
    assert_eq!(server(File::Traffic, &stats, 6), "1 4128 0 0 6\n");
    assert_eq!(server(File::Completions, &stats, 6), "9 11 2\n");
}

#[test]
fn policies_are_printed_with_their_numbers() {
    let all = [Policy::RoundRobin, Policy::MinInflight, Policy::MinLatency];
    assert_eq!(all.map(policy), ["round-robin (0)\n", "min-inflight (1)\n", "min-latency (2)\n"]);
}

#[test]
fn files_are_those_of_the_readme() {
    let names = |files: super::super::layout::Files| -> Vec<&str> {
        files.iter().map(|(name, _)| *name).collect()
    };
    assert_eq!(names(CLIENT.session), ["add_path", "max_reconnect_attempts", "mp_policy"]);
    assert_eq!(
        names(CLIENT.path),
        [
            "state",
            "reconnect",
            "disconnect",
            "remove_path",
            "hca_name",
            "hca_port",
            "src_addr",
            "dst_addr"
        ]
    );
    assert_eq!(
        names(CLIENT.stats),
        [
            "reset_all",
            "sg_entries",
            "cpu_migration",
            "reconnects",
            "rdma_lat",
            "wc_completion",
            "rdma"
        ]
    );
    assert_eq!(names(SERVER.path), ["disconnect", "hca_name", "hca_port", "src_addr", "dst_addr"]);
    assert_eq!(names(SERVER.stats), ["reset_all", "rdma", "wc_completion"]);
}
