//! Configuration of the SM. Fields have the names of OpenSM's configuration file. Unless noted, defaults are those of
//! OpenSM.

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
    /// The `SA_Key` that makes SA requests trusted.
    pub sa_key: u64,
    /// Maximum memory in bytes of RMPP messages: SA requests that are being received, and responses that are being
    /// sent. The SA refuses requests that exceed it.
    pub sa_max_bytes: usize,
    /// SM priority, 0 to 15. The SM with the highest priority becomes master; if several have it, the one with the
    /// lowest GUID.
    pub sm_priority: u8,
    /// Exponent of `SubnetTimeOut`, the maximum trip time through the subnet: 4.096 µs × 2^value.
    pub subnet_timeout: u8,
    /// Exponent of the maximum lifetime of a packet in a switch: 4.096 µs × 2^value. Above 19 there is no limit.
    pub packet_life_time: u8,
    /// Exponent of `HOQLife` of switch ports to other switches: a packet stays at the head of a queue for at most 4.096
    /// µs × 2^value. Above 19 there is no limit.
    pub head_of_queue_lifetime: u8,
    /// Exponent of `HOQLife` of switch ports to HCAs: a packet stays at the head of a queue for at most 4.096 µs ×
    /// 2^value. Above 19 there is no limit.
    pub leaf_head_of_queue_lifetime: u8,
    /// `VLStallCount` of switch ports to other switches: after this many packets dropped in sequence, a VL stalls.
    pub vl_stall_count: u8,
    /// `VLStallCount` of switch ports to HCAs: after this many packets dropped in sequence, a VL stalls.
    pub leaf_vl_stall_count: u8,
    /// Threshold of `LocalPhyErrors`: after this many errors, a port sends a trap.
    pub local_phy_errors_threshold: u8,
    /// Threshold of `OverrunErrors`: after this many overruns, a port sends a trap.
    pub overrun_errors_threshold: u8,
    /// Maximum number of data VLs that ports use.
    pub max_op_vls: VlCap,
    /// Maximum number of outstanding SMPs, at least 1.
    pub max_smps: usize,
    /// Timeout and retries of SMPs.
    pub timing: Timing,
    /// Interval of light sweeps; `None` disables them.
    pub sweep_interval: Option<Duration>,
    /// Interval at which a standby SM polls the master.
    pub sminfo_polling_timeout: Duration,
    /// After this many polls without response, a standby SM considers the master failed.
    pub sminfo_polling_retries: u32,
    /// SL-to-VL and VL arbitration tables of ports. If `None`, the SM writes no VL arbitration tables, and writes
    /// SL-to-VL tables only if the routes need several service levels.
    pub qos: Option<QosConfig>,
    /// Partition enforcement: selects the packets whose P_Keys a switch checks at its ports to hosts.
    pub part_enforce: PartEnforce,
    /// True if routes are kept while hosts and leaf switches leave and return (unicast cache).
    pub use_ucast_cache: bool,
    /// True if routes with credit loops are never programmed, even if hosts remain unreachable.
    pub require_deadlock_free: bool,
    /// True if the SM does not request client reregistration when it takes over the subnet.
    pub no_clients_rereg: bool,
    /// Partitions and their members.
    pub partitions: Partitions,
    /// Options of LID assignment and routing.
    pub routing: RoutingConfig,
}

/// Routing configuration of a subnet.
#[derive(Clone, Default)]
pub struct RoutingConfig {
    /// The routing engines, in order of preference.
    pub engines: EngineList,
    /// Function that creates the engines' options; `None` for the default options. The SM calls it for each plan,
    /// because options may name nodes that join later.
    pub options: Option<Arc<OptionsFor>>,
    /// Options of LID assignment.
    pub lids: LidOptions,
}

/// Function that creates the engines' options for a subnet. If it fails, the error says why.
pub type OptionsFor = dyn Fn(&Subnet<'_>) -> Result<RoutingOptions, String> + Send + Sync;

impl fmt::Debug for RoutingConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engines, options: _, lids } = self;
        let mut out = f.debug_struct("RoutingConfig");
        out.field("engines", engines).field("lids", lids).finish_non_exhaustive()
    }
}

/// Partition enforcement: selects the packets whose P_Keys a switch checks at its ports to hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartEnforce {
    /// Both the packets that hosts send and the packets that hosts receive.
    #[default]
    Both,
    /// Packets that hosts send: inbound packets of the switch.
    In,
    /// Packets that hosts receive: outbound packets of the switch.
    Out,
    /// No checks.
    Off,
}

impl PartEnforce {
    /// Returns whether switches check inbound packets, and whether they check outbound packets.
    pub(crate) const fn directions(self) -> (bool, bool) {
        (matches!(self, Self::Both | Self::In), matches!(self, Self::Both | Self::Out))
    }
}

impl Default for SmConfig {
    /// Defaults of OpenSM, except for 64 outstanding SMPs instead of 4.
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
