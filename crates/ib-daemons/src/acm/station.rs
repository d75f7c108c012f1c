//! The ports of a service: of fabrics that other processes simulate, of this machine's HCAs.

use std::os::fd::BorrowedFd;

use ib_acm::port::PortId;
use ib_acm::{Action, Address, Arrived, Port, PortState};
use ib_attach::AttachOptions;
use ib_device::{AttachedOptions, Device};
use ib_link::LinkPort;
use ib_os::clock;
use ib_types::Instant;
use ib_umad::{UmadDevice, UmadError};
use ib_wire::mad::MgmtClass;

use super::config::Place;
use super::settings::{FileVersion, Settings};
use crate::acm::{DevicePort, Server, UmadPort};
use crate::error::DaemonError;
use crate::host::{device_and_port, host_name};

/// A port, and what is watched of it.
pub(super) struct Station {
    pub(super) id: PortId,
    pub(super) port: AnyPort,
    pub(super) seen: Option<u64>,
    /// The file of routes as it was read last for this port.
    pub(super) routes: RoutesRead,
    watched: Vec<usize>,
}

/// A file of routes that was read for a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RoutesRead {
    /// The LID that the port had then; 0 where it was not read.
    lid: u16,
    /// The prefix of its GID then: paths that begin at another GID are left out.
    gid_prefix: u64,
    /// Which file it was, and of when.
    version: Option<FileVersion>,
}

impl RoutesRead {
    /// Returns what there is to note when a file of this version is read for a port.
    const fn of(link: &LinkPort, version: Option<FileVersion>) -> Self {
        Self { lid: link.lid, gid_prefix: link.gid_prefix, version }
    }
}

/// A port of either kind.
pub(super) enum AnyPort {
    /// Of a fabric that another process simulates.
    Simulated(Box<DevicePort>),
    /// Of this machine, with its place among the machine's ports.
    Umad(Box<UmadPort>, usize),
}

impl Station {
    /// Opens all ports of some places.
    pub(super) fn open_all(
        places: &[Place],
        settings: &Settings,
        server: &mut Server,
    ) -> Result<Vec<Self>, DaemonError> {
        let mut ports = Vec::new();
        for place in places {
            match place {
                Place::Simulated { simulator, node } => {
                    let place = AttachOptions { name: simulator.clone(), node: node.clone() };
                    // Programs with connections have their own HCA beside it.
                    let class = MgmtClass::ACM;
                    let options =
                        AttachedOptions { class: Some(class), ..AttachedOptions::new(place) };
                    let device = Device::attach(&options);
                    let depth = u32::from(settings.options.recv_depth).max(1);
                    let port = DevicePort::new(device.map_err(DaemonError::failed)?, depth);
                    let port = port
                        .ok_or_else(|| DaemonError::Failed("no memory for messages".to_owned()))?;
                    ports.push(AnyPort::Simulated(Box::new(port)));
                }
                Place::Umad(name) => {
                    for (place, device) in devices(name)? {
                        let port = UmadPort::open(&device, names(settings, place));
                        let port = port.map_err(DaemonError::failed)?;
                        ports.push(AnyPort::Umad(Box::new(port), place));
                    }
                }
            }
        }
        let failed = |error| DaemonError::Failed(format!("cannot wait for a port: {error}"));
        let open = |(id, port): (usize, AnyPort)| {
            let files = port.files();
            let watched = files.iter().map(|file| server.watch(file).map_err(failed));
            let watched = watched.collect::<Result<_, _>>()?;
            let id = PortId(id as u32);
            Ok(Self { id, port, seen: None, routes: RoutesRead::default(), watched })
        };
        ports.into_iter().enumerate().map(open).collect()
    }

    /// Moves what can be moved; returns whether there was anything.
    pub(super) fn progress(&mut self) -> Result<bool, String> {
        match &mut self.port {
            AnyPort::Simulated(port) => port.progress().map_err(|error| error.to_string()),
            AnyPort::Umad(port, _) => port.progress().map_err(|error| error.to_string()),
        }
    }

