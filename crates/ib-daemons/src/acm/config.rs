//! The configuration of the service's process.

use std::path::PathBuf;

/// The socket where programs look for the service, as ibacm has it.
pub const DEFAULT_SOCKET: &str = "/run/ibacm-unix.sock";

/// A port that a service is at, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Of a fabric that `ibfabric sim` simulates.
    Simulated {
        /// The name of its sockets.
        simulator: String,
        /// The node and its port, as `NODE` or `NODE:PORT`; the first host without it.
        node: Option<String>,
    },
    /// Of this machine's adapters, as `DEV` or `DEV:PORT`; all of them where it is empty.
    Umad(String),
}

/// The configuration of the service's process. Options of the service are in its files.
#[derive(Clone, Debug)]
pub struct AcmConfig {
    /// The ports that the service is at.
    pub places: Vec<Place>,
    /// The Unix socket for programs. If it and `tcp` are `None`, the files decide.
    pub socket: Option<PathBuf>,
    /// The TCP port for programs.
    pub tcp: Option<u16>,
    /// Time in microseconds for which the service looks for another request before it sleeps.
    pub spin: u64,
    /// True if other machines may connect to `tcp`.
    pub open: bool,
    /// The directory of the usual files.
    pub config: PathBuf,
    /// The file of options, if it is not the usual one.
    pub options: Option<PathBuf>,
    /// The file of own names and addresses, if it is not the usual one.
    pub addresses: Option<PathBuf>,
    /// The log file; `stdout` and `stderr` are the streams.
    pub log: Option<PathBuf>,
    /// The TCP port of metrics on the loopback device.
    pub metrics_port: Option<u16>,
    /// Maximum number of programs that are connected at a time.
    pub most_clients: u32,
    /// True if systemd has opened the sockets.
    pub systemd: bool,
}
