//! The command line of `up`.

use std::path::PathBuf;

use clap::Args;
use ib_routing::EngineList;

use super::capture::live::CaptureArgs;
use crate::output::Format;

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// Fabric file: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard input
    /// [default: a fat tree of 12 switches and 32 hosts].
    pub fabric: Option<PathBuf>,
    /// Runs a self-test and exits. It covers routes, names, paths, a block device over two paths whose links
    /// are cut, and a capture of its packets. Exit status: 0 all checks passed, 1 problems found.
    #[arg(long, conflicts_with = "capture")]
    pub check: bool,
    /// Routing engines in order of preference. auto: minhop, then updn and lash if its routes have a credit
    /// loop.
    #[arg(short = 'R', long, value_name = "LIST", default_value = "auto")]
    pub engine: EngineList,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// File of console commands with times: lines of `at TIME COMMAND`.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Name of the sockets; the value of `IBSIM_SOCKNAME` for clients, and of `--attach`.
    #[arg(long, value_name = "NAME", default_value = "up", value_parser = super::sim::socket_name)]
    pub socket: String,
    /// Size of the device disk0, in bytes or with the suffix K, M, G or T.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = super::values::size)]
    pub size: u64,
    /// NBD socket of disk0 [default: `ibfabric-NAME.nbd` in the user's directory for sockets, or for
    /// temporary files].
    #[arg(long, value_name = "PATH")]
    pub nbd: Option<PathBuf>,
    /// TCP port of the web page on this machine; 0 for any free port.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["check", "no_http"])]
    pub http: Option<u16>,
    /// Disables the web page.
    #[arg(long)]
    pub no_http: bool,
    /// Writes the packets of disk0's queue pairs to a pcapng file.
    #[arg(short = 'w', long = "write", value_name = "FILE", conflicts_with = "capture")]
    pub write: Option<PathBuf>,
    /// Bytes of payload to write of each message, 0 to 4096.
    #[arg(long, value_name = "BYTES", default_value_t = 64, requires = "write",
        value_parser = super::values::bytes::<u16>(0, 4096))]
    pub payload: u16,
    /// The capture of the packets of all embedded hosts.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Output format of the self-test's results.
    #[arg(long, value_enum, default_value_t, requires = "check")]
    pub format: Format,
}
