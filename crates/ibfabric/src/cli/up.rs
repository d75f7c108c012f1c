//! The command lines of `up` and `selftest`.

use std::path::PathBuf;

use clap::Args;
use ib_routing::EngineList;

use super::capture::live::CaptureArgs;
use super::values::{ListenAddress, page_address};

/// Options of `up` and `selftest` for the simulated fabric and its block device.
#[derive(Debug, Args)]
pub struct StackArgs {
    /// Fabric file: ibnetdiscover output, an ibsim net file or an opensm-subnet.lst; - for standard input
    /// [default: a fat tree of 12 switches and 32 hosts].
    pub fabric: Option<PathBuf>,
    /// Routing engines in order of preference. auto selects minhop. If the routes of minhop have a credit loop, auto
    /// also tries updn and lash.
    #[arg(short = 'R', long, value_name = "LIST", default_value = "auto")]
    pub engine: EngineList,
    /// Seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// File of console commands. Each line is `at TIME COMMAND`, with the time since the start of the fabric.
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Name of the simulator. Clients specify this name in `IBSIM_SOCKNAME` or with `--attach`.
    #[arg(long, value_name = "NAME", default_value = "up", value_parser = super::sim::socket_name)]
    pub name: String,
    /// Size of the device disk0, in bytes or with the suffix K, M, G or T.
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = super::values::size)]
    pub size: u64,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The fabric and the block device.
    #[command(flatten)]
    pub stack: StackArgs,
    /// NBD socket of disk0 [default: `ibfabric-NAME.nbd` in the directory `XDG_RUNTIME_DIR`, or else in the directory
    /// for temporary files].
    #[arg(long, value_name = "PATH")]
    pub nbd: Option<PathBuf>,
    /// Address of the web page: 127.0.0.1 or `::1` [default: 127.0.0.1 and any free port].
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = page_address, conflicts_with = "no_http")]
    pub http: Option<ListenAddress>,
    /// Disables the web page.
    #[arg(long)]
    pub no_http: bool,
    /// The capture of the packets of all embedded hosts.
    #[command(flatten)]
    pub capture: CaptureArgs,
}

/// Arguments of `selftest`.
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// The fabric and the block device.
    #[command(flatten)]
    pub stack: StackArgs,
    /// Writes the captured packets of disk0's queue pairs to this pcapng file.
    #[arg(short = 'w', long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Maximum number of payload bytes to capture per message, 0 to 4096.
    #[arg(long, value_name = "BYTES", default_value_t = 64,
        value_parser = super::values::bytes::<u16>(0, 4096))]
    pub pcap_payload: u16,
    /// Prints the results of all checks as one JSON object.
    #[arg(long)]
    pub json: bool,
}
