//! Configuration of the SM's process.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ib_sm::{Partitions, SmConfig};
use ib_types::Guid;

use crate::log::Log;

/// Port of the SM.
#[derive(Clone, Debug)]
pub enum SmPort {
    /// Port of a fabric that this process simulates.
    Sim {
        /// The fabric file.
        fabric: PathBuf,
        /// Name of the SM's node; `None` for the first host.
        node: Option<String>,
    },
    /// Port of a fabric that another process simulates.
    Ibsim {
        /// The name of the sockets.
        name: String,
        /// Name of the SM's node; `None` for the node in the environment variable `SIM_HOST`.
        node: Option<String>,
    },
    /// Port of an HCA of this machine.
    Umad {
        /// The name of the HCA.
        name: String,
        /// Number of the port; `None` for the first one.
        port: Option<u8>,
    },
    /// Port of this machine with the configured GUID; any port if none is configured.
    AnyUmad,
}

/// Returns the SM's configuration; warnings about its files are logged.
pub type SmConfigSource = Arc<dyn Fn(&Log) -> Result<SmConfig, String> + Send + Sync>;

/// Reads the configured partitions again.
pub type PartitionsSource = Arc<dyn Fn() -> Result<Partitions, String> + Send + Sync>;

/// Configuration of the SM's process.
#[derive(Clone)]
pub struct ManagerOptions {
    /// Location of the subnet.
    pub place: SmPort,
    /// GUID of the SM's port; 0 for any.
    pub guid: Guid,
    /// The option or line of a file that has set `guid`, for messages.
    pub guid_origin: String,
    /// Timeout of the driver of umad devices for SMPs.
    pub transaction_timeout: Duration,
    /// Returns the SM's configuration.
    pub sm_config: SmConfigSource,
    /// Returns the partitions after a reload.
    pub partitions: PartitionsSource,
    /// True if the process exits once the subnet is up.
    pub once: bool,
    /// True if the SM waits, on a real port, while another SM is the master.
    pub standby: bool,
    /// True if output and default files are those of OpenSM.
    pub as_opensm: bool,
    /// True if `dump_files_dir` is OpenSM's default directory, which no option has set.
    pub has_usual_dumps: bool,
    /// True if `log_file` is OpenSM's default log, which no option has set.
    pub has_usual_log: bool,
    /// True if the process continues in the background once the SM is set up.
    pub background: bool,
    /// True if the SM starts in the state NOT-ACTIVE.
    pub inactive: bool,
    /// True if LIDs of the cache remain valid after another SM was the master.
    pub honor_guid2lid: bool,
    /// Messages from before the log was opened.
    pub notes: Vec<String>,
    /// The directory of the caches of LIDs, M_Keys and neighbours.
    pub cache_dir: Option<PathBuf>,
    /// The file with the process ID.
    pub pid_file: Option<PathBuf>,
    /// Name of the console; `None` for the default name, if it is free.
    pub socket: Option<String>,
    /// TCP port of the metrics server on the loopback device.
    pub metrics_port: Option<u16>,
    /// Seconds between two collections of port counters; `None` for no collection.
    pub perf_interval: Option<u32>,
    /// The file that maps node GUIDs to names.
    pub node_name_map: Option<PathBuf>,
    /// The directory of OpenSM's dump files.
    pub dump_files_dir: Option<PathBuf>,
    /// Log levels, as bits.
    pub log_flags: u8,
    /// The log file; `None` for errors on standard error only.
    pub log_file: Option<PathBuf>,
    /// Maximum size of the log file in MB; 0 for no limit.
    pub log_max_size: u32,
    /// True if the log file is appended to, not emptied.
    pub accum_log_file: bool,
}

impl fmt::Debug for ManagerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerOptions").field("place", &self.place).finish_non_exhaustive()
    }
}
