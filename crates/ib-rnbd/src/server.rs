//! The server: which devices there are, who has opened them, and what is asked of them.

use std::collections::{BTreeMap, VecDeque};

use ib_rtrs::Direction;
use ib_wire::rnbd::{
    AccessMode, CachePolicy, Io, IoFlags, Message, MessageType, Open, OpenResponse,
    Operation as Code, Session as SessionMessage,
};

use super::VERSION;
use super::writers::Writers;
use ib_block::device::SECTOR;
use ib_block::{Command, CommandError, Errno, Geometry, Operation, Origin};

/// The number of a device that a server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportId(pub u32);

/// A device that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which clients open it.
    pub name: String,
    /// What it is like.
    pub geometry: Geometry,
    /// Where its data comes from, for clients that want to know whether it still is what it was.
    pub origin: Origin,
    /// Who has written to it: what [`Server::poll_writers`] has returned last, before the server was started, empty if it
    /// has not; `None` where nothing is kept.
    pub writers: Option<Vec<u8>>,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This goes back at once: the error, and the data where there is none.
    Now(Errno, Vec<u8>),
    /// Something has to be done with a device first.
    Do(ServerCommand),
}

/// Something that a client wants to be done with a device. A read puts its data where the request's data has to be put, a
/// write finds it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The device.
    pub export: ExportId,
    /// What is to be done; it was found to be possible.
    pub command: Command,
    /// As what it was opened.
    opening: u64,
}

/// A device that a client has opened.
#[derive(Clone, Copy, Debug)]
struct Opened {
    export: ExportId,
    mode: AccessMode,
    /// No other one has it.
    number: u64,
}

/// What is being done with a device that a client has opened, and may have closed meanwhile.
#[derive(Clone, Copy, Debug)]
struct Work {
    export: ExportId,
    mode: AccessMode,
    count: u32,
}

#[derive(Debug, Default)]
struct Session {
    /// By their numbers.
    opened: BTreeMap<u32, Opened>,
    /// The client's number: its own, or one for this session alone where it tells none; 0 as long as it needs none.
    client: u64,
}

/// The server of RNBD, of any number of sessions, whose numbers are the user's.
#[derive(Debug)]
pub struct Server<S> {
    /// Its own number.
    number: u64,
    exports: Vec<Export>,
    /// By the numbers of devices.
    writers: Vec<Writers>,
    /// Devices about whose writers there is something new to be kept.
    news: VecDeque<ExportId>,
    sessions: BTreeMap<S, Session>,
    /// By the numbers of what was opened.
    work: BTreeMap<u64, Work>,
    last: u64,
    /// The number of what is opened next. None is given again: a request that was made in an earlier session of its client,
    /// and is sent again, finds no other device.
    next_device: u32,
}

/// A device cannot be offered under a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// There is one of that name.
    #[error("{0} is offered already")]
    Twice(String),
    /// No client could ask for it.
    #[error("{0:?}: a name has 1 to {most} bytes, and no part of it is . or ..", most = super::LONGEST_NAME)]
    Name(String),
}

