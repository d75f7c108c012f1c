//! The driver of a block server: one thread drives the RTRS server, the RNBD server and the exported disks.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use ib_block::{Command, Errno, Operation};
use ib_cm::CmEvent;
use ib_device::{DeviceEvent, address_of};
use ib_os::alarm::{Alarm, Bell};
use ib_os::poll::Interest;
use ib_os::{clock, cpu};
use ib_rnbd::{Export, ExportError, ExportId, Response, Server as Rnbd, ServerCommand};
use ib_rtrs::{
    AdapterId, Adapters, ListenError, Server as Rtrs, ServerConfig, ServerEvent, ServerRequest,
    ServerRequestId, SessionId, StoreId,
};
use ib_types::Instant;
use ib_types::text::escaped;
use ib_wire::rnbd::Message;
use slab::Slab;

use crate::disk::{Disk, Job};
use crate::rtrs::Devices;
use crate::rtrs::control::{Control, ServerControl};

/// The server polls the disks at least this often.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// When the server closes, it keeps running for this time so that disconnects reach the clients.
const CLOSE_TIME: Duration = Duration::from_millis(200);

/// An event of a [`BlockServer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEvent {
    /// An event of a session or of its paths.
    Session(ServerEvent),
    /// The server has refused a client's RNBD message, for example a request to open a device.
    Refused {
        /// The name of the session.
        session: String,
        /// Description of the refused message, such as the name of the device.
        what: String,
        /// The error number of the response.
        errno: Errno,
    },
    /// The list of clients that write to a device cannot be stored. After a restart, the server
    /// does not know which clients have written to the device.
    Unkept {
        /// The name of the device.
        device: String,
        /// The error number of the system call.
        errno: Errno,
    },
    /// A disk has failed a command.
    Failed {
        /// The name of the device.
        device: String,
        /// The operation of the command.
        operation: Operation,
        /// The error number that the disk has reported.
        errno: Errno,
    },
}

/// A server of block devices.
pub struct BlockServer {
    devices: Devices,
    rtrs: Rtrs,
    exports: Exports,
    alarm: Alarm,
    is_allowed: Box<dyn Fn(IpAddr) -> bool>,
    /// The control socket, if any.
    control: Option<ServerControl>,
}

impl BlockServer {
    /// Creates a server on these HCAs. It does not listen yet, and exports no devices.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors, or if random numbers cannot be read.
    pub fn new(devices: Devices, config: ServerConfig) -> io::Result<Self> {
        let number = ib_os::random()?;
        Ok(Self {
            devices,
            rtrs: Rtrs::new(config, ib_os::random()?),
            exports: Exports::new(u64::from_le_bytes(
                *number.first_chunk().expect("a seed has 32 bytes"),
            )),
            alarm: Alarm::new()?,
            is_allowed: Box::new(|_| true),
            control: None,
        })
    }

    /// Accepts only clients for whose address `is_allowed` returns true. Refuses other clients with
    /// [`Errno::EACCES`].
    pub fn allow(&mut self, is_allowed: impl Fn(IpAddr) -> bool + 'static) {
        self.is_allowed = Box::new(is_allowed);
    }

    /// Serves the statistics and control tree of the server.
    pub fn set_control(&mut self, control: Control) {
        self.control = Some(ServerControl::new(control));
    }

    /// Listens on an HCA, at an RDMA port (as in `rdma_cm`).
    ///
    /// # Errors
    /// Fails if the port is in use, or if the HCA does not exist.
    pub fn listen(&mut self, adapter: AdapterId, port: u16) -> Result<(), ListenError> {
        self.rtrs.listen(&mut self.devices, adapter, port)
    }

