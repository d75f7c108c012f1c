//! Configuration of the ACM daemon.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Default path of the service's Unix socket, the same as ibacm's.
pub const DEFAULT_SOCKET: &str = "/run/ibacm-unix.sock";

/// Default directory of the configuration files, the same as ibacm's. It may be absent.
pub(super) const DEFAULT_DIRECTORY: &str = "/etc/rdma";

/// Selects ports at which the service runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSelection {
    /// A port of a fabric that `ibfabric sim` simulates.
    Simulated {
        /// Name of the simulator's sockets.
        simulator: String,
        /// The node and the port, as `NODE` or `NODE:PORT`; `None` for the first host of the fabric.
        node: Option<String>,
    },
    /// The ports of this machine's HCAs, as `DEV` or `DEV:PORT`; an empty name selects all ports.
    Umad(String),
}

/// Configuration of the ACM daemon. The options of the service are in its configuration files.
#[derive(Clone, Debug)]
pub struct AcmConfig {
    /// The ports at which the service runs.
    pub ports: Vec<PortSelection>,
    /// The Unix socket for clients. If both `socket` and `tcp` are `None`, the options file decides where the service
    /// listens.
    pub socket: Option<PathBuf>,
    /// The TCP address for clients.
    pub tcp: Option<SocketAddr>,
    /// How long the daemon polls for another request before it sleeps, in microseconds.
    pub spin: u64,
    /// Directory of the options file and the address file, unless `options` and `addresses` specify these files.
    pub config: PathBuf,
    /// The options file; `None` for `ibacm_opts.cfg` or, if absent, `acm_opts.cfg` in the directory `config`.
    pub options: Option<PathBuf>,
    /// The address file; `None` for `ibacm_addr.cfg` or, if absent, `acm_addr.cfg` in the directory `config`.
    pub addresses: Option<PathBuf>,
    /// The log file; `stdout` and `stderr` stand for the standard streams.
    pub log: Option<PathBuf>,
    /// The TCP address at which metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Maximum number of simultaneously connected clients.
    pub max_clients: u32,
    /// True if systemd has opened the sockets for clients.
    pub systemd: bool,
}

impl AcmConfig {
    /// Returns true if neither a Unix socket nor a TCP port was configured. The options file then selects the sockets.
    pub(super) const fn has_default_sockets(&self) -> bool {
        self.socket.is_none() && self.tcp.is_none()
    }

    /// Returns true if the configuration may name a log file: either directly, or in the options file `options`.
    pub(super) const fn names_log(&self) -> bool {
        self.log.is_some() || self.options.is_some()
    }
}
