//! The configuration of a session and of its paths.

use std::net::SocketAddr;
use std::time::Duration;

use ib_cm::{CmaHeader, PortSpace, ServiceId};
use ib_link::Route;
use ib_types::{Mtu, PKey};

use crate::address::{Address, PathAddress};
use crate::{AdapterId, Heartbeats, SharedKey, Transport};

/// The policy that selects one of the connected paths for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Each connected path in turn, separately for each processor.
    RoundRobin,
    /// The path with the fewest requests in flight.
    #[default]
    MinInflight,
    /// The path whose last heartbeat had the shortest round-trip time. If no heartbeat was acknowledged yet, the time
    /// is taken as 0.
    MinLatency,
}

/// The configuration of a session.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The name of the session: 1 to 254 bytes without `/` and `.`, unique at the server.
    pub name: String,
    /// Number of processors that submit requests. The statistics have a row for each processor.
    pub processors: u32,
    /// Number of connections of each path, 1 to 4096. If there are several, the first one carries no block requests.
    /// Linux uses one connection more than the number of processors.
    pub connections: u16,
    /// The policy that selects a path for each request.
    pub policy: Policy,
    /// True if the server has to invalidate the key through which it has written READ data, by a SEND with invalidate.
    /// If false, the client itself invalidates the key after the response, which saves this SEND.
    pub need_invalidation: bool,
    /// True if the client asks a server of this project to fence a failed path: to execute no further request of this
    /// path. The client retransmits the requests only after the server has confirmed the fence.
    pub fence: bool,
    /// True if the requests of a fenced path fail after the session has lost all of its paths. If false, the client
    /// retransmits them.
    ///
    /// The requests fail with [`Outcome::Fenced`](super::Outcome::Fenced) once the server has confirmed the fence. Set
    /// this for users that open objects at the server: the server closes the objects when the session loses all paths.
    pub returns_lost: bool,
    /// The shared key of client and server. If `None`, the client connects without proof of a key, as Linux does.
    pub key: Option<SharedKey>,
    /// After this many failed attempts in succession the client stops reconnecting a path; `None` for no limit.
    pub max_reconnect_attempts: Option<u32>,
    /// Delay before a path is reconnected.
    pub reconnect_delay: Duration,
    /// Maximum random time that is added to [`Self::reconnect_delay`].
    pub reconnect_jitter: Duration,
    /// Timeout of connecting a path.
    pub connect_timeout: Duration,
    /// If a request is in flight for longer than this, its path fails, provided that the server fences paths; `None`
    /// for no limit.
    pub io_timeout: Option<Duration>,
    /// Timeout of waiting for the server to confirm a fence; `None` for no limit.
    ///
    /// After the timeout, the requests that wait for the fence complete with
    /// [`Errno::ETIMEDOUT`](crate::Errno::ETIMEDOUT). The server may have executed them, or may still execute them
    /// later. Their chunks are reused only after the confirmation.
    pub fence_timeout: Option<Duration>,
    /// Heartbeats by which the client detects a dead server.
    pub heartbeats: Heartbeats,
    /// Timeouts and retries of the queue pairs.
    pub transport: Transport,
}

impl ClientConfig {
    /// Returns the default configuration of a session.
    ///
    /// The default is one processor and two connections per path. Failed paths are reconnected indefinitely, every 30 s
    /// as in Linux. If the server fences paths, a request times out after 30 s, and a fence after another 30 s.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            processors: 1,
            connections: 2,
            policy: Policy::default(),
            need_invalidation: false,
            fence: true,
            returns_lost: false,
            key: None,
            max_reconnect_attempts: None,
            reconnect_delay: Duration::from_secs(30),
            reconnect_jitter: Duration::from_millis(8),
            connect_timeout: Duration::from_secs(30),
            io_timeout: Some(Duration::from_secs(30)),
            fence_timeout: Some(Duration::from_secs(30)),
            heartbeats: Heartbeats::default(),
            transport: Transport::default(),
        }
    }
}

/// Error of an invalid session name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid session name `{0}`: expected 1 to 254 bytes without `/`, `.` and NUL")]
pub struct NameError(pub String);

impl ClientConfig {
    /// Checks the name of the session, because servers refuse invalid names.
    ///
    /// # Errors
    /// Fails if the name is empty, longer than 254 bytes, or contains a slash, a dot or a NUL.
    pub fn check_name(&self) -> Result<(), NameError> {
        let name = &self.name;
        let is_good = (1..=254).contains(&name.len()) && !name.contains(['/', '.', '\0']);
        is_good.then_some(()).ok_or_else(|| NameError(name.clone()))
    }
}

/// The specification of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The local HCA.
    pub adapter: AdapterId,
    /// The addresses of client and server.
    pub address: PathAddress,
    /// The service ID of the server.
    pub service: ServiceId,
    /// The IP addresses that `rdma_cm` puts into the REQ; `None` for paths between GIDs.
    pub cma: Option<CmaHeader>,
    /// The route of the path's packets.
    pub route: Route,
    /// The path MTU.
    pub mtu: Mtu,
    /// The partition.
    pub p_key: PKey,
}

impl PathSpec {
    /// Creates the specification of a path between two IP addresses with ports, in the default partition.
    #[must_use]
    pub fn new(
        adapter: AdapterId,
        source: SocketAddr,
        destination: SocketAddr,
        route: Route,
        mtu: Mtu,
    ) -> Self {
        let address = PathAddress {
            source: Some(Address::Ip(source.ip())),
            destination: Address::Ip(destination.ip()),
        };
        Self {
            adapter,
            address,
            service: ServiceId::port(PortSpace::TCP, destination.port()),
            cma: Some(CmaHeader { source, destination: destination.ip() }),
            route,
            mtu,
            p_key: PKey::DEFAULT,
        }
    }

    /// Creates the specification of a path between the two GIDs of a route, in the default partition. The server
    /// listens at `port`. A program that uses `rdma_cm` creates such a path with addresses of the family `AF_IB`.
    #[must_use]
    pub fn between_gids(adapter: AdapterId, port: u16, route: Route, mtu: Mtu) -> Self {
        Self {
            adapter,
            address: PathAddress {
                source: Some(Address::Gid(route.source)),
                destination: Address::Gid(route.destination),
            },
            service: ServiceId::port(PortSpace::IB, port),
            cma: None,
            route,
            mtu,
            p_key: PKey::DEFAULT,
        }
    }
}