impl<S: Copy + Ord> Server<S> {
    /// Makes a server without devices. Its number has to be random, as clients know by it whether it is the same as before.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self {
            number,
            exports: Vec::new(),
            writers: Vec::new(),
            news: VecDeque::new(),
            sessions: BTreeMap::new(),
            work: BTreeMap::new(),
            last: 0,
            // One that was started again gives others than before, too.
            next_device: (number >> 32) as u32,
        }
    }

    /// Starts to offer a device.
    ///
    /// # Errors
    /// Fails when the name is taken or cannot be asked for.
    pub fn offer(&mut self, export: Export) -> Result<ExportId, ExportError> {
        if clean(export.name.as_bytes()).is_none_or(|name| name != export.name) {
            return Err(ExportError::Name(export.name));
        }
        if self.exports.iter().any(|other| other.name == export.name) {
            return Err(ExportError::Twice(export.name));
        }
        let kept = export.writers.as_deref().unwrap_or_default();
        self.writers.push(Writers::parse(kept));
        self.exports.push(export);
        Ok(ExportId(self.exports.len() as u32 - 1))
    }

    /// Returns a device that is offered.
    #[must_use]
    pub fn export(&self, id: ExportId) -> Option<&Export> {
        self.exports.get(id.0 as usize)
    }

    /// Returns what is to be kept about who has written to a device, before anything else is done that was asked for by the
    /// message that was handled last.
    pub fn poll_writers(&mut self) -> Option<(ExportId, Vec<u8>)> {
        let id = self.news.pop_front()?;
        Some((id, self.writers[id.0 as usize].to_bytes()))
    }

    /// What was to be kept about a device's writers cannot be: nothing is from now on.
    pub fn forget_writers(&mut self, id: ExportId) {
        if let Some(export) = self.exports.get_mut(id.0 as usize) {
            export.writers = None;
        }
    }

    /// Returns how often a device is open.
    #[must_use]
    pub fn openers(&self, id: ExportId) -> usize {
        self.all_opened().filter(|opened| opened.export == id).count()
    }

    fn all_opened(&self) -> impl Iterator<Item = &Opened> {
        self.sessions.values().flat_map(|session| session.opened.values())
    }

    /// A session has ended: what it has opened is closed. Whoever wants to write has to wait until that is done which was
    /// asked for before.
    pub fn end(&mut self, session: S) {
        self.sessions.remove(&session);
    }

    /// Something was done with a device that [`Answer::Do`] has asked for, whatever came of it.
    pub fn done(&mut self, command: &ServerCommand) {
        if let Some(work) = self.work.get_mut(&command.opening) {
            work.count -= 1;
            if work.count == 0 {
                self.work.remove(&command.opening);
            }
        }
    }

    /// Takes a message of a session: the user's header of a request, the way of its data, and how much there is of it or may
    /// become, in bytes.
    pub fn handle(
        &mut self,
        session: S,
        (direction, data): (Direction, u32),
        header: &[u8],
    ) -> Answer {
        let answer = match Message::parse(header) {
            Ok(Message::Session(it)) if it.message_type == MessageType::SESSION => {
                let known = it.extension == SessionMessage::EXTENSION_REQUEST;
                let client = if known { it.number } else { 0 };
                self.sessions.entry(session).or_default().client = client;
                greet(&it, self.number, direction, data)
            }
            Ok(Message::Open(open)) => self.open(session, &open, direction, data),
            Ok(Message::Io(io)) => {
                return match self.io(session, &io, direction, data) {
                    Ok((command, mode)) => {
                        let client = self.sessions.get(&session).map_or(0, |it| it.client);
                        if command.command.operation.is_change() {
                            let id = command.export;
                            if self.writers[id.0 as usize].write(client) {
                                self.note_writers(id);
                            }
                        }
                        let idle = Work { export: command.export, mode, count: 0 };
                        self.work.entry(command.opening).or_insert(idle).count += 1;
                        Answer::Do(command)
                    }
                    Err(errno) => Answer::Now(errno, Vec::new()),
                };
            }
            Ok(Message::Close(close)) => {
                // To close what is not open does no harm.
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.opened.remove(&close.device_id);
                }
                Ok(Vec::new())
            }
            Ok(_) | Err(_) => Err(Errno::EINVAL),
        };
        match answer {
            Ok(bytes) => Answer::Now(Errno::OK, bytes),
            Err(errno) => Answer::Now(errno, Vec::new()),
        }
    }

    fn open(
        &mut self,
        session: S,
        open: &Open,
        direction: Direction,
        data: u32,
    ) -> Result<Vec<u8>, Errno> {
        expect_room(direction, data, OpenResponse::LENGTH)?;
        if open.name().len() == open.name.len() {
            return Err(Errno::EINVAL);
        }
        let name = clean(open.name()).ok_or(Errno::EINVAL)?;
        let writes = match open.access_mode {
            AccessMode::READ_ONLY => false,
            AccessMode::READ_WRITE | AccessMode::MIGRATION => true,
            _ => return Err(Errno::EINVAL),
        };
        let found = self.exports.iter().position(|export| export.name == name);
        let export = ExportId(found.ok_or(Errno::ENOENT)? as u32);
        let &Export { geometry, origin, ref writers, .. } = &self.exports[export.0 as usize];
        let lasts = if writers.is_some() { OpenResponse::WRITERS_PERSISTENT } else { 0 };
        let own = self.sessions.get(&session).and_then(|it| {
            it.opened.iter().find(|(_, opened)| opened.export == export).map(|(&it, _)| it)
        });
        // What a session has opened already it gets as it is.
        let number = match own {
            Some(number) => number,
            None => {
                if writes && geometry.read_only {
                    return Err(Errno::EACCES);
                }
                self.expect_free(export, open.access_mode)?;
                let opened = &mut self.sessions.entry(session).or_default().opened;
                let device = self.next_device;
                self.next_device = self.next_device.wrapping_add(1);
                self.last += 1;
                let (mode, number) = (open.access_mode, self.last);
                opened.insert(device, Opened { export, mode, number });
                device
            }
        };
        let opened = self.sessions.entry(session).or_default();
        if opened.client == 0 {
            self.last += 1;
            opened.client = u64::MAX - self.last;
        }
        let client = opened.client;
        self.last += 1;
        let seed = (self.number, self.last);
        let mut number_told = 0;
        // Who only reads has nothing that could be older than what others have written.
        if writes {
            let sessions = &self.sessions;
            let has_open = |client| {
                let of_client = sessions.values().filter(|session| session.client == client);
                of_client.flat_map(|it| it.opened.values()).any(|it| it.export == export)
            };
            let is_new;
            (number_told, is_new) = self.writers[export.0 as usize].open(client, seed, has_open);
            if is_new {
                self.note_writers(export);
            }
        }
        let writers = number_told | lasts;
        let described = describe(number, &geometry, origin);
        Ok(OpenResponse { writers, ..described }.to_bytes().to_vec())
    }

    fn note_writers(&mut self, id: ExportId) {
        if self.exports[id.0 as usize].writers.is_some() && !self.news.contains(&id) {
            self.news.push_back(id);
        }
    }

    /// One client may write, and a second one to which the first is moving.
    fn expect_free(&self, export: ExportId, mode: AccessMode) -> Result<(), Errno> {
        let writers = || {
            let others = self.all_opened().filter(|opened| opened.export == export);
            others.filter(|opened| opened.mode != AccessMode::READ_ONLY)
        };
        // What one has asked for that has closed the device since may still change it.
        let leaves = |(number, work): (&u64, &Work)| {
            work.export == export
                && work.mode != AccessMode::READ_ONLY
                && self.all_opened().all(|opened| opened.number != *number)
        };
        let leaving = self.work.iter().filter(|it| leaves(*it)).count();
        let is_free = match mode {
            AccessMode::READ_WRITE => writers().count() + leaving == 0,
            AccessMode::MIGRATION => writers().count() + leaving < 2,
            _ => true,
        };
        if is_free { Ok(()) } else { Err(Errno::EPERM) }
    }

    fn io(
        &self,
        session: S,
        io: &Io,
        direction: Direction,
        data: u32,
    ) -> Result<(ServerCommand, AccessMode), Errno> {
        let opened = self.sessions.get(&session).and_then(|it| it.opened.get(&io.device_id));
        let Opened { export, mode, number: opening } = opened.copied().ok_or(Errno::ENOTCONN)?;
        let geometry = &self.exports[export.0 as usize].geometry;
        let length = io.length;
        let fits = match io.rw.operation() {
            Code::READ => direction == Direction::Read && length <= data,
            Code::WRITE => direction == Direction::Write && length == data,
            _ => true,
        };
        if !fits {
            return Err(Errno::EINVAL);
        }
        let operation = match io.rw.operation() {
            Code::READ => Operation::Read,
            Code::WRITE => Operation::Write,
            Code::FLUSH => {
                return Ok((ServerCommand { export, command: Command::FLUSH, opening }, mode));
            }
            Code::DISCARD => Operation::Discard,
            Code::SECURE_ERASE => Operation::SecureErase,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        if mode == AccessMode::READ_ONLY && operation != Operation::Read {
            return Err(Errno::EROFS);
        }
        let offset = io.sector.checked_mul(SECTOR).ok_or(Errno::EIO)?;
        let fua = io.rw.flags().0 & IoFlags::FUA.0 != 0;
        let command = Command { operation, offset, length: length.into(), fua };
        geometry.check(&command).map_err(|why| match why {
            CommandError::Unaligned => Errno::EINVAL,
            CommandError::Beyond => Errno::EIO,
            CommandError::ReadOnly => Errno::EROFS,
            CommandError::NotDone => Errno::EOPNOTSUPP,
        })?;
        Ok((ServerCommand { export, command, opening }, mode))
    }
}

