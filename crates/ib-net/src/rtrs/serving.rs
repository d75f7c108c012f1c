//! A server of block devices: RTRS, RNBD and the devices, in one thread.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use ib_block::rnbd::{Answer, Export, ExportId, Server as Rnbd, ServerCommand};
use ib_block::{Errno, Operation};
use ib_hca::cm::CmEvent;
use ib_rtrs::{
    AdapterId, ListenError, Server as Rtrs, ServerConfig, ServerEvent, ServerRequest,
    ServerRequestId, SessionId,
};
use ib_types::Instant;
use ib_wire::rnbd::Message;
use slab::Slab;

use super::Devices;
use super::control::{Control, ServerControl};
use crate::alarm::{Alarm, Bell};
use crate::device::{DeviceEvent, address_of};
use crate::disk::{Disk, Job};
use crate::poll::Interest;
use crate::{clock, cpu};

/// How long nothing may be looked at when nobody rings.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long clients are told of the end.
const PARTING: Duration = Duration::from_millis(200);

/// The longest header of a request that means something, in bytes.
const LONGEST_HEADER: usize = 512;

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockEvent {
    /// Something about sessions and their paths.
    Session(ServerEvent),
    /// A client is refused something that is not about data: a device that it wants to open, say.
    Refused {
        /// The session's name.
        session: String,
        /// What it has asked for: a device's name, or something else.
        what: String,
        /// What it was told.
        errno: Errno,
    },
    /// A device cannot do what it is asked for.
    Failed {
        /// Its name.
        device: String,
        /// What it was asked for.
        operation: Operation,
        /// What it says.
        errno: Errno,
    },
}

/// A server of block devices.
pub struct BlockServer {
    devices: Devices,
    rtrs: Rtrs,
    rnbd: Rnbd<SessionId>,
    disks: Vec<Disk>,
    alarm: Alarm,
    /// What the devices do.
    under_way: Slab<(ServerRequestId, ServerCommand)>,
    events: VecDeque<BlockEvent>,
    header: Vec<u8>,
    is_allowed: Box<dyn Fn(IpAddr) -> bool>,
    /// Who asks for numbers and changes.
    control: Option<ServerControl>,
}

impl BlockServer {
    /// Makes a server on some adapters, which listens nowhere yet and has no devices.
    ///
    /// # Errors
    /// Fails when the system has no more files or no random numbers.
    pub fn new(devices: Devices, config: ServerConfig) -> io::Result<Self> {
        Ok(Self {
            devices,
            rtrs: Rtrs::new(config, crate::random()?),
            rnbd: Rnbd::default(),
            disks: Vec::new(),
            alarm: Alarm::new()?,
            under_way: Slab::new(),
            events: VecDeque::new(),
            header: vec![0; LONGEST_HEADER],
            is_allowed: Box::new(|_| true),
            control: None,
        })
    }

    /// Takes only clients of some addresses from now on; others are refused with [`Errno::EACCES`].
    pub fn allow(&mut self, is_allowed: impl Fn(IpAddr) -> bool + 'static) {
        self.is_allowed = Box::new(is_allowed);
    }

    /// Has other processes see sessions and their paths, and change them.
    pub fn set_control(&mut self, control: Control) {
        self.control = Some(ServerControl::new(control));
    }

    /// Listens at a port of an adapter.
    ///
    /// # Errors
    /// Fails when the port is taken there.
    pub fn listen(&mut self, adapter: AdapterId, port: u16) -> Result<(), ListenError> {
        self.rtrs.listen(&mut self.devices, adapter, port)
    }

