//! A device of a server, as whoever uses it sees it: a session with its paths, RNBD, and requests of any length.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use ib_block::rnbd::{
    Client as Rnbd, ClientEvent as RnbdEvent, DeviceId, OpenError, Outgoing, Tag,
};
use ib_block::{Command, Errno, Geometry, Operation, Plan};
use ib_hca::Memory;
use ib_rtrs::{
    BufferId, Client as Rtrs, ClientConfig, ClientEvent, PathSpec, Request, RequestError, Segment,
};
use ib_types::Instant;
use ib_wire::rnbd::AccessMode;
use slab::Slab;

use super::Devices;
use super::control::{Control, PathFinder, SessionControl};
use crate::device::DeviceEvent;
use crate::poll::Interest;
use crate::{clock, cpu};

/// How a device is used.
#[derive(Clone, Debug)]
pub struct RemoteOptions {
    /// The session.
    pub session: ClientConfig,
    /// The device's name at the server.
    pub device: String,
    /// What for.
    pub mode: AccessMode,
    /// How many requests of the device may be under way, 1 to 8192; no more than the server allows are.
    pub depth: usize,
    /// Whether the data of reads is wanted.
    pub keeps_data: bool,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteEvent {
    /// The device is open, for the first time or again.
    Opened(Geometry),
    /// It cannot be opened.
    Refused(OpenError),
    /// Something about the session and its paths.
    Session(ClientEvent),
}

/// The room of messages about devices: how long each may be, and how many there may be at once.
const ADMIN: usize = 64;
const ADMINS: usize = 16;

/// A device of a server.
pub struct RemoteDisk {
    devices: Devices,
    rtrs: Rtrs,
    rnbd: Rnbd,
    device: DeviceId,
    options: RemoteOptions,
    admin: Room,
    /// There is none until the session is connected and has told how long requests may be.
    data: Option<Room>,
    /// Messages that are under way, by the numbers that the session knows them by.
    messages: Slab<Message>,
    /// What was asked for and has not ended.
    asks: Slab<Ask>,
    /// Those of which something is still to be started, in order.
    unstarted: VecDeque<usize>,
    steps: Slab<Step>,
    /// A message for which there was no room.
    held: Option<Outgoing>,
    ended: VecDeque<(u64, Errno, Vec<u8>)>,
    last: Vec<u8>,
    events: VecDeque<RemoteEvent>,
    /// Who asks for numbers and changes.
    control: Option<Box<SessionControl>>,
}

/// Registered memory in pieces of a length.
struct Room {
    memory: Arc<Memory>,
    buffer: BufferId,
    piece: usize,
    free: Vec<usize>,
}

impl Room {
    fn new(
        rtrs: &mut Rtrs,
        devices: &mut Devices,
        (piece, count): (usize, usize),
    ) -> io::Result<Self> {
        let memory = Memory::zeroed(piece * count).map_err(io::Error::other)?;
        let buffer = rtrs.register(devices, Arc::clone(&memory)).map_err(io::Error::other)?;
        Ok(Self { memory, buffer, piece, free: (0..count).rev().collect() })
    }

    const fn segment(&self, slot: usize, length: u32) -> Segment {
        Segment { buffer: self.buffer, offset: slot * self.piece, length }
    }
}

#[derive(Clone, Copy, Debug)]
struct Message {
    tag: Tag,
    /// The piece of the room of messages that it has, and how much data that is.
    admin: Option<(usize, u32)>,
}

/// What the user has asked for.
#[derive(Debug)]
struct Ask {
    user: u64,
    command: Command,
    plan: Plan,
    next: Option<Command>,
    under_way: u32,
    errno: Errno,
    data: Vec<u8>,
}

/// A part of it that the device does at once.
#[derive(Clone, Copy, Debug)]
struct Step {
    ask: usize,
    command: Command,
    slot: Option<usize>,
}

impl RemoteDisk {
    /// Opens a device over some paths of adapters, as soon as they are connected.
    ///
    /// # Errors
    /// Fails when there is no memory, or no session or device can have the name.
    pub fn open(
        mut devices: Devices,
        paths: &[PathSpec],
        options: RemoteOptions,
    ) -> io::Result<Self> {
        let wrong = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        options.session.check_name().map_err(|error| wrong(error.to_string()))?;
        let mut rnbd = Rnbd::default();
        let device = rnbd.open(&options.device, options.mode);
        let device = device.map_err(|error| wrong(error.to_string()))?;
        let config = ClientConfig { returns_lost: true, ..options.session.clone() };
        let mut rtrs = Rtrs::new(config, crate::random()?);
        for path in paths {
            let added = rtrs.add_path(clock::now(), &mut devices, path.clone());
            added.map_err(|error| wrong(error.to_string()))?;
        }
        let admin = Room::new(&mut rtrs, &mut devices, (ADMIN, ADMINS))?;
        Ok(Self {
            devices,
            rtrs,
            rnbd,
            device,
            options,
            admin,
            data: None,
            messages: Slab::new(),
            asks: Slab::new(),
            unstarted: VecDeque::new(),
            steps: Slab::new(),
            held: None,
            ended: VecDeque::new(),
            last: Vec::new(),
            events: VecDeque::new(),
            control: None,
        })
    }

