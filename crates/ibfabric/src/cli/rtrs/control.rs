//! The command lines of what shows statistics of RTRS and changes paths.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ib_daemons::rtrs::ControlConfig;

use crate::cli::examples_text;
use crate::output::Format;

/// The control socket of a program that is not told of another one.
pub(super) const DEFAULT_SOCKET: &str = "/run/ibfabric-rtrs.sock";

/// How a program lets others see and change its sessions and paths.
#[derive(Clone, Debug, Default, Args)]
pub struct ControlArgs {
    /// Lets `rtrs ctl` and `rtrs mount` see and change sessions and paths over this socket, of this user only.
    #[arg(long, value_name = "SOCKET")]
    pub control: Option<PathBuf>,
    /// Serves metrics for Prometheus on this port of the loopback device.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub metrics_port: Option<u16>,
}

impl ControlArgs {
    /// Returns the configuration of the control socket.
    pub(super) fn config(&self) -> ControlConfig {
        ControlConfig { control: self.control.clone(), metrics_port: self.metrics_port }
    }
}

/// Arguments of `rtrs ctl`.
#[derive(Debug, Args)]
pub struct CtlArgs {
    /// The control socket of the program, as it was given to `rtrs serve`, `rtrs bench` or `nbd`.
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_SOCKET, global = true)]
    pub control: PathBuf,
    /// How the answer is printed.
    #[arg(long, value_enum, default_value_t, global = true)]
    pub format: Format,
    /// What is done.
    #[command(subcommand)]
    pub action: CtlAction,
}

/// What can be done with the files of a program.
#[derive(Clone, Debug, Subcommand)]
pub enum CtlAction {
    /// Prints what a file says.
    #[command(after_long_help = examples_text("rtrs-ctl-get"))]
    Get {
        /// The file, such as `rtrs-client/SESSION/mpath_policy`.
        path: String,
    },
    /// Writes to a file, and waits until that is done.
    #[command(after_long_help = examples_text("rtrs-ctl-set"))]
    Set {
        /// The file.
        path: String,
        /// What is written.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Prints what is in a directory; directories have a slash behind them.
    #[command(after_long_help = examples_text("rtrs-ctl-list"))]
    List {
        /// The directory; the one that all are in without it.
        #[arg(default_value = "")]
        path: String,
    },
    /// Prints what --metrics-port serves.
    #[command(after_long_help = examples_text("rtrs-ctl-metrics"))]
    Metrics,
}

/// Arguments of `rtrs mount`.
#[derive(Debug, Args)]
pub struct MountArgs {
    /// The directory where the files are to be.
    pub dir: PathBuf,
    /// The control socket of a program; several may be given, and have their sessions side by side.
    #[arg(long, value_name = "SOCKET", default_value = DEFAULT_SOCKET)]
    pub control: Vec<PathBuf>,
}