    /// Returns the bell to pass to [`Disk::open`]. Disks ring it when a job has completed.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.alarm.bell()
    }

    /// Exports a disk.
    ///
    /// # Errors
    /// Fails if the name is invalid or in use.
    pub fn offer(&mut self, name: &str, disk: Disk) -> Result<ExportId, ExportError> {
        self.exports.offer(&mut self.rtrs, name, disk)
    }

    /// Returns the HCAs.
    pub const fn devices(&mut self) -> &mut Devices {
        &mut self.devices
    }

    /// Returns the RTRS server, so that the caller can read its state.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        &self.rtrs
    }

    /// Returns the name of each device and the counts of its commands.
    pub fn counts(&self) -> impl Iterator<Item = (&str, DeviceCounts)> {
        self.exports.counts()
    }

    /// Drives HCAs, RTRS, RNBD, disks and control socket. Returns true if there was any progress.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn progress(&mut self) -> io::Result<bool> {
        let Self { devices, rtrs, exports, is_allowed, control, .. } = self;
        let mut moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => {
                    rtrs.handle_hca(now, devices, cpu::current(), adapter, &event)
                }
                DeviceEvent::Cm(CmEvent::Requested(requested))
                    if !is_allowed(address_of(requested.route.destination)) =>
                {
                    rtrs.refuse(now, devices, adapter, &requested, Errno::EACCES);
                }
                // Drops events of services other than RTRS. Connection requests for these services
                // end by timeouts of the CM.
                DeviceEvent::Cm(event) => drop(rtrs.handle_cm(now, devices, adapter, event)),
            }
        })?;
        let now = clock::now();
        if rtrs.poll_timeout().is_some_and(|at| at <= now) {
            rtrs.handle_timeout(now, devices);
        }
        if let Some(control) = control {
            moved |= control.serve(now, rtrs, devices);
        }
        Ok(exports.work(now, rtrs, devices) | moved)
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<BlockEvent> {
        let Some(event) = self.rtrs.poll_event() else { return self.exports.poll_event() };
        if let ServerEvent::SessionDown { session } = event {
            self.exports.end(session);
        }
        Some(BlockEvent::Session(event))
    }

    /// Disconnects all clients and stops listening. Outstanding commands get no response.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn close(&mut self) -> io::Result<()> {
        self.rtrs.close(clock::now(), &mut self.devices);
        // Keeps running until the clients have received the disconnects, so that they do not wait
        // for timeouts.
        let end = clock::now() + CLOSE_TIME;
        while clock::now() < end {
            self.progress()?;
            self.devices.wait(end)?;
        }
        Ok(())
    }

    /// Waits until there is work, or the time is `until`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.alarm.silence();
        let Self { devices, rtrs, exports, control, .. } = self;
        if control.as_mut().is_some_and(ServerControl::begin_wait)
            || exports.answer(clock::now(), rtrs, devices)
        {
            return Ok(());
        }
        let due = self.rtrs.poll_timeout().unwrap_or(Instant::NEVER);
        let until = until.min(due).min(clock::now() + MAX_WAIT);
        let control = self.control.as_ref().map(ServerControl::as_fd);
        let own = [self.alarm.as_fd()].into_iter().chain(control).map(Interest::to_read);
        let files: Vec<_> = self.exports.bells().chain(own).collect();
        self.devices.wait_with(until, &files)
    }
}

/// Maximum size of an RNBD message in bytes. Further bytes are ignored.
const MAX_HEADER: usize = 512;

/// Counts of the commands for a device, by operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Reads.
    pub reads: u64,
    /// Writes, including write-zeroes.
    pub writes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Discards, including secure erases.
    pub discards: u64,
}

impl DeviceCounts {
    const fn count(&mut self, operation: Operation) {
        let counter = match operation {
            Operation::Read => &mut self.reads,
            Operation::Write | Operation::WriteZeroes => &mut self.writes,
            Operation::Flush => &mut self.flushes,
            Operation::Discard | Operation::SecureErase => &mut self.discards,
        };
        *counter += 1;
    }
}

/// An exported disk.
struct ExportedDisk {
    disk: Disk,
    counts: DeviceCounts,
    /// ID of the disk's memory in the RTRS server, which sends read data from there without a copy. `None` if the disk
    /// is not in memory.
    store: Option<StoreId>,
}

/// Exported disks, and the commands that clients have sent to them.
pub struct Exports {
    rnbd: Rnbd<SessionId>,
    disks: Vec<ExportedDisk>,
    /// Commands in flight at the disks.
    in_flight: Slab<(ServerRequestId, ServerCommand)>,
    events: VecDeque<BlockEvent>,
    header: Vec<u8>,
}

impl Exports {
    /// Creates an empty set of exports. `number` must be random, because a changed number shows clients that
    /// the server was restarted.
    pub fn new(number: u64) -> Self {
        Self {
            rnbd: Rnbd::new(number),
            disks: Vec::new(),
            in_flight: Slab::new(),
            events: VecDeque::new(),
            header: vec![0; MAX_HEADER],
        }
    }

    /// Exports a disk.
    pub fn offer(
        &mut self,
        rtrs: &mut Rtrs,
        name: &str,
        disk: Disk,
    ) -> Result<ExportId, ExportError> {
        let (name, geometry, origin) = (name.to_owned(), *disk.geometry(), disk.origin());
        let writers = disk.kept_writers();
        let id = self.rnbd.offer(Export { name, geometry, origin, writers })?;
        let store = disk.memory().map(|memory| rtrs.add_store(Arc::clone(memory)));
        self.disks.push(ExportedDisk { disk, counts: DeviceCounts::default(), store });
        Ok(id)
    }

