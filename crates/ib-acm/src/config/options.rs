//! Options of the service: the file `ibacm_opts.cfg`, called `acm_opts.cfg` before 2010.
//!
//! ```text
//! # `Options::to_file` writes a file with a description of each key
//! log_level 1
//! route_prot acm
//! group 100 4096
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `options/read.rs` | [`Options::read`]: parses an options file |
//! | `options/write.rs` | [`Options::to_file`]: writes an options file with a description of each key |
//! | `options/fit.rs` | [`Options::fitted`]: options that suit the size of a cluster |

use std::time::Duration;

use ib_types::{Mtu, ServiceLevel};
use ib_wire::mad::sa::RateCode;

use super::{Word, text};

mod fit;
mod read;
mod write;

/// Maximum number of groups in addition to the base group: a message lists at most six groups, including the base
/// group.
pub const MOST_GROUPS: usize = 5;

/// Source of routes: `route_prot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteProtocol {
    /// Routes come from SA path queries.
    #[default]
    Sa,
    /// Routes are derived from the parameters of the multicast group that both ports have joined.
    Acm,
}

/// Name of the only provider, which is built in. It implements the protocol of [`ib_wire::mad::acm`].
pub const PROVIDER: &str = "ibacmp";

/// Options of the service. The fields have the names of ibacm's keys.
///
/// The key `addr_prot` has no field: the only protocol is `acm`. The defaults are those of ibacm, except for
/// [`resolve_depth`](Self::resolve_depth) and [`send_depth`](Self::send_depth). The writer writes any value, but the
/// reader refuses values outside of the ranges given here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Destination of the log [default: `/var/log/ibacm.log`].
    pub log_file: LogFile,
    /// Log level: 0 errors, 1 events, 2 all messages [default: 0].
    pub log_level: u8,
    /// Log level for MADs, 0 to 255, which only ibacm uses [default: 0].
    pub umad_debug_level: u8,
    /// PID file, which the service locks so that no second service starts [default: `/run/ibacm.pid`].
    pub lock_file: Word,
    /// TCP port for clients, 1 to 65535 [default: 6125].
    pub server_port: u16,
    /// Type of the sockets for clients [default: `unix`].
    pub server_mode: ServerMode,
    /// True if the service serves only `ib_acme` and the kernel, and creates no socket for other programs [default:
    /// false].
    pub acme_plus_kernel_only: bool,
    /// Directory of ibacm's provider libraries. The option has no effect, since this service loads no libraries.
    pub provider_lib_path: Option<Word>,
    /// True if endpoints have the IP addresses of the address file, not those of the interfaces [default: false].
    pub support_ips_in_addr_cfg: bool,
    /// Providers of subnets, in the order of the file [default: none: the built-in provider serves all subnets].
    pub provider: Vec<Provider>,
    /// Response timeout, 1 ms to 2^31 − 1 ms [default: 2 s]. The writer rounds it up to whole milliseconds.
    pub timeout: Duration,
    /// Number of retries of a request, 0 to 65535 [default: 2].
    pub retries: u16,
    /// Maximum number of outstanding SA queries, 1 to 65535 [default: 1].
    pub sa_depth: u16,
    /// Maximum number of addresses resolved at the same time, 1 to 65535 [default: 32; ibacm: 1].
    pub resolve_depth: u16,
    /// Maximum number of outstanding sends, 1 to 65535 [default: 32; ibacm: 1].
    pub send_depth: u16,
    /// Maximum number of messages in the receive queue, 1 to 65535 [default: 1024].
    pub recv_depth: u16,
    /// Lifetime of a cached address, up to 2^31 − 1 minutes; `None` for no limit [default: 1440 minutes].
    pub addr_timeout: Option<Duration>,
    /// Source of routes [default: `sa`].
    pub route_prot: RouteProtocol,
    /// Lifetime of a cached route, up to 2^31 − 1 minutes; `None` for the lifetime of the destination's address
    /// [default: `None`].
    pub route_timeout: Option<Duration>,
    /// Resolution of the machine's own addresses [default: `local`].
    pub loopback_prot: Loopback,
    /// MTU of the base group, which all machines join [default: 2048 bytes].
    pub min_mtu: Mtu,
    /// Rate of the base group, one of [`RateCode::RATES`] [default: 10 Gbit/s]. ibacm (as of rdma-core 44) reads a rate
    /// of 28, 50, or at least 400 Gbit/s as 10 Gbit/s, and therefore joins another group.
    pub min_rate: RateCode,
    /// Format of the file of preloaded routes [default: `none`].
    pub route_preload: RoutePreload,
    /// File of preloaded routes [default: `/etc/rdma/ibacm_route.data`].
    pub route_data_file: Word,
    /// Format of the file of preloaded addresses [default: `none`].
    pub addr_preload: AddressPreload,
    /// File of preloaded addresses [default: `/etc/rdma/ibacm_hosts.data`].
    pub addr_data_file: Word,
    /// Interval at which addresses in use are verified, up to 2^31 − 1 s [default: 300 s]. If `None`, an address is
    /// verified only before it expires. ibfabric only.
    pub check_interval: Option<Duration>,
    /// Number of announcements that an endpoint sends after it comes up, 0 to 255 [default: 2]. ibfabric only.
    pub announce: u8,
    /// True if a route is derived from a group only when the SA reports the service level of the group for this path
    /// [default: true]. ibfabric only.
    pub route_check: bool,
    /// Maximum number of cached addresses, 1 to 2^31 − 1 [default: 1,000,000]. ibfabric only.
    pub max_destinations: u32,
    /// Up to five groups in addition to the base group, in any order [default: none]. The service prefers groups with a
    /// higher rate and, among these, a higher MTU. Only `route_prot acm` uses the groups. ibfabric only.
    pub group: Vec<GroupOption>,
}