    /// Has other processes see the session and its paths, and change them; `find_path` finds the way of paths that they
    /// add.
    pub fn set_control(&mut self, control: Control, find_path: PathFinder) {
        self.control = Some(Box::new(SessionControl::new(control, find_path)));
    }

    /// Returns what the device is like, once it is open.
    #[must_use]
    pub fn geometry(&self) -> Option<&Geometry> {
        self.rnbd.geometry(self.device)
    }

    /// Returns the session, to look at.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        &self.rtrs
    }

    /// Returns the session and its adapters.
    pub const fn session(&mut self) -> (&mut Rtrs, &mut Devices) {
        (&mut self.rtrs, &mut self.devices)
    }

    /// Asks for something to be done with the device, which is open; with the data of a write.
    ///
    /// # Panics
    /// Panics when a write has other than its length in data, or the device was never open.
    pub fn submit(&mut self, user: u64, command: Command, data: &[u8]) {
        let geometry = self.geometry().expect("the device is open");
        if let Err(why) = geometry.check(&command) {
            let errno = match why {
                ib_block::CommandError::Unaligned => Errno::EINVAL,
                ib_block::CommandError::Beyond => Errno::ENOSPC,
                ib_block::CommandError::ReadOnly => Errno::EROFS,
                ib_block::CommandError::NotDone => Errno::EOPNOTSUPP,
            };
            return self.ended.push_back((user, errno, Vec::new()));
        }
        let mut plan = Plan::new(command, geometry, self.rtrs.max_io_size());
        let data = match command.operation {
            Operation::Write => {
                assert_eq!(data.len() as u64, command.length, "a write has all of its data");
                data.to_vec()
            }
            Operation::Read if self.options.keeps_data => vec![0; command.length as usize],
            _ => Vec::new(),
        };
        let next = plan.next();
        if next.is_none() {
            // It is about no bytes.
            return self.ended.push_back((user, Errno::OK, Vec::new()));
        }
        let (under_way, errno) = (0, Errno::OK);
        let ask = self.asks.insert(Ask { user, command, plan, next, under_way, errno, data });
        self.unstarted.push_back(ask);
    }

    /// Returns something that has ended: the user's number, and how. [`RemoteDisk::data`] has then what was read.
    pub fn poll(&mut self) -> Option<(u64, Errno)> {
        let (user, errno, data) = self.ended.pop_front()?;
        self.last = data;
        Some((user, errno))
    }

