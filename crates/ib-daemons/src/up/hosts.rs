//! Hosts of a simulated fabric. They run within the simulator's process and in its virtual time. Each has an HCA and an
//! ACM service.
//!
//! | module | holds |
//! |---|---|
//! | `pair` | [`BlockPair`]: a server of block devices at some hosts, and its client at others |
//! | `captured` | the interface between captures and the hosts' HCAs |
//!
//! The code that owns [`Hosts`] advances the virtual time and reports ports with received packets to
//! [`Hosts::notify_received`]. It then calls [`Hosts::work`], and again at the time that [`Hosts::poll_timeout`]
//! returns.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_acm::port::PortId as AcmPort;
use ib_acm::{Address, ClientId, Service, ServiceConfig};
use ib_hca::trace::PacketReader;
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::{Gid, Instant};
use ib_wire::acm::{ByteOrder, ClientHeader, Entry, HEADER_LENGTH, Resolve};

use crate::acm::SimPorts;
use ib_control::capture::HcaOwner as _;
use ib_device::sim::{SimDevice, SimDevices};
use ib_device::{DeviceEvent, SimDeviceError, SimDeviceOptions};

mod captured;
mod pair;

use captured::Capturing;
pub use pair::{BlockPair, PORT, PairError, PairEvent, PairOptions};

/// The number of the HCA port that a host's ACM service uses. Each host has one port.
const OWN: AcmPort = AcmPort(1);

/// Number of receive WRs that each UD QP of a host's ACM service holds.
const DEPTH: u32 = 64;

/// An embedded host.
struct Host {
    /// Node name and port number, as they appear in the names of pcapng interfaces.
    name: String,
    /// GID of the HCA's port.
    gid: Gid,
    service: Service,
    /// Change counter of the port at the last call of [`Service::drive`]; `None` before the first call.
    seen: Option<u64>,
    due: Option<Instant>,
}

/// The response of a host's ACM service to a resolve request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The host's port.
    pub port: PortId,
    /// Number of the request to which this is the response.
    pub number: u64,
    /// The response, in the message format of the ACM socket.
    pub message: Vec<u8>,
}

/// The reason why a host cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The HCA cannot be attached.
    #[error(transparent)]
    Device(#[from] SimDeviceError),
    /// Message buffers could not be allocated.
    #[error("cannot allocate the message buffers of the host")]
    OutOfMemory,
}

/// Embedded hosts. Each is identified by the port of its HCA.
#[derive(Default)]
pub struct Hosts {
    devices: SimDevices,
    ports: SimPorts,
    hosts: BTreeMap<PortId, Host>,
    due: BTreeSet<(Instant, PortId)>,
    config: ServiceConfig,
    seed: [u8; 32],
    boots: u64,
    replies: VecDeque<Reply>,
    capturing: Capturing,
}

impl Hosts {
    /// Creates an empty collection of hosts. The seed determines all random numbers of HCAs and services.
    #[must_use]
    pub fn new(config: ServiceConfig, seed: [u8; 32]) -> Self {
        Self { config, seed, ..Self::default() }
    }

    /// Adds a host at an end port that the SM has configured. Its ACM service has the given names and addresses.
    ///
    /// # Errors
    /// Fails if the port has an HCA already or has no LID, or if memory is exhausted.
    pub fn add(
        &mut self,
        sim: &mut Sim,
        port: PortId,
        names: Vec<Address>,
    ) -> Result<(), HostError> {
        self.boots += 1;
        let mut seed = self.seed;
        for (byte, boot) in seed[16..].iter_mut().zip(self.boots.to_le_bytes()) {
            *byte ^= boot;
        }
        let options = SimDeviceOptions { seed, ..SimDeviceOptions::default() };
        self.devices.attach(sim, port, &options)?;
        if !self.ports.add(sim, &mut self.devices, port, names, DEPTH) {
            self.devices.detach(sim, port);
            return Err(HostError::OutOfMemory);
        }
        let service = Service::new(self.config.clone(), seed.map(|byte| byte.rotate_left(3)));
        let (node, number) = sim.place(port);
        let name = format!("{}[{number}]", sim.node_name(node));
        let gid = sim.link_port(port).gid();
        self.hosts.insert(port, Host { name, gid, service, seen: None, due: None });
        self.drive(sim, port);
        self.capture_added(port);
        Ok(())
    }

    /// Removes a host and its state; returns true if the port had a host.
    pub fn remove(&mut self, sim: &mut Sim, port: PortId) -> bool {
        let Some(host) = self.hosts.remove(&port) else { return false };
        if let Some(due) = host.due {
            self.due.remove(&(due, port));
        }
        self.ports.remove(port);
        self.capture_removed(port);
        self.devices.detach(sim, port)
    }

