//! How a service works, and what it tells.

use std::fmt;
use std::time::Duration;

use ib_types::{Gid, Mtu, PKey, ServiceLevel};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use crate::Address;
use crate::config::addresses::AddressFile;
use crate::config::hosts::HostFile;
use crate::config::options::{Loopback, Options};

/// Who tells routes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteProtocol {
    /// Subnet administration is asked for each.
    #[default]
    Sa,
    /// They are made of what is known of the group that both sides have joined.
    Acm,
}

/// A multicast group by what its members can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupSpec {
    /// The rate.
    pub rate: RateCode,
    /// The MTU.
    pub mtu: MtuCode,
    /// The service level.
    pub sl: u8,
}

/// A name or an address of an own endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The name or the address.
    pub address: Address,
    /// The name of the adapter.
    pub device: Box<str>,
    /// The number of the port.
    pub port: u8,
    /// The partition.
    pub p_key: PKey,
}

/// How a service works.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// How long an answer of a peer or of subnet administration is awaited on the average of all attempts; the first
    /// ones have less of it than the later ones.
    pub timeout: Duration,
    /// How often is asked again.
    pub retries: u32,
    /// How many requests to subnet administration may be under way at each port.
    pub sa_depth: usize,
    /// Who tells routes.
    pub route_protocol: RouteProtocol,
    /// How long an address is known after its owner was heard of; `None` for ever.
    pub address_timeout: Option<Duration>,
    /// How long a route of subnet administration is known; `None` for as long as the address.
    pub route_timeout: Option<Duration>,
    /// Whether own addresses are resolved without any question.
    pub loopback: bool,
    /// How many addresses an endpoint asks for at a time.
    pub resolve_depth: usize,
    /// The group that everybody has: its rate and MTU.
    pub least: GroupSpec,
    /// Further groups, the least wanted first. The one of the port's own rate and MTU comes last, unless it is among them.
    pub groups: Vec<GroupSpec>,
    /// How often the owner of an address that is in use is asked whether it still is; `None` for only before the address
    /// is too old.
    pub check_interval: Option<Duration>,
    /// How often an endpoint says of itself who it is, after it has come into service.
    pub announcements: u32,
    /// Whether routes are made of groups only where subnet administration gives the same service level.
    pub check_routes: bool,
    /// The most addresses that an endpoint knows.
    pub most_destinations: usize,
    /// The most requests that wait.
    pub most_waiting: usize,
    /// Own names and addresses.
    pub assignments: Vec<Assignment>,
    /// Addresses of others that are known from the beginning.
    pub hosts: Vec<(Address, Gid)>,
}

impl Default for ServiceConfig {
    /// What ibacm has: 2 s, 2 retries, a day for addresses, 10 Gbit/s and 2048 bytes for everybody.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(2),
            retries: 2,
            sa_depth: 1,
            route_protocol: RouteProtocol::Sa,
            address_timeout: Some(Duration::from_secs(1440 * 60)),
            route_timeout: None,
            loopback: true,
            resolve_depth: 32,
            least: GroupSpec { rate: RateCode::GBPS_10, mtu: MtuCode::MTU_2048, sl: 0 },
            groups: Vec::new(),
            check_interval: Some(Duration::from_secs(300)),
            announcements: 2,
            check_routes: true,
            most_destinations: 1_000_000,
            most_waiting: 262_144,
            assignments: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

impl ServiceConfig {
    /// Returns what files say: options, own names, and hosts that are known from the beginning.
    ///
    /// Own IP addresses of the file count only with `support_ips_in_addr_cfg`; what the options say of sockets, logs and
    /// files is for whoever has those.
    #[must_use]
    pub fn of_files(options: &Options, addresses: &AddressFile, hosts: &HostFile) -> Self {
        let code = |mtu: Mtu| MtuCode(mtu.code());
        let (rate, mtu) = (options.min_rate, code(options.min_mtu));
        let groups = options.group.iter().map(|group| GroupSpec {
            rate: group.rate,
            mtu: code(group.mtu),
            sl: group.sl.map_or(0, ServiceLevel::get),
        });
        let assignments =
            addresses.in_use(options.support_ips_in_addr_cfg).map(|line| Assignment {
                address: line.address.clone(),
                device: line.device.clone(),
                port: line.port,
                p_key: line.p_key,
            });
        let hosts = hosts.lines.iter().map(|line| (line.address.clone(), line.gid));
        Self {
            timeout: options.timeout,
            retries: options.retries.into(),
            sa_depth: options.sa_depth.into(),
            route_protocol: options.route_prot,
            address_timeout: options.addr_timeout,
            route_timeout: options.route_timeout,
            loopback: options.loopback_prot == Loopback::Local,
            resolve_depth: options.resolve_depth.min(options.send_depth).into(),
            least: GroupSpec { rate, mtu, sl: 0 },
            groups: groups.collect(),
            check_interval: options.check_interval,
            announcements: options.announce.into(),
            check_routes: options.route_check,
            most_destinations: options.max_destinations as usize,
            assignments: assignments.collect(),
            hosts: hosts.collect(),
            ..Self::default()
        }
    }

