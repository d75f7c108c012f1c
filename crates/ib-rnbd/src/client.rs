//! The client: opens devices of a server, and reopens them after the server has lost its session state.
//!
//! The user notifies the client when the session is connected ([`Client::connected`]), when a path is connected
//! ([`Client::path_connected`]) and when the last path is lost ([`Client::lost`]). The user sends the messages that
//! [`Client::poll_transmit`] returns, and passes their outcomes to [`Client::handle`]. Commands wait while their device
//! is not open.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_rtrs::{Direction, Outcome};
use ib_wire::rnbd::{
    AccessMode, CachePolicy, Close, Message, MessageType, Open, OpenResponse,
    Session as SessionMessage,
};

mod open_error;
mod outgoing;
mod reopened;

pub use open_error::{OpenError, OtherData, Size};
use outgoing::message;
pub use outgoing::{Outgoing, Tag};
use reopened::{DataHistory, OtherWrites, compare};

use super::recovery::{self, OpenRequest, Recovery, decide};
use super::{MAX_NAME, VERSION};
use ib_block::device::SECTOR;
use ib_block::{Command, CommandError, Discard, Errno, Geometry, Origin};

/// Number by which the client identifies a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u32);

/// An event of the RNBD client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// A device was opened: its ID, its geometry, and which of the client's earlier writes it still has ([`Kept::All`]
    /// at the first opening).
    Opened(DeviceId, Geometry, Kept),
    /// A device cannot be opened.
    Refused(DeviceId, OpenError),
    /// A device was reopened, but other clients may have written to it in the meantime. Queued commands that change the
    /// data of the device have completed with [`Errno::EIO`]. The user also has to fail earlier commands of this kind
    /// that it has not submitted yet.
    MaybeOverwritten(DeviceId),
    /// A device cannot be reopened now, for example because another client, or an earlier session of this client, has
    /// it open for writing. The user may retry with [`Client::retry_open`].
    Delayed(DeviceId),
    /// A command has completed: the number that the user gave it, and its status.
    Done(u64, Errno),
}

/// Tells which of the client's earlier writes a reopened device still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The device has kept all writes.
    All,
    /// The device has kept flushed writes. The server reports that unflushed writes may be lost.
    Flushed,
    /// The server is a Linux kernel, which may have been restarted. Such a server does not report whether unflushed
    /// writes are lost.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The device has to be opened, as soon as the session is connected.
    Wanted,
    /// The open message was sent. The value is that of `Client::paths` at this time.
    Opening(u32),
    /// The device is open. The value is the number that the server has assigned to the device.
    Open(u32),
    /// The server has refused to open the device.
    Refused(Errno),
    /// The device was open before. The server temporarily refuses to open it again.
    Delayed,
}

#[derive(Debug)]
struct Device {
    name: String,
    mode: AccessMode,
    state: State,
    geometry: Option<Geometry>,
    /// The report about the device's data in the server's last open response.
    history: Option<DataHistory>,
    /// Number of consecutive times that the server has refused to open the device.
    refusals: u32,
}