    /// Returns whether a file of routes has to be read, which has this version: it has not been since, or not for the LID and
    /// the GID that the port has now.
    pub(super) fn wants_routes(&self, version: Option<FileVersion>) -> bool {
        let link = self.port.state().link;
        link.lid != 0 && self.routes != RoutesRead::of(&link, version)
    }

    /// Takes note that a file of routes has been read, or cannot be, in this version.
    pub(super) fn routes_read(&mut self, version: Option<FileVersion>) {
        self.routes = RoutesRead::of(&self.port.state().link, version);
    }

    /// Prepares for a wait until the moment that is returned at most; `None` when there is something to do already.
    pub(super) fn begin_wait(&mut self) -> Option<Instant> {
        match &mut self.port {
            AnyPort::Simulated(port) => port.begin_wait(),
            AnyPort::Umad(port, _) => Some(port.wait_until()).filter(|&until| until > clock::now()),
        }
    }

    /// Takes note of what has rung.
    pub(super) fn end_wait(&mut self, server: &mut Server) -> Result<(), String> {
        let rang: Vec<bool> = self.watched.iter().map(|&number| server.rang(number)).collect();
        match (&mut self.port, rang[..].try_into()) {
            (AnyPort::Simulated(port), Ok(rang)) => {
                port.end_wait(rang).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Takes note of files that were read again.
    pub(super) fn configure(&mut self, settings: &Settings) {
        if let AnyPort::Umad(port, place) = &mut self.port {
            port.set_names(names(settings, *place));
        }
    }
}

impl AnyPort {
    fn files(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Simulated(port) => port.files().into(),
            Self::Umad(port, _) => port.file().into_iter().collect(),
        }
    }
}

impl Port for AnyPort {
    fn changes(&self) -> u64 {
        match self {
            Self::Simulated(port) => port.changes(),
            Self::Umad(port, _) => port.changes(),
        }
    }

    fn state(&self) -> PortState {
        match self {
            Self::Simulated(port) => port.state(),
            Self::Umad(port, _) => port.state(),
        }
    }

    fn act(&mut self, action: &Action) -> bool {
        match self {
            Self::Simulated(port) => port.act(action),
            Self::Umad(port, _) => port.act(action),
        }
    }

    fn receive(&mut self) -> Option<Arrived> {
        match self {
            Self::Simulated(port) => port.receive(),
            Self::Umad(port, _) => port.receive(),
        }
    }
}

/// Returns the ports of this machine that a name means, with their places among all.
fn devices(name: &str) -> Result<Vec<(usize, UmadDevice)>, DaemonError> {
    let (device, port) = device_and_port("--umad", name)?;
    let all = UmadDevice::list().map_err(|error| without_ports(&error))?;
    let fits = |it: &UmadDevice| {
        let is_it = device.is_empty() && it.is_infiniband() || it.name == device;
        is_it && port.is_none_or(|port| port == it.port)
    };
    let found: Vec<_> = all.into_iter().enumerate().filter(|(_, device)| fits(device)).collect();
    if found.is_empty() {
        // It tells which there are.
        UmadDevice::find(device, port).map_err(DaemonError::failed)?;
    }
    Ok(found)
}

fn without_ports(error: &UmadError) -> DaemonError {
    DaemonError::Failed(format!("{error}; a port of a simulated fabric is had with --attach"))
}

/// Returns what a port of this machine is called where no file says so: as `ib_acme -A` has it, the first one by the
/// machine's name, and each by that and its number.
fn names(settings: &Settings, place: usize) -> Vec<Address> {
    if !settings.config.assignments.is_empty() {
        return Vec::new();
    }
    let host = host_name();
    let numbered = format!("{host}-{}", place + 1);
    let first = (place == 0).then_some(host);
    first.into_iter().chain([numbered]).filter_map(|name| Address::name(&name).ok()).collect()
}
