//! How a subnet is managed. The fields have the names of OpenSM's configuration file, and its
//! defaults unless it says otherwise.

use std::time::Duration;

use ib_mad::{Backoff, Timing};
use ib_wire::mad::sm::VlCap;

use crate::partition::Partitions;
use crate::plan::RoutingConfig;
use crate::qos::QosConfig;

/// How a subnet is managed.
#[derive(Clone, Debug)]
pub struct SmConfig {
    /// The upper half of the GIDs.
    pub subnet_prefix: u64,
    /// The key that guards the attributes of all ports; zero for none.
    pub m_key: u64,
    /// Seconds until the protection of the key ends when nobody renews it; 0 for never.
    pub m_key_lease_period: u16,
    /// How much the key protects, 0 to 3.
    pub m_key_protection_level: u8,
    /// The key that managers of the subnet share.
    pub sm_key: u64,
    /// The key by which requests to administration are trusted.
    pub sa_key: u64,
    /// How many bytes the answers of administration may hold together; longer ones are refused.
    pub sa_max_bytes: usize,
    /// The priority among managers, 0 to 15; the higher one wins, then the lower GUID.
    pub sm_priority: u8,
    /// The longest trip through the subnet: 4.096 µs × 2^value.
    pub subnet_timeout: u8,
    /// How long a packet may stay in a switch: 4.096 µs × 2^value; above 19 indefinitely.
    pub packet_life_time: u8,
    /// How long a packet may stand at the head of the queue to another switch.
    pub head_of_queue_lifetime: u8,
    /// How long a packet may stand at the head of the queue to an HCA.
    pub leaf_head_of_queue_lifetime: u8,
    /// After how many packets dropped in sequence a VL to another switch stalls.
    pub vl_stall_count: u8,
    /// After how many packets dropped in sequence a VL to an HCA stalls.
    pub leaf_vl_stall_count: u8,
    /// How many local physical errors make a trap.
    pub local_phy_errors_threshold: u8,
    /// How many overruns make a trap.
    pub overrun_errors_threshold: u8,
    /// The most data VLs that are used.
    pub max_op_vls: VlCap,
    /// How many SMPs may be on their way; at least one is.
    pub max_smps: usize,
    /// How patiently an SMP's answer is awaited.
    pub timing: Timing,
    /// The time between light sweeps; `None` for none.
    pub sweep_interval: Option<Duration>,
    /// How often a manager that stands by asks the master.
    pub sminfo_polling_timeout: Duration,
    /// After how many questions without an answer the master has failed.
    pub sminfo_polling_retries: u32,
    /// What ports are told of service levels and VLs; `None` leaves them as they are.
    pub qos: Option<QosConfig>,
    /// Where switches check the partitions of what their hosts send and receive.
    pub part_enforce: PartEnforce,
    /// Whether routes are kept when hosts and leaf switches go and come back (unicast cache).
    pub use_ucast_cache: bool,
    /// True if routes with credit loops are never programmed, even if hosts stay unreachable.
    pub require_deadlock_free: bool,
    /// Whether clients are not asked to register again when a manager takes the subnet over.
    pub no_clients_rereg: bool,
    /// Who may talk to whom.
    pub partitions: Partitions,
    /// LIDs and routes.
    pub routing: RoutingConfig,
}

/// Where switches check the partitions of what their hosts send and receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartEnforce {
    /// What hosts send and what they receive.
    #[default]
    Both,
    /// What hosts send: what comes into the switch.
    In,
    /// What hosts receive: what leaves the switch.
    Out,
    /// Nothing.
    Off,
}

impl PartEnforce {
    /// Returns whether packets are checked that come in, and those that leave.
    pub(crate) const fn directions(self) -> (bool, bool) {
        (matches!(self, Self::Both | Self::In), matches!(self, Self::Both | Self::Out))
    }
}

impl Default for SmConfig {
    /// OpenSM's defaults, but for 64 SMPs in flight instead of 4.
    fn default() -> Self {
        Self {
            subnet_prefix: ib_types::Gid::DEFAULT_PREFIX,
            m_key: 0,
            m_key_lease_period: 0,
            m_key_protection_level: 0,
            sm_key: 1,
            sa_key: 1,
            sa_max_bytes: 256 << 20,
            sm_priority: 0,
            subnet_timeout: 18,
            packet_life_time: 0x12,
            head_of_queue_lifetime: 0x12,
            leaf_head_of_queue_lifetime: 0x10,
            vl_stall_count: 7,
            leaf_vl_stall_count: 7,
            local_phy_errors_threshold: 8,
            overrun_errors_threshold: 8,
            max_op_vls: VlCap::VL0_14,
            max_smps: 64,
            timing: Timing {
                timeout: Duration::from_millis(200),
                retries: 3,
                backoff: Backoff::Fixed,
            },
            sweep_interval: Some(Duration::from_secs(10)),
            sminfo_polling_timeout: Duration::from_secs(10),
            sminfo_polling_retries: 4,
            qos: None,
            part_enforce: PartEnforce::Both,
            use_ucast_cache: false,
            require_deadlock_free: false,
            no_clients_rereg: false,
            partitions: Partitions::default(),
            routing: RoutingConfig::default(),
        }
    }
}
