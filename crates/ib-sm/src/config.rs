//! Configuration of the SM. Fields have the names of OpenSM's configuration file. Defaults are those of OpenSM
//! unless noted.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::{Backoff, Timing};
use ib_routing::{EngineList, LidOptions, RoutingOptions, Subnet};
use ib_wire::mad::sm::VlCap;

use crate::partition::Partitions;
use crate::qos::QosConfig;

/// Configuration of the SM.
#[derive(Clone, Debug)]
pub struct SmConfig {
    /// The GID prefix of the subnet.
    pub subnet_prefix: u64,
    /// The M_Key of all ports; 0 for no protection.
    pub m_key: u64,
    /// M_Key lease period in seconds; 0 for no expiry.
    pub m_key_lease_period: u16,
    /// M_Key protection level, 0 to 3.
    pub m_key_protection_level: u8,
    /// The `SM_Key` that the SMs of the subnet share.
    pub sm_key: u64,
    /// The `SA_Key` of trusted SA requests.
    pub sa_key: u64,
    /// Maximum total size of queued SA responses in bytes; larger ones are refused.
    pub sa_max_bytes: usize,
    /// SM priority, 0 to 15. The highest priority wins, then the lowest GUID.
    pub sm_priority: u8,
    /// `SubnetTimeOut`, the maximum trip time through the subnet: 4.096 µs × 2^value.
    pub subnet_timeout: u8,
    /// Maximum lifetime of a packet in a switch: 4.096 µs × 2^value; above 19 there is no limit.
    pub packet_life_time: u8,
    /// `HOQLife` of ports to switches: maximum time of a packet at the head of the queue.
    pub head_of_queue_lifetime: u8,
    /// `HOQLife` of ports to HCAs: maximum time of a packet at the head of the queue.
    pub leaf_head_of_queue_lifetime: u8,
    /// `VLStallCount` of ports to switches: number of packets dropped in sequence after which a VL stalls.
    pub vl_stall_count: u8,
    /// `VLStallCount` of ports to HCAs: number of packets dropped in sequence after which a VL stalls.
    pub leaf_vl_stall_count: u8,
    /// `LocalPhyErrors` threshold: number of errors that cause a trap.
    pub local_phy_errors_threshold: u8,
    /// `OverrunErrors` threshold: number of overruns that cause a trap.
    pub overrun_errors_threshold: u8,
    /// Maximum number of data VLs in use.
    pub max_op_vls: VlCap,
    /// Maximum number of outstanding SMPs, at least 1.
    pub max_smps: usize,
    /// Timeout and retries of SMPs.
    pub timing: Timing,
    /// Interval of light sweeps; `None` disables them.
    pub sweep_interval: Option<Duration>,
    /// Interval at which a standby SM polls the master.
    pub sminfo_polling_timeout: Duration,
    /// Number of unanswered polls after which the master is considered failed.
    pub sminfo_polling_retries: u32,
    /// SL-to-VL and VL arbitration tables of ports; `None` leaves the tables unchanged.
    pub qos: Option<QosConfig>,
    /// Partition enforcement by switches at host ports.
    pub part_enforce: PartEnforce,
    /// True if routes are kept while hosts and leaf switches leave and return (unicast cache).
    pub use_ucast_cache: bool,
    /// True if routes with credit loops are never programmed, even if hosts remain unreachable.
    pub require_deadlock_free: bool,
    /// True if the SM does not request client reregistration when it takes over the subnet.
    pub no_clients_rereg: bool,
    /// Partitions and their members.
    pub partitions: Partitions,
    /// Options of LIDs and routes.
    pub routing: RoutingConfig,
}

/// Routing configuration of a subnet.
#[derive(Clone, Default)]
pub struct RoutingConfig {
    /// The engines, in order of preference.
    pub engines: EngineList,
    /// Creates the engines' options for each plan, because options may name nodes that appear
    /// later. `None` for the default options.
    pub options: Option<Arc<OptionsFor>>,
    /// Options of LID assignment.
    pub lids: LidOptions,
}

/// Creates the engines' options for a subnet. The error gives the reason if that fails.
pub type OptionsFor = dyn Fn(&Subnet<'_>) -> Result<RoutingOptions, String> + Send + Sync;

impl fmt::Debug for RoutingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engines, options: _, lids } = self;
        let mut out = f.debug_struct("RoutingConfig");
        out.field("engines", engines).field("lids", lids).finish_non_exhaustive()
    }
}

/// Partition enforcement by switches at host ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartEnforce {
    /// Check packets that hosts send and receive.
    #[default]
    Both,
    /// Check packets that hosts send (inbound to the switch).
    In,
    /// Check packets that hosts receive (outbound from the switch).
    Out,
    /// No checks.
    Off,
}

impl PartEnforce {
    /// Returns whether inbound packets and outbound packets are checked.
    pub(crate) const fn directions(self) -> (bool, bool) {
        (matches!(self, Self::Both | Self::In), matches!(self, Self::Both | Self::Out))
    }
}

impl Default for SmConfig {
    /// OpenSM's defaults, except for 64 outstanding SMPs instead of 4.
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
