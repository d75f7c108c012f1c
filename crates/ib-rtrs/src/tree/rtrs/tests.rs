use super::*;
use crate::Direction;

#[test]
fn statistics_have_the_format_of_linux() {
    let mut stats = ClientPathStats::new(3);
    stats.count_migration(0, 2);
    stats.reconnects.succeeded = 1;
    stats.traffic.count(Direction::Read, 4128);
    stats.traffic.count(Direction::Write, 32);
    stats.failed_over = 9;
    let read = |file| client(file, &stats, 2);
    assert_eq!(read(File::Traffic), "1 4128 1 32 2 9\n");
    assert_eq!(read(File::Reconnects), "1 0\n");
    assert_eq!(read(File::MigratedFrom), "1 0 0 \n");
    assert_eq!(read(File::MigratedTo), "0 0 1 \n");
    let stats = ServerPathStats { traffic: stats.traffic, ..ServerPathStats::default() };
    assert_eq!(server(File::Traffic, &stats, 6), "1 4128 1 32\n");
}

#[test]
fn policies_are_printed_with_their_short_names() {
    let all = [Policy::RoundRobin, Policy::MinInflight, Policy::MinLatency];
    assert_eq!(
        all.map(policy),
        ["round-robin (RR: 0)\n", "min-inflight (MI: 1)\n", "min-latency (ML: 2)\n"]
    );
}

#[test]
fn files_are_those_of_linux() {
    let names = |files: super::super::layout::Files| -> Vec<&str> {
        files.iter().map(|(name, _)| *name).collect()
    };
    assert_eq!(names(CLIENT.session), ["add_path", "max_reconnect_attempts", "mpath_policy"]);
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
            "dst_addr",
            "cur_latency"
        ]
    );
    assert_eq!(
        names(CLIENT.stats),
        ["reset_all", "cpu_migration_from", "cpu_migration_to", "reconnects", "rdma"]
    );
    assert_eq!(names(SERVER.path), ["disconnect", "hca_name", "hca_port", "src_addr", "dst_addr"]);
    assert_eq!(names(SERVER.stats), ["rdma"]);
}
