use super::*;
use crate::cli::{Cli, Command};

fn read(line: &str) -> Option<RdmaCommand> {
    let words = line.split(' ').map(Into::into);
    match Cli::read([std::ffi::OsString::from("ibfabric")].into_iter().chain(words)).ok()?.command {
        Command::Rdma(args) => Some(args.command),
        _ => None,
    }
}

#[test]
fn sizes_take_units() {
    let sizes = [("64K", 65_536), ("1M", 1 << 20), ("1G", 1 << 30), ("4096", 4096), ("0x10", 16)];
    for (text, size) in sizes {
        let Some(RdmaCommand::Bw(args)) = read(&format!("rdma bw peer -s {text}")) else {
            panic!("{text} is refused");
        };
        assert_eq!(args.size, Some(size));
    }
    for line in [
        "rdma pingpong -s 4K",
        "rdma ping peer -S 4K",
        "rdma cmatose peer -S 1M",
        "rdma serve --perftest-size 1K",
        "rdma bw peer --pcap a --pcap-ring 1M --pcap-payload 1K",
    ] {
        assert!(read(line).is_some(), "{line}");
    }
    for line in ["rdma bw peer -s 2G", "rdma bw peer -s 1X", "rdma ping peer -S 64K"] {
        assert!(read(line).is_none(), "{line}");
    }
}
