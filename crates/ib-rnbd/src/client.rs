//! The client: opens devices of a server, and opens them again where the server has forgotten them.
//!
//! Its user tells it when the session is connected ([`Client::connected`]), when one of its paths is
//! ([`Client::path_connected`]) and when it has lost them all ([`Client::lost`]), sends what [`Client::poll_transmit`] returns,
//! and hands back what became of it. What is asked of a device waits while it is not open.

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
use super::{LONGEST_NAME, VERSION};
use ib_block::device::SECTOR;
use ib_block::{Command, CommandError, Discard, Errno, Geometry, Origin};

/// The number of a device that a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u32);

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// A device is open, and whether all is there that it had when it was open before: whoever opens it for the first time
    /// misses nothing.
    Opened(DeviceId, Geometry, Kept),
    /// A device cannot be opened.
    Refused(DeviceId, OpenError),
    /// A device is open again, and others may have written to it meanwhile, which nobody knows. The changes that have waited
    /// here have ended with [`Errno::EIO`]; whoever has others of before ends them, too.
    Unsure(DeviceId),
    /// A device that was open cannot be opened again now, but perhaps later ([`Client::try_again`]): a client has it open to
    /// write, possibly an earlier session of this client.
    Delayed(DeviceId),
    /// A command has ended: the user's number, and how.
    Done(u64, Errno),
}

/// Whether a device that is open again has what it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It has.
    All,
    /// The server says that what was not flushed may be lost.
    Flushed,
    /// The server, a Linux kernel, does not say: it may have been started again, with its machine.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It is to be opened as soon as the session can.
    Wanted,
    /// It is being opened.
    /// It was asked for when so many paths had been connected.
    Opening(u32),
    /// It is open, under the server's number.
    Open(u32),
    /// It was refused.
    Refused(Errno),
    /// It was open before and is refused now, which may change.
    Delayed,
}

#[derive(Debug)]
struct Device {
    name: String,
    mode: AccessMode,
    state: State,
    geometry: Option<Geometry>,
    /// The history of its data, as the server has reported it when it was open last.
    history: Option<DataHistory>,
    /// Number of refusals in succession since it was open.
    refusals: u32,
}

/// What the user has asked for and was not sent yet.
#[derive(Clone, Copy, Debug)]
struct QueuedCommand {
    device: DeviceId,
    user: u64,
    command: Command,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    Unconnected,
    Due,
    Sent,
    Done,
}

/// The client of RNBD, in one session.
#[derive(Debug)]
pub struct Client {
    /// Its number, by which servers tell it from others.
    number: u64,
    devices: BTreeMap<DeviceId, Device>,
    last: u32,
    greeting: Greeting,
    /// How many paths were connected, and how many of them when the greeting was sent: a server that took all others for dead
    /// has another session on the last one, to which nobody has said who this client is.
    paths: u32,
    greeted: u32,
    /// How often the numbers of devices were forgotten.
    forgotten: u32,
    /// The server's number, where it tells where data comes from.
    server: Option<u64>,
    waiting: VecDeque<QueuedCommand>,
    /// Devices that were open and are not wanted any more, by the server's numbers.
    closing: VecDeque<u32>,
    /// Those of them of which the server does not know yet, or has not said so: nothing is opened meanwhile, as the messages
    /// may take different paths, and the number would be closed that was just given.
    unclosed: BTreeSet<u32>,
    /// Those that are not to be closed yet.
    busy: BTreeSet<u32>,
    events: VecDeque<ClientEvent>,
    /// How many bytes of data a request may have.
    longest: u32,
}

impl Client {
    /// Returns a client that has opened nothing yet. Its number has to be random.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self {
            number: number.max(1),
            devices: BTreeMap::new(),
            last: 0,
            greeting: Greeting::Unconnected,
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

    /// Says how many bytes of data a request may have: devices with longer blocks are of no use.
    pub(super) const fn set_longest(&mut self, longest: u32) {
        self.longest = longest;
    }

    /// Wants a device of the server to be open, from now on and after each loss of the session.
    ///
    /// # Errors
    /// Fails when no device can have that name.
    pub fn open(&mut self, name: &str, mode: AccessMode) -> Result<DeviceId, OpenError> {
        if name.is_empty() || name.len() > LONGEST_NAME || name.contains('\0') {
            return Err(OpenError::Name(name.to_owned()));
        }
        self.last += 1;
        let id = DeviceId(self.last);
        let (name, state) = (name.to_owned(), State::Wanted);
        self.devices
            .insert(id, Device { name, mode, state, geometry: None, history: None, refusals: 0 });
        Ok(id)
    }

