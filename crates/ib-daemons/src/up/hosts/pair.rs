//! An RTRS block server at hosts of a simulated fabric, and its client at other hosts of the fabric.

use std::collections::VecDeque;
use std::time::Duration;

use ib_block::{Command, Errno, Geometry, ReadData};
use ib_rnbd::{DeviceId, ExportError, OpenError, ReadMode, Remote, RemoteConfig, RemoteEvent};
use ib_rtrs::client::AddError;
use ib_rtrs::{
    Adapter, AdapterId, Adapters, ClientConfig, ListenError, PathId, PathSpec, Server as Rtrs,
    ServerConfig, ServerEvent, SetupError,
};
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::{Instant, Mtu, PKey};
use ib_wire::mad::sa::PathRecord;
use ib_wire::rnbd::AccessMode;

use super::Hosts;
use ib_device::DeviceEvent;
use ib_device::route_of;
use ib_storage::disk::{Disk, DiskError};
use ib_storage::nbd::Backing;
use ib_storage::rtrs::{BlockEvent, Exports};

/// RTRS port on which the server listens.
pub const PORT: u16 = 1234;

/// Maximum I/O size in bytes. Client and server allocate a buffer of this size for each request that the queue depth
/// permits.
const LONGEST: u32 = 128 << 10;

/// Delay before a failed path is connected again.
const RECONNECT: Duration = Duration::from_secs(1);

/// Options of a block server and its client.
#[derive(Clone, Debug)]
pub struct PairOptions {
    /// Name of the block device.
    pub device: String,
    /// Size of the device in bytes, a multiple of 512. The data is kept in memory.
    pub size: u64,
    /// Queue depth: maximum number of outstanding requests, from 1 to 8192.
    pub depth: u16,
    /// The hosts of the client, and those of the server. Path N connects host N of the client to host N of the server.
    pub hosts: [Vec<PortId>; 2],
    /// Seed of memory keys and of other random numbers.
    pub seed: [u8; 32],
}

/// The reason why the server, the client or a path cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairError {
    /// The memory of the device cannot be allocated.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The name of the device is invalid.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The client cannot open the device.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The server cannot listen at one of its hosts.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The client cannot be created.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The client cannot add a path.
    #[error(transparent)]
    Path(#[from] AddError),
    /// The path record contains an unknown MTU code.
    #[error("the path record has MTU code {0}: expected 1 to 5")]
    Mtu(u8),
}

/// An event of the client or the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairEvent {
    /// An event of the client.
    Client(RemoteEvent),
    /// An event of the server.
    Server(BlockEvent),
}

/// The HCAs of the client or of the server.
struct Side<'a> {
    hosts: &'a mut Hosts,
    ports: &'a [PortId],
}

impl Adapters for Side<'_> {
    fn get(&mut self, id: AdapterId) -> Option<Adapter<'_>> {
        let engines = self.hosts.device(*self.ports.get(id.0 as usize)?)?.engines();
        Some(Adapter { hca: &mut engines.hca, cm: &mut engines.cm })
    }

    fn is_in_partition(&self, _: AdapterId, p_key: PKey) -> bool {
        p_key.0 & 0x7fff != 0
    }
}

