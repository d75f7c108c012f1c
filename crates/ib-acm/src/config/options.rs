//! How the service works: `ibacm_opts.cfg`, before 2010 `acm_opts.cfg`.
//!
//! ```text
//! # what a key is for stands in the file that `Options::to_file` writes
//! log_level 1
//! route_prot acm
//! group 100 4096
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `options/read.rs` | the reader |
//! | `options/write.rs` | the writer, with what it tells of each key |
//! | `options/fit.rs` | [`Options::fitted`]: options for the size of a cluster |

use std::time::Duration;

use ib_types::{Mtu, ServiceLevel};
use ib_wire::mad::sa::RateCode;

use super::{Word, text};

mod fit;
mod read;
mod write;

/// The most groups beside the first: a question lists six.
pub const MOST_GROUPS: usize = 5;

/// Source of routes: `route_prot`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteProtocol {
    /// SA path queries.
    #[default]
    Sa,
    /// Parameters of the multicast group that both ports have joined.
    Acm,
}

/// The only provider that there is: the protocol of [`ib_wire::mad::acm`], built in.
pub const PROVIDER: &str = "ibacmp";

/// The options of the service; the fields have the names of ibacm's keys.
///
/// The key `addr_prot` has no field: the only protocol is `acm`. The defaults are those of ibacm, but for
/// [`resolve_depth`](Self::resolve_depth) and [`send_depth`](Self::send_depth). Values outside of the
/// ranges given here can be written to a file, but not read from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Where the log goes; `/var/log/ibacm.log`.
    pub log_file: LogFile,
    /// How much is logged: 0 errors (the default), 1 events, 2 everything.
    pub log_level: u8,
    /// How much is logged of management datagrams, 0 to 255; 0.
    pub umad_debug_level: u8,
    /// The file with the process's number, which keeps a second service from starting; `/run/ibacm.pid`.
    pub lock_file: Word,
    /// The TCP port for clients, 1 to 65535; 6125.
    pub server_port: u16,
    /// How clients reach the service.
    pub server_mode: ServerMode,
    /// Whether only `ib_acme` and the kernel are served: the socket is not published where other programs
    /// look for it; no.
    pub acme_plus_kernel_only: bool,
    /// Where providers' libraries are. It has no effect: no library is loaded.
    pub provider_lib_path: Option<Word>,
    /// Whether the IP addresses of the address file count, rather than those of the interfaces; no.
    pub support_ips_in_addr_cfg: bool,
    /// Which provider serves which subnet, in the order of the file; none, which is the built-in one for all.
    pub provider: Vec<Provider>,
    /// How long an answer may take, beside the time that the subnet manager grants, 1 ms to 2^31 − 1 ms;
    /// 2 s. Written in full milliseconds.
    pub timeout: Duration,
    /// How often a question is sent again, 0 to 65535; 2.
    pub retries: u16,
    /// How many questions to subnet administration are open at once, 1 to 65535; 1.
    pub sa_depth: u16,
    /// How many addresses are asked for at once, 1 to 65535; 32, where ibacm has 1.
    pub resolve_depth: u16,
    /// How many messages are being sent at once, 1 to 65535; 32, where ibacm has 1.
    pub send_depth: u16,
    /// How many messages may be waiting to be looked at, 1 to 65535; 1024.
    pub recv_depth: u16,
    /// How long an address is known, in minutes up to 2^31 − 1; `None` for ever; 1440 minutes.
    pub addr_timeout: Option<Duration>,
    /// Where routes come from.
    pub route_prot: RouteProtocol,
    /// How long a route is known, in minutes up to 2^31 − 1; `None`, the default, as long as its address.
    pub route_timeout: Option<Duration>,
    /// How a machine's own addresses are resolved.
    pub loopback_prot: Loopback,
    /// The MTU of the group that all members share; 2048 bytes.
    pub min_mtu: Mtu,
    /// The rate of the group that all members share, one of [`RateCode::RATES`]; 10 Gbit/s. ibacm, as of
    /// its version 44, takes 28, 50, 400 and more for 10, so that it is in another group then.
    pub min_rate: RateCode,
    /// Whether there is a file of routes.
    pub route_preload: RoutePreload,
    /// The file of routes; `/etc/rdma/ibacm_route.data`.
    pub route_data_file: Word,
    /// Whether there is a file of hosts.
    pub addr_preload: AddressPreload,
    /// The file of hosts; `/etc/rdma/ibacm_hosts.data`.
    pub addr_data_file: Word,
    /// How often addresses in use are checked with their owners, in seconds up to 2^31 − 1; `None` only before
    /// `addr_timeout` is over; 300 s. ibfabric's own.
    pub check_interval: Option<Duration>,
    /// How often an address is announced after it came into service, 0 to 255; 2. ibfabric's own.
    pub announce: u8,
    /// Whether the service levels of subnet administration are compared with those of the groups before
    /// routes are made from groups; yes. ibfabric's own.
    pub route_check: bool,
    /// The most destinations that are known at once, 1 to 2^31 − 1; 1,000,000. ibfabric's own.
    pub max_destinations: u32,
    /// Groups beside that of `min_rate` and `min_mtu`, at most five, the least wanted first; none.
    /// ibfabric's own.
    pub group: Vec<GroupOption>,
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFile {
    /// `stdout`.
    Stdout,
    /// `stderr`.
    Stderr,
    /// A file, whose name is neither of these.
    File(Word),
}

/// How clients reach the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerMode {
    /// `unix`: by a socket in the file system, from the same machine.
    #[default]
    Unix,
    /// `loop`: by TCP, from the same machine.
    Loop,
    /// `open`: by TCP, from wherever the machine can be reached.
    Open,
}

/// How a machine's own addresses are resolved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loopback {
    /// `none`: like those of other machines.
    None,
    /// `local`: they are known from the start.
    #[default]
    Local,
}

/// Whether there is a file of routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoutePreload {
    /// `none`.
    #[default]
    None,
    /// `opensm_full_v1`: as OpenSM's plugin `dump_pr` writes it, see [`super::routes`].
    OpensmFullV1,
}

/// Whether there is a file of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressPreload {
    /// `none`.
    #[default]
    None,
    /// `acm_hosts`: see [`super::hosts`].
    AcmHosts,
}

/// Which provider serves a subnet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// The provider's name; one other than [`PROVIDER`] cannot be loaded.
    pub name: Word,
    /// The subnet's prefix; `None` for those that no other line names.
    pub prefix: Option<u64>,
}

/// A group beside the one that all members share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOption {
    /// Its rate, one of [`RateCode::RATES`].
    pub rate: RateCode,
    /// Its MTU.
    pub mtu: Mtu,
    /// Its service level; 0 where none is named.
    pub sl: Option<ServiceLevel>,
}

/// Why a file of options is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A value cannot be that of its key.
    #[error("{file}:{line}: {key}: found `{}`, expected {expected}", text::visible(found))]
    Value {
        /// The name of the file.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The key.
        key: &'static str,
        /// The value, cut after 80 characters.
        found: String,
        /// What it may be.
        expected: String,
    },
    /// There are more groups than a question has room for.
    #[error("{file}:{line}: group: found {} groups, expected at most {MOST_GROUPS}", MOST_GROUPS + 1)]
    Groups {
        /// The name of the file.
        file: String,
        /// The line of the first that is too many, counted from 1.
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
