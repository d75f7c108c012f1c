//! Configuration of the process that runs a fabric, its SM and its hosts.

use std::net::SocketAddr;
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
    /// The script: a file of simulator commands and the times at which they run.
    pub script: Option<PathBuf>,
    /// Options of the subnet manager.
    pub manager: ManagerOptions,
    /// The name of the simulator's sockets.
    pub socket: String,
    /// Size in bytes of the block device.
    pub size: u64,
    /// The task of the process.
    pub task: Task,
}

/// The task of the process.
#[derive(Clone, Debug)]
pub enum Task {
    /// Serves the fabric until a signal stops the process.
    Serve {
        /// The NBD socket of the block device.
        nbd: PathBuf,
        /// The TCP address of the page; port 0 stands for any free port, `None` for no page.
        http: Option<SocketAddr>,
        /// Options of the capture of all QPs of the hosts; `None` for no capture.
        capture: Option<OwnCapture>,
    },
    /// Runs the self-test, and exits.
    SelfTest(SelfTestConfig),
}

/// Configuration of the self-test.
#[derive(Clone, Debug)]
pub struct SelfTestConfig {
    /// The pcapng file to which the packets of the block device's QPs are written; `None` for a temporary file.
    pub pcap: Option<PathBuf>,
    /// Number of payload bytes to capture of each message.
    pub payload: u16,
    /// True if the self-test prints its report as JSON.
    pub is_json: bool,
}
