//! Configuration of the simulator.

use std::path::PathBuf;
use std::time::Duration;

use ib_sim::{LogLevel, Options};
use ib_types::Mtu;

use crate::sm::ManagerOptions;

/// Configuration of the simulator.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// Options of the subnet manager that runs at the first host; `None` for no subnet manager.
    pub manager: Option<ManagerOptions>,
    /// Names of the nodes with agents for ibtracer and ibping, separated by commas; all nodes if empty. `None` for no
    /// agents.
    pub agents: Option<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// The script: a file of commands with their times.
    pub script: Option<PathBuf>,
    /// Number of faults that are injected at random.
    pub random_faults: u32,
    /// Random faults are injected within this time after the start of the simulation.
    pub random_time: Duration,
    /// The file with the IP addresses of ports.
    pub addresses: Option<PathBuf>,
    /// The pcapng file to which all packets are written; `-` for standard output.
    pub pcap: Option<PathBuf>,
    /// The log file; `-` for standard error.
    pub log: Option<PathBuf>,
    /// How detailed the log is.
    pub log_level: LogLevel,
    /// The file that records all input, for a replay.
    pub record: Option<PathBuf>,
    /// Latency from a port to the port at the other end of its link, without the serialization time of the packet.
    pub latency: Duration,
    /// Size in bytes of the receive buffer of each VL of a port.
    pub lane_buffer: u32,
    /// Maximum MTU of ports.
    pub mtu: Mtu,
    /// `LinearFDBCap` of all switches.
    pub linear_cap: u16,
    /// `MulticastFDBCap` of all switches.
    pub mcast_cap: u16,
    /// How long a client may take to respond to a MAD.
    pub answer_within: Duration,
}

impl Default for SimConfig {
    /// Returns the configuration of a simulator without SM and agents, which reads and writes no files.
    fn default() -> Self {
        let options = Options::default();
        Self {
            manager: None,
            agents: None,
            seed: 0,
            script: None,
            random_faults: 0,
            random_time: Duration::ZERO,
            addresses: None,
            pcap: None,
            log: None,
            log_level: LogLevel::Events,
            record: None,
            latency: options.latency,
            lane_buffer: options.vl_buffer,
            mtu: options.mtu_cap,
            linear_cap: options.linear_fdb_cap,
            mcast_cap: options.multicast_fdb_cap,
            answer_within: options.answer_within,
        }
    }
}
