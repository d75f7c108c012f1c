//! Counters of the service, and the events that its owner logs.

use std::fmt;

use ib_types::{Gid, PKey};

use crate::Address;
use crate::config::options::RouteProtocol;

/// Counters of a service since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCounters {
    /// Multicast address resolution requests sent, including announcements.
    pub multicasts: u64,
    /// Announcements sent.
    pub announcements: u64,
    /// Unicast address resolution requests sent to verify a cached peer.
    pub checks: u64,
    /// Address resolution responses sent.
    pub answers: u64,
    /// Address resolution requests received.
    pub heard: u64,
    /// SA path queries sent.
    pub sa_queries: u64,
    /// SA requests to join multicast groups.
    pub joins: u64,
    /// Received datagrams that the service cannot use: malformed ACM messages, unknown versions, unusable source
    /// addresses, and responses with an error status or without a group of the request.
    pub malformed: u64,
    /// Unsolicited responses: no request was outstanding, or the response came from another port than the queried one.
    pub unasked: u64,
    /// Messages dropped because the sending port exceeded the rate limit.
    pub flooded: u64,
    /// Claims of a port to an address or a GID of another port, which the service did not accept.
    pub conflicts: u64,
    /// Addresses and GIDs that were not cached because a port or the cache had reached its limit.
    pub refused: u64,
}

/// Event that the owner of a service may log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// An endpoint is up.
    Up {
        /// The endpoint.
        endpoint: EndpointName,
        /// Number of multicast groups that the endpoint has joined.
        groups: usize,
    },
    /// An endpoint is down.
    Down {
        /// The endpoint.
        endpoint: EndpointName,
        /// Reason why the endpoint is down.
        why: &'static str,
    },
    /// The endpoint cannot join a multicast group: the SA rejected the request or did not respond.
    NotJoined {
        /// The endpoint.
        endpoint: EndpointName,
        /// MGID of the group.
        mgid: Gid,
        /// Reason of the failed join.
        why: String,
    },
    /// Some routes cannot be derived from multicast groups, because the SA gives other service levels.
    RoutesDiffer {
        /// The endpoint.
        endpoint: EndpointName,
        /// Service level of a joined group.
        group: u8,
        /// Service level of a path. It differs from `group`.
        given: u8,
        /// Destination port of the path with the service level `given`.
        to: Gid,
        /// Number of paths whose service level differs from the service level of a group, and number of all paths.
        count: (usize, usize),
    },
    /// All routes are derived from multicast groups again, because the service levels of all paths equal those of the
    /// groups.
    RoutesAgree {
        /// The endpoint.
        endpoint: EndpointName,
    },
    /// The SA did not return the paths of the endpoint, so service levels cannot be compared yet.
    RoutesUnknown {
        /// The endpoint.
        endpoint: EndpointName,
        /// Reason of the failed SA query.
        why: String,
    },
    /// The port has no UD QPs, so addresses cannot be resolved over multicast.
    NoDatagrams {
        /// The endpoint.
        endpoint: EndpointName,
        /// Configured route protocol. It has no effect, because routes come from the SA in any case.
        routes: RouteProtocol,
    },
    /// Two ports claim the same address.
    Conflict {
        /// The endpoint.
        endpoint: EndpointName,
        /// The address.
        address: Address,
        /// Port that has the address and still responds for it.
        owner: Gid,
        /// Port that claims the address.
        other: Gid,
    },
    /// A peer's port exceeded the rate limit of requests.
    Flood {
        /// The endpoint.
        endpoint: EndpointName,
        /// LID of the peer's port.
        lid: u16,
    },
}

/// Log message about an endpoint without UD QPs.
pub const NO_DATAGRAMS: &str = "the port has no UD QPs, which addr_prot acm requires: only the \
    service's own and preloaded addresses, GIDs and LIDs are resolved, with routes of the SA or of files";

/// Name of an endpoint in log messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointName {
    /// Name of the HCA.
    pub device: Box<str>,
    /// Port number.
    pub port: u8,
    /// P_Key of the partition.
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
                "{endpoint}: route_prot sa is used for {differ} of {all} paths, whose service levels differ from the \
                 group's service level {group}: for example, the path to {to} has service level {given}"
            ),
            Self::RoutesAgree { endpoint } => write!(
                f,
                "{endpoint}: route_prot acm is used for all paths, since their service levels equal those of the groups"
            ),
            Self::RoutesUnknown { endpoint, why } => write!(
                f,
                "{endpoint}: route_prot sa is used until service levels can be compared: the SA query of all paths \
                 failed: {why}"
            ),
            Self::NoDatagrams { endpoint, routes } => {
                write!(f, "{endpoint}: {NO_DATAGRAMS}")?;
                match routes {
                    RouteProtocol::Sa => Ok(()),
                    RouteProtocol::Acm => f.write_str("; route_prot sa is used instead of acm"),
                }
            }
            Self::Conflict { endpoint, address, owner, other } => write!(
                f,
                "{endpoint}: {other} claims {address}, but {owner} still responds for it: the claim is rejected"
            ),
            Self::Flood { endpoint, lid } => {
                write!(
                    f,
                    "{endpoint}: LID {lid} exceeds its request rate limit: excess requests are dropped"
                )
            }
        }
    }
}
