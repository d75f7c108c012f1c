//! The command line of `sm`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_types::{Guid, Lmc};

use super::{RoutingArgs, lmc};
use crate::output::Format;

/// Arguments of `sm`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SmArgs {
    /// What to do with a manager that runs.
    #[command(subcommand)]
    pub action: Option<SmAction>,
    /// How a subnet is managed.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What can be done with a manager that runs.
#[derive(Debug, Subcommand)]
pub enum SmAction {
    /// Asks a running manager, or tells it to sweep.
    #[command(after_long_help = super::examples_text("sm-ctl"))]
    Ctl(CtlArgs),
}

/// Arguments of `sm ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// The name of the manager's socket.
    #[arg(long, value_name = "NAME", default_value = "sm", global = true)]
    pub socket: String,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub format: Format,
    /// What to ask.
    #[command(subcommand)]
    pub question: Question,
}

/// What a manager can be asked.
#[derive(Clone, Debug, Subcommand)]
pub enum Question {
    /// What the manager is and does, and what is wrong with the subnet.
    #[command(after_long_help = super::examples_text("status"))]
    Status,
    /// Starts to explore the whole subnet again, and reads the partitions again.
    #[command(after_long_help = super::examples_text("sweep"))]
    Sweep,
    /// The routes: how they came about, and the switches; or the table of one switch.
    #[command(after_long_help = super::examples_text("routes"))]
    Routes {
        /// The switch, by node GUID or LID.
        switch: Option<String>,
    },
    /// What --metrics-port serves.
    #[command(after_long_help = super::examples_text("metrics"))]
    Metrics,
}

