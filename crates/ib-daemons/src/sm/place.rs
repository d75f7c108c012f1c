//! The port that a subnet is managed from.

use ib_ibsim::client::{Attach, IbsimLink, ServerAddress};
use ib_link::{Datagram, Incoming, LinkError, LinkPort, MadLink};
use ib_os::alarm::{Alarm, AlarmedLink};
use ib_sim::{ClientOptions, Sim, SimLink};
use ib_topology::PortId;
use ib_types::{Guid, Instant};
use ib_umad::{UmadDevice, UmadDuty, UmadError, UmadLink, UmadOptions};

use super::options::{ManagerOptions, Place};
use crate::error::DaemonError;

/// A port.
pub(super) enum Port<'s> {
    /// Of a fabric in this process, in virtual time.
    Sim(SimLink<'s>),
    /// Of a simulator in another process.
    Ibsim(Box<IbsimLink>),
    /// Of an HCA, with the duty of a subnet manager.
    Umad(Box<UmadLink>, #[expect(dead_code, reason = "it is held")] UmadDuty),
}

impl<'s> Port<'s> {
    /// Opens a port of a fabric in this process: of a node, or with a GUID, or the first.
    pub(super) fn of_sim(
        sim: &'s mut Sim,
        node: Option<&str>,
        guid: Guid,
    ) -> Result<Self, DaemonError> {
        let port = match node {
            Some(name) => {
                let port = sim.find_node(name).and_then(|node| sim.end_port(node));
                port.ok_or_else(|| format!("--node {name}: there is no such node"))
            }
            None if !guid.is_zero() => with_guid(sim, guid)
                .ok_or_else(|| format!("--guid {guid}: no port with LIDs has that GUID")),
            None => sim.first_end_port().ok_or_else(|| "no port to manage from".to_owned()),
        };
        let port = port.map_err(DaemonError::Failed)?;
        let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
        SimLink::attach(sim, port, options).map(Self::Sim).map_err(DaemonError::failed)
    }

    /// Opens a port that is outside of this process.
    ///
    /// # Errors
    /// Fails when there is none, or somebody else has it.
    pub(super) fn open(options: &ManagerOptions) -> Result<Self, DaemonError> {
        let device = match &options.place {
            Place::Sim { .. } => unreachable!("a fabric in this process is opened otherwise"),
            Place::Ibsim { name, node } => {
                let attach = Attach { is_sm: true, ..attach(name, node.as_deref())? };
                let link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
                return Ok(Self::Ibsim(Box::new(link)));
            }
            Place::Umad { name, port } => UmadDevice::find(name, *port).map_err(without_ports)?,
            Place::AnyUmad => choose(options.guid)?,
        };
        let patience = options.transaction_timeout;
        let link = UmadLink::open(&device, &UmadOptions::manager(patience));
        let link = link.map_err(DaemonError::failed)?;
        let duty = UmadDuty::take(&device).map_err(|error| match &error {
            UmadError::Io { source, .. } if source.kind() == std::io::ErrorKind::WouldBlock => {
                let UmadDevice { name, port, .. } = &device;
                let message = format!("another subnet manager of this machine has {name}:{port}");
                DaemonError::Failed(message)
            }
            _ => DaemonError::failed(error),
        })?;
        Ok(Self::Umad(Box::new(link), duty))
    }
}

/// Returns what a client asks of a simulator.
fn attach(name: &str, node: Option<&str>) -> Result<Attach, DaemonError> {
    let attach = Attach::from_environment().map_err(DaemonError::failed)?;
    let server = match name {
        "" => attach.server.clone(),
        name => ServerAddress::Name(name.to_owned()),
    };
    let node = node.map(str::to_owned).or_else(|| attach.node.clone());
    Ok(Attach { server, is_sm: false, node, ..attach })
}

/// Returns the port with LIDs that has a GUID.
fn with_guid(sim: &Sim, guid: Guid) -> Option<PortId> {
    let ports = sim.node_ids().flat_map(|node| {
        let numbers = if sim.is_switch(node) { 0..=0 } else { 1..=u8::MAX };
        numbers.map_while(move |number| sim.find_port(node, number))
    });
    ports.into_iter().find(|&port| sim.link_port(port).port_guid == guid)
}

/// Chooses the port with a GUID; without one the first whose link is up, or else the first.
fn choose(guid: Guid) -> Result<UmadDevice, DaemonError> {
    let devices = UmadDevice::list().map_err(without_ports)?;
    if guid.is_zero() {
        let linked = devices.iter().find(|device| device.is_linked().unwrap_or(false));
        return linked.or(devices.first()).cloned().ok_or_else(|| {
            DaemonError::Failed("there is no InfiniBand port in this machine".to_owned())
        });
    }
    let mut known = Vec::new();
    for device in devices {
        let port = device.link_port().map_err(DaemonError::failed)?;
        if port.port_guid == guid {
            return Ok(device);
        }
        known.push(format!("{} ({}:{})", port.port_guid, device.name, device.port));
    }
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(DaemonError::Failed(format!("found no port with GUID {guid}, there is: {known}")))
}

/// Returns the ports of this machine, or the one that a simulator gives its clients, a line each.
///
/// # Errors
/// Fails if the machine has no ports, or the simulator does not answer.
pub fn list(place: &Place) -> Result<String, DaemonError> {
    let mut text = String::new();
    if let Place::Ibsim { name, node } = place {
        let attach = attach(name, node.as_deref())?;
        let mut link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
        let guid = link.port().map_err(DaemonError::failed)?.port_guid;
        let node = link.client().node();
        return Ok(format!(
            "{guid} node {node} of the simulator at {}; SIM_HOST in the environment names another \
             node\n",
            attach.server
        ));
    }
    for device in UmadDevice::list().map_err(without_ports)? {
        let port = device.link_port().map_err(DaemonError::failed)?;
        let linked = if device.is_linked().unwrap_or(false) { "linked" } else { "no link" };
        text += &format!("{} {}:{} {linked}\n", port.port_guid, device.name, device.port);
    }
    Ok(text)
}

/// Says what an error means to somebody who has no InfiniBand.
fn without_ports(error: UmadError) -> DaemonError {
    match &error {
        UmadError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            DaemonError::Failed(format!(
                "there is no InfiniBand port in this machine ({error}); a simulated fabric is \
                 managed with --ibsim or --sim"
            ))
        }
        _ => DaemonError::failed(error),
    }
}

