//! `rtrs serve`: devices for clients of RNBD.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use ib_net::disk::Disk;
use ib_net::rtrs::{BlockEvent, BlockServer, Devices};
use ib_net::signals::{Order, Orders};
use ib_rtrs::{ServerConfig, ServerEvent, ServerPathId, SessionId};
use ib_types::Instant;

use super::control;
use super::remote::key;
use super::ways::{adapter, attach_all};
use crate::cli::rtrs::{ServeArgs, StoreArg};
use crate::failure::{Failure, Verdict, say};
use crate::output::Output;

pub(super) fn run(args: &ServeArgs, out: &mut Output) -> Result<Verdict, Failure> {
    let mut devices = Devices::new();
    let mut adapters = Vec::new();
    for address in &args.listen {
        adapters.push((address.to_string(), devices.add(adapter(*address, &args.link)?)));
    }
    for (name, device) in attach_all(&args.link)? {
        adapters.push((name, devices.add(device)));
    }
    let config = ServerConfig {
        queue_depth: args.queue_depth as u16,
        max_io_size: args.max_io_size as u32,
        always_invalidate: !args.no_always_invalidate,
        key: key(args.link.key_file.as_deref())?,
        ..ServerConfig::default()
    };
    let mut server = BlockServer::new(devices, config).map_err(Failure::unusable)?;
    let most = server.rtrs().config().max_io_size;
    if u64::from(most) < args.max_io_size {
        return Err(Failure::Unusable(format!(
            "--max-io-size {}: expected at most {most} with --queue-depth {}, as immediate data names chunk and offset",
            args.max_io_size, args.queue_depth
        )));
    }
    if let Some(control) = control::open(&args.control)? {
        server.set_control(control);
    }
    let allowed = args.allow.clone();
    server.allow(move |address| {
        allowed.is_empty() || allowed.iter().any(|network| network.contains(address))
    });
    for export in &args.export {
        let disk = match &export.store {
            StoreArg::Memory(size) => Disk::in_memory(*size),
            StoreArg::File(path) => Disk::open(path, server.bell()),
        };
        let disk = disk.map_err(Failure::unusable)?;
        if disk.geometry().read_only {
            say!("{}: it cannot be written, so it is offered to be read", export.name);
        }
        server.offer(&export.name, disk).map_err(Failure::unusable)?;
    }
    for (name, adapter) in adapters {
        let failed = |error| Failure::unusable(format_args!("{name} port {}: {error}", args.port));
        server.listen(adapter, args.port).map_err(failed)?;
    }
    let failed = |error| Failure::unusable(format_args!("waiting for signals: {error}"));
    let mut orders = Orders::catch_end(&server.bell()).map_err(failed)?;
    let mut names = Names::default();
    writeln!(out, "READY")?;
    out.flush()?;
    loop {
        let moved = server.progress().map_err(Failure::unusable)?;
        while let Some(event) = server.poll_event() {
            match event {
                BlockEvent::Session(event) => names.tell(&server, &event),
                BlockEvent::Refused { session, what, errno } => {
                    let session = names.sessions.get(&session).cloned().unwrap_or_default();
                    names.tell_once(format!("session {session}: {what} is refused: {errno}"));
                }
                BlockEvent::Failed { device, operation, errno } => {
                    names.tell_once(format!("{device}: a {operation} fails: {errno}"));
                }
            }
        }
        if let Some(Order::End) = orders.take() {
            server.close().map_err(Failure::unusable)?;
            return Ok(Verdict::Good);
        }
        if !moved {
            server.wait(Instant::NEVER).map_err(Failure::unusable)?;
        }
    }
}

/// What was told of sessions and paths, which are not there any more when their end is.
#[derive(Default)]
struct Names {
    sessions: BTreeMap<SessionId, String>,
    paths: BTreeMap<ServerPathId, String>,
    /// What is not said again.
    said: BTreeSet<String>,
}

impl Names {
    /// Says something that may happen again and again, which is not said then; but after very many others it is.
    fn tell_once(&mut self, line: String) {
        const MOST: usize = 4096;
        if self.said.len() >= MOST {
            self.said.clear();
        }
        if !self.said.contains(&line) {
            say!("{line}");
            self.said.insert(line);
        }
    }

    /// Says what has happened.
    fn tell(&mut self, server: &BlockServer, event: &ServerEvent) {
        let session = |names: &Self, id| names.sessions.get(id).cloned().unwrap_or_default();
        match event {
            ServerEvent::SessionUp { session, name } => {
                let name = String::from_utf8_lossy(name).into_owned();
                say!("session {name}: connected");
                self.sessions.insert(*session, name);
            }
            ServerEvent::SessionDown { session } => {
                let name = self.sessions.remove(session).unwrap_or_default();
                say!("session {name}: ended");
            }
            ServerEvent::PathUp { session: id, path } => {
                let address =
                    server.rtrs().address(*path).map_or_else(String::new, |it| it.to_string());
                say!("session {}: path {address} connected", session(self, id));
                self.paths.insert(*path, address);
            }
            ServerEvent::PathDown { session: id, path, why } => {
                let address = self.paths.remove(path).unwrap_or_default();
                say!("session {}: path {address} ended: {why}", session(self, id));
            }
            ServerEvent::Refused { address, why } => {
                // The client's port is another one each time.
                let from = address.source.map_or_else(String::new, |from| from.to_string());
                self.tell_once(format!("a connection from {from} is refused: {why}"));
            }
        }
    }
}
