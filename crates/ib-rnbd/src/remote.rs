//! The devices of a server: an RTRS session with its paths, the RNBD client, and commands of any length.
//!
//! The owner adds paths to the session ([`Remote::session`]), and passes events of HCAs to the session. The owner calls
//! [`Remote::handle_timeout`] at the time that [`Remote::poll_timeout`] returns. After each call of another method, the
//! owner repeats [`Remote::advance`] until the result is false.
//!
//! | module | holds |
//! |---|---|
//! | `commands` | commands of the user, their parts, and registered memory for their data |
//! | `devices` | unflushed changes of devices, and losses of the session state |

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use commands::BufferPool;
use commands::Commands;
use devices::Devices;
use ib_block::data::ReadData;
use ib_block::{Command, Errno, Geometry};
use ib_rtrs::{
    Adapters, Client as Rtrs, ClientConfig, ClientEvent as SessionEvent, Failure, Outcome,
    PathState, Request, RequestError, SetupError,
};
use ib_types::Instant;
use ib_wire::rnbd::AccessMode;
use slab::Slab;

use crate::client::refusal;
use crate::recovery::{Recovery, decide};
use crate::{Client, ClientEvent, DeviceId, Kept, OpenError, Outgoing, Tag, recovery};

mod commands;
mod devices;

/// The configuration of a [`Remote`].
#[derive(Clone, Debug)]
pub struct RemoteConfig {
    /// Configuration of the session. [`Remote`] always sets [`ClientConfig::returns_lost`].
    pub session: ClientConfig,
    /// Number of registered buffers, i.e. the maximum number of requests with data in flight. A single command has at
    /// most this many requests in flight, with or without data. The value 0 counts as 1. The server may allow fewer
    /// requests.
    pub depth: usize,
    /// The way in which the user gets READ data.
    pub reads: ReadMode,
    /// True if a Linux server is trusted to keep unflushed writes when the session is lost. If false, the first flush
    /// after such a loss fails.
    pub trusts_cache: bool,
}

/// The way in which the user gets READ data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMode {
    /// READ data is discarded.
    Dropped,
    /// READ data is copied from the registered memory.
    Copied,
    /// Data of at least this many bytes is lent: the user reads it in the registered memory ([`Remote::take_data`]).
    /// Shorter data is copied. Longer data is also copied while half of the buffers are lent.
    Lent(u64),
}

/// For READ data of at least this many bytes, lending costs less than a copy.
pub const MIN_LENT: u64 = 16 << 10;

/// An event of a [`Remote`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteEvent {
    /// A device was opened for the first time, or reopened.
    Opened(DeviceId, Geometry),
    /// A device cannot be opened.
    Refused(DeviceId, OpenError),
    /// An event of the RTRS session.
    Session(SessionEvent),
}

/// Length in bytes of a buffer for the response to a session or open message.
const ADMIN: usize = 64;

/// Number of buffers for responses to session and open messages.
const ADMINS: usize = 16;

/// Delay until the client tries again to open a temporarily refused device.
const REOPEN_DELAY: Duration = Duration::from_secs(1);

/// A message in flight.
#[derive(Clone, Copy, Debug)]
struct Message {
    tag: Tag,
    /// The buffer for the response to a session or open message, and the length of the response in bytes.
    admin: Option<(usize, u32)>,
}

/// A client of the devices of one server.
#[derive(Debug)]
pub struct Remote {
    rtrs: Rtrs,
    rnbd: Client,
    config: RemoteConfig,
    admin: BufferPool,
    commands: Commands,
    /// Messages in flight, by the numbers (`Request::user`) of the RTRS requests that carry them.
    messages: Slab<Message>,
    devices: Devices,
    /// Devices that the server has refused for a temporary reason, and the times at which the client tries to open them
    /// again.
    delayed: BTreeMap<DeviceId, Instant>,
    /// Devices that the user has closed, with the numbers that the server has assigned to them. Commands of these
    /// devices still have parts in flight.
    leaving: Vec<(DeviceId, u32)>,
    /// Value of [`Client::forgotten`] when the last message was sent. If the value has changed since, messages in
    /// flight contain invalid device numbers.
    forgotten: u32,
    /// A message for which no path, permit or buffer was free.
    held: Option<Outgoing>,
    events: VecDeque<RemoteEvent>,
    /// True if the client has given up reconnecting a failed path, and no path was connected since then.
    is_given_up: bool,
}