    /// Returns how long an attempt waits: each twice as long as the one before, and all together as long as so many
    /// times `timeout`.
    pub(super) fn patience(&self, attempt: u32) -> Duration {
        let attempts = f64::from(self.retries.min(30) + 1);
        let share = f64::from(attempt.min(30)).exp2() / (attempts.exp2() - 1.0);
        self.timeout.mul_f64(attempts * share)
    }

    /// Returns how old something may become that is known for so long, until it is asked for again.
    pub(super) fn soon(limit: Duration) -> Duration {
        limit * 3 / 4
    }

    /// Returns how old an address in use may become until its owner is asked, in any case before it is too old; `None`
    /// for any age.
    pub(super) fn check_age(&self) -> Option<Duration> {
        self.check_interval.into_iter().chain(self.address_age()).min()
    }

    /// Returns how old an address may become; `None` for any age. One that counts for no time counts for as long as it
    /// takes to answer who has asked for it.
    pub(super) fn address_limit(&self) -> Option<Duration> {
        self.address_timeout.map(|limit| limit.max(Duration::from_secs(1)))
    }

    /// Returns how old an address in use may become until its owner is asked for that very one; `None` for any age.
    pub(super) fn address_age(&self) -> Option<Duration> {
        self.address_timeout.filter(|limit| !limit.is_zero()).map(Self::soon)
    }

    /// Returns the shortest of the times after which something grows old, which tells how often the caches are looked
    /// through; `None` for never. What counts for no time at all is asked for each time and need not be looked for.
    pub(super) fn sweep_span(&self) -> Option<Duration> {
        let spans = [self.check_interval, self.address_timeout, self.route_timeout];
        let spans = || spans.into_iter().flatten();
        let slow = spans().next().map(|_| Duration::from_mins(1));
        spans().filter(|span| !span.is_zero()).min().or(slow)
    }

    /// Returns how long the route to a port counts, with or without a service there; `None` for as long as the address.
    pub(super) fn route_limit(&self, has_service: bool) -> Option<Duration> {
        // Nobody but subnet administration can tell whether a port without a service has moved.
        let checked = self.check_interval.map(|interval| 2 * interval);
        let mute = [checked, self.address_timeout].into_iter().flatten().filter(|_| !has_service);
        self.route_timeout.into_iter().chain(mute).min()
    }

    /// Returns how old a route of a file in use may become, until subnet administration is asked for it before it is as old
    /// as that; `None` for any age. It counts for `route_timeout` all the same, whoever is silent then.
    pub(super) fn file_route_age(&self) -> Option<Duration> {
        self.route_timeout.into_iter().chain(self.address_timeout).min()
    }

    /// Returns how long a request may take at all, with its time in the queue.
    pub(super) fn limit(&self) -> Duration {
        2 * self.timeout * (self.retries + 1)
    }
}

/// What a service has done or seen since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounters {
    /// Questions sent to groups, announcements among them.
    pub multicasts: u64,
    /// Announcements.
    pub announcements: u64,
    /// Questions to one peer, whether it still is where it was.
    pub checks: u64,
    /// Answers to the questions of others.
    pub answers: u64,
    /// Questions of others that were heard.
    pub heard: u64,
    /// Requests to subnet administration for paths.
    pub sa_queries: u64,
    /// Requests to join groups.
    pub joins: u64,
    /// Datagrams that are no message of the protocol, or not of a version that is known.
    pub malformed: u64,
    /// Answers to no question, or not from whom they have to come.
    pub unasked: u64,
    /// Questions from a port that asks faster than it may.
    pub flooded: u64,
    /// What was said of an address that another port has and still claims.
    pub conflicts: u64,
    /// Addresses and GIDs beyond those that a port may have, or that there is room for.
    pub refused: u64,
}

