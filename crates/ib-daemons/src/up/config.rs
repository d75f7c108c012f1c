//! Configuration of the process that runs a fabric, its SM and its hosts.

use std::path::PathBuf;

use ib_routing::EngineList;

use crate::own_capture::OwnCapture;
use crate::sm::ManagerOptions;

/// Configuration of the process that runs a fabric, its SM and its hosts.
#[derive(Clone, Debug)]
pub struct UpConfig {
    /// The name of the fabric that the page shows.
    pub fabric_name: String,
    /// The routing engines, in order of preference.
    pub engine: EngineList,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The script: a file of commands with their times.
    pub script: Option<PathBuf>,
    /// Options of the subnet manager.
    pub manager: ManagerOptions,
    /// The name of the simulator's sockets.
    pub socket: String,
    /// Size in bytes of the block device.
    pub size: u64,
    /// The NBD socket of the block device.
    pub nbd: PathBuf,
    /// The TCP port of the page at the loopback address; 0 for any free port, `None` for no page.
    pub http: Option<u16>,
    /// The pcapng file to which the packets of the block device's QPs are written; `None` for no file.
    pub write: Option<PathBuf>,
    /// Maximum number of payload bytes per message that are written to the file `write`.
    pub payload: u16,
    /// Options of the capture of all QPs of the hosts; `None` for no capture.
    pub capture: Option<OwnCapture>,
    /// True if the process runs the self-test and then exits.
    pub check: bool,
    /// True if the self-test prints its report as JSON.
    pub is_json: bool,
}
