//! HCAs at ports of a simulated fabric, in the same process and in virtual time.
//!
//! Packets of queue pairs above 1 are exchanged with the fabric by [`Sim::send_packet`] and
//! [`Sim::receive_packet`]. Such packets have the LIDs and service level of their route, and a GRH
//! if the route is global. Packets have no ICRC, because the fabric drops corrupted packets itself.
//!
//! Received MADs of communication management arrive through a client of the simulator
//! ([`SimDevice::client`]), which is registered for this management class.
//!
//! Like a hardware HCA, an HCA passes a packet to its port only while few packets wait at the port,
//! even if the connection's window allows more packets. An HCA does not receive its own multicast
//! packets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_cm::CmConfig;
use ib_hca::trace::{PacketReader, SelectionId};
use ib_hca::{Hca, HcaConfig, MAX_PACKET};
use ib_link::{Datagram, Direction, Incoming, Route};
use ib_sim::{AttachError, ClientId, ClientOptions, Packet, Payload, Sim};
use ib_topology::PortId;
use ib_types::{Gid, Instant, Mtu};
use ib_wire::mad::MgmtClass;
use ib_wire::mad::sm::PortState;

use crate::engines::DeviceEvent;
use crate::engines::Engines;
use crate::path::{grh_of, route_from, route_to};

/// Maximum number of packets that wait in the output queue of an HCA's port. While this many packets wait, the HCA
/// passes no further packet to the port.
const MAX_WAITING_PACKETS: usize = 32;

/// Maximum size in bytes of packets that are copied into a buffer of exactly their size. Larger packets are sent
/// without a copy.
const SHORT: usize = 256;

/// Options of an HCA at a port of a simulated fabric.
#[derive(Clone, Copy, Debug)]
pub struct SimDeviceOptions {
    /// Maximum number of packets in flight per connection, 8 to 4,194,304.
    pub window: u32,
    /// Seed that, combined with the port GUID, determines keys, queue pair numbers and PSNs.
    pub seed: [u8; 32],
}

impl Default for SimDeviceOptions {
    /// Returns options with a window of 128 packets and a seed of zeros.
    fn default() -> Self {
        Self { window: 128, seed: [0; 32] }
    }
}

/// The reason why an HCA cannot be attached to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimDeviceError {
    /// The simulator refused to attach a client to the port.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The port already has an HCA.
    #[error("port number {} of the fabric already has an HCA", .0.0)]
    Taken(PortId),
    /// The port has no LID: no SM has configured it yet.
    #[error("port number {} of the fabric has no LID: expected a LID from a subnet manager", .0.0)]
    NoLid(PortId),
}

/// An HCA at a port of a simulated fabric, with its connection manager. [`SimDevices`] drives it.
#[derive(Debug)]
pub struct SimDevice {
    engines: Engines,
    port: PortId,
    client: ClientId,
    gid: Gid,
    /// Buffer of [`MAX_PACKET`] bytes for the next packet that the HCA sends.
    next: Vec<u8>,
    /// Time of the HCA's entry in the timers of [`SimDevices`]; `None` if there is no entry.
    due: Option<Instant>,
    /// True if the HCA is in the queue of [`SimDevices::poll_moved`].
    has_moved: bool,
}

impl SimDevice {
    fn attach(
        sim: &mut Sim,
        port: PortId,
        options: &SimDeviceOptions,
    ) -> Result<Self, SimDeviceError> {
        let class = Some(MgmtClass::COMMUNICATION);
        let client = sim.attach(port, ClientOptions { class, ..ClientOptions::default() })?;
        let own = sim.link_port(port);
        if own.lid == 0 {
            sim.detach(client);
            return Err(SimDeviceError::NoLid(port));
        }
        sim.open_held(port);
        sim.record_losses(port);
        let mut seed = options.seed;
        for (byte, guid) in seed.iter_mut().zip(own.port_guid.0.to_be_bytes()) {
            *byte ^= guid;
        }
        let active_mtu = Mtu::from_code(sim.port_info(port).neighbor_mtu.0).unwrap_or(Mtu::B256);
        let config = HcaConfig {
            active_mtu,
            window: options.window,
            ..HcaConfig::new(own.node_guid, vec![own.gid()])
        };
        let cm = CmConfig { ca_guid: own.node_guid, ..CmConfig::default() };
        Ok(Self {
            engines: Engines::new(config, seed, cm, seed.map(|byte| !byte)),
            port,
            client,
            gid: own.gid(),
            next: vec![0; MAX_PACKET],
            due: None,
            has_moved: false,
        })
    }

    /// Returns the HCA.
    pub const fn hca(&mut self) -> &mut Hca {
        &mut self.engines.hca
    }

    /// Returns the HCA and the connection manager.
    pub const fn engines(&mut self) -> &mut Engines {
        &mut self.engines
    }

    /// Returns the client that receives the MADs of the port. The caller can send SA queries
    /// through it ([`Sim::submit`]); responses arrive as [`HcaEvent::Mad`](ib_hca::HcaEvent::Mad).
    #[must_use]
    pub const fn client(&self) -> ClientId {
        self.client
    }

