//! A device of a server: adapters, paths, and the wait until it is open.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use ib_block::Geometry;
use ib_net::clock;
use ib_net::device::{Device, DeviceOptions};
use ib_net::rtrs::{Devices, RemoteDisk, RemoteEvent, RemoteOptions};
use ib_rtrs::{AdapterId, ClientConfig, ClientEvent, PathSpec, Policy, SharedKey};
use ib_types::Instant;
use ib_wire::rnbd::AccessMode;

use super::control;
use crate::cli::rtrs::{LinkArgs, PathArg, PolicyArg, RemoteArgs};
use crate::failure::{Failure, say};

/// How a device is used.
pub(in crate::command) struct Use {
    pub(in crate::command) writes: bool,
    pub(in crate::command) depth: usize,
    pub(in crate::command) keeps_data: bool,
}

/// Opens a device, and waits until it is open; returns what it is like.
pub(in crate::command) fn open(
    args: &RemoteArgs,
    how: &Use,
) -> Result<(RemoteDisk, Geometry), Failure> {
    let control = control::open(&args.control)?;
    let (mut devices, mut ways) = (Devices::new(), Ways::new(args));
    let paths: Result<Vec<PathSpec>, Failure> =
        args.path.iter().map(|path| ways.path(&mut devices, path)).collect();
    let paths = paths?;
    let mode = if how.writes { AccessMode::READ_WRITE } else { AccessMode::READ_ONLY };
    let options = RemoteOptions {
        session: session(args)?,
        device: args.device.clone(),
        mode,
        depth: how.depth,
        keeps_data: how.keeps_data,
    };
    let failed = |error| Failure::unusable(format_args!("{}: {error}", args.device));
    let mut disk = RemoteDisk::open(devices, &paths, options).map_err(failed)?;
    if let Some(control) = control {
        disk.set_control(control, control::path_finder(ways));
    }
    let end = clock::now() + args.wait;
    let mut why = None;
    loop {
        disk.progress().map_err(failed)?;
        while let Some(event) = disk.poll_event() {
            match event {
                RemoteEvent::Opened(geometry) => return Ok((disk, geometry)),
                RemoteEvent::Refused(error) => return Err(Failure::unusable(error)),
                RemoteEvent::Session(ClientEvent::PathDown { path, why: reason, retried }) => {
                    let name = disk.rtrs().spec(path).map(|spec| spec.address.to_string());
                    let told = format!("{}: {reason}", name.unwrap_or_default());
                    if !retried {
                        return Err(Failure::Unusable(told));
                    }
                    if why.as_ref() != Some(&told) {
                        say!("{told}; it is tried again");
                    }
                    why = Some(told);
                }
                RemoteEvent::Session(_) => {}
            }
        }
        if clock::now() >= end {
            let why = why.unwrap_or_else(|| "nobody answers".to_owned());
            return Err(Failure::Unusable(format!(
                "{}: not open after {} s: {why}",
                args.device,
                args.wait.as_secs_f64()
            )));
        }
        disk.wait(end.min(clock::now() + Duration::from_millis(200))).map_err(failed)?;
    }
}

/// Says what has happened to paths and to the device; returns false once it is open no more, for good.
pub(in crate::command) fn tell(disk: &mut RemoteDisk) -> bool {
    while let Some(event) = disk.poll_event() {
        let name = |path| disk.rtrs().spec(path).map(|spec| spec.address.to_string());
        match event {
            RemoteEvent::Refused(why) => {
                say!("{why}");
                return false;
            }
            RemoteEvent::Opened(_) => say!("the device is open again"),
            RemoteEvent::Session(ClientEvent::PathDown { path, why, retried }) => {
                let then = if retried { "; it is connected again" } else { "" };
                say!("{}: {why}{then}", name(path).unwrap_or_default());
            }
            RemoteEvent::Session(ClientEvent::PathUp(path)) => {
                say!("{}: connected", name(path).unwrap_or_default());
            }
            RemoteEvent::Session(ClientEvent::Lost) => say!("no path is left; requests wait"),
            RemoteEvent::Session(_) => {}
        }
    }
    true
}

/// The adapters that paths start from, by their addresses.
pub(super) struct Ways {
    link: LinkArgs,
    port: u16,
    adapters: BTreeMap<IpAddr, AdapterId>,
}

impl Ways {
    fn new(args: &RemoteArgs) -> Self {
        Self { link: args.link.clone(), port: args.port, adapters: BTreeMap::new() }
    }

