//! Reasons why options and keys of OpenSM are refused, for messages and help.

/// Why options of unsupported routing engines are refused.
pub const ENGINE: &str = "it belongs to an unsupported routing engine: the engines are minhop, updn, ftree, \
    lash, dor and file";
/// Why files with SA data are refused.
pub const SA_FILE: &str = "the SA database is not loaded from files: clients register again";
/// Why congestion control is refused.
pub const CONGESTION: &str = "congestion control is not configured";
/// What to use instead of OpenSM's performance manager.
pub const PERFMGR: &str =
    "use --perf-interval S to collect port counters, and --metrics ADDR:PORT to serve them";
/// Why a `QoS` policy file is refused.
pub const QOS_POLICY: &str = "SLs are assigned by the routing engine and the partitions";
/// Why prefix routes are refused.
pub const PREFIX_ROUTES: &str = "paths to other subnets are not supported";
/// Why several multicast groups cannot share a LID.
pub const ONE_LID_EACH: &str = "every multicast group has a LID of its own";
/// Why `do_mesh_analysis`, an option of the lash engine, is refused.
pub const MESHES: &str = "lash detects the dimensions of meshes without this option";
/// Why a prefix for lines in the system log is refused.
pub const NO_SYSLOG: &str = "nothing is written to the system log";
/// What to use instead of OpenSM's console.
pub const NO_CONSOLE: &str = "use `ibfabric sm ctl`";
/// Why plugins are refused.
pub const NO_PLUGINS: &str = "plugins are not supported";
/// Why other SMs cannot be ignored.
pub const OTHER_MANAGERS: &str = "other SMs cannot be ignored";
/// Why multicast cannot be disabled.
pub const MULTICAST: &str = "multicast cannot be disabled";
