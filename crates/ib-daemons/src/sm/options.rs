//! Configuration of the SM's process.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ib_sm::{Partitions, SmConfig};
use ib_types::Guid;

use crate::log::Log;

/// The port at which the SM runs.
#[derive(Clone, Debug)]
pub enum SmPort {
    /// A port of a fabric that this process simulates.
    Sim {
        /// The file that describes the fabric.
        fabric: PathBuf,
        /// Name of the node at whose port the SM runs; `None` for the first host.
        node: Option<String>,
    },
    /// A port of a fabric that another process simulates.
    Ibsim {
        /// The name of the simulator's sockets.
        name: String,
        /// Name of the node at whose port the SM runs; `None` for the node that the environment variable `SIM_HOST`
        /// names.
        node: Option<String>,
    },
    /// A port of an HCA of this machine.
    Umad {
        /// The name of the HCA.
        name: String,
        /// Number of the port; `None` for the first port of the HCA.
        port: Option<u8>,
    },
    /// The port of this machine that has the configured GUID, or any port if no GUID is configured.
    AnyUmad,
}

/// Function that returns the SM's configuration. It logs warnings about the configured files.
pub type SmConfigSource = Arc<dyn Fn(&Log) -> Result<SmConfig, String> + Send + Sync>;

/// Function that reads the configured partitions. The daemon calls it before each requested sweep.
pub type PartitionsSource = Arc<dyn Fn() -> Result<Partitions, String> + Send + Sync>;

/// Configuration of the SM's process.
#[derive(Clone)]
pub struct ManagerOptions {
    /// The port at which the SM runs.
    pub place: SmPort,
    /// GUID of the port at which the SM runs; 0 for any port.
    pub guid: Guid,
    /// The option or the configuration line that has set `guid`, for error messages.
    pub guid_origin: String,
    /// Time after which the driver of a umad device gives up waiting for the response to an SMP.
    pub transaction_timeout: Duration,
    /// Source of the SM's configuration.
    pub sm_config: SmConfigSource,
    /// Source of the partitions, for a reload.
    pub partitions: PartitionsSource,
    /// True if the process exits as soon as the subnet is up.
    pub once: bool,
    /// True if the SM waits as standby while another SM is the master; false if the daemon exits with an error instead.
    /// At a simulated port without `once`, the SM always waits.
    pub standby: bool,
    /// True if the SM behaves as OpenSM: its output and its default files are those of OpenSM.
    pub as_opensm: bool,
    /// True if `dump_files_dir` is OpenSM's default. If this directory is not writable, the current directory replaces
    /// it.
    pub has_usual_dumps: bool,
    /// True if `log_file` is OpenSM's default and no command line option names it. If this file cannot be opened,
    /// standard error replaces it.
    pub has_usual_log: bool,
    /// True if the process continues in the background once the SM is set up.
    pub background: bool,
    /// True if the SM starts in the state NOT-ACTIVE.
    pub inactive: bool,
    /// True if cached LIDs remain valid after another SM was the master.
    pub honor_guid2lid: bool,
    /// Messages from before the log was opened, such as warnings about the configuration file. They are written to the
    /// log.
    pub notes: Vec<String>,
    /// The directory of the cache files, which contain LIDs, M_Keys and neighbours.
    pub cache_dir: Option<PathBuf>,
    /// The file with the process ID.
    pub pid_file: Option<PathBuf>,
    /// Name of the console socket; `None` for the first default name that is free.
    pub socket: Option<String>,
    /// The TCP address at which metrics are served.
    pub metrics: Option<SocketAddr>,
    /// Seconds between two collections of port counters; `None` for no collection.
    pub perf_interval: Option<u32>,
    /// The file that maps node GUIDs to names.
    pub node_name_map: Option<PathBuf>,
    /// The directory of OpenSM's dump files.
    pub dump_files_dir: Option<PathBuf>,
    /// Enabled log levels, as bits.
    pub log_flags: u8,
    /// The log file; if `None`, only errors are logged, on standard error.
    pub log_file: Option<PathBuf>,
    /// Size in MB at which the log file is truncated; 0 for no limit.
    pub log_max_size: u32,
    /// True if an existing log file is appended to instead of emptied.
    pub accum_log_file: bool,
}

impl fmt::Debug for ManagerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerOptions").field("place", &self.place).finish_non_exhaustive()
    }
}