    /// Returns the ports at which there are hosts.
    pub fn ports(&self) -> impl Iterator<Item = PortId> {
        self.hosts.keys().copied()
    }

    /// Returns true if there is a host at the port.
    #[must_use]
    pub fn has(&self, port: PortId) -> bool {
        self.hosts.contains_key(&port)
    }

    /// Returns the ACM service of the host at a port.
    #[must_use]
    pub fn service(&self, port: PortId) -> Option<&Service> {
        self.hosts.get(&port).map(|host| &host.service)
    }

    /// Returns the HCA of the host at a port.
    pub fn device(&mut self, port: PortId) -> Option<&mut SimDevice> {
        self.devices.get_mut(port)
    }

    /// Must be called when the HCA of a port may have received packets, so that they are processed. Ports without a
    /// host are ignored.
    pub fn notify_received(&mut self, port: PortId) {
        self.devices.get_mut(port);
    }

    /// Sends a resolve request to the ACM service of the host at a port. If the response is available at once, returns
    /// it; otherwise [`Hosts::poll_reply`] returns it later. If the port has no host, there is no response.
    pub fn request(
        &mut self,
        sim: &mut Sim,
        port: PortId,
        number: u64,
        entries: Vec<Entry>,
    ) -> Option<Vec<u8>> {
        let host = self.hosts.get_mut(&port)?;
        let mut request = Vec::new();
        Resolve::request(number.to_be_bytes(), entries).put(ByteOrder::NATIVE, &mut request);
        let header =
            ClientHeader::parse(request.first_chunk().expect("the request begins with a header"));
        let message = (&header, &request[HEADER_LENGTH..], ByteOrder::NATIVE);
        let mut reply = Vec::new();
        let has_reply = host.service.request(sim.now(), ClientId(number), message, &mut reply);
        self.drive(sim, port);
        has_reply.then_some(reply)
    }

    /// Returns the next response to an earlier call of [`Hosts::request`].
    pub fn poll_reply(&mut self) -> Option<Reply> {
        self.replies.pop_front()
    }

    /// Queues a response that [`Hosts::request`] has returned, so that [`Hosts::poll_reply`] returns it.
    pub fn queue_reply(&mut self, reply: Reply) {
        self.replies.push_back(reply);
    }

    /// Returns the next packet reader that a trace selection (`Hca::select`) has created, and the port of its HCA. Does
    /// not return the readers that captures of [`Hosts::captures`] use.
    pub fn poll_selected(&mut self) -> Option<(PortId, PacketReader)> {
        self.hand_over();
        self.capturing.others.pop_front()
    }

    /// Returns the next event of a host's HCA that the ACM service does not handle.
    pub fn poll_event(&mut self, port: PortId) -> Option<DeviceEvent> {
        self.ports.poll_event(port)
    }

    /// Does all work that is due now; returns true if there was any.
    pub fn work(&mut self, sim: &mut Sim) -> bool {
        self.capturing.clock.set(sim.now());
        let mut moved = self.run_queued() | self.devices.progress(sim);
        while let Some(port) = self.devices.poll_moved() {
            moved = true;
            self.drive(sim, port);
        }
        while let Some(&(at, port)) = self.due.first()
            && at <= sim.now()
        {
            moved = true;
            self.drive(sim, port);
        }
        self.hand_over();
        moved
    }

    /// Returns the time at which [`Hosts::work`] must be called even without input.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let services = self.due.first().map(|&(at, _)| at);
        services.into_iter().chain(self.devices.poll_timeout()).min()
    }

    /// Runs the ACM service of the host at a port.
    fn drive(&mut self, sim: &mut Sim, port: PortId) {
        let Self { devices, ports, hosts, due, replies, .. } = self;
        let Some(host) = hosts.get_mut(&port) else { return };
        let now = sim.now();
        host.service.handle_timeout(now);
        while let Some(mut place) = ports.port(sim, devices, port)
            && host.service.drive(now, OWN, &mut place, &mut host.seen)
        {}
        while let Some((ClientId(number), message)) = host.service.poll_reply() {
            replies.push_back(Reply { port, number, message });
        }
        while host.service.poll_event().is_some() {}
        let next = host.service.poll_timeout();
        if next != host.due {
            if let Some(before) = std::mem::replace(&mut host.due, next) {
                due.remove(&(before, port));
            }
            due.extend(next.map(|at| (at, port)));
        }
    }
}
