//! The configuration of the manager's process.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ib_sm::{Partitions, SmConfig};
use ib_types::Guid;

use crate::log::Log;

/// Where a subnet is.
#[derive(Clone, Debug)]
pub enum Place {
    /// Simulated in this process.
    Sim {
        /// The fabric file.
        fabric: PathBuf,
        /// The name of the node to manage from; `None` for the first host.
        node: Option<String>,
    },
    /// Behind the sockets of a simulator; without a name where the environment says.
    Ibsim {
        /// The name of the sockets.
        name: String,
        /// The name of the node to manage from.
        node: Option<String>,
    },
    /// Behind a port of an adapter; without a number its first.
    Umad {
        /// The name of the HCA.
        name: String,
        /// The number of the port.
        port: Option<u8>,
    },
    /// Behind the port that the settings name, or any.
    AnyUmad,
}

/// Returns the configuration of the engine; warnings about its files go to the log.
pub type SmConfigSource = Arc<dyn Fn(&Log) -> Result<SmConfig, String> + Send + Sync>;

/// Returns the partitions of the configuration, read again.
pub type PartitionsSource = Arc<dyn Fn() -> Result<Partitions, String> + Send + Sync>;

/// The configuration of the manager's process.
#[derive(Clone)]
pub struct ManagerOptions {
    /// Where the subnet is.
    pub place: Place,
    /// The GUID of the port to manage from; zero for any.
    pub guid: Guid,
    /// The option or line of a file that has set `guid`, for messages.
    pub guid_origin: String,
    /// Timeout of the driver of umad devices for SMPs.
    pub transaction_timeout: Duration,
    /// Returns the configuration of the engine.
    pub sm_config: SmConfigSource,
    /// Returns the partitions, for a reload.
    pub partitions: PartitionsSource,
    /// True if the manager ends once the subnet is up.
    pub once: bool,
    /// True if the manager waits, on a real port, while another one is the master.
    pub standby: bool,
    /// True if output and usual files are those of OpenSM.
    pub as_opensm: bool,
    /// True if `dump_files_dir` is OpenSM's usual directory, which no option has set.
    pub has_usual_dumps: bool,
    /// True if `log_file` is OpenSM's usual log, which no option has set.
    pub has_usual_log: bool,
    /// True if the process continues in the background once the manager is set up.
    pub background: bool,
    /// True if the manager starts in the state NOT ACTIVE.
    pub inactive: bool,
    /// True if LIDs of the cache count after another manager was the master.
    pub honor_guid2lid: bool,
    /// Messages from before the log was opened.
    pub notes: Vec<String>,
    /// The directory of the caches of LIDs, M_Keys and neighbours.
    pub cache_dir: Option<PathBuf>,
    /// The file with the number of the process.
    pub pid_file: Option<PathBuf>,
    /// The name of the console; `None` for the usual one, if that is free.
    pub socket: Option<String>,
    /// The TCP port of metrics on the loopback device.
    pub metrics_port: Option<u16>,
    /// Seconds between two collections of port counters; `None` for no collection.
    pub perf_interval: Option<u32>,
    /// The file with names of nodes.
    pub node_name_map: Option<PathBuf>,
    /// The directory of OpenSM's dump files.
    pub dump_files_dir: Option<PathBuf>,
    /// The levels that are logged.
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
