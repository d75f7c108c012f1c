//! The command line of `acme`, which is compatible with that of `ib_acme`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::tracer::StationArgs;

/// Arguments of `acme`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(true)
    .args(["endpoints", "destination", "perf", "addresses", "options"]))]
pub struct AcmeArgs {
    /// Lists all endpoints of the service, or only endpoint N, counted from 1.
    #[arg(short = 'e', long, value_name = "N", num_args = 0..=1)]
    pub endpoints: Option<Option<u8>>,
    /// Type of the addresses of -s and -d.
    #[arg(short = 'f', long, value_name = "FORMAT", default_value = "u")]
    pub address_format: AddressFormat,
    /// Source address [default: chosen by the service].
    #[arg(short = 's', long, value_name = "ADDRESS")]
    pub source: Option<String>,
    /// Destination address; `node[1-3,7]` stands for four names.
    #[arg(short = 'd', long, value_name = "ADDRESS")]
    pub destination: Option<String>,
    /// Verifies each path. The service sends the path to the SA, and the SA has to return the same path.
    #[arg(short = 'v', long)]
    pub verify: bool,
    /// Resolves addresses only from the cache of the service.
    #[arg(short = 'c', long)]
    pub cached: bool,
    /// Prints the counters of the service; `col` prints one counter per line. The value N prints the counters of
    /// endpoint N instead. `all` prints those of all endpoints, and `s` those of the endpoint with the address of -s.
    #[arg(short = 'P', long, value_name = "WHAT", num_args = 0..=1)]
    pub perf: Option<Option<String>>,
    /// Service to query: the path of a socket, which contains a `/`, or a host name. `node[1-3]` stands for
    /// three hosts [default: the service of this machine].
    #[arg(short = 'S', long, value_name = "SERVICE")]
    pub service: Option<String>,
    /// Number of times that each path is resolved.
    #[arg(short = 'C', long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub repetitions: u32,
    /// Writes the names and addresses of local ports, or of a simulated port, to a file [default:
    /// `ibacm_addr.cfg`].
    #[arg(short = 'A', long, value_name = "FILE", num_args = 0..=1)]
    pub addresses: Option<Option<PathBuf>>,
    /// Writes an options file [default: `ibacm_opts.cfg`]. If the SA responds, the options fit the size of the
    /// cluster.
    #[arg(short = 'O', long, value_name = "FILE", num_args = 0..=1)]
    pub options: Option<Option<PathBuf>>,
    /// Directory of the files of -A and -O.
    #[arg(short = 'D', long, value_name = "DIR", default_value = "/etc/rdma")]
    pub directory: PathBuf,
    /// Prints more details.
    #[arg(short = 'V', long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Prints the result as one JSON object.
    #[arg(long)]
    pub json: bool,
    /// The simulated port whose addresses -A writes, and the port at which -O queries the SA.
    #[command(flatten)]
    pub station: StationArgs,
}

/// The type of an address.
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
    /// An IP address, a name that the system resolves to an IP address, or else a LID.
    #[value(name = "u", alias = "unspecified")]
    Unspecified,
}
