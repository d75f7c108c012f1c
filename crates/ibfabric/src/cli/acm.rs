//! The command line of `acm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_daemons::acm::{AcmConfig, DEFAULT_SOCKET};

use crate::output::Format;

mod places;

pub use places::{Places, PortSelection};

/// Arguments of `acm`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct AcmArgs {
    /// Control of a running ACM service.
    #[command(subcommand)]
    pub action: Option<AcmAction>,
    /// Options of the service.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// Control of a running ACM service.
#[derive(Debug, Subcommand)]
pub enum AcmAction {
    /// Queries a running service, reloads its files or flushes its cache.
    #[command(after_long_help = super::examples::examples_text("acm-ctl"))]
    Ctl(CtlArgs),
}

/// Arguments of `acm ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// Socket of the service: the value of `acm --socket`.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, global = true)]
    pub socket: PathBuf,
    /// Output format of the reply.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub format: Format,
    /// The request.
    #[command(subcommand)]
    pub question: Question,
}

/// A request to a running service.
#[derive(Clone, Debug, Subcommand)]
pub enum Question {
    /// Prints the endpoints with their multicast groups and counters, and the counters of the service.
    #[command(after_long_help = super::examples::examples_text("acm-status"))]
    Status,
    /// Prints the cached names, addresses and paths.
    #[command(after_long_help = super::examples::examples_text("acm-known"))]
    Known {
        /// Name or address to look up [default: all].
        address: Option<String>,
    },
    /// Flushes the cache, except for entries that come from files.
    #[command(after_long_help = super::examples::examples_text("acm-flush"))]
    Flush,
    /// Reloads the service's files, as SIGHUP does.
    #[command(after_long_help = super::examples::examples_text("acm-reload"))]
    Reload,
    /// Prints the metrics that --metrics-port serves.
    #[command(after_long_help = super::examples::examples_text("acm-metrics"))]
    Metrics,
}

/// Arguments of `acm` itself.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The ports of the service.
    #[command(flatten)]
    pub places: Places,
    /// Unix socket for clients. If neither --socket nor --tcp is set, the option `server_mode` selects
    /// ibacm's usual endpoint: /run/ibacm-unix.sock, or a TCP port that is published in /run/ibacm.port.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Also listens on this TCP port of the loopback device.
    #[arg(long, value_name = "PORT")]
    pub tcp: Option<u16>,
    /// Microseconds to poll for another request before the service sleeps. Clients whose requests arrive
    /// within this time do not wait for a wakeup.
    #[arg(long, value_name = "US", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub spin: u64,
    /// Accepts clients of other machines on the --tcp port, too. There is no authentication.
    #[arg(long, requires = "tcp")]
    pub open: bool,
    /// Directory of the configuration files: `ibacm_opts.cfg` and `ibacm_addr.cfg`, or `acm_opts.cfg` and
    /// `acm_addr.cfg`.
    #[arg(long, value_name = "DIR", default_value = "/etc/rdma")]
    pub config: PathBuf,
    /// Options file; overrides the one in --config.
    #[arg(short = 'O', long, value_name = "FILE")]
    pub options: Option<PathBuf>,
    /// File of local names and addresses; overrides the one in --config.
    #[arg(short = 'A', long, value_name = "FILE")]
    pub addresses: Option<PathBuf>,
    /// Log file, or `stdout` or `stderr` [default: `log_file` of the options file, or standard error].
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Serves metrics for Prometheus on this TCP port of the loopback device.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub metrics_port: Option<u16>,
    /// Maximum number of concurrent clients.
    #[arg(long, value_name = "N", default_value_t = 16_384,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub most_clients: u32,
    /// Uses the sockets that systemd passes (socket activation).
    #[arg(long)]
    pub systemd: bool,
}

impl From<ServeArgs> for AcmConfig {
    fn from(args: ServeArgs) -> Self {
        Self {
            ports: args.places.0,
            socket: args.socket,
            tcp: args.tcp,
            spin: args.spin,
            open: args.open,
            config: args.config,
            options: args.options,
            addresses: args.addresses,
            log: args.log,
            metrics_port: args.metrics_port,
            max_clients: args.most_clients,
            systemd: args.systemd,
        }
    }
}
