//! The command line of `acme`: that of `ib_acme`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::tracer::StationArgs;
use crate::output::Format;

/// Arguments of `acme`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true)
    .args(["endpoints", "destination", "perf", "addresses", "options"]))]
pub struct AcmeArgs {
    /// Shows all endpoints of the service, or one: its number, from 1.
    #[arg(short = 'e', long, value_name = "N", num_args = 0..=1)]
    pub endpoints: Option<Option<u8>>,
    /// What -s and -d are.
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "u")]
    pub address_format: AddressFormat,
    /// The source; the service chooses one without it.
    #[arg(short = 's', long, value_name = "ADDRESS")]
    pub source: Option<String>,
    /// The destinations: an address, or several such as `node[1-3,7]`.
    #[arg(short = 'd', long, value_name = "ADDRESS")]
    pub destination: Option<String>,
    /// Asks subnet administration, through the service, whether the path is one of its own.
    #[arg(short = 'v', long)]
    pub verify: bool,
    /// Only what the service knows already.
    #[arg(short = 'c', long)]
    pub cached: bool,
    /// Shows counters: of the service, `col` below each other; of endpoint N, of `all` endpoints, or of that with the
    /// address of -s (`s`).
    #[arg(short = 'P', long, value_name = "WHAT", num_args = 0..=1)]
    pub perf: Option<Option<String>>,
    /// The services: the path of a socket, which holds a `/`, or a host, or several such as `node[1-3]`; the machine's
    /// own without it.
    #[arg(short = 'S', long, value_name = "SERVICE")]
    pub service: Option<String>,
    /// How often each path is resolved.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,
    /// Writes names and addresses of the ports of this machine, or of a simulated one, to a file; `ibacm_addr.cfg`
    /// without a name.
    #[arg(short = 'A', long, value_name = "FILE", num_args = 0..=1)]
    pub addresses: Option<Option<PathBuf>>,
    /// Writes options to a file, fitted to the size of the cluster that subnet administration tells, where there is a
    /// port; `ibacm_opts.cfg` without a name.
    #[arg(short = 'O', long, value_name = "FILE", num_args = 0..=1)]
    pub options: Option<Option<PathBuf>>,
    /// The directory of the files of -A and -O.
    #[arg(short = 'D', long, value_name = "DIR", default_value = "/etc/rdma")]
    pub directory: PathBuf,
    /// Says more of what it does.
    #[arg(short = 'V', long)]
    pub verbose: bool,
    /// How results are printed.
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// The port of -A and -O.
    #[command(flatten)]
    pub station: StationArgs,
}

/// What an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AddressFormat {
    /// An IP address.
    #[value(name = "i", alias = "ip")]
    Ip,
    /// A name.
    #[value(name = "n", alias = "name")]
    Name,
    /// A LID.
    #[value(name = "l", alias = "lid")]
    Lid,
    /// A GID.
    #[value(name = "g", alias = "gid")]
    Gid,
    /// An IP address, or a name that the system has one for, or else a LID.
    #[value(name = "u", alias = "unspecified")]
    Unspecified,
}
