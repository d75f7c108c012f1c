//! The port that a subnet is managed from.

use ib_ibsim::client::{Attach, IbsimLink};
use ib_link::MadLink as _;
use ib_sim::{ClientOptions, Sim, SimLink};
use ib_topology::PortId;
use ib_types::Guid;
use ib_umad::{UmadDevice, UmadDuty, UmadError, UmadLink, UmadOptions};

use super::options::{ManagerOptions, Place};
use crate::error::DaemonError;
use crate::mad_port::{MadPort, attach};

/// Opens a port of a fabric in this process: of a node, or with a GUID, or the first.
pub(super) fn of_sim<'s>(
    sim: &'s mut Sim,
    node: Option<&str>,
    guid: Guid,
) -> Result<MadPort<'s>, DaemonError> {
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
    SimLink::attach(sim, port, options).map(MadPort::Sim).map_err(DaemonError::failed)
}

/// Opens a port that is outside of this process.
///
/// # Errors
/// Fails when there is none, or somebody else has it.
pub(super) fn open(options: &ManagerOptions) -> Result<MadPort<'static>, DaemonError> {
    let device = match &options.place {
        Place::Sim { .. } => unreachable!("a fabric in this process is opened otherwise"),
        Place::Ibsim { name, node } => {
            let attach = Attach { is_sm: true, ..attach(name, node.as_deref())? };
            let link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
            return Ok(MadPort::Ibsim(Box::new(link)));
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
    Ok(MadPort::Umad(Box::new(link), Some(duty)))
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
