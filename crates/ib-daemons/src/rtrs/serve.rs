//! `rtrs serve`: exports block devices to RNBD clients.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use ib_device::address_of;
use ib_os::clock;
use ib_os::signals::{Order, Orders};
use ib_rtrs::{ServerConfig, ServerEvent, ServerPathId, SessionId};
use ib_storage::disk::Disk;
use ib_storage::rtrs::{BlockEvent, BlockServer, DeviceCounts, Devices};
use ib_types::Instant;
use ib_types::text::escaped;

use super::config::{RtrsServeConfig, Store};
use super::control;
use super::paths::{adapter, attach_all};
use super::remote::key;
use crate::error::{DaemonError, Verdict};
use crate::message::note;
use crate::own_capture::Tracing;

/// Exports block devices until a signal stops the process.
///
/// # Errors
/// Fails if an HCA, a device or a socket cannot be used.
pub fn serve(args: &RtrsServeConfig, out: &mut dyn Write) -> Result<Verdict, DaemonError> {
    let mut devices = Devices::new();
    let mut adapters = Vec::new();
    for address in &args.listen {
        let device = devices.add(adapter(address.ip(), &args.link)?);
        adapters.push((address.ip().to_string(), device, address.port()));
    }
    for (name, device) in attach_all(&args.link)? {
        adapters.push((name, devices.add(device), args.port));
    }
    let config = ServerConfig {
        queue_depth: args.queue_depth as u16,
        max_io_size: args.max_io_size as u32,
        always_invalidate: !args.no_always_invalidate,
        key: key(args.link.key_file.as_deref())?,
        ..ServerConfig::default()
    };
    let captures = devices.captures().map_err(DaemonError::failed)?;
    let mut tracing = Tracing::start(args.capture.as_ref(), captures, &mut devices)?;
    let mut server = BlockServer::new(devices, config).map_err(DaemonError::failed)?;
    let most = server.rtrs().config().max_io_size;
    if u64::from(most) < args.max_io_size {
        return Err(DaemonError::Failed(format!(
            "--max-io-size {}: expected at most {most} with --queue-depth {}, since the immediate data of RTRS has to \
             hold a chunk number and an offset",
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
            Store::Memory(size) => Disk::in_memory(*size),
            Store::File(path) => Disk::open(path, server.bell()),
        };
        let disk = disk.map_err(DaemonError::failed)?;
        if disk.geometry().read_only {
            note!("{}: the file is not writable: the export is read-only", export.name);
        }
        if let Store::File(path) = &export.store
            && let Ok(found) = std::fs::metadata(path)
            && let Some(rest @ 1..) = found.len().checked_sub(disk.geometry().size)
            && found.is_file()
        {
            note!(
                "{}: the last {rest} bytes of {} are not a whole block and are not exported",
                export.name,
                path.display()
            );
        }
        server.offer(&export.name, disk).map_err(DaemonError::failed)?;
    }
    for (name, adapter, port) in adapters {
        let failed = |error| DaemonError::failed(format_args!("{name} port {port}: {error}"));
        server.listen(adapter, port).map_err(failed)?;
    }
    let failed = |error| DaemonError::failed(format_args!("cannot wait for signals: {error}"));
    let mut orders = Orders::catch_end(&server.bell()).map_err(failed)?;
    let mut names = Reporter::new();
    writeln!(out, "READY")?;
    out.flush()?;
    loop {
        let moved = server.progress().map_err(DaemonError::failed)?;
        while let Some(event) = server.poll_event() {
            match event {
                BlockEvent::Session(event) => names.print_event(&server, &event),
                BlockEvent::Refused { session, what, errno } => {
                    names.print_limited(format!("session {session}: {what} was refused: {errno}"));
                }
                BlockEvent::Unkept { device, errno } => {
                    names.print_limited(format!(
                        "{device}: cannot store which clients write to the device: {errno}; after a restart, \
                         outstanding requests of clients fail"
                    ));
                }
                BlockEvent::Failed { device, operation, errno } => {
                    names.print_limited(format!("{device}: a {operation} failed: {errno}"));
                }
            }
        }
        if let Some(Order::End) = orders.take() {
            server.close().map_err(DaemonError::failed)?;
            tracing.finish(server.devices());
            for (name, counts) in server.counts() {
                let DeviceCounts { reads, writes, flushes, discards } = counts;
                note!(
                    "{name}: reads {reads}, writes {writes}, flushes {flushes}, discards {discards}"
                );
            }
            return Ok(Verdict::Good);
        }
        if !moved {
            server.wait(Instant::NEVER).map_err(DaemonError::failed)?;
        }
    }
}

/// Prints messages about sessions and paths. The name of a session and the address of a path are kept until the message
/// about their end is printed. The rate of messages about refusals and failures is limited.
struct Reporter {
    sessions: BTreeMap<SessionId, String>,
    paths: BTreeMap<ServerPathId, String>,
    /// Lines that were printed within the last ten minutes, with their times. They are not printed again.
    printed: BTreeMap<String, Instant>,
    /// Number of lines that may still be printed in this minute, and the end of the minute.
    budget: (usize, Instant),
}

impl Reporter {
    fn new() -> Self {
        let (sessions, paths, printed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { sessions, paths, printed, budget: (0, Instant::ZERO) }
    }

    /// Prints a line unless it was printed recently. The rate is limited, since clients can cause such lines.
    fn print_limited(&mut self, line: String) {
        const REPEAT_AFTER: Duration = Duration::from_mins(10);
        const MINUTE: Duration = Duration::from_mins(1);
        const MOST: usize = 60;
        let now = clock::now();
        self.printed.retain(|_, at| now.since(*at) < REPEAT_AFTER);
        if self.printed.contains_key(&line) {
            return;
        }
        if self.budget.1 <= now {
            self.budget = (MOST, now + MINUTE);
        }
        match self.budget.0 {
            0 => return,
            1 => note!("further messages are suppressed for a minute"),
            _ => note!("{line}"),
        }
        self.budget.0 -= 1;
        self.printed.insert(line, now);
    }

    /// Prints an event of the server.
    fn print_event(&mut self, server: &BlockServer, event: &ServerEvent) {
        let session = |names: &Self, id| names.sessions.get(id).cloned().unwrap_or_default();
        match event {
            ServerEvent::SessionUp { session, name } => {
                let name = escaped(&String::from_utf8_lossy(name)).to_string();
                note!("session {name}: connected");
                self.sessions.insert(*session, name);
            }
            ServerEvent::SessionDown { session } => {
                let name = self.sessions.remove(session).unwrap_or_default();
                note!("session {name}: ended");
            }
            ServerEvent::PathUp { session: id, path } => {
                let address =
                    server.rtrs().address(*path).map_or_else(String::new, |it| it.to_string());
                note!("session {}: path {address} connected", session(self, id));
                self.paths.insert(*path, address);
            }
            ServerEvent::PathDown { session: id, path, why } => {
                let address = self.paths.remove(path).unwrap_or_default();
                note!("session {}: path {address} ended: {why}", session(self, id));
            }
            ServerEvent::Refused { from, why } => {
                let from = address_of(*from);
                self.print_limited(format!("a connection from {from} was refused: {why}"));
            }
        }
    }
}
