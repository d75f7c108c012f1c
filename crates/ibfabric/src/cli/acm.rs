//! The command line of `acm`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_acm::client::DEFAULT_PORT;
use ib_daemons::acm::{AcmConfig, DEFAULT_SOCKET};

use super::values::{ListenAddress, metrics_address};

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
    /// Prints the result as one JSON object.
    #[arg(long, global = true)]
    pub json: bool,
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
    #[command(after_long_help = super::examples::examples_text("acm-cache"))]
    Cache {
        /// Name or address to look up [default: all].
        address: Option<String>,
    },
    /// Flushes the cache, except for entries that come from files.
    #[command(after_long_help = super::examples::examples_text("acm-flush"))]
    Flush,
    /// Reads the configuration files of the service again, as SIGHUP does.
    #[command(after_long_help = super::examples::examples_text("acm-reload"))]
    Reload,
    /// Prints the metrics that --metrics serves.
    #[command(after_long_help = super::examples::examples_text("acm-metrics"))]
    Metrics,
}

/// Arguments of `acm` without a subcommand.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The ports that the service uses: ports of simulated fabrics or of local HCAs.
    #[command(flatten)]
    pub places: Places,
    /// Unix socket for clients. If neither --socket nor --listen is set, `server_mode` of the options file selects
    /// the socket. It is /run/ibacm-unix.sock, or a TCP port whose number is in /run/ibacm.port.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// TCP address for clients [default port: 6125]. If the address is not a loopback address, other machines can
    /// connect, too. There is no authentication.
    #[arg(long, value_name = "ADDR[:PORT]")]
    pub listen: Option<ListenAddress>,
    /// Microseconds to poll for another request before the service sleeps. Clients whose requests arrive
    /// within this time do not wait for a wakeup.
    #[arg(long, value_name = "US", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub busy_poll_us: u64,
    /// Directory of the configuration files: `ibacm_opts.cfg` and `ibacm_addr.cfg`, or `acm_opts.cfg` and
    /// `acm_addr.cfg`.
    #[arg(long, value_name = "DIR", default_value = "/etc/rdma")]
    pub config: PathBuf,
    /// Options file; overrides the options file in the directory of --config.
    #[arg(short = 'O', long, value_name = "FILE")]
    pub options: Option<PathBuf>,
    /// File of local names and addresses; overrides the address file in the directory of --config.
    #[arg(short = 'A', long, value_name = "FILE")]
    pub addresses: Option<PathBuf>,
    /// Log file, or `stdout` or `stderr` [default: `log_file` of the options file, or /var/log/ibacm.log. With
    /// --socket, only errors are logged by default, on standard error].
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Serves metrics for Prometheus at this TCP address. There is no authentication.
    #[arg(long, value_name = "ADDR:PORT", value_parser = metrics_address)]
    pub metrics: Option<SocketAddr>,
    /// Maximum number of concurrent clients.
    #[arg(long, value_name = "N", default_value_t = 16_384,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_clients: u32,
    /// Uses the sockets that systemd passes (socket activation).
    #[arg(long)]
    pub systemd: bool,
}

impl From<ServeArgs> for AcmConfig {
    fn from(args: ServeArgs) -> Self {
        Self {
            ports: args.places.0,
            socket: args.socket,
            tcp: args.listen.map(|listen| listen.with_default_port(DEFAULT_PORT)),
            spin: args.busy_poll_us,
            config: args.config,
            options: args.options,
            addresses: args.addresses,
            log: args.log,
            metrics: args.metrics,
            max_clients: args.max_clients,
            systemd: args.systemd,
        }
    }
}