/// A command that was not sent yet.
#[derive(Clone, Copy, Debug)]
struct QueuedCommand {
    device: DeviceId,
    user: u64,
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VersionState {
    Unconnected,
    Due,
    Sent,
    Done,
}

/// The RNBD client of one session.
#[derive(Debug)]
pub struct Client {
    /// Random number of the client, by which servers distinguish clients.
    number: u64,
    devices: BTreeMap<DeviceId, Device>,
    last: u32,
    greeting: VersionState,
    /// Number of times that a path was connected.
    paths: u32,
    /// Value of `paths` when the version was last sent. If `paths` has changed since, the version is sent again before
    /// a device is opened.
    ///
    /// The client sends the version again because a new path starts a new session if the server had lost all earlier
    /// paths.
    greeted: u32,
    /// Number of times that the server's device numbers became invalid.
    forgotten: u32,
    /// Random number of the server; `None` for a Linux server, which reports no number.
    server: Option<u64>,
    waiting: VecDeque<QueuedCommand>,
    /// The server's numbers of the devices that the user has closed, but for which no close message has been sent
    /// yet.
    closing: VecDeque<u32>,
    /// The server's numbers of the devices whose close message is outstanding. No device is opened meanwhile, because
    /// messages may take different paths, and a late close message would close the next device with the same number.
    unclosed: BTreeSet<u32>,
    /// The server's numbers of the devices whose close message is deferred, because they have requests in flight.
    busy: BTreeSet<u32>,
    events: VecDeque<ClientEvent>,
    /// Maximum data length of a request, in bytes.
    longest: u32,
}

impl Client {
    /// Creates a client without devices. `number` must be random.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self {
            number: number.max(1),
            devices: BTreeMap::new(),
            last: 0,
            greeting: VersionState::Unconnected,
            paths: 0,
            greeted: 0,
            forgotten: 0,
            server: None,
            waiting: VecDeque::new(),
            closing: VecDeque::new(),
            unclosed: BTreeSet::new(),
            busy: BTreeSet::new(),
            events: VecDeque::new(),
            longest: u32::MAX,
        }
    }

    /// Sets the maximum data length of a request, in bytes. Devices with longer blocks are refused.
    pub(super) const fn set_longest(&mut self, longest: u32) {
        self.longest = longest;
    }

    /// Opens a device of the server. The client opens the device again after each loss of the session.
    ///
    /// # Errors
    /// Fails if the name is empty, too long, or contains a zero byte.
    pub fn open(&mut self, name: &str, mode: AccessMode) -> Result<DeviceId, OpenError> {
        if name.is_empty() || name.len() > MAX_NAME || name.contains('\0') {
            return Err(OpenError::Name(name.to_owned()));
        }
        self.last += 1;
        let id = DeviceId(self.last);
        let (name, state) = (name.to_owned(), State::Wanted);
        self.devices
            .insert(id, Device { name, mode, state, geometry: None, history: None, refusals: 0 });
        Ok(id)
    }

    /// Closes a device. The queued commands of the device complete with [`Errno::ENODEV`].
    pub fn close(&mut self, id: DeviceId) {
        let Some(device) = self.devices.remove(&id) else { return };
        if let State::Open(number) = device.state {
            self.closing.push_back(number);
        }
        self.fail(id, Errno::ENODEV);
    }

    /// Returns the number that the server has assigned to a device; `None` if the device is not open.
    pub(super) fn number(&self, id: DeviceId) -> Option<u32> {
        match self.devices.get(&id)?.state {
            State::Open(number) => Some(number),
            _ => None,
        }
    }

    /// Defers the close message of the device with this device number until [`Client::release`] is called. No device
    /// is opened meanwhile.
    pub(super) fn hold(&mut self, number: u32) {
        self.busy.insert(number);
    }

    /// Allows the client to send the close message of the device with this device number.
    pub(super) fn release(&mut self, number: u32) {
        self.busy.remove(&number);
    }

    /// Returns true if the server has reported its random number. Such a server never reuses the number of a device.
    pub(super) const fn has_numbers(&self) -> bool {
        self.server.is_some()
    }

    /// Returns the geometry of a device; `None` if the device was never open.
    #[must_use]
    pub fn geometry(&self, id: DeviceId) -> Option<&Geometry> {
        self.devices.get(&id)?.geometry.as_ref()
    }

    /// Notifies the client that a session is connected. The client then opens all devices in this session.
    pub fn connected(&mut self) {
        self.forget();
        self.devices.values_mut().for_each(|device| device.refusals = 0);
        self.greeting = VersionState::Due;
    }

    /// Notifies the client that a path is connected. Before the client opens the next device, it sends its version
    /// again.
    pub const fn path_connected(&mut self) {
        self.paths = self.paths.wrapping_add(1);
    }

    /// Returns true while the session is not connected: before [`Client::connected`], and after [`Client::lost`].
    pub(super) const fn is_unconnected(&self) -> bool {
        matches!(self.greeting, VersionState::Unconnected)
    }

    /// Notifies the client that the session has lost all of its paths. Queued commands keep waiting.
    pub fn lost(&mut self) {
        self.forget();
        self.greeting = VersionState::Unconnected;
    }

    /// Returns the number of times that the server's device numbers became invalid. If the result has changed since a
    /// message was created, a device number in the message is invalid.
    pub(super) const fn forgotten(&self) -> u32 {
        self.forgotten
    }

    fn forget(&mut self) {
        self.forgotten = self.forgotten.wrapping_add(1);
        self.closing.clear();
        self.unclosed.clear();
        self.busy.clear();
        for device in self.devices.values_mut() {
            device.state = State::Wanted;
        }
    }

    /// Queues a command for a device. The message of the command and its [`ClientEvent::Done`] have the number `user`.
    /// The caller has to split reads and writes whose data does not fit into one request.
    pub fn submit(&mut self, device: DeviceId, user: u64, command: Command) {
        self.waiting.push_back(QueuedCommand { device, user, command });
    }

    /// Returns the number of queued commands.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Completes all queued commands with an error.
    pub fn fail_all(&mut self, errno: Errno) {
        self.events.extend(self.waiting.drain(..).map(|it| ClientEvent::Done(it.user, errno)));
    }

    /// Completes the queued commands of a device with an error.
    pub fn fail(&mut self, id: DeviceId, errno: Errno) {
        self.fail_those(errno, |it| it.device == id);
    }

    fn fail_those(&mut self, errno: Errno, which: impl Fn(&QueuedCommand) -> bool) {
        let (gone, waiting) = self.waiting.drain(..).partition(which);
        self.waiting = waiting;
        let gone: VecDeque<QueuedCommand> = gone;
        self.events.extend(gone.iter().map(|it| ClientEvent::Done(it.user, errno)));
    }

    /// Returns the next message to send.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        match self.greeting {
            VersionState::Unconnected => return None,
            // Until the response to the version message is received, only commands for open devices can be sent.
            VersionState::Sent => return self.next_command(),
            VersionState::Due => {
                (self.greeting, self.greeted) = (VersionState::Sent, self.paths);
                let message_type = MessageType::SESSION;
                let hello = SessionMessage {
                    message_type,
                    version: VERSION,
                    extension: SessionMessage::EXTENSION_REQUEST,
                    number: self.number,
                }
                .to_bytes();
                let length = SessionMessage::LENGTH as u32;
                return Some(Outgoing::new(Tag::Session, Direction::Read, &hello, length));
            }
            VersionState::Done => {}
        }
        let idle = self.closing.iter().position(|number| !self.busy.contains(number));
        if let Some(device_id) = idle.and_then(|at| self.closing.remove(at)) {
            self.unclosed.insert(device_id);
            let close = Close { message_type: MessageType::CLOSE, device_id }.to_bytes();
            let tag = Tag::Close(device_id);
            return Some(Outgoing::new(tag, Direction::Write, &close, 0));
        }
        if !self.unclosed.is_empty() || !self.closing.is_empty() {
            return self.next_command();
        }
        let mut wanted = self.devices.iter_mut().filter(|(_, it)| it.state == State::Wanted);
        if let Some((id, device)) = wanted.next() {
            if self.greeted != self.paths {
                // The new path may have started a new session, in which a Linux server may give the old device numbers
                // to other devices. So all devices are opened again.
                if self.server.is_none() {
                    self.forget();
                }
                self.greeting = VersionState::Due;
                return self.poll_transmit();
            }
            device.state = State::Opening(self.paths);
            let mut name = [0; 255];
            name[..device.name.len()].copy_from_slice(device.name.as_bytes());
            let (message_type, access_mode) = (MessageType::OPEN, device.mode);
            let open = Open { message_type, access_mode, name }.to_bytes();
            let length = OpenResponse::LENGTH as u32;
            return Some(Outgoing::new(Tag::Open(*id), Direction::Read, &open, length));
        }
        self.next_command()
    }

    fn next_command(&mut self) -> Option<Outgoing> {
        let mut at = 0;
        while let Some(QueuedCommand { device, user, command }) = self.waiting.get(at).copied() {
            let errno = match self.devices.get(&device) {
                Some(it) => match (it.state, &it.geometry) {
                    (State::Open(number), Some(geometry)) => match geometry.check(&command) {
                        Ok(()) => {
                            self.waiting.remove(at);
                            return Some(message(number, user, &command));
                        }
                        Err(why) => refusal(why),
                    },
                    (State::Refused(errno), _) => errno,
                    _ => {
                        at += 1;
                        continue;
                    }
                },
                None => Errno::ENODEV,
            };
            self.waiting.remove(at);
            self.events.push_back(ClientEvent::Done(user, errno));
        }
        None
    }

    /// Handles the completion of a message. `outcome` is `None` if the message was not sent. `data` is the data of the
    /// response.
    pub fn handle(&mut self, tag: Tag, outcome: Option<Outcome>, data: &[u8]) {
        let message = match tag {
            Tag::Session => recovery::Message::Session,
            Tag::Open(id) => recovery::Message::Open(self.open_request(id)),
            Tag::Close(_) => recovery::Message::Close,
            Tag::Command(user) => {
                let errno = outcome.map_or(Errno::ECONNABORTED, Outcome::errno);
                return self.end(user, errno);
            }
        };
        match (decide(message, outcome), tag) {
            (Recovery::End(errno), Tag::Session) => self.greeted(errno, data),
            (Recovery::End(errno), Tag::Open(id)) => self.opened(id, errno, data),
            (Recovery::End(_), Tag::Close(number)) => drop(self.unclosed.remove(&number)),
            (Recovery::Resend, tag) => self.resend(tag),
            (Recovery::ResendLater, Tag::Open(id)) => self.delay(id),
            _ => {}
        }
    }

    /// Completes a command that was sent.
    pub(super) fn end(&mut self, user: u64, errno: Errno) {
        self.events.push_back(ClientEvent::Done(user, errno));
    }

    fn open_request(&self, id: DeviceId) -> OpenRequest {
        match self.devices.get(&id) {
            Some(&Device { state: State::Opening(paths), geometry, refusals, .. }) => OpenRequest {
                is_outdated: paths != self.paths,
                was_open: geometry.is_some(),
                refusals,
            },
            _ => OpenRequest::default(),
        }
    }

    /// Queues a session, open or close message for retransmission.
    fn resend(&mut self, tag: Tag) {
        match tag {
            Tag::Session if self.greeting == VersionState::Sent => {
                self.greeting = VersionState::Due;
            }
            Tag::Open(id) => {
                let device = self.devices.get_mut(&id);
                if let Some(device) = device.filter(|it| matches!(it.state, State::Opening(_))) {
                    device.state = State::Wanted;
                }
            }
            Tag::Close(number) if self.unclosed.remove(&number) => self.closing.push_back(number),
            _ => {}
        }
    }

    /// Records that the server refuses a device temporarily, and notifies the user.
    fn delay(&mut self, id: DeviceId) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.refusals += 1;
            device.state = State::Delayed;
            self.events.push_back(ClientEvent::Delayed(id));
        }
    }

    /// Queues a command that has to be sent again, in front of all other queued commands.
    pub fn again(&mut self, device: DeviceId, user: u64, command: Command) {
        self.waiting.push_front(QueuedCommand { device, user, command });
    }

    fn greeted(&mut self, errno: Errno, data: &[u8]) {
        if self.greeting != VersionState::Sent {
            return;
        }
        let is_answer = |it: &SessionMessage| {
            it.message_type == MessageType::SESSION_RESPONSE && it.version > 0
        };
        if let Ok(Message::Session(answer)) = Message::parse(data)
            && errno.is_ok()
            && is_answer(&answer)
        {
            let server =
                (answer.extension == SessionMessage::EXTENSION_RESPONSE).then_some(answer.number);
            let before = std::mem::replace(&mut self.server, server);
            if before.is_some() && before != server {
                // The path leads to another server, or the server was restarted, so no device is open at the server.
                self.forget();
            }
            self.greeting = VersionState::Done;
            return;
        }
        // The server has refused the client's protocol version, so no device can be opened.
        let waits = |device: &Device| matches!(device.state, State::Wanted | State::Opening(_));
        let waiting = self.devices.iter().filter(|(_, device)| waits(device));
        let ids: Vec<DeviceId> = waiting.map(|(&id, _)| id).collect();
        for id in ids {
            let errno = if errno.is_ok() { Errno::EINVAL } else { errno };
            self.refuse(id, errno, |name| match errno {
                Errno::EINVAL => {
                    OpenError::InvalidResponse { name, what: "not a session response" }
                }
                errno => OpenError::Refused { name, errno },
            });
        }
        self.greeting = VersionState::Done;
    }

    fn opened(&mut self, id: DeviceId, errno: Errno, data: &[u8]) {
        let server = self.server;
        let Some(device) = self.devices.get_mut(&id) else {
            // The user has closed the device before the open response arrived, so the client closes it at the server.
            if let (true, Ok(Message::OpenResponse(it))) = (errno.is_ok(), Message::parse(data)) {
                self.closing.push_back(it.device_id);
            }
            return;
        };
        if !matches!(device.state, State::Opening(_)) {
            return;
        }
        if !errno.is_ok() {
            return self.refuse(id, errno, |name| OpenError::Refused { name, errno });
        }
        let found = match Message::parse(data) {
            Ok(Message::OpenResponse(response)) => {
                let OpenResponse { device_id, writers, medium, cache, .. } = response;
                let origin = Origin { medium, cache };
                let history = server.map(|server| DataHistory { server, origin, writers });
                match geometry(&response, device.mode) {
                    Ok(found) if found.logical_block > self.longest => {
                        Err("the block size exceeds the maximum length of requests")
                    }
                    found => found.map(|geometry| (device_id, geometry, history)),
                }
            }
            _ => Err("not an open response"),
        };
        let (number, geometry, history) = match found {
            Ok(found) => found,
            Err(what) => {
                let nonsense = |name| OpenError::InvalidResponse { name, what };
                return self.refuse(id, Errno::EIO, nonsense);
            }
        };
        let before = device.geometry.zip(Some(device.history));
        let (kept, writers) = match before {
            None => (Kept::All, OtherWrites::None),
            Some(before) => match compare(before, (geometry, history), device.mode, &device.name) {
                Ok(found) => found,
                Err(why) => {
                    // The client closes the device at the server, because another client may wait to open it.
                    self.closing.push_back(number);
                    return self.refuse(id, Errno::EIO, |_| why);
                }
            },
        };
        (device.geometry, device.history, device.refusals) = (Some(geometry), history, 0);
        device.state = State::Open(number);
        if writers == OtherWrites::Possible {
            self.fail_those(Errno::EIO, |it| it.device == id && it.command.operation.is_change());
            self.events.push_back(ClientEvent::MaybeOverwritten(id));
        }
        self.events.push_back(ClientEvent::Opened(id, geometry, kept));
    }

    /// Tries again to open a device for which [`ClientEvent::Delayed`] was reported, or a refused device that was never
    /// open. Does nothing for other devices.
    pub fn retry_open(&mut self, id: DeviceId) {
        let device = self.devices.get_mut(&id);
        let may_again = |it: &&mut Device| match it.state {
            State::Delayed => true,
            State::Refused(_) => it.geometry.is_none(),
            _ => false,
        };
        if let Some(device) = device.filter(may_again) {
            device.state = State::Wanted;
        }
    }

    fn refuse(&mut self, id: DeviceId, errno: Errno, why: impl FnOnce(String) -> OpenError) {
        let Some(device) = self.devices.get_mut(&id) else { return };
        (device.state, device.refusals) = (State::Refused(errno), 0);
        let why = why(device.name.clone());
        self.events.push_back(ClientEvent::Refused(id, why));
        self.fail(id, errno);
    }

    /// Returns the next event for the user.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }
}

