//! How a fabric behaves.

use std::time::Duration;

use ib_types::Mtu;

use crate::node::{LINEAR_CAPACITY, MULTICAST_CAPACITY};

/// How a fabric behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seeds all that is random.
    pub seed: u64,
    /// How long a packet takes from the end of one port to that of the next, beside the time of its
    /// bytes: cable and switch.
    pub latency: Duration,
    /// The buffer of each VL of a port in bytes, at least one packet of the greatest MTU.
    pub vl_buffer: u32,
    /// The largest payload that ports can carry; a subnet manager says how much they do.
    pub mtu_cap: Mtu,
    /// `LinearFDBCap` of all switches: the number of LIDs that they can forward, from LID 0 on.
    pub linear_fdb_cap: u16,
    /// `MulticastFDBCap` of all switches: the number of multicast LIDs that they can forward.
    pub multicast_fdb_cap: u16,
    /// How many packets of subnet management may wait to leave by a port.
    pub management_buffer: usize,
    /// How long a client has to answer a request that was handed to it.
    pub answer_within: Duration,
    /// How much is logged.
    pub log: LogLevel,
    /// Whether packets are kept for [`Sim::take_packets`](crate::Sim::take_packets).
    pub tap: bool,
}

impl Default for Options {
    /// Seed 0, 200 ns per hop, 16 KiB per VL, an MTU of 2048 bytes as ibsim has it, 4096 packets of subnet management, 30 s to answer,
    /// no log.
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

/// How much is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Nothing.
    #[default]
    Off,
    /// Clients that come and go, links, states of ports, traps, commands and packets that are lost.
    Events,
    /// Datagrams that are sent and delivered, too.
    Datagrams,
    /// Every packet at every port.
    Hops,
}
