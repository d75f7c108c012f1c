//! The open ports of the service: ports of simulated fabrics, and ports of this machine's HCAs.

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

use super::config::PortSelection;
use super::settings::{FileVersion, Settings};
use crate::acm::{DevicePort, Server, UmadPort};
use crate::error::DaemonError;
use crate::host::{device_and_port, host_name};

/// An open port and its file descriptors.
pub(super) struct OpenPort {
    pub(super) id: PortId,
    pub(super) port: AnyPort,
    /// The value of [`Port::changes`] when the service last handled changes of the port.
    pub(super) seen: Option<u64>,
    preload: RoutePreload,
    /// Indices of the port's file descriptors among the files that the server watches ([`Server::watch`]).
    watched: Vec<usize>,
}

/// The port's LID and GID prefix, and the version of the route file, when the port's routes were last preloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct RoutePreload {
    /// LID of the port; 0 before routes are preloaded.
    lid: u16,
    /// GID prefix of the port.
    gid_prefix: u64,
    /// Identity and change time of the route file; `None` if there is no such file.
    version: Option<FileVersion>,
}

impl RoutePreload {
    const fn of(link: &LinkPort, version: Option<FileVersion>) -> Self {
        Self { lid: link.lid, gid_prefix: link.gid_prefix, version }
    }
}

/// A port of a simulated fabric or of this machine.
pub(super) enum AnyPort {
    /// A port of a fabric that another process simulates.
    Simulated(Box<DevicePort>),
    /// A port of this machine's HCAs, and its index among the machine's ports.
    Umad(Box<UmadPort>, usize),
}

impl OpenPort {
    /// Opens all selected ports.
    pub(super) fn open_all(
        selections: &[PortSelection],
        settings: &Settings,
        server: &mut Server,
    ) -> Result<Vec<Self>, DaemonError> {
        let mut ports = Vec::new();
        for selection in selections {
            match selection {
                PortSelection::Simulated { simulator, node } => {
                    let simulator = AttachOptions { name: simulator.clone(), node: node.clone() };
                    // The HCA receives only MADs of the ACM class, so that other programs can attach HCAs at the same
                    // port.
                    let class = MgmtClass::ACM;
                    let options =
                        AttachedOptions { class: Some(class), ..AttachedOptions::new(simulator) };
                    let device = Device::attach(&options);
                    let depth = u32::from(settings.options.recv_depth).max(1);
                    let port = DevicePort::new(device.map_err(DaemonError::failed)?, depth);
                    let port = port.ok_or_else(|| {
                        DaemonError::Failed("cannot allocate receive buffers".to_owned())
                    })?;
                    ports.push(AnyPort::Simulated(Box::new(port)));
                }
                PortSelection::Umad(name) => {
                    for (index, device) in devices(name)? {
                        let port = UmadPort::open(&device, names(settings, index));
                        let port = port.map_err(DaemonError::failed)?;
                        ports.push(AnyPort::Umad(Box::new(port), index));
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
            Ok(Self { id, port, seen: None, preload: RoutePreload::default(), watched })
        };
        ports.into_iter().enumerate().map(open).collect()
    }

    /// Handles pending I/O of the port; returns true if there was any.
    pub(super) fn progress(&mut self) -> Result<bool, String> {
        match &mut self.port {
            AnyPort::Simulated(port) => port.progress().map_err(|error| error.to_string()),
            AnyPort::Umad(port, _) => port.progress().map_err(|error| error.to_string()),
        }
    }

    /// Returns true if the port's routes must be preloaded from this version of the route file, because the file, the
    /// port's LID or its GID has changed. Routes of a port without a LID are preloaded once it has one.
    pub(super) fn needs_preload(&self, version: Option<FileVersion>) -> bool {
        let link = self.port.state().link;
        link.lid != 0 && self.preload != RoutePreload::of(&link, version)
    }

    /// Records that the routes of this version of the route file are preloaded, or that the file is unusable.
    /// [`Self::needs_preload`] returns false until the port or the file changes.
    pub(super) fn set_preloaded(&mut self, version: Option<FileVersion>) {
        self.preload = RoutePreload::of(&self.port.state().link, version);
    }

    /// Prepares to wait and returns the latest time to wake up; `None` if there is pending I/O.
    pub(super) fn begin_wait(&mut self) -> Option<Instant> {
        match &mut self.port {
            AnyPort::Simulated(port) => port.begin_wait(),
            AnyPort::Umad(port, _) => Some(port.wait_until()).filter(|&until| until > clock::now()),
        }
    }

    /// Ends a wait. For a port of a simulated fabric, reads from the file descriptors that became readable; a umad port
    /// is read in [`Self::progress`].
    pub(super) fn end_wait(&mut self, server: &mut Server) -> Result<(), String> {
        let readable = self.watched.iter().map(|&index| server.take_readable(index));
        let readable: Vec<bool> = readable.collect();
        match (&mut self.port, readable[..].try_into()) {
            (AnyPort::Simulated(port), Ok(readable)) => {
                port.end_wait(readable).map_err(|error| error.to_string())
            }
            _ => Ok(()),
        }
    }

    /// Applies new settings, after the configuration files were read again.
    pub(super) fn configure(&mut self, settings: &Settings) {
        if let AnyPort::Umad(port, index) = &mut self.port {
            port.set_names(names(settings, *index));
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

/// Returns the ports of this machine that `name` selects, each with its index among all ports.
fn devices(name: &str) -> Result<Vec<(usize, UmadDevice)>, DaemonError> {
    let (device, port) = device_and_port("--umad", name)?;
    let all = UmadDevice::list().map_err(|error| without_ports(&error))?;
    let fits = |it: &UmadDevice| {
        let is_it = device.is_empty() && it.is_infiniband() || it.name == device;
        is_it && port.is_none_or(|port| port == it.port)
    };
    let found: Vec<_> = all.into_iter().enumerate().filter(|(_, device)| fits(device)).collect();
    if found.is_empty() {
        // No port was found, so `find` fails as well. It is called for its error, which lists the available ports.
        UmadDevice::find(device, port).map_err(DaemonError::failed)?;
    }
    Ok(found)
}

fn without_ports(error: &UmadError) -> DaemonError {
    DaemonError::Failed(format!("{error}; to use a port of a simulated fabric, specify --attach"))
}

/// Returns the names of a port of this machine if no address file assigns any. As with `ib_acme -A`, each port has the
/// name `HOST-N`: the host name, and the number of the port among all ports of this machine. The first port also has
/// the name `HOST`.
fn names(settings: &Settings, index: usize) -> Vec<Address> {
    if !settings.config.assignments.is_empty() {
        return Vec::new();
    }
    let host = host_name();
    let numbered = format!("{host}-{}", index + 1);
    let first = (index == 0).then_some(host);
    first.into_iter().chain([numbered]).filter_map(|name| Address::name(&name).ok()).collect()
}
