//! The command line of `sm`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_types::{Guid, Lmc};

use super::routing::RoutingArgs;
use super::values::{lmc, metrics_address};

/// Arguments of `sm`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SmArgs {
    /// The subcommand, which controls a running SM. `None` starts an SM.
    #[command(subcommand)]
    pub action: Option<SmAction>,
    /// Options of the SM.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// The subcommands of `sm`.
#[derive(Debug, Subcommand)]
pub enum SmAction {
    /// Queries a running SM, or requests a sweep.
    #[command(after_long_help = super::examples::examples_text("sm-ctl"))]
    Ctl(CtlArgs),
}

/// Arguments of `sm ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// Name of the SM: the value of `sm --name`.
    #[arg(long, value_name = "NAME", default_value = "sm", global = true)]
    pub name: String,
    /// Prints the result as one JSON object.
    #[arg(long, global = true)]
    pub json: bool,
    /// The request.
    #[command(subcommand)]
    pub question: Question,
}

/// A request to a running SM.
#[derive(Clone, Debug, Subcommand)]
pub enum Question {
    /// Prints the state of the SM and the problems of the subnet.
    #[command(after_long_help = super::examples::examples_text("status"))]
    Status,
    /// Starts a heavy sweep, and reloads the partition file.
    #[command(after_long_help = super::examples::examples_text("sweep"))]
    Sweep,
    /// Prints the result of the routing engine and a list of the switches, or the forwarding table of one switch.
    #[command(after_long_help = super::examples::examples_text("routes"))]
    Routes {
        /// Switch, by node GUID or LID.
        switch: Option<String>,
    },
    /// Prints the metrics that --metrics serves.
    #[command(after_long_help = super::examples::examples_text("metrics"))]
    Metrics,
}