impl Port<'_> {
    fn link(&mut self) -> &mut dyn MadLink {
        match self {
            Self::Sim(link) => link,
            Self::Ibsim(link) => &mut **link,
            Self::Umad(link, _) => &mut **link,
        }
    }

    /// Returns true when the port's time stands still while nobody waits.
    pub(super) const fn is_virtual(&self) -> bool {
        matches!(self, Self::Sim(_))
    }

    /// Returns true for a port of an HCA, behind which others may depend on the subnet.
    pub(super) const fn is_real(&self) -> bool {
        matches!(self, Self::Umad(..))
    }
}

impl MadLink for Port<'_> {
    fn port(&mut self) -> Result<LinkPort, LinkError> {
        self.link().port()
    }

    fn send(&mut self, datagram: &Datagram) -> Result<(), LinkError> {
        self.link().send(datagram)
    }

    fn receive(&mut self) -> Result<Option<Incoming>, LinkError> {
        self.link().receive()
    }

    fn wait(&mut self, until: Instant) -> Result<(), LinkError> {
        self.link().wait(until)
    }

    fn now(&self) -> Instant {
        match self {
            Self::Sim(link) => link.now(),
            Self::Ibsim(link) => link.now(),
            Self::Umad(link, _) => link.now(),
        }
    }
}

impl AlarmedLink for Port<'_> {
    /// Nobody rings for a fabric in virtual time.
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError> {
        match self {
            Self::Sim(link) => link.wait(until),
            Self::Ibsim(link) => link.wait_alarmed(until, alarm),
            Self::Umad(link, _) => link.wait_alarmed(until, alarm),
        }
    }
}
