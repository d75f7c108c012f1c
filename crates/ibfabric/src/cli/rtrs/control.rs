//! The command lines of `rtrs ctl` and `rtrs mount`, and the options --control-socket and --metrics of the controlled
//! programs.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_daemons::rtrs::ControlConfig;

use crate::cli::examples::examples_text;
use crate::cli::values::metrics_address;

/// The control socket to which `rtrs ctl` and `rtrs mount` connect by default.
pub(super) const DEFAULT_SOCKET: &str = "/run/ibfabric-rtrs.sock";

/// Options of a program for its control socket and its metrics.
#[derive(Clone, Debug, Default, Args)]
pub struct ControlArgs {
    /// Control socket to which `rtrs ctl` and `rtrs mount` connect, to print and change sessions and paths. Only the
    /// user of this program can connect.
    #[arg(long, value_name = "PATH")]
    pub control_socket: Option<PathBuf>,
    /// Serves metrics for Prometheus at this TCP address. There is no authentication.
    #[arg(long, value_name = "ADDR:PORT", value_parser = metrics_address)]
    pub metrics: Option<SocketAddr>,
}

impl ControlArgs {
    /// Returns the configuration of the control socket.
    pub(super) fn config(&self) -> ControlConfig {
        ControlConfig { control: self.control_socket.clone(), metrics: self.metrics }
    }
}

/// Arguments of `rtrs ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// Control socket of the program: the value of --control-socket of `rtrs serve`, `rtrs bench` or `nbd`.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET, global = true)]
    pub socket: PathBuf,
    /// Prints the result as one JSON object.
    #[arg(long, global = true)]
    pub json: bool,
    /// The subcommand.
    #[command(subcommand)]
    pub action: CtlAction,
}

/// The subcommands of `rtrs ctl`. They access the control files of the program that serves the control socket.
#[derive(Clone, Debug, Subcommand)]
pub enum CtlAction {
    /// Prints a control file.
    #[command(after_long_help = examples_text("rtrs-ctl-get"))]
    Get {
        /// Control file, such as `rtrs-client/SESSION/mpath_policy`.
        path: String,
    },
    /// Writes a value to a control file, and waits until the change is complete.
    #[command(after_long_help = examples_text("rtrs-ctl-set"))]
    Set {
        /// Control file, such as `rtrs-client/SESSION/mpath_policy`.
        path: String,
        /// Value to write.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Lists a directory of control files. Names of directories end with a slash.
    #[command(after_long_help = examples_text("rtrs-ctl-list"))]
    List {
        /// Directory [default: the root].
        #[arg(default_value = "")]
        path: String,
    },
    /// Prints the metrics that --metrics serves.
    #[command(after_long_help = examples_text("rtrs-ctl-metrics"))]
    Metrics,
}

/// Arguments of `rtrs mount`.
#[derive(Debug, Args)]
pub struct MountArgs {
    /// Mount point.
    pub dir: PathBuf,
    /// Control socket of a program. May be repeated: the mount shows the sessions of all these programs.
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub socket: Vec<PathBuf>,
}
