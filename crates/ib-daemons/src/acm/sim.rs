//! Ports of a simulated fabric, in its process and its time, for services of IB ACM.

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

/// What a service has at a port.
struct Own {
    datagrams: Datagrams,
    names: Vec<Address>,
    state: PortState,
    changes: u64,
    /// Events for the owner of the HCA, which the service does not handle.
    others: VecDeque<DeviceEvent>,
    mads: VecDeque<Incoming>,
}

/// The ports of a simulated fabric at which services are.
#[derive(Default)]
pub struct SimPorts {
    own: BTreeMap<PortId, Own>,
}

/// A borrowed port with its fabric and its HCA.
pub struct SimPort<'a> {
    own: &'a mut Own,
    sim: &'a mut Sim,
    devices: &'a mut SimDevices,
    port: PortId,
}

impl SimPorts {
    /// Puts a service to a port that has an HCA. Its names are known without any configuration; its queue pairs
    /// take `depth` messages before they are looked at. False when there is no HCA, or it has no room.
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
        let (others, mads) = (VecDeque::new(), VecDeque::new());
        self.own.insert(port, Own { datagrams, names, state, changes: 0, others, mads });
        true
    }

    /// Takes the service of a port away.
    pub fn remove(&mut self, port: PortId) {
        self.own.remove(&port);
    }

    /// Returns a port for [`ib_acm::Service::drive`]; `None` when no service is there, or no HCA.
    pub fn port<'a>(
        &'a mut self,
        sim: &'a mut Sim,
        devices: &'a mut SimDevices,
        port: PortId,
    ) -> Option<SimPort<'a>> {
        let own = self.own.get_mut(&port)?;
        let device = devices.get_mut(port)?;
        while let Some(event) = device.poll_event() {
            match event {
                DeviceEvent::Hca(HcaEvent::Mad { route, source, mad }) => {
                    let incoming = Incoming::Received(datagram(&route, source, *mad));
                    own.mads.push_back(incoming);
                }
                event => own.others.push_back(event),
            }
        }
        let state = state_of(sim, port, &own.names);
        if state != own.state {
            own.state = state;
            own.changes += 1;
        }
        Some(SimPort { own, sim, devices, port })
    }

    /// Returns the next event of the HCA of a port that the service does not handle.
    pub fn poll_other(&mut self, port: PortId) -> Option<DeviceEvent> {
        self.own.get_mut(&port)?.others.pop_front()
    }
}

impl SimPort<'_> {
    fn now(&self) -> Instant {
        self.sim.now()
    }
}

impl Port for SimPort<'_> {
    fn changes(&self) -> u64 {
        self.own.changes
    }

    fn state(&self) -> PortState {
        self.own.state.clone()
    }

    fn act(&mut self, action: &Action) -> bool {
        let now = self.now();
        let Some(device) = self.devices.get_mut(self.port) else { return false };
        if let Action::Mad(datagram) = action {
            self.sim.submit(device.client(), datagram);
            return true;
        }
        self.own.datagrams.act(device.hca(), now, action)
    }

    fn receive(&mut self) -> Option<Arrived> {
        if let Some(incoming) = self.own.mads.pop_front() {
            return Some(Arrived::Mad(Box::new(incoming)));
        }
        let (now, gid) = (self.now(), self.own.state.link.gid());
        let device = self.devices.get_mut(self.port)?;
        self.own.datagrams.receive(device.hca(), now, gid)
    }
}

/// Returns what a port is.
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
        p_keys: sim.p_keys(port).into_iter().filter(is_member).collect(),
        registrations: sim.registrations(port).into(),
        has_datagrams: true,
        names: names.to_vec(),
    }
}