impl Remote {
    /// Creates a session without paths and devices. The seed must come from the system's random number generator,
    /// except in repeatable tests.
    ///
    /// # Errors
    /// Fails if memory cannot be allocated or registered.
    pub fn new(
        config: RemoteConfig,
        cx: &mut impl Adapters,
        seed: [u8; 32],
    ) -> Result<Self, SetupError> {
        let session = ClientConfig { returns_lost: true, ..config.session.clone() };
        // The server attributes writes to clients by their numbers, so every client needs a number of its own.
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        let client = hasher.finish();
        let mut rtrs = Rtrs::new(session, seed);
        let admin = BufferPool::new(&mut rtrs, cx, (ADMIN, ADMINS))?;
        Ok(Self {
            rtrs,
            rnbd: Client::new(client),
            commands: Commands::new(&config),
            config,
            admin,
            messages: Slab::new(),
            devices: Devices::default(),
            delayed: BTreeMap::new(),
            leaving: Vec::new(),
            forgotten: 0,
            held: None,
            events: VecDeque::new(),
            is_given_up: false,
        })
    }

    /// Opens a device. The client opens the device again after each loss of the session.
    ///
    /// # Errors
    /// Fails if the name is empty, too long, or contains a zero byte.
    pub fn open(&mut self, name: &str, mode: AccessMode) -> Result<DeviceId, OpenError> {
        self.rnbd.open(name, mode)
    }

    /// Closes a device. Queued commands of the device fail with [`Errno::ENODEV`].
    pub fn close(&mut self, device: DeviceId) {
        // If the device has requests in flight, its close message is deferred. Otherwise these requests could reach the
        // next device with the same number.
        if let Some(number) = self.rnbd.number(device)
            && self.commands.has_parts(device)
        {
            self.rnbd.hold(number);
            self.leaving.push((device, number));
        }
        self.rnbd.close(device);
        self.devices.close(device);
        self.delayed.remove(&device);
    }

    /// Returns the geometry of a device; `None` if the device was never open.
    #[must_use]
    pub fn geometry(&self, device: DeviceId) -> Option<&Geometry> {
        self.rnbd.geometry(device)
    }

    /// Returns the session, to read its state.
    #[must_use]
    pub const fn rtrs(&self) -> &Rtrs {
        &self.rtrs
    }

    /// Returns the session, so that the caller can change its paths and pass events of HCAs to it.
    pub const fn session(&mut self) -> &mut Rtrs {
        &mut self.rtrs
    }

    /// Submits a command for a device. If the device was never open, the command fails. `data` is the data of a write.
    ///
    /// # Panics
    /// Panics if the command is a write, and its length differs from the length of the data.
    pub fn submit(&mut self, device: DeviceId, user: u64, command: Command, data: &[u8]) {
        let max_io_size = self.rtrs.max_io_size();
        let Some(geometry) = self.rnbd.geometry(device) else {
            return self.commands.end(user, Errno::ENODEV);
        };
        match geometry.check(&command) {
            Ok(()) => {
                self.commands.submit(device, user, command, data, geometry, max_io_size);
            }
            Err(why) => self.commands.end(user, refusal(why)),
        }
    }