    /// Returns how a path is asked for, from an adapter that is opened if there is none yet.
    pub(super) fn path(
        &mut self,
        devices: &mut Devices,
        path: &PathArg,
    ) -> Result<PathSpec, Failure> {
        let Self { link, port, adapters } = self;
        let source = match path.source {
            Some(source) => source,
            None => own_address(path, adapters)?,
        };
        if source == path.server && link.is_one_port() {
            return Err(Failure::Unusable(format!(
                "{source}: the adapter would talk to itself; expected another own address before an @"
            )));
        }
        let adapter = match adapters.get(&source) {
            Some(adapter) => *adapter,
            None => *adapters.entry(source).or_insert(devices.add(adapter(source, link)?)),
        };
        let server = SocketAddr::new(path.server, *port);
        let failed = |error| Failure::unusable(format_args!("{source}@{}: {error}", path.server));
        devices.path_to(adapter, server).map_err(failed)
    }
}

/// Opens an adapter at an own address.
pub(super) fn adapter(address: IpAddr, args: &LinkArgs) -> Result<Device, Failure> {
    let mut options = DeviceOptions::new(address);
    options.socket.port = args.udp_port;
    options.socket.peer_port = args.peer_udp_port.unwrap_or(args.udp_port);
    options.mtu = args.mtu;
    options.spin = Duration::from_micros(args.spin);
    Device::open(options).map_err(Failure::unusable)
}

/// Returns the key of a file, if one is named.
pub(super) fn key(path: Option<&Path>) -> Result<Option<SharedKey>, Failure> {
    let Some(path) = path else { return Ok(None) };
    let failed =
        |error: &dyn std::fmt::Display| Failure::Unusable(format!("{}: {error}", path.display()));
    let bytes = std::fs::read(path).map_err(|error| failed(&error))?;
    let key = bytes.trim_ascii_end();
    if key.len() < 16 {
        return Err(failed(&format_args!("a key of {} bytes: expected at least 16", key.len())));
    }
    Ok(Some(SharedKey::new(key.to_vec())))
}

/// Returns the own address from which a server is reached; on loopback another one than the server's and those of other
/// paths.
fn own_address(path: &PathArg, taken: &BTreeMap<IpAddr, AdapterId>) -> Result<IpAddr, Failure> {
    if let IpAddr::V4(server) = path.server
        && server.is_loopback()
    {
        let mut all = (1..=254).map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
        let free = all.find(|own| *own != path.server && !taken.contains_key(own));
        return Ok(free.expect("not all of them are taken"));
    }
    let failed = |error: std::io::Error| {
        Failure::Unusable(format!("finding the own address to {}: {error}", path.server))
    };
    let any = if path.server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect((path.server, 4791)).map_err(failed)?;
    Ok(socket.local_addr().map_err(failed)?.ip())
}

fn session(args: &RemoteArgs) -> Result<ClientConfig, Failure> {
    let name = args.session.clone().unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        // Names have no dots.
        let host = host.trim().replace(['.', '/'], "-");
        format!("ibfabric-{host}-{}", std::process::id())
    });
    let config = ClientConfig {
        processors: ib_net::cpu::count(),
        connections: args.connections as u16,
        policy: match args.policy {
            PolicyArg::RoundRobin => Policy::RoundRobin,
            PolicyArg::MinInflight => Policy::MinInflight,
            PolicyArg::MinLatency => Policy::MinLatency,
        },
        need_invalidation: args.need_invalidation,
        key: key(args.link.key_file.as_deref())?,
        reconnect_delay: Duration::from_millis(args.reconnect_delay),
        ..ClientConfig::new(name)
    };
    config.check_name().map_err(Failure::unusable)?;
    Ok(config)
}

/// Closes the session, and waits until the server knows, or a while has passed.
pub(in crate::command) fn close(mut disk: RemoteDisk) -> Result<(), Failure> {
    let failed = |error| Failure::unusable(format_args!("closing the session: {error}"));
    let (rtrs, devices) = disk.session();
    rtrs.close(clock::now(), devices);
    let end: Instant = clock::now() + Duration::from_secs(2);
    loop {
        disk.progress().map_err(failed)?;
        while let Some(event) = disk.poll_event() {
            if event == RemoteEvent::Session(ClientEvent::Closed) {
                return Ok(());
            }
        }
        if clock::now() >= end {
            return Ok(());
        }
        disk.wait(end).map_err(failed)?;
    }
}
