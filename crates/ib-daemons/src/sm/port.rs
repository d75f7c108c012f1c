//! Opens the port of the SM.

use ib_ibsim::client::{Attach, IbsimLink};
use ib_link::MadLink as _;
use ib_sim::{ClientOptions, Sim, SimLink};
use ib_topology::PortId;
use ib_types::Guid;
use ib_umad::{IsSmHolder, UmadDevice, UmadError, UmadLink, UmadOptions};

use super::options::{ManagerOptions, SmPort};
use crate::error::DaemonError;
use crate::mad_port::{MadPort, attach};

/// Opens a port of a fabric that this process simulates. The port is found by node name or by GUID; by default it is
/// the first end port.
pub(super) fn of_sim<'s>(
    sim: &'s mut Sim,
    node: Option<&str>,
    guid: Guid,
) -> Result<MadPort<'s>, DaemonError> {
    let port = match node {
        Some(name) => {
            let port = sim.find_node(name).and_then(|node| sim.end_port(node));
            port.ok_or_else(|| format!("--node {name}: the fabric has no such node"))
        }
        None if !guid.is_zero() => {
            with_guid(sim, guid).ok_or_else(|| format!("--guid {guid}: no end port has this GUID"))
        }
        None => sim.first_end_port().ok_or_else(|| "the fabric has no end port".to_owned()),
    };
    let port = port.map_err(DaemonError::Failed)?;
    let options = ClientOptions { is_sm: true, ..ClientOptions::default() };
    SimLink::attach(sim, port, options).map(MadPort::Sim).map_err(DaemonError::failed)
}

/// Opens a port of a simulator in another process, or of a umad device.
///
/// # Errors
/// Fails if the port does not exist or is in use.
pub(super) fn open(options: &ManagerOptions) -> Result<MadPort<'static>, DaemonError> {
    let device = match &options.place {
        SmPort::Sim { .. } => unreachable!("`manage` opens ports of this process with `of_sim`"),
        SmPort::Ibsim { name, node } => {
            let attach = Attach { is_sm: true, ..attach(name, node.as_deref())? };
            let link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
            return Ok(MadPort::Ibsim(Box::new(link)));
        }
        SmPort::Umad { name, port } => UmadDevice::find(name, *port).map_err(without_ports)?,
        SmPort::AnyUmad => choose(options.guid)?,
    };
    let timeout = options.transaction_timeout;
    let link = UmadLink::open(&device, &UmadOptions::manager(timeout));
    let link = link.map_err(DaemonError::failed)?;
    let duty = IsSmHolder::take(&device).map_err(|error| match &error {
        UmadError::Io { source, .. } if source.kind() == std::io::ErrorKind::WouldBlock => {
            let UmadDevice { name, port, .. } = &device;
            let message = format!("another SM on this machine uses {name}:{port}");
            DaemonError::Failed(message)
        }
        _ => DaemonError::failed(error),
    })?;
    Ok(MadPort::Umad(Box::new(link), Some(duty)))
}

/// Returns the end port with the given GUID.
fn with_guid(sim: &Sim, guid: Guid) -> Option<PortId> {
    let ports = sim.node_ids().flat_map(|node| {
        let numbers = if sim.is_switch(node) { 0..=0 } else { 1..=u8::MAX };
        numbers.map_while(move |number| sim.find_port(node, number))
    });
    ports.into_iter().find(|&port| sim.link_port(port).port_guid == guid)
}

/// Returns the port of this machine with the given GUID. If the GUID is 0, returns the first port that has a link, or
/// else the first port.
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
    Err(DaemonError::Failed(format!("found no port with GUID {guid}, expected one of: {known}")))
}

/// Lists the ports of this machine, one per line. For [`SmPort::Ibsim`], lists only the port that the simulator assigns
/// to this process.
///
/// # Errors
/// Fails if the machine has no InfiniBand ports, or if the simulator does not respond.
pub fn list(place: &SmPort) -> Result<String, DaemonError> {
    let mut text = String::new();
    if let SmPort::Ibsim { name, node } = place {
        let attach = attach(name, node.as_deref())?;
        let mut link = IbsimLink::attach(&attach).map_err(DaemonError::failed)?;
        let guid = link.port().map_err(DaemonError::failed)?.port_guid;
        let node = link.client().node();
        return Ok(format!(
            "{guid} node {node} of the simulator at {}; the environment variable SIM_HOST selects another \
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

/// If the machine has no InfiniBand ports, adds a hint to the error.
fn without_ports(error: UmadError) -> DaemonError {
    match &error {
        UmadError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            DaemonError::Failed(format!(
                "there is no InfiniBand port in this machine ({error}); a simulated fabric is \
                 managed with --attach or --sim"
            ))
        }
        _ => DaemonError::failed(error),
    }
}