    /// Returns what the read has read that [`RemoteDisk::poll`] has told last.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.last
    }

    /// Returns the next thing that has happened.
    pub fn poll_event(&mut self) -> Option<RemoteEvent> {
        self.events.pop_front()
    }

    /// Moves what can be moved; returns whether there was anything.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn progress(&mut self) -> io::Result<bool> {
        let Self { devices, rtrs, .. } = self;
        let mut moved = devices.progress(|devices, adapter, event| {
            let now = clock::now();
            match event {
                DeviceEvent::Hca(event) => {
                    rtrs.handle_hca(now, devices, cpu::current(), adapter, &event)
                }
                // What is for nobody ends by the connection manager's time limits.
                DeviceEvent::Cm(event) => drop(rtrs.handle_cm(now, devices, adapter, event)),
            }
        })?;
        let now = clock::now();
        if rtrs.poll_timeout().is_some_and(|at| at <= now) {
            rtrs.handle_timeout(now, devices);
        }
        while let Some(event) = self.rtrs.poll_event() {
            moved = true;
            if let Some(control) = &mut self.control {
                control.follow(now, &mut self.rtrs, &mut self.devices, &event);
            }
            self.follow(&event)?;
            self.events.push_back(RemoteEvent::Session(event));
        }
        if let Some(control) = &mut self.control {
            moved |= control.serve(now, &mut self.rtrs, &mut self.devices);
        }
        while let Some(completion) = self.rtrs.poll_completion() {
            moved = true;
            self.complete(completion.user as usize, completion.errno);
        }
        self.collect();
        self.start();
        self.send();
        self.collect();
        Ok(moved)
    }

    /// Waits until there may be something to do, or a moment comes.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, until: Instant) -> io::Result<()> {
        self.wait_with(until, &[])
    }

    /// The same, or until one of some files is ready.
    pub(crate) fn wait_with(&mut self, until: Instant, files: &[Interest<'_>]) -> io::Result<()> {
        if !self.ended.is_empty() || !self.events.is_empty() {
            return Ok(());
        }
        let due = self.rtrs.poll_timeout().unwrap_or(Instant::NEVER);
        let Some(control) = &mut self.control else {
            return self.devices.wait_with(until.min(due), files);
        };
        if control.begin_wait() {
            return Ok(());
        }
        let until = until.min(due).min(control.poll_timeout().unwrap_or(Instant::NEVER));
        let files = [files, &[Interest::to_read(control.as_fd())]].concat();
        self.devices.wait_with(until, &files)
    }

    fn follow(&mut self, event: &ClientEvent) -> io::Result<()> {
        match event {
            ClientEvent::Up | ClientEvent::Restored => {
                if self.data.is_none() {
                    let piece = (self.rtrs.max_io_size() as usize).next_multiple_of(4096);
                    let pieces = (piece, self.options.depth.max(1));
                    self.data = Some(Room::new(&mut self.rtrs, &mut self.devices, pieces)?);
                }
                self.forget_held();
                self.rnbd.connected();
            }
            ClientEvent::Lost => {
                self.forget_held();
                self.rnbd.lost();
            }
            ClientEvent::Closed => self.rnbd.fail(self.device, Errno::ENODEV),
            _ => {}
        }
        Ok(())
    }

    /// What was not sent is asked for again once the device is open again.
    fn forget_held(&mut self) {
        if let Some(Tag::Command(step)) = self.held.take().map(|held| held.tag)
            && let Some(it) = self.steps.get(step as usize)
        {
            self.rnbd.again(self.device, step, it.command);
        }
    }

    /// Starts parts of what was asked for, as long as there is room for their data.
    fn start(&mut self) {
        let Some(room) = &mut self.data else { return };
        while let Some(&number) = self.unstarted.front() {
            let ask = &mut self.asks[number];
            let Some(command) = ask.next else {
                self.unstarted.pop_front();
                continue;
            };
            if command.operation == Operation::Flush && ask.under_way > 0 {
                // It comes when all others have ended.
                self.unstarted.pop_front();
                continue;
            }
            let has_data = matches!(
                command.operation,
                Operation::Read | Operation::Write | Operation::WriteZeroes
            );
            let slot = if has_data { room.free.pop() } else { None };
            if has_data && slot.is_none() {
                return;
            }
            if let Some(slot) = slot {
                let (at, length) = (slot * room.piece, command.length as usize);
                let from = (command.offset - ask.command.offset) as usize;
                let put = match command.operation {
                    Operation::Write => room.memory.write(at, &ask.data[from..from + length]),
                    Operation::WriteZeroes => room.memory.fill(at, length, 0),
                    _ => Ok(()),
                };
                put.expect("a piece has room for a step");
            }
            ask.under_way += 1;
            ask.next = ask.plan.next();
            let step = self.steps.insert(Step { ask: number, command, slot });
            self.rnbd.submit(self.device, step as u64, command);
        }
    }

    /// Sends what waits, as long as there is room.
    fn send(&mut self) {
        while let Some(out) = self.held.take().or_else(|| self.rnbd.poll_transmit()) {
            if !self.send_one(&out) {
                self.held = Some(out);
                return;
            }
        }
    }

    /// Sends a message; returns false when it has to wait.
    fn send_one(&mut self, out: &Outgoing) -> bool {
        let mut message = Message { tag: out.tag, admin: None };
        let mut data = None;
        if let Tag::Command(step) = out.tag {
            let slot = self.steps.get(step as usize).and_then(|step| step.slot);
            let room = self.data.as_ref();
            data = slot.zip(room).map(|(slot, room)| room.segment(slot, out.data_length));
        } else if out.data_length > 0 {
            let Some(slot) = self.admin.free.pop() else { return false };
            message.admin = Some((slot, out.data_length));
            data = Some(self.admin.segment(slot, out.data_length));
        }
        let request = Request {
            cpu: cpu::current(),
            direction: out.direction,
            header: out.header(),
            data: data.as_slice(),
            user: self.messages.insert(message) as u64,
            is_admin: !matches!(out.tag, Tag::Command(_)),
        };
        let errno = match self.rtrs.request(clock::now(), &mut self.devices, &request) {
            Ok(_) => return true,
            Err(RequestError::NoPath | RequestError::NoPermit(_)) => {
                let message = self.messages.remove(request.user as usize);
                self.admin.free.extend(message.admin.map(|(slot, _)| slot));
                return false;
            }
            Err(RequestError::TooLong { .. }) => Errno::EINVAL,
            Err(_) => Errno::EIO,
        };
        self.complete(request.user as usize, errno);
        true
    }

    /// A message has been answered, or has failed.
    fn complete(&mut self, number: usize, errno: Errno) {
        let Some(Message { tag, admin }) = self.messages.try_remove(number) else { return };
        match tag {
            Tag::Command(step) if errno == Errno::ECONNABORTED => {
                // Its session was lost; it is asked for again when the device is open again.
                if let Some(it) = self.steps.get(step as usize) {
                    self.rnbd.again(self.device, step, it.command);
                }
            }
            Tag::Command(_) => self.rnbd.handle(tag, errno, &[]),
            tag => {
                let mut data = [0; ADMIN];
                let length = admin.map_or(0, |(slot, length)| {
                    self.admin.free.push(slot);
                    let length = length as usize;
                    let read = self.admin.memory.read(slot * ADMIN, &mut data[..length]);
                    read.expect("messages fit their pieces");
                    length
                });
                if errno != Errno::ECONNABORTED {
                    self.rnbd.handle(tag, errno, &data[..length]);
                }
            }
        }
    }

    /// Takes what RNBD tells.
    fn collect(&mut self) {
        while let Some(event) = self.rnbd.poll_event() {
            match event {
                RnbdEvent::Opened(_, geometry) => {
                    self.events.push_back(RemoteEvent::Opened(geometry));
                }
                RnbdEvent::Refused(_, why) => self.events.push_back(RemoteEvent::Refused(why)),
                RnbdEvent::Done(step, errno) => self.end_step(step as usize, errno),
            }
        }
    }

    fn end_step(&mut self, number: usize, errno: Errno) {
        let Some(Step { ask: at, command, slot }) = self.steps.try_remove(number) else { return };
        let ask = &mut self.asks[at];
        if let (Some(slot), Some(room)) = (slot, &mut self.data) {
            if command.operation == Operation::Read && errno.is_ok() && !ask.data.is_empty() {
                let from = (command.offset - ask.command.offset) as usize;
                let to = &mut ask.data[from..from + command.length as usize];
                room.memory.read(slot * room.piece, to).expect("a step fits its piece");
            }
            room.free.push(slot);
        }
        ask.under_way -= 1;
        if ask.errno.is_ok() && !errno.is_ok() {
            ask.errno = errno;
            // What has failed need not go on.
            ask.next = None;
        }
        if ask.under_way == 0 {
            if ask.next.is_some() {
                if !self.unstarted.contains(&at) {
                    self.unstarted.push_front(at);
                }
                return;
            }
            self.unstarted.retain(|other| *other != at);
            let ask = self.asks.remove(at);
            let reads = ask.command.operation == Operation::Read && ask.errno.is_ok();
            let data = if reads { ask.data } else { Vec::new() };
            self.ended.push_back((ask.user, ask.errno, data));
        }
    }
}