    /// Wants a device no more. What waits for it ends with [`Errno::ENODEV`].
    pub fn close(&mut self, id: DeviceId) {
        let Some(device) = self.devices.remove(&id) else { return };
        if let State::Open(number) = device.state {
            self.closing.push_back(number);
        }
        self.fail(id, Errno::ENODEV);
    }

    /// Returns the server's number of a device that is open.
    pub(super) fn number(&self, id: DeviceId) -> Option<u32> {
        match self.devices.get(&id)?.state {
            State::Open(number) => Some(number),
            _ => None,
        }
    }

    /// Does not close a device, by the server's number, until it is released: nothing is opened meanwhile.
    pub(super) fn hold(&mut self, number: u32) {
        self.busy.insert(number);
    }

    /// Closes a device that was held, once it is wanted no more.
    pub(super) fn release(&mut self, number: u32) {
        self.busy.remove(&number);
    }

    /// Returns whether the server gives no number of a device twice, as far as it has said.
    pub(super) const fn has_numbers(&self) -> bool {
        self.server.is_some()
    }

    /// Returns what a device is like, as far as that is known.
    #[must_use]
    pub fn geometry(&self, id: DeviceId) -> Option<&Geometry> {
        self.devices.get(&id)?.geometry.as_ref()
    }

    /// Notes that a new session is connected, and starts to open all devices in it.
    pub fn connected(&mut self) {
        self.forget();
        self.devices.values_mut().for_each(|device| device.refusals = 0);
        self.greeting = Greeting::Due;
    }

    /// A path was connected, beside others or as the first one. What is opened from now on, or was asked to be, is so after
    /// another greeting.
    pub const fn path_connected(&mut self) {
        self.paths = self.paths.wrapping_add(1);
    }

    /// Returns whether the session is not known to be connected.
    pub(super) const fn is_unconnected(&self) -> bool {
        matches!(self.greeting, Greeting::Unconnected)
    }

    /// The session has lost all of its paths. Commands that were not sent yet wait on.
    pub fn lost(&mut self) {
        self.forget();
        self.greeting = Greeting::Unconnected;
    }

    /// Returns how often the numbers of devices were forgotten: what was sent before means nothing after it.
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

    /// Asks for something to be done with a device. The user's number comes back with the event that ends it, and with
    /// what is sent for it. Reads and writes are at most as long as the session's data.
    pub fn submit(&mut self, device: DeviceId, user: u64, command: Command) {
        self.waiting.push_back(QueuedCommand { device, user, command });
    }

    /// Returns how many commands wait to be sent.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Ends all that waits, with an error.
    pub fn fail_all(&mut self, errno: Errno) {
        self.events.extend(self.waiting.drain(..).map(|it| ClientEvent::Done(it.user, errno)));
    }

    /// Ends what waits for a device, with an error.
    pub fn fail(&mut self, id: DeviceId, errno: Errno) {
        self.fail_those(errno, |it| it.device == id);
    }

    fn fail_those(&mut self, errno: Errno, which: impl Fn(&QueuedCommand) -> bool) {
        let (gone, waiting) = self.waiting.drain(..).partition(which);
        self.waiting = waiting;
        let gone: VecDeque<QueuedCommand> = gone;
        self.events.extend(gone.iter().map(|it| ClientEvent::Done(it.user, errno)));
    }

    /// Returns the next message that is to be sent.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        match self.greeting {
            Greeting::Unconnected => return None,
            // What is open is so in the session that was greeted before.
            Greeting::Sent => return self.next_command(),
            Greeting::Due => {
                (self.greeting, self.greeted) = (Greeting::Sent, self.paths);
                let message_type = MessageType::SESSION;
                let hello = SessionMessage {
                    message_type,
                    version: VERSION,
                    extension: SessionMessage::ASKS,
                    number: self.number,
                }
                .to_bytes();
                let length = SessionMessage::LENGTH as u32;
                return Some(Outgoing::new(Tag::Session, Direction::Read, &hello, length));
            }
            Greeting::Done => {}
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
                // A server that does not say who it is may give the numbers of before to other devices.
                if self.server.is_none() {
                    self.forget();
                }
                self.greeting = Greeting::Due;
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

    /// Handles the end of a message: its outcome, `None` if it was not sent, and the data of the answer.
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

    /// Ends a command that was sent.
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

