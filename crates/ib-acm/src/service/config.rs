//! Configuration of the service.

use std::time::Duration;

use ib_types::{Gid, Mtu, PKey, ServiceLevel};
use ib_wire::mad::sa::RateCode;
use ib_wire::mad::sm::MtuCode;

use crate::Address;
use crate::config::addresses::AddressFile;
use crate::config::hosts::HostFile;
use crate::config::options::{Loopback, Options, RouteProtocol};

/// Parameters of a multicast group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupSpec {
    /// Rate that every member of the group must support.
    pub rate: RateCode,
    /// MTU that every member of the group must support.
    pub mtu: MtuCode,
    /// Service level.
    pub sl: u8,
}

/// A name or an address assigned to an endpoint of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name or address of the endpoint.
    pub address: Address,
    /// Name of the HCA.
    pub device: Box<str>,
    /// Number of the HCA's port.
    pub port: u8,
    /// P_Key of the partition.
    pub p_key: PKey,
}

/// Configuration of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// Response timeout of a request to a peer or the SA: the mean over all attempts. The timeout doubles with each
    /// attempt.
    pub timeout: Duration,
    /// Number of retries of a request to a peer or the SA, after the first attempt.
    pub retries: u32,
    /// Maximum number of outstanding SA requests per port.
    pub sa_depth: usize,
    /// Source of routes.
    pub route_protocol: RouteProtocol,
    /// Lifetime of a cached address after its owner was last seen; `None` for no limit.
    pub address_timeout: Option<Duration>,
    /// Lifetime of a cached SA route; `None` for the lifetime of the peer's address.
    pub route_timeout: Option<Duration>,
    /// True if addresses of this machine are resolved locally, without a query.
    pub loopback: bool,
    /// Maximum number of addresses that an endpoint resolves concurrently.
    pub resolve_depth: usize,
    /// Parameters of the base group. Every endpoint joins it, and it carries the address resolution messages.
    pub base_group: GroupSpec,
    /// Groups that an endpoint joins in addition to the base group, in any order. They are used only with
    /// [`RouteProtocol::Acm`]. The service prefers groups with a higher rate and, among these, a higher MTU. It adds a
    /// group with the rate and the MTU of the port, unless this group is listed.
    pub groups: Vec<GroupSpec>,
    /// Interval at which a peer in use is verified by a unicast request. If `None`, the peer is verified only before
    /// its address expires.
    pub check_interval: Option<Duration>,
    /// Number of announcements that an endpoint sends after it has come up.
    pub announcements: u32,
    /// True if a route is derived from a group only when the SA reports the service level of the group for this path.
    pub check_routes: bool,
    /// Maximum number of cached addresses per endpoint.
    pub max_destinations: usize,
    /// Maximum number of pending client requests.
    pub max_pending: usize,
    /// Names and addresses of the endpoints of this machine.
    pub assignments: Vec<Assignment>,
    /// Preloaded addresses of other ports.
    pub hosts: Vec<(Address, Gid)>,
}

impl Default for ServiceConfig {
    /// Returns the defaults of [`Options`]. For example, the timeout is 2 s with 2 retries, and an address is cached
    /// for a day. The base group has a rate of 10 Gbit/s and an MTU of 2048 bytes.
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
            base_group: GroupSpec { rate: RateCode::GBPS_10, mtu: MtuCode::MTU_2048, sl: 0 },
            groups: Vec::new(),
            check_interval: Some(Duration::from_secs(300)),
            announcements: 2,
            check_routes: true,
            max_destinations: 1_000_000,
            max_pending: 262_144,
            assignments: Vec::new(),
            hosts: Vec::new(),
        }
    }
}