/// Something that the owner of a service may want to write down.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An endpoint is in service.
    Up {
        /// The endpoint.
        endpoint: EndpointName,
        /// The groups that it has joined.
        groups: usize,
    },
    /// An endpoint is out of service.
    Down {
        /// The endpoint.
        endpoint: EndpointName,
        /// Why.
        why: &'static str,
    },
    /// Subnet administration refuses a group, or does not answer.
    NotJoined {
        /// The endpoint.
        endpoint: EndpointName,
        /// The group.
        mgid: Gid,
        /// Why.
        why: String,
    },
    /// Some routes are not made of groups, because subnet administration gives other service levels.
    RoutesDiffer {
        /// The endpoint.
        endpoint: EndpointName,
        /// The service level of a group that is joined.
        group: u8,
        /// Another one that subnet administration gives.
        given: u8,
        /// To which port.
        to: Gid,
        /// How many paths have another one than some group, and how many there are.
        count: (usize, usize),
    },
    /// All routes are made of groups again: subnet administration gives their service levels now.
    RoutesAgree {
        /// The endpoint.
        endpoint: EndpointName,
    },
    /// Subnet administration does not tell its paths, so service levels cannot be compared yet.
    RoutesUnknown {
        /// The endpoint.
        endpoint: EndpointName,
        /// Why.
        why: String,
    },
    /// A port without queue pairs of datagrams resolves by other means only.
    NoDatagrams {
        /// The endpoint.
        endpoint: EndpointName,
        /// Who shall tell routes; it is subnet administration whatever this says.
        routes: RouteProtocol,
    },
    /// Two ports claim an address.
    Conflict {
        /// The endpoint.
        endpoint: EndpointName,
        /// The address.
        address: Address,
        /// Who has it, and has said so again.
        owner: Gid,
        /// Who wants it.
        other: Gid,
    },
    /// A port asks too fast.
    Flood {
        /// The endpoint.
        endpoint: EndpointName,
        /// Its LID.
        lid: u16,
    },
}

/// What an endpoint without queue pairs of datagrams cannot do, and what it does instead.
pub const NO_DATAGRAMS: &str = "no queue pairs of datagrams here, which addr_prot acm needs: nobody is asked for \
    addresses; own and preloaded ones, GIDs and LIDs are resolved, with routes of subnet administration or of files";

/// An endpoint by the names that people know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointName {
    /// The adapter.
    pub device: Box<str>,
    /// The port.
    pub port: u8,
    /// The partition.
    pub p_key: PKey,
}

impl fmt::Display for EndpointName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {} pkey {:#06x}", self.device, self.port, self.p_key.0)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Up { endpoint, groups } => {
                write!(f, "{endpoint}: in service, in {groups} groups")
            }
            Self::Down { endpoint, why } => write!(f, "{endpoint}: out of service: {why}"),
            Self::NotJoined { endpoint, mgid, why } => {
                write!(f, "{endpoint}: cannot join the group {mgid}: {why}")
            }
            Self::RoutesDiffer { endpoint, group, given, to, count: (differ, all) } => write!(
                f,
                "{endpoint}: route_prot acm is refused, sa is used where service levels differ: {differ} of {all} \
                 paths of subnet administration have another one than the group's {group}, such as {given} to {to}"
            ),
            Self::RoutesAgree { endpoint } => write!(
                f,
                "{endpoint}: route_prot acm is used for all: the paths of subnet administration have the service \
                 level of the groups now"
            ),
            Self::RoutesUnknown { endpoint, why } => write!(
                f,
                "{endpoint}: sa is used until service levels are compared: subnet administration does not tell its \
                 paths: {why}"
            ),
            Self::NoDatagrams { endpoint, routes } => {
                write!(f, "{endpoint}: {NO_DATAGRAMS}")?;
                match routes {
                    RouteProtocol::Sa => Ok(()),
                    RouteProtocol::Acm => f.write_str("; route_prot acm is refused, sa is used"),
                }
            }
            Self::Conflict { endpoint, address, owner, other } => write!(
                f,
                "{endpoint}: {other} claims {address}, which {owner} has; it stays with {owner}"
            ),
            Self::Flood { endpoint, lid } => {
                write!(f, "{endpoint}: LID {lid} asks too fast; what is too much is dropped")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_share_the_time_and_each_has_twice_that_of_the_one_before() {
        for retries in [0, 1, 2, 5, 30] {
            let config = ServiceConfig { retries, ..ServiceConfig::default() };
            let all: Duration = (0..=retries).map(|attempt| config.patience(attempt)).sum();
            let expected = config.timeout * (retries + 1);
            assert!(all.abs_diff(expected) < Duration::from_micros(1), "{all:?} {expected:?}");
            assert!(
                retries == 0
                    || config.patience(1) >= config.patience(0) * 2 - Duration::from_nanos(2)
            );
        }
    }
}
