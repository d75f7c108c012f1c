//! Ports at which ACM services run, in a fabric that this process simulates in virtual time.

use std::collections::{BTreeMap, VecDeque};

use ib_acm::{Action, Address, Arrived, Port, PortState};
use ib_hca::HcaEvent;
use ib_link::Incoming;
use ib_sim::Sim;
use ib_topology::PortId;
use ib_types::{Instant, PKey};
use ib_wire::mad::sm::MtuCode;

use super::datagrams::{Datagrams, datagram};
use ib_device::{DeviceEvent, SimDevices};

/// The state of one port at which a service runs.
struct PortEntry {
    datagrams: Datagrams,
    names: Vec<Address>,
    state: PortState,
    changes: u64,
    /// Events of the HCA that are not for the service. [`SimPorts::poll_event`] returns them.
    other_events: VecDeque<DeviceEvent>,
    mads: VecDeque<Incoming>,
}

/// Ports of a simulated fabric at which ACM services run.
#[derive(Default)]
pub struct SimPorts {
    ports: BTreeMap<PortId, PortEntry>,
}

/// A port at which a service runs, with its fabric and its HCA, borrowed for [`ib_acm::Service::drive`].
pub struct SimPort<'a> {
    entry: &'a mut PortEntry,
    sim: &'a mut Sim,
    devices: &'a mut SimDevices,
    port: PortId,
}

impl SimPorts {
    /// Adds a port that has an HCA. Each UD QP has `depth` receive buffers. The port has the names `names` in addition
    /// to those in the configuration of the service.
    ///
    /// Returns false if the port cannot be added: it has no HCA, or its PD or CQ cannot be allocated.
    pub fn add(
        &mut self,
        sim: &Sim,
        devices: &mut SimDevices,
        port: PortId,
        names: Vec<Address>,
        depth: u32,
    ) -> bool {
        let Some(device) = devices.get_mut(port) else { return false };
        let Some(datagrams) = Datagrams::new(device.hca(), depth) else { return false };
        let state = state_of(sim, port, &names);
        let (other_events, mads) = (VecDeque::new(), VecDeque::new());
        self.ports
            .insert(port, PortEntry { datagrams, names, state, changes: 0, other_events, mads });
        true
    }

    /// Removes a port.
    pub fn remove(&mut self, port: PortId) {
        self.ports.remove(&port);
    }

    /// Returns a port for [`ib_acm::Service::drive`]; `None` if the port was not added or has no HCA.
    pub fn port<'a>(
        &'a mut self,
        sim: &'a mut Sim,
        devices: &'a mut SimDevices,
        port: PortId,
    ) -> Option<SimPort<'a>> {
        let entry = self.ports.get_mut(&port)?;
        let device = devices.get_mut(port)?;
        while let Some(event) = device.poll_event() {
            match event {
                DeviceEvent::Hca(HcaEvent::Mad { route, source, mad }) => {
                    let incoming = Incoming::Received(datagram(&route, source, *mad));
                    entry.mads.push_back(incoming);
                }
                event => entry.other_events.push_back(event),
            }
        }
        let state = state_of(sim, port, &entry.names);
        if state != entry.state {
            entry.state = state;
            entry.changes += 1;
        }
        Some(SimPort { entry, sim, devices, port })
    }

    /// Returns the next event of a port's HCA that is not for the ACM service.
    pub fn poll_event(&mut self, port: PortId) -> Option<DeviceEvent> {
        self.ports.get_mut(&port)?.other_events.pop_front()
    }
}

impl SimPort<'_> {
    fn now(&self) -> Instant {
        self.sim.now()
    }
}

impl Port for SimPort<'_> {
    fn changes(&self) -> u64 {
        self.entry.changes
    }

    fn state(&self) -> PortState {
        self.entry.state.clone()
    }

    fn act(&mut self, action: &Action) -> bool {
        let now = self.now();
        let Some(device) = self.devices.get_mut(self.port) else { return false };
        if let Action::Mad(datagram) = action {
            self.sim.submit(device.client(), datagram);
            return true;
        }
        self.entry.datagrams.act(device.hca(), now, action)
    }

    fn receive(&mut self) -> Option<Arrived> {
        if let Some(incoming) = self.entry.mads.pop_front() {
            return Some(Arrived::Mad(Box::new(incoming)));
        }
        let (now, gid) = (self.now(), self.entry.state.link.gid());
        let device = self.devices.get_mut(self.port)?;
        self.entry.datagrams.receive(device.hca(), now, gid)
    }
}

/// Returns the state of a port from the simulator.
fn state_of(sim: &Sim, port: PortId, names: &[Address]) -> PortState {
    let info = sim.port_info(port);
    let (node, _) = sim.place(port);
    let link = sim.link_port(port);
    let is_member = |key: &PKey| key.0 & 0x7fff != 0;
    PortState {
        device: sim.node_name(node).into(),
        port_count: sim.node_info(port).num_ports,
        link,
        is_active: info.port_state == ib_wire::mad::sm::PortState::ACTIVE && link.lid != 0,
        mtu: MtuCode(info.neighbor_mtu.0),
        rate: info.rate(),
        p_keys: sim.p_key_block(port, 0).into_iter().filter(is_member).collect(),
        registrations: sim.registrations(port).into(),
        has_datagrams: true,
        names: names.to_vec(),
    }
}