/// Destination of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFile {
    /// `stdout`.
    Stdout,
    /// `stderr`.
    Stderr,
    /// A file with a name other than `stdout` and `stderr`.
    File(Word),
}

/// Type of the sockets that the service opens for clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerMode {
    /// `unix`: a Unix domain socket, for clients of the same machine.
    #[default]
    Unix,
    /// `loop`: TCP on the loopback interface, for clients of the same machine.
    Loop,
    /// `open`: TCP on all interfaces.
    Open,
}

/// Resolution of addresses of the service's own machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loopback {
    /// `none`: the service resolves its own addresses like addresses of other machines.
    None,
    /// `local`: the service resolves its own addresses without a query.
    #[default]
    Local,
}

/// Format of the file of preloaded routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutePreload {
    /// `none`: no routes are preloaded.
    #[default]
    None,
    /// `opensm_full_v1`: the output of OpenSM's plugin `dump_pr`, see [`super::routes`].
    OpensmFullV1,
}

/// Format of the file of preloaded addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressPreload {
    /// `none`: no addresses are preloaded.
    #[default]
    None,
    /// `acm_hosts`: a hosts file, see [`super::hosts`].
    AcmHosts,
}

/// Assignment of a provider to a subnet. In ibacm, a provider is a library that implements a resolution protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// Name of the provider. Providers other than [`PROVIDER`] cannot be loaded.
    pub name: Word,
    /// Subnet prefix; `None` for all subnets that no other line of the file names.
    pub prefix: Option<u64>,
}

/// A multicast group in addition to the base group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOption {
    /// Rate, one of [`RateCode::RATES`].
    pub rate: RateCode,
    /// MTU.
    pub mtu: Mtu,
    /// Service level; `None` means 0.
    pub sl: Option<ServiceLevel>,
}

/// Error of an invalid options file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A value is invalid for its key.
    #[error("{file}:{line}: {key}: found `{}`, expected {expected}", text::visible(found))]
    Value {
        /// File name.
        file: String,
        /// Line number, from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The invalid value, truncated to 80 characters.
        found: String,
        /// Description of the values that the key accepts.
        expected: String,
    },
    /// The file has more groups than a message can list.
    #[error("{file}:{line}: group: found {} groups, expected at most {MOST_GROUPS}", MOST_GROUPS + 1)]
    Groups {
        /// File name.
        file: String,
        /// Line number of the first excess group, from 1.
        line: usize,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            log_file: LogFile::File(Word::of("/var/log/ibacm.log")),
            log_level: 0,
            umad_debug_level: 0,
            lock_file: Word::of("/run/ibacm.pid"),
            server_port: 6125,
            server_mode: ServerMode::Unix,
            acme_plus_kernel_only: false,
            provider_lib_path: None,
            support_ips_in_addr_cfg: false,
            provider: Vec::new(),
            timeout: Duration::from_secs(2),
            retries: 2,
            sa_depth: 1,
            resolve_depth: 32,
            send_depth: 32,
            recv_depth: 1024,
            addr_timeout: Some(Duration::from_mins(1440)),
            route_prot: RouteProtocol::Sa,
            route_timeout: None,
            loopback_prot: Loopback::Local,
            min_mtu: Mtu::B2048,
            min_rate: RateCode::GBPS_10,
            route_preload: RoutePreload::None,
            route_data_file: Word::of("/etc/rdma/ibacm_route.data"),
            addr_preload: AddressPreload::None,
            addr_data_file: Word::of("/etc/rdma/ibacm_hosts.data"),
            check_interval: Some(Duration::from_mins(5)),
            announce: 2,
            route_check: true,
            max_destinations: 1_000_000,
            group: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