    /// Sends a message about the session or a device again.
    fn resend(&mut self, tag: Tag) {
        match tag {
            Tag::Session if self.greeting == Greeting::Sent => self.greeting = Greeting::Due,
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

    /// Notes that a device is refused for now.
    fn delay(&mut self, id: DeviceId) {
        if let Some(device) = self.devices.get_mut(&id) {
            device.refusals += 1;
            device.state = State::Delayed;
            self.events.push_back(ClientEvent::Delayed(id));
        }
    }

    /// A command that was sent has to be sent once more, as its session was lost and nothing of it will be done.
    pub fn again(&mut self, device: DeviceId, user: u64, command: Command) {
        self.waiting.push_front(QueuedCommand { device, user, command });
    }

    fn greeted(&mut self, errno: Errno, data: &[u8]) {
        if self.greeting != Greeting::Sent {
            return;
        }
        let is_answer = |it: &SessionMessage| {
            it.message_type == MessageType::SESSION_RESPONSE && it.version > 0
        };
        if let Ok(Message::Session(answer)) = Message::parse(data)
            && errno.is_ok()
            && is_answer(&answer)
        {
            let server = (answer.extension == SessionMessage::KNOWS).then_some(answer.number);
            let before = std::mem::replace(&mut self.server, server);
            if before.is_some() && before != server {
                // Whatever was open was so at another one.
                self.forget();
            }
            self.greeting = Greeting::Done;
            return;
        }
        // Nothing can be opened.
        let waits = |device: &Device| matches!(device.state, State::Wanted | State::Opening(_));
        let waiting = self.devices.iter().filter(|(_, device)| waits(device));
        let ids: Vec<DeviceId> = waiting.map(|(&id, _)| id).collect();
        for id in ids {
            let errno = if errno.is_ok() { Errno::EINVAL } else { errno };
            self.refuse(id, errno, |name| match errno {
                Errno::EINVAL => OpenError::Nonsense { name, what: "it is none to the version" },
                errno => OpenError::Refused { name, errno },
            });
        }
        self.greeting = Greeting::Done;
    }

    fn opened(&mut self, id: DeviceId, errno: Errno, data: &[u8]) {
        let server = self.server;
        let Some(device) = self.devices.get_mut(&id) else {
            // It is not wanted any more.
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
                        Err("its blocks are longer than requests may be")
                    }
                    found => found.map(|geometry| (device_id, geometry, history)),
                }
            }
            _ => Err("it is none to open"),
        };
        let (number, geometry, history) = match found {
            Ok(found) => found,
            Err(what) => {
                let nonsense = |name| OpenError::Nonsense { name, what };
                return self.refuse(id, Errno::EIO, nonsense);
            }
        };
        let before = device.geometry.zip(Some(device.history));
        let (kept, writers) = match before {
            None => (Kept::All, OtherWrites::None),
            Some(before) => match compare(before, (geometry, history), device.mode, &device.name) {
                Ok(found) => found,
                Err(why) => {
                    // Other clients may wait for it.
                    self.closing.push_back(number);
                    return self.refuse(id, Errno::EIO, |_| why);
                }
            },
        };
        (device.geometry, device.history, device.refusals) = (Some(geometry), history, 0);
        device.state = State::Open(number);
        if writers == OtherWrites::Possible {
            self.fail_those(Errno::EIO, |it| it.device == id && it.command.operation.is_change());
            self.events.push_back(ClientEvent::Unsure(id));
        }
        self.events.push_back(ClientEvent::Opened(id, geometry, kept));
    }

    /// Asks for a device again that was refused for now, or that was refused and has never been open.
    pub fn try_again(&mut self, id: DeviceId) {
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

    /// Returns the next thing that has happened.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }
}

/// Returns the number of the error for what cannot be done with a device.
pub(super) const fn refusal(why: CommandError) -> Errno {
    match why {
        CommandError::Unaligned => Errno::EINVAL,
        CommandError::Beyond => Errno::ENOSPC,
        CommandError::ReadOnly => Errno::EROFS,
        CommandError::NotDone => Errno::EOPNOTSUPP,
    }
}

/// Returns what a device is like by what its server says.
fn geometry(response: &OpenResponse, mode: AccessMode) -> Result<Geometry, &'static str> {
    let logical_block = u32::from(response.logical_block_size);
    if logical_block < 512 || !logical_block.is_power_of_two() {
        return Err("its blocks are no power of two from 512 on");
    }
    let size = response.sectors.checked_mul(SECTOR).ok_or("it is longer than there are bytes")?;
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