    /// Returns the port GID.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        self.gid
    }

    /// Returns the next event of the HCA or its connection manager, if any.
    pub fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.engines.events.pop_front()
    }

    /// Sends queued packets and processes received ones. Returns true if there was any work.
    fn progress(&mut self, sim: &mut Sim) -> bool {
        let now = sim.now();
        let mut moved = false;
        let info = sim.port_info(self.port);
        self.engines.hca.set_port_active(info.port_state == PortState::ACTIVE && info.lid != 0);
        while let Some(packet) = sim.receive_packet(self.port) {
            moved = true;
            let route = self.route_back(sim, &packet);
            if let Payload::Transport(bytes) = packet.payload {
                self.engines.hca.handle(now, &route, &bytes);
                sim.give_buffer(bytes);
            }
        }
        while let Some(lost) = sim.next_loss(self.port) {
            let (node, number) = sim.place(lost.port);
            let why = format!("at {}[{number}]: {}", sim.node_name(node), lost.why);
            let route = route_of_sent(self.gid, &lost.packet);
            let headers = lost.packet.payload.to_bytes();
            self.engines.hca.note_lost(lost.at, &route, &headers, lost.length, &why);
        }
        while let Some(incoming) = sim.receive(self.client) {
            moved = true;
            if let Incoming::Received(datagram) = incoming {
                self.handle_datagram(sim, now, &datagram);
            }
        }
        moved |= self.engines.handle_timeout(now);
        self.engines.collect_cm();
        moved |= self.transmit(sim);
        while let Some(event) = self.engines.hca.poll_event() {
            self.engines.events.push_back(DeviceEvent::Hca(event));
        }
        moved
    }

    /// Returns the route to the sender of a packet.
    fn route_back(&self, sim: &Sim, packet: &Packet) -> Route {
        let own_lid =
            if packet.is_multicast() { sim.link_port(self.port).lid } else { packet.dlid };
        route_from(
            self.gid,
            packet.grh.as_ref(),
            Route { slid: own_lid, dlid: packet.slid, sl: packet.sl, ..Route::default() },
        )
    }

    fn handle_datagram(&mut self, sim: &Sim, now: Instant, datagram: &Datagram) {
        let remote = &datagram.remote;
        let route = route_from(
            self.gid,
            remote.grh.as_ref(),
            Route {
                slid: sim.link_port(self.port).lid | u16::from(remote.path_bits),
                dlid: remote.lid,
                sl: remote.sl,
                ..Route::default()
            },
        );
        let Datagram { mad, .. } = *datagram;
        self.engines.hca.note_datagram(Direction::Receive, now, &route, remote, &mad);
        self.engines.handle_mad(now, route, remote.qpn, mad);
    }

    /// Sends queued packets while fewer than [`MAX_WAITING_PACKETS`] wait at the port. Returns true
    /// if any were sent.
    fn transmit(&mut self, sim: &mut Sim) -> bool {
        let now = sim.now();
        let mut moved = false;
        for _ in sim.waiting(self.port)..MAX_WAITING_PACKETS {
            let Some(sent) = self.engines.hca.poll_transmit(now, &mut self.next) else { break };
            moved = true;
            let bytes = if sent.length <= SHORT {
                self.next[..sent.length].to_vec()
            } else {
                let mut next = sim.take_buffer();
                next.resize(MAX_PACKET, 0);
                let mut bytes = std::mem::replace(&mut self.next, next);
                bytes.truncate(sent.length);
                bytes
            };
            sim.send_packet(self.port, packet(&sent.route, bytes));
        }
        moved
    }

    /// Moves the HCA's new packet readers ([`Hca::poll_selected`]) to `selected`.
    fn hand_over(&mut self, selected: &mut VecDeque<(PortId, SelectionId, PacketReader)>) {
        while let Some((selection, reader)) = self.engines.hca.poll_selected() {
            selected.push_back((self.port, selection, reader));
        }
    }

    /// Returns the time of the next timeout.
    fn poll_timeout(&self) -> Option<Instant> {
        self.engines.poll_timeout()
    }
}

/// Returns a packet with the LIDs, service level and GRH of the route.
fn packet(route: &Route, bytes: Vec<u8>) -> Packet {
    let payload = Payload::Transport(bytes);
    Packet { slid: route.slid, dlid: route.dlid, sl: route.sl, grh: grh_of(route), payload }
}

/// Returns the route of a sent packet, as far as the packet's headers contain the route.
fn route_of_sent(own: Gid, packet: &Packet) -> Route {
    let Packet { slid, dlid, sl, grh, .. } = *packet;
    route_to(grh.as_ref(), Route { source: own, slid, dlid, sl, ..Route::default() })
}