    /// Returns what devices ring that have ended something.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.alarm.bell()
    }

    /// Offers a device.
    ///
    /// # Errors
    /// Fails when the name is taken or cannot be asked for.
    pub fn offer(
        &mut self,
        name: &str,
        disk: Disk,
    ) -> Result<ExportId, ib_block::rnbd::ExportError> {
        let (name, geometry, origin) = (name.to_owned(), *disk.geometry(), disk.origin());
        let id = self.rnbd.offer(Export { name, geometry, origin })?;
        self.disks.push(disk);
        Ok(id)
    }

    /// Returns the transport's part, to look at.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        &self.rtrs
    }

    /// Moves what can be moved; returns whether there was anything.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn progress(&mut self) -> io::Result<bool> {
        let Self { devices, rtrs, is_allowed, .. } = self;
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
                // What is for nobody is refused by the connection manager's time limits.
                DeviceEvent::Cm(event) => drop(rtrs.handle_cm(now, devices, adapter, event)),
            }
        })?;
        let now = clock::now();
        if rtrs.poll_timeout().is_some_and(|at| at <= now) {
            rtrs.handle_timeout(now, devices);
        }
        if let Some(control) = &mut self.control {
            moved |= control.serve(now, rtrs, devices);
        }
        while let Some(request) = self.rtrs.poll_request() {
            moved = true;
            self.take(&request);
        }
        for disk in &mut self.disks {
            disk.flush();
        }
        Ok(self.answer() | moved)
    }

    fn take(&mut self, request: &ServerRequest) {
        let Some(memory) = self.rtrs.memory(request.session).cloned() else { return };
        let length = (request.header_length as usize).min(LONGEST_HEADER);
        let header = &mut self.header[..length];
        let data = (request.direction, request.data_length);
        let answer = match memory.read(request.header_offset, header) {
            Ok(()) => self.rnbd.handle(request.session, data, header),
            Err(_) => Answer::Now(Errno::EINVAL, Vec::new()),
        };
        match answer {
            Answer::Now(errno, bytes) => {
                if !errno.is_ok() {
                    let name = self.rtrs.name(request.session).unwrap_or_default();
                    let session = String::from_utf8_lossy(name).into_owned();
                    let what = named(&self.header[..length]);
                    self.events.push_back(BlockEvent::Refused { session, what, errno });
                }
                let fits = bytes.len() <= request.data_length as usize
                    && memory.write(request.data_offset, &bytes).is_ok();
                let errno = if fits { errno } else { Errno::EINVAL };
                let now = clock::now();
                self.rtrs.complete(now, &mut self.devices, request.id, errno, bytes.len() as u32);
            }
            Answer::Do(it) => {
                let id = self.under_way.insert((request.id, it)) as u64;
                let (command, offset) = (it.command, request.data_offset);
                self.disks[it.export.0 as usize].submit(Job { id, command, memory, offset });
            }
        }
    }

    /// Answers what devices have done; returns whether there was anything.
    fn answer(&mut self) -> bool {
        let mut moved = false;
        for disk in &mut self.disks {
            while let Some((id, errno)) = disk.poll() {
                moved = true;
                let (request, it) = self.under_way.remove(id as usize);
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
                let produced = if reads { it.command.length as u32 } else { 0 };
                self.rtrs.complete(clock::now(), &mut self.devices, request, errno, produced);
            }
        }
        moved
    }

    /// Returns the next thing that has happened.
    pub fn poll_event(&mut self) -> Option<BlockEvent> {
        let Some(event) = self.rtrs.poll_event() else { return self.events.pop_front() };
        if let ServerEvent::SessionDown { session } = event {
            self.rnbd.end(session);
        }
        Some(BlockEvent::Session(event))
    }

    /// Disconnects all clients and takes no more; what devices do meanwhile is not answered.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn close(&mut self) -> io::Result<()> {
        self.rtrs.close(clock::now(), &mut self.devices);
        // The other ends answer, so that they need not find out.
        let end = clock::now() + PARTING;
        while clock::now() < end {
            self.progress()?;
            self.devices.wait(end)?;
        }
        Ok(())
    }

    /// Waits until there may be something to do, or a moment comes.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.alarm.silence();
        if self.control.as_mut().is_some_and(ServerControl::begin_wait) || self.answer() {
            return Ok(());
        }
        let due = self.rtrs.poll_timeout().unwrap_or(Instant::NEVER);
        let until = until.min(due).min(clock::now() + PATIENCE);
        let bells = self.disks.iter().filter_map(Disk::bell);
        let asked = self.control.as_ref().map(ServerControl::as_fd);
        let files = bells.chain([self.alarm.as_fd()]).chain(asked).map(Interest::to_read);
        let files: Vec<_> = files.collect();
        self.devices.wait_with(until, &files)
    }
}

/// Returns what a message asks for that is refused, as people read it.
fn named(header: &[u8]) -> String {
    match Message::parse(header) {
        Ok(Message::Open(open)) => format!("device {:?}", String::from_utf8_lossy(open.name())),
        Ok(Message::Io(io)) => format!("{:?} of device {}", io.rw.operation(), io.device_id),
        Ok(Message::Session(it)) => format!("version {}", it.version),
        _ => "a message that means nothing".to_owned(),
    }
}