/// Returns the error number for a command that a device cannot execute.
pub(super) const fn refusal(why: CommandError) -> Errno {
    match why {
        CommandError::Unaligned => Errno::EINVAL,
        CommandError::Beyond => Errno::ENOSPC,
        CommandError::ReadOnly => Errno::EROFS,
        CommandError::NotDone => Errno::EOPNOTSUPP,
    }
}

/// Returns the geometry of a device that an open response describes.
fn geometry(response: &OpenResponse, mode: AccessMode) -> Result<Geometry, &'static str> {
    let logical_block = u32::from(response.logical_block_size);
    if logical_block < 512 || !logical_block.is_power_of_two() {
        return Err("the block size is not a power of two of at least 512");
    }
    let size = response.sectors.checked_mul(SECTOR).ok_or("the size exceeds 2^64 bytes")?;
    let max = u64::from(response.max_discard_sectors) * SECTOR;
    let discard = Discard {
        granularity: response.discard_granularity,
        alignment: response.discard_alignment,
        max,
    };
    let has = |policy: CachePolicy| response.cache_policy.0 & policy.0 != 0;
    Ok(Geometry {
        size: size / u64::from(logical_block) * u64::from(logical_block),
        logical_block,
        physical_block: u32::from(response.physical_block_size).max(logical_block),
        discard: (max >= u64::from(logical_block)).then_some(discard),
        secure_erase: response.secure_discard != 0,
        write_back: has(CachePolicy::WRITE_BACK),
        fua: has(CachePolicy::FUA),
        read_only: mode == AccessMode::READ_ONLY,
    })
}

#[cfg(test)]
mod tests;
