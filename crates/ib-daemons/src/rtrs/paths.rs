//! Opens the client's HCAs at the local endpoints of paths, and finds the addresses of the servers.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use ib_attach::AttachOptions;
use ib_device::{Device, DeviceOptions, address_of};
use ib_rtrs::{AdapterId, PathSpec};
use ib_storage::rtrs::Devices;
use ib_types::Gid;

use super::config::{LinkConfig, RemoteDeviceConfig};
use super::endpoint::{Endpoint, RequestedPath};
use crate::adapter::{self as port, PortOptions};
use crate::error::DaemonError;

/// The client's open HCAs, which are the local endpoints of its paths. Each HCA has an IP address, or a port of a
/// simulated fabric.
pub(super) struct PathSources {
    link: LinkConfig,
    port: u16,
    adapters: BTreeMap<IpAddr, AdapterId>,
    ports: Vec<Port>,
    /// Number of paths so far whose local endpoint the user has not specified. Such paths use the HCAs in `ports` in
    /// turn.
    next: usize,
}

/// An HCA at a port of a simulated fabric.
struct Port {
    /// The configured node and port; empty for the first host.
    name: String,
    id: AdapterId,
}

impl PathSources {
    pub(super) fn new(args: &RemoteDeviceConfig) -> Self {
        let (link, ports) = (args.link.clone(), Vec::new());
        Self { link, port: args.port, adapters: BTreeMap::new(), ports, next: 0 }
    }

    /// Returns true if paths lead through a simulated fabric.
    pub(super) const fn are_in_fabric(&self) -> bool {
        self.link.attach.is_some()
    }

    /// Returns the specification of a path. If the HCA at its local endpoint is not open yet, opens it.
    pub(super) fn path(
        &mut self,
        devices: &mut Devices,
        path: &RequestedPath,
    ) -> Result<PathSpec, DaemonError> {
        if self.link.attach.is_some() {
            return self.path_in_fabric(devices, path);
        }
        let server = on_ethernet(&path.server)?;
        let Self { link, port, adapters, .. } = self;
        let source = match &path.source {
            Some(source) => on_ethernet(source)?,
            None => own_address(server, adapters)?,
        };
        if source == server && link.is_one_port() {
            return Err(DaemonError::Failed(format!(
                "{source}: source and destination are the same HCA; expected another local address before the @"
            )));
        }
        let adapter = match adapters.get(&source) {
            Some(adapter) => *adapter,
            None => *adapters.entry(source).or_insert(devices.add(adapter(source, link)?)),
        };
        let failed = |error| DaemonError::failed(format_args!("{source}@{server}: {error}"));
        devices.path_to(adapter, SocketAddr::new(server, *port)).map_err(failed)
    }

    fn path_in_fabric(
        &mut self,
        devices: &mut Devices,
        path: &RequestedPath,
    ) -> Result<PathSpec, DaemonError> {
        if self.ports.is_empty() {
            for (name, device) in attach_all(&self.link)? {
                self.ports.push(Port { name, id: devices.add(device) });
            }
        }
        let id = match &path.source {
            Some(source) => self.own_port(devices, source)?,
            None => {
                self.next += 1;
                self.ports[(self.next - 1) % self.ports.len()].id
            }
        };
        let to = &path.server;
        let failed = |error: &dyn std::fmt::Display| DaemonError::Failed(format!("{to}: {error}"));
        let device = devices.device(id).expect("`devices` has all HCAs of `ports`");
        if let Endpoint::Ip(server) = to
            && device.own_address_for(*server).is_some()
        {
            let server = SocketAddr::new(*server, self.port);
            return devices.path_to(id, server).map_err(|error| failed(&error));
        }
        let gid = match to {
            Endpoint::Gid(gid) => Some(*gid),
            Endpoint::Ip(_) | Endpoint::Name(_) => {
                let found = device.find(&to.to_string()).map_err(|error| failed(&error))?;
                found.and_then(gid_of)
            }
        };
        let gid = gid.ok_or_else(|| {
            failed(&"expected NODE, NODE:PORT, an address, a GID or a LID of the simulated fabric")
        })?;
        devices.path_to_gid(id, gid, self.port).map_err(|error| failed(&error))
    }