impl ServiceConfig {
    /// Returns the configuration that an options file, an address file and a hosts file describe.
    ///
    /// IP addresses of the address file are used only if `support_ips_in_addr_cfg` is set. Options for sockets, logs
    /// and file names are ignored.
    #[must_use]
    pub fn from_files(options: &Options, addresses: &AddressFile, hosts: &HostFile) -> Self {
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
            base_group: GroupSpec { rate, mtu, sl: 0 },
            groups: groups.collect(),
            check_interval: options.check_interval,
            announcements: options.announce.into(),
            check_routes: options.route_check,
            max_destinations: options.max_destinations as usize,
            assignments: assignments.collect(),
            hosts: hosts.collect(),
            ..Self::default()
        }
    }

    /// Returns the timeout of an attempt. The first attempt has the number 0. Each timeout is twice the preceding one,
    /// and the mean of all timeouts is `self.timeout`.
    pub(super) fn attempt_timeout(&self, attempt: u32) -> Duration {
        let attempts = f64::from(self.retries.min(30) + 1);
        let share = f64::from(attempt.min(30)).exp2() / (attempts.exp2() - 1.0);
        self.timeout.mul_f64(attempts * share)
    }

    /// Returns the age at which a cached entry with the given lifetime is refreshed.
    pub(super) fn refresh_age(limit: Duration) -> Duration {
        limit * 3 / 4
    }

    /// Returns the age at which a peer in use is verified; `None` if peers are never verified. The age is below the
    /// lifetime of the peer's address.
    pub(super) fn peer_check_age(&self) -> Option<Duration> {
        self.check_interval.into_iter().chain(self.address_check_age()).min()
    }

    /// Returns the lifetime of a cached address; `None` for no limit. If the configured lifetime is 0, returns 1 s, so
    /// that the service can respond to the client that requested the address.
    pub(super) fn address_lifetime(&self) -> Option<Duration> {
        self.address_timeout.map(|limit| limit.max(Duration::from_secs(1)))
    }

    /// Returns the age at which the owner of an address in use is requested to confirm the address; `None` if never.
    pub(super) fn address_check_age(&self) -> Option<Duration> {
        self.address_timeout.filter(|limit| !limit.is_zero()).map(Self::refresh_age)
    }

    /// Returns the shortest nonzero lifetime or check interval of cached entries. This time determines the interval of
    /// cache sweeps. Returns 1 minute if all are 0; `None` if entries neither expire nor are checked.
    pub(super) fn shortest_lifetime(&self) -> Option<Duration> {
        let spans = [self.check_interval, self.address_timeout, self.route_timeout];
        let spans = || spans.into_iter().flatten();
        let slow = spans().next().map(|_| Duration::from_mins(1));
        spans().filter(|span| !span.is_zero()).min().or(slow)
    }

    /// Returns the lifetime of a cached SA route; `None` for the lifetime of the peer's address. `has_service` is true
    /// if the route leads to a port with an ACM service.
    pub(super) fn route_lifetime(&self, has_service: bool) -> Option<Duration> {
        // A port without an ACM service cannot be checked: only the SA can report that the port has moved. Therefore
        // the check interval limits the lifetime of the route to the port.
        let checked = self.check_interval.map(|interval| 2 * interval);
        let without_service =
            [checked, self.address_timeout].into_iter().flatten().filter(|_| !has_service);
        self.route_timeout.into_iter().chain(without_service).min()
    }

    /// Returns the lifetime that determines the refresh age of a preloaded route; `None` if preloaded routes are never
    /// refreshed. If the SA does not respond to a refresh, the route remains valid until its age is `route_timeout`.
    pub(super) fn preloaded_route_lifetime(&self) -> Option<Duration> {
        self.route_timeout.into_iter().chain(self.address_timeout).min()
    }

    /// Returns the time limit of a client request, including its time in the queue.
    pub(super) fn request_time_limit(&self) -> Duration {
        2 * self.timeout * (self.retries + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempt_timeouts_double_and_sum_to_the_total() {
        for retries in [0, 1, 2, 5, 30] {
            let config = ServiceConfig { retries, ..ServiceConfig::default() };
            let all: Duration = (0..=retries).map(|attempt| config.attempt_timeout(attempt)).sum();
            let expected = config.timeout * (retries + 1);
            assert!(
                all.abs_diff(expected) < Duration::from_micros(1),
                "the timeouts sum to {all:?}, expected {expected:?}"
            );
            assert!(
                retries == 0
                    || config.attempt_timeout(1)
                        >= config.attempt_timeout(0) * 2 - Duration::from_nanos(2)
            );
        }
    }
}
