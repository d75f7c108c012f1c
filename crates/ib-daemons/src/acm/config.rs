//! Configuration of the daemon.

use std::path::PathBuf;

/// Default path of the Unix socket, as in ibacm.
pub const DEFAULT_SOCKET: &str = "/run/ibacm-unix.sock";

/// Selects ports of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortSelection {
    /// A port of a fabric that `ibfabric sim` simulates.
    Simulated {
        /// Name of the simulator's sockets.
        simulator: String,
        /// Node and port, as `NODE` or `NODE:PORT`; `None` for the first host.
        node: Option<String>,
    },
    /// Ports of this machine's HCAs, as `DEV` or `DEV:PORT`; all ports if empty.
    Umad(String),
}

/// Configuration of the daemon. Options of the service are in its files.
#[derive(Clone, Debug)]
pub struct AcmConfig {
    /// Ports of the service.
    pub ports: Vec<PortSelection>,
    /// The Unix socket for clients. If it and `tcp` are `None`, the files decide.
    pub socket: Option<PathBuf>,
    /// The TCP port for clients.
    pub tcp: Option<u16>,
    /// Time in microseconds for which the daemon polls for another request before it sleeps.
    pub spin: u64,
    /// True if other machines may connect to `tcp`.
    pub open: bool,
    /// Directory of the default files.
    pub config: PathBuf,
    /// Options file, if not the default one.
    pub options: Option<PathBuf>,
    /// Address file, if not the default one.
    pub addresses: Option<PathBuf>,
    /// The log file; `stdout` and `stderr` are the streams.
    pub log: Option<PathBuf>,
    /// The TCP port of metrics on the loopback device.
    pub metrics_port: Option<u16>,
    /// Maximum number of connected clients.
    pub max_clients: u32,
    /// True if systemd has opened the sockets.
    pub systemd: bool,
}

impl AcmConfig {
    /// Returns true if the service listens on the sockets that its options name.
    pub(super) const fn has_default_sockets(&self) -> bool {
        self.socket.is_none() && self.tcp.is_none()
    }

    /// Returns true if the log file or the options file was specified.
    pub(super) const fn names_log(&self) -> bool {
        self.log.is_some() || self.options.is_some()
    }
}