    /// Returns the HCA at the port that a local endpoint names: by its configured name, its GID or an IP address.
    fn own_port(&self, devices: &mut Devices, source: &Endpoint) -> Result<AdapterId, DaemonError> {
        let named = source.to_string();
        let mut is_it = |port: &&Port| {
            let Some(attached) = devices.device(port.id).and_then(|it| it.attached()) else {
                return false;
            };
            let details = attached.details();
            match source {
                Endpoint::Gid(gid) => details.port.gid() == *gid,
                Endpoint::Ip(address) => details.addresses.contains(address) || port.name == named,
                Endpoint::Name(name) => port.name == *name,
            }
        };
        let found = self.ports.iter().find(|port| is_it(port)).map(|port| port.id);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.ports.iter().map(|port| &port.name[..]).collect();
            let names = names.join(", ");
            DaemonError::Failed(format!(
                "{named}: expected one of the ports of --node before the @: {names}"
            ))
        })
    }
}

fn gid_of(address: IpAddr) -> Option<Gid> {
    match address {
        IpAddr::V6(address) => Some(Gid(address.to_bits())),
        IpAddr::V4(_) => None,
    }
}

/// Returns the IP address of an endpoint on Ethernet.
fn on_ethernet(end: &Endpoint) -> Result<IpAddr, DaemonError> {
    let wrong = |what: &str| Err(DaemonError::Failed(format!("{end}: {what}")));
    match end {
        Endpoint::Ip(address) => Ok(*address),
        // The GID of a RoCEv2 port contains the IP address of the port.
        Endpoint::Gid(gid) => Ok(address_of(*gid)),
        Endpoint::Name(_) => {
            wrong("expected an IP address, or --attach for a name in a simulated fabric")
        }
    }
}

/// Opens an HCA at each configured port of the simulated fabric; returns each with the configured name of its port.
pub(super) fn attach_all(link: &LinkConfig) -> Result<Vec<(String, Device)>, DaemonError> {
    let Some(simulator) = &link.attach else { return Ok(Vec::new()) };
    let nodes = if link.node.is_empty() {
        vec![None]
    } else {
        link.node.iter().map(|node| Some(node.clone())).collect()
    };
    let open = |node: Option<String>| {
        let name = node.clone().unwrap_or_default();
        let port = AttachOptions { name: simulator.clone(), node };
        let (mtu, spin, acm) = (link.mtu, link.spin, link.acm.clone());
        let device = port::attach(&PortOptions { port, mtu, spin, window: None, acm })?;
        Ok((name, device))
    };
    nodes.into_iter().map(open).collect()
}

/// Opens an HCA at a local IP address.
pub(super) fn adapter(address: IpAddr, args: &LinkConfig) -> Result<Device, DaemonError> {
    let mut options = DeviceOptions::new(address);
    options.socket.port = args.udp_port;
    options.socket.peer_port = args.peer_udp_port.unwrap_or(args.udp_port);
    options.socket.allow_zero_checksum = args.allow_zero_checksum;
    options.mtu = args.mtu;
    options.spin = Duration::from_micros(args.spin);
    port::open(options)
}

/// Returns a local address from which the server can be reached. If the server is on IPv4 loopback, returns a loopback
/// address that is neither the server's nor in `taken`.
fn own_address(server: IpAddr, taken: &BTreeMap<IpAddr, AdapterId>) -> Result<IpAddr, DaemonError> {
    if server.is_ipv4() && server.is_loopback() {
        let mut all = (1..=254).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
        let free = all.find(|own| *own != server && !taken.contains_key(own));
        return Ok(free.expect("the loopback network has more addresses than paths"));
    }
    let failed = |error: std::io::Error| {
        DaemonError::Failed(format!("cannot find the local address for {server}: {error}"))
    };
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect((server, 4791)).map_err(failed)?;
    Ok(socket.local_addr().map_err(failed)?.ip())
}