/// Passes each event of the HCAs to `take`; returns true if there was an event.
fn dispatch_events(
    hosts: &mut Hosts,
    ports: &[PortId],
    mut take: impl FnMut(Side<'_>, AdapterId, DeviceEvent),
) -> bool {
    let mut moved = false;
    for (id, &port) in (0..).map(AdapterId).zip(ports) {
        while let Some(event) = hosts.poll_event(port) {
            moved = true;
            take(Side { hosts: &mut *hosts, ports }, id, event);
        }
    }
    moved
}

/// An RTRS block server and its client, at hosts of the same fabric.
pub struct BlockPair {
    client_ports: Vec<PortId>,
    server_ports: Vec<PortId>,
    remote: Remote,
    device: DeviceId,
    rtrs: Rtrs,
    exports: Exports,
    events: VecDeque<PairEvent>,
}

impl BlockPair {
    /// Creates server and client. They have no paths at first.
    ///
    /// # Errors
    /// Fails if memory is exhausted, if the device name is invalid, or if the RTRS port of a host is in use.
    pub fn new(hosts: &mut Hosts, options: PairOptions) -> Result<Self, PairError> {
        let PairOptions { device, size, depth, hosts: [client_ports, server_ports], seed } =
            options;
        let config =
            ServerConfig { queue_depth: depth, max_io_size: LONGEST, ..ServerConfig::default() };
        let mut rtrs = Rtrs::new(config, seed.map(|byte| !byte));
        let mut exports = Exports::new(1);
        exports.offer(&mut rtrs, &device, Disk::in_memory(size)?)?;
        let mut side = Side { hosts: &mut *hosts, ports: &server_ports };
        for number in 0..server_ports.len() as u32 {
            rtrs.listen(&mut side, AdapterId(number), PORT)?;
        }
        let config = RemoteConfig {
            session: ClientConfig {
                reconnect_delay: RECONNECT,
                ..ClientConfig::new("ibfabric-up")
            },
            depth: depth.into(),
            reads: ReadMode::Copied,
            trusts_cache: false,
        };
        let mut side = Side { hosts, ports: &client_ports };
        let mut remote = Remote::new(config, &mut side, seed)?;
        let device = remote.open(&device, AccessMode::READ_WRITE)?;
        let events = VecDeque::new();
        Ok(Self { client_ports, server_ports, remote, device, rtrs, exports, events })
    }

    /// Adds an RTRS path to the client's session. It leads from the client's host with number `index` to the server's
    /// host with the same number. `path` is the PathRecord of the SA for these two hosts.
    ///
    /// # Errors
    /// Fails if there are too many paths, or if the MTU code is unknown.
    pub fn add_path(
        &mut self,
        now: Instant,
        hosts: &mut Hosts,
        index: usize,
        path: &PathRecord,
    ) -> Result<PathId, PairError> {
        let mtu = Mtu::from_code(path.mtu.0).ok_or(PairError::Mtu(path.mtu.0))?;
        let spec = PathSpec::between_gids(AdapterId(index as u32), PORT, route_of(path), mtu);
        let spec = PathSpec { p_key: path.p_key, ..spec };
        let mut side = Side { hosts, ports: &self.client_ports };
        Ok(self.remote.session().add_path(now, &mut side, spec)?)
    }

    /// Returns the geometry of the device once it is open.
    #[must_use]
    pub fn geometry(&self) -> Option<&Geometry> {
        self.remote.geometry(self.device)
    }

    /// Returns the RTRS client.
    #[must_use]
    pub const fn client(&self) -> &ib_rtrs::Client {
        self.remote.rtrs()
    }

    /// Returns the ports of the client's hosts, and those of the server's hosts.
    #[must_use]
    pub fn ports(&self) -> [&[PortId]; 2] {
        [&self.client_ports, &self.server_ports]
    }

    /// Does all work that is due now; returns true if there was any.
    ///
    /// # Errors
    /// Fails if memory for the data of requests cannot be allocated.
    pub fn work(&mut self, sim: &Sim, hosts: &mut Hosts) -> Result<bool, PairError> {
        let now = sim.now();
        let Self { client_ports, server_ports, remote, rtrs, exports, events, .. } = self;
        let session = remote.session();
        let mut moved = dispatch_events(hosts, client_ports, |mut side, id, event| match event {
            DeviceEvent::Hca(event) => session.handle_hca(now, &mut side, 0, id, &event),
            DeviceEvent::Cm(event) => drop(session.handle_cm(now, &mut side, id, event)),
        });
        moved |= dispatch_events(hosts, server_ports, |mut side, id, event| match event {
            DeviceEvent::Hca(event) => rtrs.handle_hca(now, &mut side, 0, id, &event),
            DeviceEvent::Cm(event) => drop(rtrs.handle_cm(now, &mut side, id, event)),
        });
        let mut far = Side { hosts: &mut *hosts, ports: server_ports };
        if rtrs.poll_timeout().is_some_and(|at| at <= now) {
            rtrs.handle_timeout(now, &mut far);
        }
        moved |= exports.work(now, rtrs, &mut far);
        while let Some(event) = rtrs.poll_event() {
            if let ServerEvent::SessionDown { session } = event {
                exports.end(session);
            }
            events.push_back(PairEvent::Server(BlockEvent::Session(event)));
        }
        while let Some(event) = exports.poll_event() {
            events.push_back(PairEvent::Server(event));
        }
        let mut near = Side { hosts, ports: client_ports };
        remote.handle_timeout(now, &mut near);
        moved |= remote.advance(now, &mut near, 0)?;
        while let Some(event) = remote.poll_event() {
            events.push_back(PairEvent::Client(event));
        }
        Ok(moved)
    }

    /// Returns the time at which [`BlockPair::work`] must be called even without input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.remote.poll_timeout().into_iter().chain(self.rtrs.poll_timeout()).min()
    }

    /// Returns the next event of the client or of the server.
    pub fn poll_event(&mut self) -> Option<PairEvent> {
        self.events.pop_front()
    }
}

impl Backing for BlockPair {
    fn submit(&mut self, user: u64, command: Command, data: &[u8]) {
        self.remote.submit(self.device, user, command, data);
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        self.remote.poll()
    }

    fn take_data(&mut self) -> ReadData {
        self.remote.take_data()
    }

    fn give_back(&mut self, data: ReadData) {
        self.remote.give_back(data);
    }

    fn losses(&self) -> u64 {
        self.remote.losses()
    }
}
