//! HCAs at ports of a simulated fabric, in its process and its time.
//!
//! Packets for queue pairs above 1 leave and arrive by [`Sim::send_packet`] and [`Sim::receive_packet`],
//! with the LIDs and the service level of their route, and with a GRH where the route is global.
//! Datagrams of communication management arrive by a client that has registered for their class. There is
//! no ICRC: what the fabric damages it drops itself.
//!
//! An HCA hands over no more than its port can send soon, as a real one does, whatever its window.
//! It does not hear itself in multicast groups.

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

use crate::engines::Engines;
use crate::event::DeviceEvent;
use crate::route::{grh_of, route_from, route_to};

/// How many packets may wait to leave by a port before the HCA keeps further ones to itself.
const MOST_WAITING: usize = 32;

/// Up to which length packets are copied into memory of their own length.
const SHORT: usize = 256;

/// How an HCA at a port of a simulated fabric is made.
#[derive(Clone, Copy, Debug)]
pub struct SimDeviceOptions {
    /// How many packets of a connection may be in flight, 8 to 4,194,304.
    pub window: u32,
    /// What keys, numbers and sequence numbers are drawn from, beside the port's GUID.
    pub seed: [u8; 32],
}

impl Default for SimDeviceOptions {
    /// 128 packets, and a seed of zeros.
    fn default() -> Self {
        Self { window: 128, seed: [0; 32] }
    }
}

/// Why there is no HCA at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimDeviceError {
    /// The port takes no client.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The port has an HCA.
    #[error("port number {} of the fabric has an adapter already", .0.0)]
    Taken(PortId),
    /// No subnet manager has given the port a LID yet.
    #[error("port number {} of the fabric has no LID: expected one, from a subnet manager", .0.0)]
    NoLid(PortId),
}

/// An HCA at a port of a simulated fabric: engine and connection manager.
///
/// It is one of [`SimDevices`], which drive it.
#[derive(Debug)]
pub struct SimDevice {
    engines: Engines,
    port: PortId,
    client: ClientId,
    gid: Gid,
    /// What the next packet is written into, [`MAX_PACKET`] bytes.
    next: Vec<u8>,
    /// When it has something to do.
    due: Option<Instant>,
    /// Whether it is among those that have moved something.
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

    /// Returns the client by which it receives datagrams; by it the owner may ask for paths and
    /// groups ([`Sim::submit`]), and gets the answers as [`HcaEvent::Mad`](ib_hca::HcaEvent::Mad).
    #[must_use]
    pub const fn client(&self) -> ClientId {
        self.client
    }

    /// Returns the port's GID.
    #[must_use]
    pub const fn gid(&self) -> Gid {
        self.gid
    }

    /// Returns the next thing to be told.
    pub fn poll_event(&mut self) -> Option<DeviceEvent> {
        self.engines.events.pop_front()
    }

    /// Moves what can be moved now; returns whether there was anything.
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

    /// Returns the way back to where a packet came from.
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

    /// Sends what there is to send and room for; returns whether there was anything.
    fn transmit(&mut self, sim: &mut Sim) -> bool {
        let now = sim.now();
        let mut moved = false;
        for _ in sim.waiting(self.port)..MOST_WAITING {
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

    /// Hands over queue pairs that selections have chosen.
    fn hand_over(&mut self, selected: &mut VecDeque<(PortId, SelectionId, PacketReader)>) {
        while let Some((selection, reader)) = self.engines.hca.poll_selected() {
            selected.push_back((self.port, selection, reader));
        }
    }

    /// Returns when it has something to do.
    fn poll_timeout(&self) -> Option<Instant> {
        self.engines.poll_timeout()
    }
}

/// Returns the packet that takes a route.
fn packet(route: &Route, bytes: Vec<u8>) -> Packet {
    let payload = Payload::Transport(bytes);
    Packet { slid: route.slid, dlid: route.dlid, sl: route.sl, grh: grh_of(route), payload }
}

/// Returns the way that a packet has taken, as far as it tells.
fn route_of_sent(own: Gid, packet: &Packet) -> Route {
    let Packet { slid, dlid, sl, grh, .. } = *packet;
    route_to(grh.as_ref(), Route { source: own, slid, dlid, sl, ..Route::default() })
}

/// The HCAs of a simulated fabric.
///
/// Their owner lets the fabric's time run, a step at a time ([`Sim::run_step`]) and no further than
/// [`SimDevices::poll_timeout`], and calls [`SimDevices::progress`] after each; or has
/// [`SimDevices::run_step`] do both.
#[derive(Debug, Default)]
pub struct SimDevices {
    devices: BTreeMap<PortId, SimDevice>,
    /// When which HCA has something to do.
    timers: BTreeSet<(Instant, PortId)>,
    /// Those whose owner may have given them something to do.
    touched: Vec<PortId>,
    /// Those that have moved something since the owner has asked.
    moved: VecDeque<PortId>,
    /// Queue pairs that selections have chosen.
    selected: VecDeque<(PortId, SelectionId, PacketReader)>,
}

impl SimDevices {
    /// Attaches an HCA to an end port that a subnet manager has configured: its GID, LID and
    /// MTU are those that the port has now.
    ///
    /// # Errors
    /// Fails when there is no such port, it has no LID, or it has an HCA or too many clients.
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

    /// Takes an HCA away with all that it has; returns whether there was one.
    pub fn detach(&mut self, sim: &mut Sim, port: PortId) -> bool {
        let Some(device) = self.devices.remove(&port) else { return false };
        if let Some(due) = device.due {
            self.timers.remove(&(due, port));
        }
        sim.close(port);
        sim.detach(device.client);
        true
    }

    /// Returns the HCA of a port. The HCA processes work that the caller posts in the next call of
    /// [`SimDevices::progress`].
    pub fn get_mut(&mut self, port: PortId) -> Option<&mut SimDevice> {
        let device = self.devices.get_mut(&port)?;
        if self.touched.last() != Some(&port) {
            self.touched.push(port);
        }
        Some(device)
    }

    /// Returns the next queue pair that a selection has chosen ([`Hca::select`]), as its port and what reads its
    /// packets.
    pub fn poll_selected(&mut self) -> Option<(PortId, SelectionId, PacketReader)> {
        let Self { devices, touched, selected, .. } = self;
        // The owner may have made selections, or queue pairs.
        for &port in &*touched {
            devices.get_mut(&port).into_iter().for_each(|it| it.hand_over(selected));
        }
        selected.pop_front()
    }

    /// Moves what can be moved at this moment; returns whether there was anything.
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
            // Whoever was only looked at has nothing new.
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

    /// Returns the next HCA that may have done something or whose port may have changed since it was returned last.
    pub fn poll_moved(&mut self) -> Option<PortId> {
        loop {
            let port = self.moved.pop_front()?;
            if let Some(device) = self.devices.get_mut(&port) {
                device.has_moved = false;
                return Some(port);
            }
        }
    }

    /// Returns when [`SimDevices::progress`] has something to do although nothing comes in.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Processes the next event of the fabric or of an HCA that is due by `until`. Returns false if there is
    /// none. The time of the fabric is unchanged then.
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
