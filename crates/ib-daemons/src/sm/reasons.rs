//! Reasons why options and keys of OpenSM are refused, for messages and help.

/// Why options of other routing engines are refused.
pub const ENGINE: &str = "it belongs to a routing engine that is not here: the engines are minhop, updn, \
                      ftree, lash, dor and file";
/// Why files of the SA are refused.
pub const SA_FILE: &str = "subnet administration is not loaded from files: clients register again";
/// Why congestion control is refused.
pub const CONGESTION: &str = "congestion control is not configured";
/// Replacement of the performance manager.
pub const PERFMGR: &str =
    "counters are collected with --perf-interval S and served with --metrics-port N";
/// Why a `QoS` policy file is refused.
pub const QOS_POLICY: &str = "service levels come from the routing engine and the partitions";
/// Why prefix routes are refused.
pub const PREFIX_ROUTES: &str = "paths lead to no other subnet";
/// Why multicast groups are not consolidated.
pub const ONE_LID_EACH: &str = "every multicast group has a LID of its own";
/// Why the analysis of meshes is refused.
pub const MESHES: &str = "lash takes meshes as they are";
/// Why a prefix for the system log is refused.
pub const NO_SYSLOG: &str = "nothing is written to the system's log";
/// Replacement of OpenSM's console.
pub const NO_CONSOLE: &str = "`ibfabric sm ctl` asks a running manager";
/// Why plugins are refused.
pub const NO_PLUGINS: &str = "there are no plugins";
/// Why other managers cannot be ignored.
pub const OTHER_MANAGERS: &str = "other managers cannot be ignored here";
/// Why multicast cannot be disabled.
pub const MULTICAST: &str = "multicast cannot be switched off";