/// Arguments of `sm` itself.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where the subnet is.
    #[command(flatten)]
    pub place: PlaceArgs,
    /// The GUID of the port to manage from, where --umad names none. With --ibsim it has to be that of
    /// the node.
    #[arg(short = 'g', long, value_name = "GUID")]
    pub guid: Option<Guid>,
    /// Waits when another manager is the master, and takes over when that one fails. Without it a
    /// manager of a real port, or with --once, ends with exit status 2.
    #[arg(long)]
    pub standby: bool,
    /// OpenSM's configuration file; options prevail over it. On a real port
    /// /etc/opensm/opensm.conf without it, if there is one.
    #[arg(short = 'F', long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Writes a configuration file with what the other options say, and ends.
    #[arg(short = 'c', long, value_name = "FILE")]
    pub create_config: Option<PathBuf>,
    /// How the subnet is routed.
    #[command(flatten)]
    pub routing: RoutingArgs,
    /// 2^N LIDs for every channel adapter port; 1 LID without it.
    #[arg(short = 'l', long, value_name = "N", value_parser = lmc)]
    pub lmc: Option<Lmc>,
    /// Gives enhanced switch ports 0 the LMC as well.
    #[arg(long, alias = "lmc_esp0")]
    pub lmc_esp0: bool,
    /// Assigns all LIDs anew once, whatever the ports and the cache say.
    #[arg(short = 'r', long, alias = "reassign_lids")]
    pub reassign_lids: bool,
    /// Keeps the routes when hosts and leaf switches go and come back.
    #[arg(short = 'A', long, alias = "ucast_cache")]
    pub ucast_cache: bool,
    /// Never programs routes with credit loops, even if hosts stay unreachable.
    #[arg(long)]
    pub require_deadlock_free: bool,
    /// Sets up lanes: service levels on lanes, and the lanes' turns. lash needs it to be free of
    /// deadlocks.
    #[arg(short = 'Q', long)]
    pub qos: bool,
    /// Who may talk to whom, as OpenSM's partition file has it; all ports are full members of the
    /// default partition without it. On a real port /etc/opensm/partitions.conf, if there is one.
    #[arg(short = 'P', long, alias = "Pconfig", value_name = "FILE")]
    pub pconfig: Option<PathBuf>,
    /// Where switches check partitions: both, in, out or off; both without it.
    #[arg(short = 'Z', long, alias = "part_enforce", value_name = "WHERE")]
    pub part_enforce: Option<String>,
    /// The priority among managers, 0 to 15: the higher one wins, then the lower port GUID. 0 without
    /// it.
    #[arg(short = 'p', long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=15))]
    pub priority: Option<u8>,
    /// The key that the managers of the subnet share; 1 without it.
    #[arg(short = 'k', long, value_name = "KEY")]
    pub smkey: Option<String>,
    /// The upper half of the GIDs; 0xfe80000000000000 without it.
    #[arg(long, alias = "subnet_prefix", value_name = "PREFIX")]
    pub subnet_prefix: Option<String>,
    /// Does not ask clients to register again when the subnet is taken over.
    #[arg(long, alias = "no_clients_rereg")]
    pub no_clients_rereg: bool,
    /// Seconds between light sweeps, 0 for none; 10 without it.
    #[arg(short = 's', long, value_name = "S", value_parser = clap::value_parser!(u32).range(0..=86_400))]
    pub sweep: Option<u32>,
    /// How many SMPs may be on their way, 0 for any number; 64 without it.
    #[arg(short = 'n', long, value_name = "N",
        value_parser = clap::value_parser!(u32).range(0..=65_536))]
    pub maxsmps: Option<u32>,
    /// Milliseconds that an answer is waited for; 200 without it.
    #[arg(short = 't', long, value_name = "MS",
        value_parser = clap::value_parser!(u32).range(1..=3_600_000))]
    pub timeout: Option<u32>,
    /// How often an SMP without answer is repeated; 3 times without it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub retries: Option<u32>,
    /// Ends when the subnet is up.
    #[arg(short = 'o', long)]
    pub once: bool,
    /// Does nothing until another manager says so.
    #[arg(short = 'I', long)]
    pub inactive: bool,
    /// How the result is printed.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// The log, in OpenSM's lines; stdout for standard output. Errors go to standard error without
    /// it; on a real port the log is /var/log/opensm.log.
    #[arg(short = 'f', long, alias = "log_file", value_name = "FILE", help_heading = "Files")]
    pub log: Option<PathBuf>,
    /// Empties the log at the start.
    #[arg(short = 'e', long, alias = "erase_log_file", help_heading = "Files")]
    pub erase_log: bool,
    /// The size in MB at which the log begins anew.
    #[arg(short = 'L', long, alias = "log_limit", value_name = "MB", help_heading = "Files")]
    pub log_limit: Option<u32>,
    /// What is logged: 0x01 errors, 0x02 what happens, 0x04 more, 0x08 what the manager is doing, 0x20
    /// every datagram; 0x40 writes all dumps. 0x03 without it; 0 logs nothing at all.
    #[arg(short = 'D', long, value_name = "FLAGS", help_heading = "Files")]
    pub log_flags: Option<String>,
    /// Logs more: -v 0x04 as well, -vv 0x08, -vvv 0x20.
    #[arg(short = 'v', long, action = clap::ArgAction::Count, help_heading = "Files")]
    pub verbose: u8,
    /// Writes OpenSM's dump files into this directory whenever the subnet is up.
    #[arg(long, visible_alias = "dump_files_dir", value_name = "DIR", help_heading = "Files")]
    pub dump_dir: Option<PathBuf>,
    /// Keeps LIDs, M_Keys and neighbours in this directory, and begins with the LIDs there. On a real
    /// port /var/cache/opensm.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub cache_dir: Option<PathBuf>,
    /// Believes the LIDs of the cache also when another master has failed.
    #[arg(short = 'x', long, alias = "honor_guid2lid", help_heading = "Files")]
    pub honor_guid2lid: bool,
    /// Goes on in the background.
    #[arg(short = 'B', long, conflicts_with = "once", help_heading = "Daemon")]
    pub daemon: bool,
    /// Writes the number of the process to a file.
    #[arg(short = 'J', long, value_name = "FILE", help_heading = "Daemon")]
    pub pidfile: Option<PathBuf>,
    /// The name of the socket that `sm ctl` asks; sm without it.
    #[arg(long, value_name = "NAME", help_heading = "Daemon")]
    pub socket: Option<String>,
    /// Serves metrics for Prometheus on this port of the loopback device.
    #[arg(long, value_name = "N", help_heading = "Daemon",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub metrics_port: Option<u16>,
    /// Collects the counters of all ports every S seconds, for the metrics.
    #[arg(long, value_name = "S", help_heading = "Daemon",
        value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub perf_interval: Option<u32>,
}

/// Where a subnet is.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// A fabric that is simulated inside this process, in virtual time; nobody else can reach it.
    #[arg(long, value_name = "FABRIC", group = "place")]
    pub sim: Option<PathBuf>,
    /// A real ibsim or `ibfabric sim` in another process, by the name of its sockets; without a name
    /// the one that the environment names, as Debian's libumad2sim does it.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        default_missing_value = "", group = "place")]
    pub ibsim: Option<String>,
    /// The node of the simulated fabric to manage from; its first without it, or, with --ibsim,
    /// `SIM_HOST`.
    #[arg(long, value_name = "NODE", conflicts_with = "umad")]
    pub node: Option<String>,
    /// A port of an adapter of this machine, such as `mlx5_0:1`; without a name the first that has a
    /// link.
    #[arg(long, value_name = "DEV[:PORT]", num_args = 0..=1, default_missing_value = "",
        group = "place")]
    pub umad: Option<String>,
}

/// Joins `--ibsim` of `sm` with a name that stands behind it as a word of its own: clap would take that
/// for a subcommand.
pub(super) fn joined(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| word != "sm") {
        return words;
    }
    let names_one = |pair: &[OsString]| {
        let is_name = !["ctl", "help"].iter().any(|other| pair[1] == *other)
            && !pair[1].as_encoded_bytes().starts_with(b"-");
        pair[0] == "--ibsim" && is_name
    };
    if let Some(at) = words.windows(2).position(names_one) {
        let name = words.remove(at + 1);
        words[at].push("=");
        words[at].push(name);
    }
    words
}
