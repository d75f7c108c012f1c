//! Options of a simulated fabric.

use std::time::Duration;

use ib_types::Mtu;

use crate::node::{LINEAR_CAPACITY, MULTICAST_CAPACITY};

/// Options of a simulated fabric.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of all random choices.
    pub seed: u64,
    /// Latency of a link, in addition to the transmission time. It includes the latency of the
    /// switch, because simulated switches forward without delay.
    pub latency: Duration,
    /// Buffer size of each VL of a port in bytes. The buffer has to hold a packet of the largest
    /// MTU.
    pub vl_buffer: u32,
    /// The MTU that ports support. A subnet manager sets the MTU that is used.
    pub mtu_cap: Mtu,
    /// `LinearFDBCap` of all switches: the number of LFT entries, from LID 0.
    pub linear_fdb_cap: u16,
    /// `MulticastFDBCap` of all switches: the number of MFT entries.
    pub multicast_fdb_cap: u16,
    /// Maximum number of SMPs in the output queue of a port.
    pub management_buffer: usize,
    /// Time limit for the response to a request, from its delivery to a client or agent.
    pub answer_within: Duration,
    /// The log level.
    pub log: LogLevel,
    /// True if packets are captured for [`Sim::take_packets`](crate::Sim::take_packets).
    pub tap: bool,
}

impl Default for Options {
    /// Returns options with seed 0, 200 ns of latency per link, and a buffer of 16 KiB per VL. As in
    /// ibsim, the MTU is 2048 bytes. Output queues have room for 4096 SMPs. Responses have a time
    /// limit of 30 s. Nothing is logged.
    fn default() -> Self {
        Self {
            seed: 0,
            latency: Duration::from_nanos(200),
            vl_buffer: 16 * 1024,
            mtu_cap: Mtu::B2048,
            linear_fdb_cap: LINEAR_CAPACITY,
            multicast_fdb_cap: MULTICAST_CAPACITY,
            management_buffer: 4096,
            answer_within: Duration::from_secs(30),
            log: LogLevel::Off,
            tap: false,
        }
    }
}

/// The log level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// No log.
    #[default]
    Off,
    /// Logs attached and detached clients, links, port states, traps, commands and lost packets.
    Events,
    /// Also logs MADs that are sent and delivered.
    Datagrams,
    /// Also logs every packet at every port.
    Hops,
}