/// Arguments of `sm` without a subcommand.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The subnet's location: simulated in this process, simulated in another process, or behind a real port.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// GUID of the local port. It must match the port that --umad, --attach or --node selects.
    #[arg(short = 'g', long, value_name = "GUID")]
    pub guid: Option<Guid>,
    /// Becomes standby if another SM is master, and takes over when the master fails. Without this option, an SM on a
    /// real port or with --once exits with status 2 if another SM is master.
    #[arg(long)]
    pub standby: bool,
    /// OpenSM configuration file; command-line options override it [default on a real port:
    /// /etc/opensm/opensm.conf, if it exists].
    #[arg(short = 'F', long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Writes a configuration file with the settings of the other options, and exits.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub create_config: Option<PathBuf>,
    /// The routing engines and their options.
    #[command(flatten)]
    pub routing: RoutingArgs,
    /// LMC: each HCA port gets 2^N LIDs [default: 0].
    #[arg(short = 'l', long, value_name = "N", value_parser = lmc)]
    pub lmc: Option<Lmc>,
    /// Applies the LMC to enhanced switch ports 0 as well.
    #[arg(long, alias = "lmc_esp0")]
    pub lmc_esp0: bool,
    /// Reassigns all LIDs once; ignores the LIDs of the ports and of the cache.
    #[arg(short = 'r', long, alias = "reassign_lids")]
    pub reassign_lids: bool,
    /// Caches unicast routes: keeps them when hosts and leaf switches disappear and return.
    #[arg(short = 'A', long, alias = "ucast_cache")]
    pub ucast_cache: bool,
    /// Never programs routes with credit loops, even if hosts remain unreachable.
    #[arg(long)]
    pub require_deadlock_free: bool,
    /// Configures `QoS`: SL to VL mappings and VL arbitration. The routes of lash are deadlock-free only with this
    /// option.
    #[arg(short = 'Q', long)]
    pub qos: bool,
    /// OpenSM partition file [default: all ports are full members of the default partition; on a real port
    /// /etc/opensm/partitions.conf, if it exists].
    #[arg(short = 'P', long, alias = "Pconfig", value_name = "FILE")]
    pub pconfig: Option<PathBuf>,
    /// Partition enforcement by switches: both, in, out or off [default: both].
    #[arg(short = 'Z', long, alias = "part_enforce", value_name = "WHERE")]
    pub part_enforce: Option<String>,
    /// SM priority, 0 to 15. The SM with the highest priority becomes master. If priorities are equal, the SM with
    /// the lowest port GUID becomes master [default: 0].
    #[arg(short = 'p', long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub priority: Option<u8>,
    /// `SM_Key`, shared by the SMs of the subnet [default: 1].
    #[arg(short = 'k', long, value_name = "KEY")]
    pub smkey: Option<String>,
    /// Subnet prefix, the upper half of GIDs [default: 0xfe80000000000000].
    #[arg(long, alias = "subnet_prefix", value_name = "PREFIX")]
    pub subnet_prefix: Option<String>,
    /// Does not request clients to reregister when this SM takes over the subnet.
    #[arg(long, alias = "no_clients_rereg")]
    pub no_clients_rereg: bool,
    /// Interval of light sweeps in seconds; 0 disables them [default: 10].
    #[arg(short = 's', long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub sweep: Option<u32>,
    /// Maximum number of outstanding SMPs; 0 for no limit [default: 64].
    #[arg(short = 'n', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub maxsmps: Option<u32>,
    /// Response timeout of SMPs in milliseconds [default: 200].
    #[arg(short = 't', long, visible_alias = "timeout", value_name = "MS",
        value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub response_timeout: Option<u32>,
    /// Number of retries of an SMP [default: 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub retries: Option<u32>,
    /// Exits when the subnet is up.
    #[arg(short = 'o', long)]
    pub once: bool,
    /// Starts in the state NOT-ACTIVE. The SM leaves this state when the master SM sends SMInfo STANDBY.
    #[arg(short = 'I', long)]
    pub inactive: bool,
    /// Prints one JSON object, on a line of its own, each time the subnet comes up.
    #[arg(long)]
    pub json: bool,
    /// Log file in OpenSM's format; stdout for standard output [default: errors to standard error; on a real
    /// port /var/log/opensm.log].
    #[arg(short = 'f', long, alias = "log_file", value_name = "FILE", help_heading = "Files")]
    pub log: Option<PathBuf>,
    /// Truncates the log at startup.
    #[arg(short = 'e', long, alias = "erase_log_file", help_heading = "Files")]
    pub erase_log: bool,
    /// Maximum size of the log in MB. A log that reaches this size is truncated.
    #[arg(short = 'L', long, alias = "log_limit", value_name = "MB", help_heading = "Files")]
    pub log_limit: Option<u32>,
    /// Log flags: 0x01 errors, 0x02 information, 0x04 verbose, 0x08 debugging, 0x20 all MADs, 0x40 all dump
    /// files; 0 disables the log [default: 0x03].
    #[arg(short = 'D', long, value_name = "FLAGS", help_heading = "Files")]
    pub log_flags: Option<String>,
    /// Adds log flags: 0x06 with -v, 0x0e with -vv, 0x2e with -vvv.
    #[arg(short = 'v', long, action = clap::ArgAction::Count, help_heading = "Files")]
    pub verbose: u8,
    /// Writes OpenSM's dump files into this directory each time the subnet comes up.
    #[arg(long, visible_alias = "dump_files_dir", value_name = "DIR", help_heading = "Files")]
    pub dump_dir: Option<PathBuf>,
    /// Directory in which the SM caches LIDs, M_Keys and neighbours. The SM takes its initial LIDs from this cache
    /// [default on a real port: /var/cache/opensm].
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub cache_dir: Option<PathBuf>,
    /// Also uses the cached LIDs when this SM takes over from a failed master.
    #[arg(short = 'x', long, alias = "honor_guid2lid", help_heading = "Files")]
    pub honor_guid2lid: bool,
    /// Runs in the background.
    #[arg(short = 'B', long, conflicts_with = "once", help_heading = "Daemon")]
    pub daemon: bool,
    /// Writes the process ID to a file.
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Daemon")]
    pub pidfile: Option<PathBuf>,
    /// Name of the SM for `sm ctl` [default: sm].
    #[arg(long, value_name = "NAME", help_heading = "Daemon")]
    pub name: Option<String>,
    /// Serves metrics for Prometheus at this TCP address. There is no authentication.
    #[arg(long, value_name = "ADDR:PORT", value_parser = metrics_address, help_heading = "Daemon")]
    pub metrics: Option<SocketAddr>,
    /// Interval in seconds at which the SM reads the counters of all ports for --metrics.
    #[arg(long, value_name = "S", help_heading = "Daemon",
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub perf_interval: Option<u32>,
}

/// The subnet's location: simulated in this process, simulated in another process, or behind a real port.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Simulates this fabric in the process, in virtual time. Other processes cannot attach to the fabric.
    #[arg(long, value_name = "FABRIC", group = "place")]
    pub sim: Option<PathBuf>,
    /// Attaches to the running simulator with this name: an ibsim or an `ibfabric sim` [default name: from the
    /// environment variables that libumad2sim reads].
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", group = "place")]
    pub attach: Option<String>,
    /// Node of the simulated fabric that runs the SM [default: with --attach the value of `SIM_HOST`, or else the
    /// first node].
    #[arg(long, value_name = "NODE", conflicts_with = "umad")]
    pub node: Option<String>,
    /// Port of a local HCA, such as `mlx5_0:1` [default: first port with an active link].
    #[arg(long, value_name = "DEV[:PORT]", num_args = 0..=1, default_missing_value = "",
        group = "place")]
    pub umad: Option<String>,
}