/// The HCAs of a simulated fabric.
///
/// The caller runs the fabric event by event ([`Sim::run_step`]), at most until
/// [`SimDevices::poll_timeout`], and calls [`SimDevices::progress`] after each event.
/// [`SimDevices::run_step`] does both.
#[derive(Debug, Default)]
pub struct SimDevices {
    devices: BTreeMap<PortId, SimDevice>,
    /// Time of the next timeout of each HCA, and the HCA's port.
    timers: BTreeSet<(Instant, PortId)>,
    /// Ports of HCAs that the caller has accessed since the last [`SimDevices::progress`]. The caller may have posted
    /// work to these HCAs.
    touched: Vec<PortId>,
    /// Ports that [`SimDevices::poll_moved`] will return.
    moved: VecDeque<PortId>,
    /// Packet readers that [`SimDevices::poll_selected`] has not returned yet.
    selected: VecDeque<(PortId, SelectionId, PacketReader)>,
}

impl SimDevices {
    /// Attaches an HCA to an end port that an SM has configured. The HCA keeps the GID and MTU that the port has at
    /// this time, even if the SM changes them.
    ///
    /// # Errors
    /// Fails if the port does not exist, has no LID, has an HCA already, or has too many clients.
    pub fn attach(
        &mut self,
        sim: &mut Sim,
        port: PortId,
        options: &SimDeviceOptions,
    ) -> Result<(), SimDeviceError> {
        if self.devices.contains_key(&port) {
            return Err(SimDeviceError::Taken(port));
        }
        self.devices.insert(port, SimDevice::attach(sim, port, options)?);
        Ok(())
    }

    /// Removes the HCA of a port with all its objects. Returns false if the port had no HCA.
    pub fn detach(&mut self, sim: &mut Sim, port: PortId) -> bool {
        let Some(device) = self.devices.remove(&port) else { return false };
        if let Some(due) = device.due {
            self.timers.remove(&(due, port));
        }
        sim.close(port);
        sim.detach(device.client);
        true
    }

    /// Returns the HCA of a port. Work that the caller posts to the HCA is processed in the next
    /// call of [`SimDevices::progress`].
    pub fn get_mut(&mut self, port: PortId) -> Option<&mut SimDevice> {
        let device = self.devices.get_mut(&port)?;
        if self.touched.last() != Some(&port) {
            self.touched.push(port);
        }
        Some(device)
    }

    /// Returns the next packet reader that a trace selection ([`Hca::select`]) has created, and the port of the HCA.
    /// A reader reads the packet trace of one queue pair.
    pub fn poll_selected(&mut self) -> Option<(PortId, SelectionId, PacketReader)> {
        let Self { devices, touched, selected, .. } = self;
        // The HCAs that the caller has accessed may have new packet readers, because the caller may have added trace
        // selections or queue pairs.
        for &port in &*touched {
            devices.get_mut(&port).into_iter().for_each(|it| it.hand_over(selected));
        }
        selected.pop_front()
    }

    /// Lets all HCAs that have work send and receive packets. Returns true if there was any work.
    pub fn progress(&mut self, sim: &mut Sim) -> bool {
        let mut moved = false;
        loop {
            let now = sim.now();
            let due = self.timers.first().filter(|(at, _)| *at <= now).map(|&(_, port)| port);
            let touched = self.touched.pop();
            let next = touched.or_else(|| sim.next_open()).or(due);
            let Some(port) = next else { return moved };
            let Some(device) = self.devices.get_mut(&port) else { continue };
            let has_moved = device.progress(sim);
            device.hand_over(&mut self.selected);
            moved |= has_moved;
            // `poll_moved` does not return the port of an HCA that the caller has accessed but that had no work.
            if (has_moved || touched.is_none()) && !std::mem::replace(&mut device.has_moved, true) {
                self.moved.push_back(port);
            }
            let due = device.poll_timeout();
            if due != device.due {
                if let Some(old) = std::mem::replace(&mut device.due, due) {
                    self.timers.remove(&(old, port));
                }
                self.timers.extend(due.map(|at| (at, port)));
            }
        }
    }

    /// Returns the port of an HCA that has processed packets or timeouts since this function last returned that port.
    /// Can also return the port of an HCA that had nothing to process, for example after the output queue of the port
    /// has become nearly empty.
    pub fn poll_moved(&mut self) -> Option<PortId> {
        loop {
            let port = self.moved.pop_front()?;
            if let Some(device) = self.devices.get_mut(&port) {
                device.has_moved = false;
                return Some(port);
            }
        }
    }

    /// Returns the time of the next timeout at which [`SimDevices::progress`] has to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Processes the next event of the fabric or of an HCA that is due by `until`. Returns false
    /// without changing the time of the fabric if there is no such event.
    pub fn run_step(&mut self, sim: &mut Sim, until: Instant) -> bool {
        let mut moved = !self.touched.is_empty() && self.progress(sim);
        let due = self.poll_timeout().filter(|&at| at <= until);
        if sim.run_step(due.unwrap_or(until)) {
            moved = true;
        } else if let Some(due) = due {
            sim.run_until(due);
            moved = true;
        }
        self.progress(sim) || moved
    }
}