/// Tells the version that is spoken here.
fn greet(
    hello: &SessionMessage,
    number: u64,
    direction: Direction,
    data: u32,
) -> Result<Vec<u8>, Errno> {
    expect_room(direction, data, SessionMessage::LENGTH)?;
    let message_type = MessageType::SESSION_RESPONSE;
    let asks = hello.extension == SessionMessage::EXTENSION_REQUEST;
    let (extension, number) =
        if asks { (SessionMessage::EXTENSION_RESPONSE, number) } else { (0, 0) };
    let version = hello.version.min(VERSION);
    let response = SessionMessage { message_type, version, extension, number };
    Ok(response.to_bytes().to_vec())
}

fn expect_room(direction: Direction, data: u32, length: usize) -> Result<(), Errno> {
    let fits = direction == Direction::Read && data as usize >= length;
    if fits { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Returns the name that is meant: without slashes at its start and its end, and with single ones in it; `None` for one
/// that leads elsewhere, is empty or is no text.
fn clean(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    let leads_elsewhere = parts.iter().any(|part| matches!(*part, "." | ".."));
    let whole = parts.join("/");
    let fits = !whole.is_empty() && whole.len() <= super::LONGEST_NAME;
    (fits && !leads_elsewhere).then_some(whole)
}

/// Returns what a client gets to know of a device.
fn describe(device_id: u32, geometry: &Geometry, origin: Origin) -> OpenResponse {
    let sectors = |bytes: u64| u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX);
    let discard = geometry.discard;
    let policy = |is_set: bool, policy: CachePolicy| if is_set { policy.0 } else { 0 };
    OpenResponse {
        message_type: MessageType::OPEN_RESPONSE,
        device_id,
        sectors: geometry.size / SECTOR,
        max_hw_sectors: sectors(1 << 20),
        max_write_same_sectors: 0,
        max_discard_sectors: discard.map_or(0, |it| sectors(it.max)),
        discard_granularity: discard.map_or(0, |it| it.granularity),
        discard_alignment: discard.map_or(0, |it| it.alignment),
        physical_block_size: u16::try_from(geometry.physical_block).unwrap_or(1 << 15),
        logical_block_size: u16::try_from(geometry.logical_block).unwrap_or(1 << 15),
        max_segments: 128,
        secure_discard: geometry.secure_erase.into(),
        cache_policy: CachePolicy(
            policy(geometry.fua, CachePolicy::FUA)
                | policy(geometry.write_back, CachePolicy::WRITE_BACK),
        ),
        writers: 0,
        medium: origin.medium,
        cache: origin.cache,
    }
}

#[cfg(test)]
mod tests;
