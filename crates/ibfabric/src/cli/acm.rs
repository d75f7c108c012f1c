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
    /// What to do with a service that runs.
    #[command(subcommand)]
    pub action: Option<AcmAction>,
    /// How names are resolved.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// What can be done with a service that runs.
#[derive(Debug, Subcommand)]
pub enum AcmAction {
    /// Asks a running service, or tells it to read its files again or to forget.
    #[command(after_long_help = super::examples_text("acm-ctl"))]
    Ctl(CtlArgs),
}

/// Arguments of `acm ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// The socket of the service, as it was given to `acm`.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, global = true)]
    pub socket: PathBuf,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub format: Format,
    /// What to ask.
    #[command(subcommand)]
    pub question: Question,
}

/// What a service can be asked.
#[derive(Clone, Debug, Subcommand)]
pub enum Question {
    /// The endpoints, their groups and counters, and what the service has done.
    #[command(after_long_help = super::examples_text("acm-status"))]
    Status,
    /// What the service knows of others.
    #[command(after_long_help = super::examples_text("acm-known"))]
    Known {
        /// Only this name or address.
        address: Option<String>,
    },
    /// Forgets what it knows of others, but for what files say.
    #[command(after_long_help = super::examples_text("acm-flush"))]
    Flush,
    /// Reads its files again, as SIGHUP has it do.
    #[command(after_long_help = super::examples_text("acm-reload"))]
    Reload,
    /// What --metrics-port serves.
    #[command(after_long_help = super::examples_text("acm-metrics"))]
    Metrics,
}

/// Arguments of `acm` itself.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The ports that the service is at.
    #[command(flatten)]
    pub places: Places,
    /// The Unix socket that programs ask over. Without it and --tcp, what `server_mode` says, at the places where programs
    /// look for ibacm: /run/ibacm-unix.sock, or TCP and /run/ibacm.port.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Listens on this port of the loopback device as well.
    #[arg(long, value_name = "PORT")]
    pub tcp: Option<u16>,
    /// How long another request is looked for after one until the service sleeps, in microseconds: as long as programs
    /// ask so often, none waits for it to wake.
    #[arg(long, value_name = "US", default_value_t = 0,
        value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    pub spin: u64,
    /// Lets other machines ask over --tcp, too. Whoever reaches the port can ask.
    #[arg(long, requires = "tcp")]
    pub open: bool,
    /// The directory of `ibacm_opts.cfg`, `ibacm_addr.cfg` and the other files, or of `acm_opts.cfg` and `acm_addr.cfg`.
    #[arg(long, value_name = "DIR", default_value = "/etc/rdma")]
    pub config: PathBuf,
    /// The file of options.
    #[arg(short = 'O', long, value_name = "FILE")]
    pub options: Option<PathBuf>,
    /// The file of own names and addresses.
    #[arg(short = 'A', long, value_name = "FILE")]
    pub addresses: Option<PathBuf>,
    /// The log; stdout and stderr are what they say. What `log_file` says without it, or standard error.
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Serves metrics for Prometheus on this port of the loopback device.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub metrics_port: Option<u16>,
    /// The most programs at a time.
    #[arg(long, value_name = "N", default_value_t = 16_384,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub most_clients: u32,
    /// Takes the sockets that systemd has opened for it.
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