    /// Handles requests of clients, and responds to requests that disks have completed. Returns true if there were any
    /// such requests.
    pub fn work(&mut self, now: Instant, rtrs: &mut Rtrs, cx: &mut impl Adapters) -> bool {
        let mut moved = false;
        while let Some(request) = rtrs.poll_request() {
            moved = true;
            self.take(now, rtrs, cx, &request);
        }
        for offered in &mut self.disks {
            offered.disk.flush();
        }
        self.answer(now, rtrs, cx) | moved
    }

    fn take(
        &mut self,
        now: Instant,
        rtrs: &mut Rtrs,
        cx: &mut impl Adapters,
        request: &ServerRequest,
    ) {
        let Some(memory) = rtrs.memory(request.session).cloned() else { return };
        let length = (request.header_length as usize).min(MAX_HEADER);
        let header = &mut self.header[..length];
        let data = (request.direction, request.data_length);
        let answer = match memory.read(request.header_offset, header) {
            Ok(()) => self.rnbd.handle(request.session, data, header),
            Err(_) => Response::Immediate(Errno::EINVAL, Vec::new()),
        };
        while let Some((id, writers)) = self.rnbd.poll_writers() {
            if let Err(errno) = self.disks[id.0 as usize].disk.keep_writers(&writers) {
                self.rnbd.stop_storing_writers(id);
                let device = self.rnbd.export(id).map(|export| export.name.clone());
                let device = device.unwrap_or_default();
                self.events.push_back(BlockEvent::Unkept { device, errno });
            }
        }
        match answer {
            Response::Immediate(errno, bytes) => {
                if !errno.is_ok() {
                    let name = rtrs.name(request.session).unwrap_or_default();
                    let session = escaped(&String::from_utf8_lossy(name)).to_string();
                    let what = describe(&self.header[..length]);
                    self.events.push_back(BlockEvent::Refused { session, what, errno });
                }
                let fits = bytes.len() <= request.data_length as usize
                    && memory.write(request.data_offset, &bytes).is_ok();
                let errno = if fits { errno } else { Errno::EINVAL };
                rtrs.complete(now, cx, request.id, errno, bytes.len() as u32);
            }
            Response::Execute(it) => {
                let offered = &mut self.disks[it.export.0 as usize];
                let Command { operation, offset: place, length, .. } = it.command;
                offered.counts.count(operation);
                if let (Operation::Read, Some(store)) = (operation, offered.store) {
                    self.rnbd.done(&it);
                    let found = (store, place as usize);
                    rtrs.complete_from(now, cx, request.id, found, length as u32);
                    return;
                }
                let id = self.in_flight.insert((request.id, it)) as u64;
                let (command, offset) = (it.command, request.data_offset);
                offered.disk.submit(Job { id, command, memory, offset });
            }
        }
    }

    /// Responds to commands that disks have completed. Returns true if there were any.
    pub fn answer(&mut self, now: Instant, rtrs: &mut Rtrs, cx: &mut impl Adapters) -> bool {
        let mut moved = false;
        for offered in &mut self.disks {
            while let Some((id, errno)) = offered.disk.poll() {
                moved = true;
                let (request, it) = self.in_flight.remove(id as usize);
                self.rnbd.done(&it);
                if !errno.is_ok() {
                    let device = self.rnbd.export(it.export).map(|export| export.name.clone());
                    self.events.push_back(BlockEvent::Failed {
                        device: device.unwrap_or_default(),
                        operation: it.command.operation,
                        errno,
                    });
                }
                let reads = it.command.operation == Operation::Read && errno.is_ok();
                let length = if reads { it.command.length as u32 } else { 0 };
                rtrs.complete(now, cx, request, errno, length);
            }
        }
        moved
    }

    /// Returns the name of each device and the counts of its commands.
    pub fn counts(&self) -> impl Iterator<Item = (&str, DeviceCounts)> {
        (0..).zip(&self.disks).filter_map(|(number, offered)| {
            let export = self.rnbd.export(ExportId(number))?;
            Some((&export.name[..], offered.counts))
        })
    }

    /// Ends a session, and closes the devices that it has opened.
    pub fn end(&mut self, session: SessionId) {
        self.rnbd.end(session);
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<BlockEvent> {
        self.events.pop_front()
    }

    /// Returns the descriptors that become readable when disks have completed io_uring jobs.
    pub fn bells(&self) -> impl Iterator<Item = Interest<'_>> {
        self.disks.iter().filter_map(|offered| offered.disk.bell()).map(Interest::to_read)
    }
}

/// Returns a description of a refused message.
fn describe(header: &[u8]) -> String {
    match Message::parse(header) {
        Ok(Message::Open(open)) => format!("device {:?}", String::from_utf8_lossy(open.name())),
        Ok(Message::Io(io)) => format!("{:?} of device {}", io.rw.operation(), io.device_id),
        Ok(Message::Session(it)) => format!("version {}", it.version),
        _ => "an invalid message".to_owned(),
    }
}
