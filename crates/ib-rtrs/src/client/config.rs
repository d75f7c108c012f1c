//! The configuration of a session and of its paths.

use std::net::SocketAddr;
use std::time::Duration;

use ib_cm::{CmaHeader, PortSpace, ServiceId};
use ib_link::Route;
use ib_types::{Mtu, PKey};

use crate::address::{Address, PathAddress};
use crate::{AdapterId, Heartbeats, SharedKey, Transport};

/// Which of the connected paths a request takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// For each processor one after the other.
    RoundRobin,
    /// That with the fewest requests in flight.
    #[default]
    MinInflight,
    /// That whose last heartbeat was fastest; one without a heartbeat counts as the fastest.
    MinLatency,
}

/// How a session works.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The name of the session, up to 254 bytes without `/` and `.`; the server knows no two of a name.
    pub name: String,
    /// How many processors there are, which the tables of processors have rows for.
    pub processors: u32,
    /// How many connections each path has, 1 to 4096; with 1, all goes over that one, else over all but the first.
    /// Linux has one more than processors.
    pub connections: u16,
    /// Which path a request takes.
    pub policy: Policy,
    /// Whether the server is to invalidate the key of a read itself. Otherwise the client closes it when the answer
    /// has come, which saves a packet.
    pub need_invalidation: bool,
    /// True if a server of this project is requested to fence failed paths before their requests are retransmitted.
    pub fence: bool,
    /// True if requests that were in flight on the last path fail once the server has fenced that path.
    ///
    /// They end with [`Outcome::Fenced`](super::Outcome::Fenced), for users that must reopen objects that the server has
    /// closed. False retransmits them.
    pub returns_lost: bool,
    /// The shared key of client and server; `None` for none, as with Linux.
    pub key: Option<SharedKey>,
    /// How often a path is tried to be connected again; `None` for any number of times.
    pub max_reconnect_attempts: Option<u32>,
    /// How long to wait before that.
    pub reconnect_delay: Duration,
    /// The most that is added to that at random.
    pub reconnect_jitter: Duration,
    /// How long a path may take to be connected.
    pub connect_timeout: Duration,
    /// How long a request may be in flight before its path counts as failed, where paths are fenced; `None` indefinitely.
    pub io_timeout: Option<Duration>,
    /// Timeout of a fence, during which the server's user may still execute requests of the failed path; `None` for none.
    /// After that the requests that wait for it end with [`Errno::ETIMEDOUT`](crate::Errno::ETIMEDOUT): it is not known what
    /// of them is executed, nor when. Their chunks are reused only after the server has confirmed.
    pub fence_timeout: Option<Duration>,
    /// How the end of the other side is noticed.
    pub heartbeats: Heartbeats,
    /// How packets are repeated.
    pub transport: Transport,
}

impl ClientConfig {
    /// Returns the default configuration of a session.
    ///
    /// It has one processor and two connections. Reconnects are attempted indefinitely, every 30 s as in Linux. If
    /// paths are fenced, requests time out after 30 s, and fences after another 30 s.
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

/// Why a session cannot have a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a session cannot be called `{0}`: expected 1 to 254 bytes without `/` and `.`")]
pub struct NameError(pub String);

impl ClientConfig {
    /// Checks the name of the session, of which servers take no other.
    ///
    /// # Errors
    /// Fails when it is empty or too long, or has a slash or a dot.
    pub fn check_name(&self) -> Result<(), NameError> {
        let name = &self.name;
        let is_good = (1..=254).contains(&name.len()) && !name.contains(['/', '.', '\0']);
        is_good.then_some(()).ok_or_else(|| NameError(name.clone()))
    }
}

/// The specification of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathSpec {
    /// The HCA that it starts from.
    pub adapter: AdapterId,
    /// The addresses of its ends.
    pub address: PathAddress,
    /// The service that listens at the server.
    pub service: ServiceId,
    /// The header of `rdma_cm`; paths between GIDs have none.
    pub cma: Option<CmaHeader>,
    /// The way of its packets.
    pub route: Route,
    /// The most payload of a packet.
    pub mtu: Mtu,
    /// The partition.
    pub p_key: PKey,
}

impl PathSpec {
    /// Returns the path from an address and port to those of a server, by a route.
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

    /// Returns the path between the GIDs of a route, to a port of a server, as `AF_IB` of `rdma_cm` asks for it.
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