    /// Returns the next completed command: the number that the user gave it, and its status. [`Remote::data`] then
    /// returns the data of a read.
    ///
    /// If the status is [`Errno::ECONNABORTED`] or [`Errno::ETIMEDOUT`], the server may have executed any part of the
    /// command. The reason is that the server does not fence failed paths, or has not confirmed the fence in time.
    pub fn poll(&mut self) -> Option<(u64, Errno)> {
        self.commands.poll()
    }

    /// Returns the number of times that confirmed but unflushed changes of a device may have been lost. After each
    /// such loss, one flush of the device fails. An owner that serves several clients has to report each loss to all of
    /// them.
    #[must_use]
    pub const fn losses(&self) -> u64 {
        self.devices.losses()
    }

    /// Returns the data of the read that [`Remote::poll`] has returned last. Returns no data if the data is lent.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.commands.data()
    }

    /// Takes the data of the read that [`Remote::poll`] has returned last. [`Remote::give_back`] reuses its buffer.
    pub fn take_data(&mut self) -> ReadData {
        self.commands.take_data()
    }

    /// Reuses the buffer of data that [`Remote::take_data`] has returned.
    pub fn give_back(&mut self, data: ReadData) {
        self.commands.give_back(data);
    }

    /// Returns the next event for the user.
    pub fn poll_event(&mut self) -> Option<RemoteEvent> {
        self.events.pop_front()
    }

    /// Returns true if [`Remote::poll`] returns a completed command, or [`Remote::poll_event`] returns an event.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.commands.has_ended() || !self.events.is_empty()
    }

    /// Returns the number of commands that have not completed.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.commands.pending()
    }

    /// Returns the time at which [`Remote::handle_timeout`] has to be called; `None` if no timer runs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.delayed.values().copied().chain(self.rtrs.poll_timeout()).min()
    }

    /// Handles the timers that have expired.
    pub fn handle_timeout(&mut self, now: Instant, cx: &mut impl Adapters) {
        if self.rtrs.poll_timeout().is_some_and(|at| at <= now) {
            self.rtrs.handle_timeout(now, cx);
        }
        for (device, _) in self.delayed.extract_if(.., |_, at| *at <= now) {
            self.rnbd.retry_open(device);
        }
    }

    /// Tries again to open a device that the server has refused and that was never open. Another client that had the
    /// device open may have closed it meanwhile.
    pub fn retry_open(&mut self, device: DeviceId) {
        self.rnbd.retry_open(device);
    }

    /// Handles events and completions, and sends messages. `cpu` is the processor for which RTRS chooses a path and a
    /// connection. Returns true if there was any progress.
    ///
    /// # Errors
    /// Fails if memory for the data of requests cannot be allocated or registered.
    pub fn advance(
        &mut self,
        now: Instant,
        cx: &mut impl Adapters,
        cpu: u32,
    ) -> Result<bool, SetupError> {
        let mut moved = false;
        while let Some(event) = self.rtrs.poll_event() {
            moved = true;
            self.follow(cx, &event)?;
            self.events.push_back(RemoteEvent::Session(event));
        }
        while let Some(completion) = self.rtrs.poll_completion() {
            moved = true;
            self.end_message(completion.user as usize, completion.outcome);
        }
        self.collect(now);
        self.start();
        self.send(now, cx, cpu);
        let waits = self.held.is_some() || self.rnbd.waiting() > 0;
        if waits && self.is_hopeless() {
            self.end_waiting(Errno::ECONNABORTED);
        }
        self.collect(now);
        Ok(moved)
    }

    fn follow(&mut self, cx: &mut impl Adapters, event: &SessionEvent) -> Result<(), SetupError> {
        match event {
            SessionEvent::Up | SessionEvent::Restored => {
                if !self.commands.has_buffers() {
                    let piece = (self.rtrs.max_io_size() as usize).next_multiple_of(4096);
                    let pieces = (piece, self.config.depth.max(1));
                    self.commands.set_buffers(BufferPool::new(&mut self.rtrs, cx, pieces)?);
                }
                self.forget_held();
                self.rnbd.set_longest(self.rtrs.max_io_size());
                // `Up` can follow `Restored`, because a session can be restored before all of its paths are connected.
                // The RNBD client is then already connected.
                if *event == SessionEvent::Restored || self.rnbd.is_unconnected() {
                    self.rnbd.connected();
                }
            }
            SessionEvent::Lost => {
                self.delayed.clear();
                self.devices.session_lost();
                self.forget_held();
                self.rnbd.lost();
            }
            SessionEvent::Closed => self.end_waiting(Errno::ENODEV),
            SessionEvent::PathUp(_) => {
                self.is_given_up = false;
                self.devices.path_connected();
                self.rnbd.path_connected();
            }
            SessionEvent::PathDown { retried: false, why, .. }
                if *why != Failure::ClosedLocally =>
            {
                self.is_given_up = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Starts parts of commands until no buffer is free.
    fn start(&mut self) {
        while let Some((number, part)) = self.commands.start(|device| self.devices.changes(device))
        {
            self.rnbd.submit(part.device, number as u64, part.command);
        }
    }

    /// Sends messages until no path, permit or buffer is free.
    fn send(&mut self, now: Instant, cx: &mut impl Adapters, cpu: u32) {
        if self.forgotten != self.rnbd.forgotten() {
            // The held message contains a device number that is no longer valid, so it is handled as one that was not
            // sent.
            self.forget_held();
        }
        while let Some(out) = self.held.take().or_else(|| self.rnbd.poll_transmit()) {
            // Messages in flight contain old device numbers, which other devices may get. The messages are recalled: if
            // their path fails, they are not retransmitted.
            if std::mem::replace(&mut self.forgotten, self.rnbd.forgotten()) != self.forgotten {
                self.rtrs.recall();
                self.leaving.clear();
            }
            // A Linux server numbers the devices of each session from zero. A device opened now may therefore get a
            // number that a recalled message contains for another device. So no device is opened until all recalled
            // messages have completed.
            let waits = matches!(out.tag, Tag::Open(_))
                && !self.rnbd.has_numbers()
                && self.rtrs.has_recalled();
            if waits || !self.send_one(now, cx, cpu, &out) {
                self.held = Some(out);
                return;
            }
        }
    }

    /// Sends a message. Returns false if no path, permit or buffer is free.
    fn send_one(&mut self, now: Instant, cx: &mut impl Adapters, cpu: u32, out: &Outgoing) -> bool {
        let mut message = Message { tag: out.tag, admin: None };
        let mut data = None;
        if let Tag::Command(part) = out.tag {
            data =
                self.commands.send(part, out.data_length, |device| self.devices.openings(device));
        } else if out.data_length > 0 {
            let Some(slot) = self.admin.take() else { return false };
            message.admin = Some((slot, out.data_length));
            data = Some(self.admin.segment(slot, out.data_length));
        }
        let request = Request {
            cpu,
            direction: out.direction,
            header: out.header(),
            data: data.as_slice(),
            user: self.messages.insert(message) as u64,
            is_admin: !matches!(out.tag, Tag::Command(_)),
        };
        let errno = match self.rtrs.request(now, cx, &request) {
            Ok(_) => return true,
            Err(RequestError::NoPath | RequestError::NoPermit(_)) => {
                let message = self.messages.remove(request.user as usize);
                if let Some((slot, _)) = message.admin {
                    self.admin.give(slot);
                }
                return false;
            }
            Err(RequestError::TooLong { .. }) => Errno::EINVAL,
            Err(_) => Errno::EIO,
        };
        self.end_message(request.user as usize, Outcome::Answered(errno));
        true
    }
}

impl Remote {
    /// Handles the completion of a message.
    pub(super) fn end_message(&mut self, number: usize, outcome: Outcome) {
        let Some(Message { tag, admin }) = self.messages.try_remove(number) else { return };
        let mut data = [0; ADMIN];
        let length = admin.map_or(0, |(slot, length)| {
            self.admin.give(slot);
            let length = length as usize;
            let read = self.admin.memory.read(slot * ADMIN, &mut data[..length]);
            read.expect("responses are within their buffers");
            length
        });
        self.recover(tag, Some(outcome), &data[..length]);
    }

    /// Removes the message in [`Remote::held`], if any, and handles it as not sent.
    pub(super) fn forget_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.recover(held.tag, None, &[]);
        }
    }

    /// Carries out the [`Recovery`] of a message that has completed or was not sent.
    fn recover(&mut self, tag: Tag, outcome: Option<Outcome>, data: &[u8]) {
        let Tag::Command(number) = tag else { return self.rnbd.handle(tag, outcome, data) };
        let Some(part) = self.commands.part(number) else { return };
        let is_change = part.command.operation.is_change();
        let state = self.devices.state(part.device, part.opening);
        match decide(recovery::Message::Command { is_change, device: state }, outcome) {
            Recovery::End(errno) => self.rnbd.end(number, errno),
            Recovery::Reopen => {
                self.devices.reopen();
                self.delayed.clear();
                self.rnbd.connected();
                self.rnbd.again(part.device, number, part.command);
            }
            _ => self.rnbd.again(part.device, number, part.command),
        }
    }

    /// Handles the events of the RNBD protocol client `rnbd`.
    pub(super) fn collect(&mut self, now: Instant) {
        while let Some(event) = self.rnbd.poll_event() {
            match event {
                ClientEvent::Opened(id, geometry, kept) => {
                    let is_kept = match kept {
                        Kept::All => true,
                        Kept::Flushed => false,
                        Kept::Unknown => self.config.trusts_cache,
                    };
                    self.delayed.remove(&id);
                    self.devices.opened(id, is_kept);
                    self.events.push_back(RemoteEvent::Opened(id, geometry));
                }
                ClientEvent::Refused(id, why) => {
                    self.events.push_back(RemoteEvent::Refused(id, why));
                }
                ClientEvent::MaybeOverwritten(id) => {
                    self.devices.may_be_overwritten(id);
                    self.commands.fail_changes(id);
                }
                ClientEvent::Delayed(id) => {
                    self.delayed.insert(id, now + REOPEN_DELAY);
                }
                ClientEvent::Done(part, errno) => self.end_part(part, errno),
            }
        }
    }

    /// Returns true if all paths are disconnected, and the client has given up reconnecting one of them. A path that
    /// the user has disconnected does not count as given up, because the user may reconnect it.
    pub(super) fn is_hopeless(&self) -> bool {
        let mut states = self.rtrs.paths().filter_map(|path| self.rtrs.path_state(path)).peekable();
        self.is_given_up
            && states.peek().is_some()
            && states.all(|state| matches!(state, PathState::Disconnected | PathState::Closing))
    }

    /// Completes all queued commands with this error.
    pub(super) fn end_waiting(&mut self, errno: Errno) {
        self.forget_held();
        self.rnbd.fail_all(errno);
    }

    /// Handles the completion of a part of a command.
    fn end_part(&mut self, number: u64, errno: Errno) {
        let Some(part) = self.commands.take_part(number) else { return };
        let device = part.device;
        if let Some(at) = self.leaving.iter().position(|leaving| leaving.0 == device)
            && !self.commands.has_parts(device)
        {
            let (_, number) = self.leaving.swap_remove(at);
            self.rnbd.release(number);
        }
        let mut errno = errno;
        if errno.is_ok() {
            self.devices.session_is_known();
            if let Some(geometry) = self.rnbd.geometry(device) {
                let (command, covers) = (&part.command, part.covers);
                let is_own = part.is_own_flush;
                errno = self.devices.succeeded(device, geometry, command, covers, is_own);
            }
        }
        self.commands.finish(part, errno);
    }
}
