//! The configuration of the process.

use std::path::PathBuf;

use ib_routing::EngineList;

use crate::own_capture::OwnCapture;
use crate::sm::ManagerOptions;

/// The configuration of a process with a fabric, its SM and its hosts.
#[derive(Clone, Debug)]
pub struct UpConfig {
    /// The name of the fabric, for the page.
    pub fabric_name: String,
    /// The routing engines, in order of preference.
    pub engine: EngineList,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The file of commands with their times.
    pub script: Option<PathBuf>,
    /// The subnet manager.
    pub manager: ManagerOptions,
    /// The name of the sockets.
    pub socket: String,
    /// Size in bytes of the block device.
    pub size: u64,
    /// The NBD socket of the block device.
    pub nbd: PathBuf,
    /// The TCP port of the page on the loopback device, 0 for any that is free; `None` for no page.
    pub http: Option<u16>,
    /// The pcapng file of the packets of the block device.
    pub write: Option<PathBuf>,
    /// Captured bytes of the payload of each message in `write`.
    pub payload: u16,
    /// The capture of the packets of all hosts.
    pub capture: Option<OwnCapture>,
    /// True if the self-test runs, after which the process ends.
    pub check: bool,
    /// True if the report of the self-test is JSON.
    pub is_json: bool,
}
