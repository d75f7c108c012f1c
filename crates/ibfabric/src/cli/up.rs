//! The arguments of `up`.

use std::path::PathBuf;

use clap::Args;
use ib_routing::EngineList;

use super::capture::live::CaptureArgs;
use crate::output::Format;

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The fabric: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard input. Without it a fat
    /// tree of 12 switches and 32 hosts.
    pub fabric: Option<PathBuf>,
    /// Runs a self-test and exits: routes, names, paths, a block device over two paths whose links are cut, and a capture
    /// of its packets. Exit status: 0 all checks passed, 1 problems found.
    #[arg(long, conflicts_with = "capture")]
    pub check: bool,
    /// The routing engines, in order of preference. auto: minhop, then updn and lash if its routes
    /// have a credit loop.
    #[arg(short = 'R', long, value_name = "LIST", default_value = "auto")]
    pub engine: EngineList,
    /// The seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Commands of the console and the moments at which they are run: lines of `at TIME COMMAND`.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// The name of the sockets: what clients find in `IBSIM_SOCKNAME`, and what `--attach` names.
    #[arg(long, value_name = "NAME", default_value = "up", value_parser = super::sim::socket_name)]
    pub socket: String,
    /// The size of the device disk0, with K, M, G or T behind it.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = super::rtrs::size)]
    pub size: u64,
    /// Where programs find disk0 over NBD; without it `ibfabric-NAME.nbd` in the directory for sockets of the user, or for
    /// temporary files.
    #[arg(long, value_name = "PATH")]
    pub nbd: Option<PathBuf>,
    /// The port of this machine at which browsers find the page; 0 for any that is free.
    #[arg(long, value_name = "PORT", conflicts_with_all = ["check", "no_http"])]
    pub http: Option<u16>,
    /// Serves no page.
    #[arg(long)]
    pub no_http: bool,
    /// Writes the packets of disk0's queue pairs to a pcapng file.
    #[arg(short = 'w', long = "write", value_name = "FILE", conflicts_with = "capture")]
    pub write: Option<PathBuf>,
    /// How many bytes of each message are written to it, 0 to 4096.
    #[arg(long, value_name = "BYTES", default_value_t = 64, requires = "write",
        value_parser = super::bytes::<u16>(0, 4096))]
    pub payload: u16,
    /// The capture of its own packets, those of all hosts.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// How the results of the tour are printed.
    #[arg(long, value_enum, default_value_t, requires = "check")]
    pub format: Format,
}
