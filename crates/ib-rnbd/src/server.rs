//! The RNBD server: exported devices, the clients that have them open, and their commands.

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

/// The number of an exported device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportId(pub u32);

/// An exported device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The name by which clients open the device.
    pub name: String,
    /// The geometry of the device.
    pub geometry: Geometry,
    /// Identifies the data of the device. When clients reconnect, it shows them whether the data was replaced.
    pub origin: Origin,
    /// The stored writers of the device: the bytes that [`Server::poll_writers`] returned last before a restart of the
    /// server. Empty if no writers were stored yet; `None` if writers are not to be stored.
    pub writers: Option<Vec<u8>>,
}

/// The response to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Response {
    /// The user has to complete the request immediately, with this status and data.
    Immediate(Errno, Vec<u8>),
    /// The user has to execute this command before it completes the request.
    Execute(ServerCommand),
}

/// A command of a client. The RTRS request contains the data of a write, or the buffer for the data of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// The exported device on which the command has to be executed.
    pub export: ExportId,
    /// The command, which the server has checked against the geometry of the device.
    pub command: Command,
    /// The number of the opening through which the client sent the command ([`OpenDevice::number`]).
    opening: u64,
}

/// A device that a session has open.
#[derive(Clone, Copy, Debug)]
struct OpenDevice {
    export: ExportId,
    mode: AccessMode,
    /// Number of this opening of the device. No other opening at the server has the same number.
    number: u64,
}

/// Outstanding commands of an opening. Some may still be outstanding after the client has closed the device.
#[derive(Clone, Copy, Debug)]
struct OutstandingCommands {
    export: ExportId,
    mode: AccessMode,
    count: u32,
}

#[derive(Debug, Default)]
struct Session {
    /// Open devices, by the numbers that the client uses in commands.
    opened: BTreeMap<u32, OpenDevice>,
    /// The number of the client. If the client has sent none, it is 0 until the first device is opened. Then it is a
    /// number that the server has assigned for this session.
    client: u64,
}

/// The RNBD server for any number of sessions. `S` is the type by which the user identifies a session.
#[derive(Debug)]
pub struct Server<S> {
    /// Random number that identifies the server until its next restart.
    number: u64,
    exports: Vec<Export>,
    /// The writers of each export, by the number of the export.
    writers: Vec<Writers>,
    /// Exports whose writers have changed and have to be stored.
    news: VecDeque<ExportId>,
    sessions: BTreeMap<S, Session>,
    /// Outstanding commands of each opening, by the number of the opening.
    work: BTreeMap<u64, OutstandingCommands>,
    last: u64,
    /// The device number of the next opening. Numbers are not reused, so a retransmitted request of an earlier session
    /// never reaches another device.
    next_device: u32,
}

/// Error of [`Server::offer`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// Another export has the same name.
    #[error("device {0} is exported already: expected a name that no other export has")]
    Duplicate(String),
    /// The name is invalid.
    #[error("invalid device name {0:?}: expected 1 to {most} bytes without empty components, . and ..", most = super::MAX_NAME)]
    Name(String),
}

impl<S: Copy + Ord> Server<S> {
    /// Creates a server without devices. `number` must be random, because a changed number shows clients that the
    /// server was restarted.
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
            // A restarted server starts with another device number than before.
            next_device: (number >> 32) as u32,
        }
    }

    /// Exports a device.
    ///
    /// # Errors
    /// Fails if the name is invalid or in use.
    pub fn offer(&mut self, export: Export) -> Result<ExportId, ExportError> {
        if clean(export.name.as_bytes()).is_none_or(|name| name != export.name) {
            return Err(ExportError::Name(export.name));
        }
        if self.exports.iter().any(|other| other.name == export.name) {
            return Err(ExportError::Duplicate(export.name));
        }
        let kept = export.writers.as_deref().unwrap_or_default();
        self.writers.push(Writers::parse(kept));
        self.exports.push(export);
        Ok(ExportId(self.exports.len() as u32 - 1))
    }

    /// Returns the export with this number.
    #[must_use]
    pub fn export(&self, id: ExportId) -> Option<&Export> {
        self.exports.get(id.0 as usize)
    }

    /// Returns an export whose writers have changed, and these writers in the format in which the user stores them.
    /// After [`Server::handle`], the user has to store them before it completes the request or executes the command.
    pub fn poll_writers(&mut self) -> Option<(ExportId, Vec<u8>)> {
        let id = self.news.pop_front()?;
        Some((id, self.writers[id.0 as usize].to_bytes()))
    }

    /// Tells the server that the list of an export's writers can no longer be stored, for example after an I/O error.
    pub fn stop_storing_writers(&mut self, id: ExportId) {
        if let Some(export) = self.exports.get_mut(id.0 as usize) {
            export.writers = None;
        }
    }

    /// Returns the number of sessions that have an export open.
    #[must_use]
    pub fn openers(&self, id: ExportId) -> usize {
        self.all_opened().filter(|opened| opened.export == id).count()
    }

    fn all_opened(&self) -> impl Iterator<Item = &OpenDevice> {
        self.sessions.values().flat_map(|session| session.opened.values())
    }

    /// Ends a session and closes its devices. Other clients can open a device for writing after the outstanding
    /// commands for the device have completed.
    pub fn end(&mut self, session: S) {
        self.sessions.remove(&session);
    }

    /// Notifies the server that the command of a [`Response::Execute`] has completed, successfully or not.
    pub fn done(&mut self, command: &ServerCommand) {
        if let Some(work) = self.work.get_mut(&command.opening) {
            work.count -= 1;
            if work.count == 0 {
                self.work.remove(&command.opening);
            }
        }
    }

    /// Handles a message in a session. `header` is the user header of the RTRS request. `direction` and `data` are
    /// the direction and the length in bytes of its data.
    pub fn handle(
        &mut self,
        session: S,
        (direction, data): (Direction, u32),
        header: &[u8],
    ) -> Response {
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
                        let idle = OutstandingCommands { export: command.export, mode, count: 0 };
                        self.work.entry(command.opening).or_insert(idle).count += 1;
                        Response::Execute(command)
                    }
                    Err(errno) => Response::Immediate(errno, Vec::new()),
                };
            }
            Ok(Message::Close(close)) => {
                // A close message for a device that is not open succeeds.
                if let Some(session) = self.sessions.get_mut(&session) {
                    session.opened.remove(&close.device_id);
                }
                Ok(Vec::new())
            }
            Ok(_) | Err(_) => Err(Errno::EINVAL),
        };
        match answer {
            Ok(bytes) => Response::Immediate(Errno::OK, bytes),
            Err(errno) => Response::Immediate(errno, Vec::new()),
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
        // If the session already has the device open, the response contains the number of the existing opening.
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
                opened.insert(device, OpenDevice { export, mode, number });
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
        let mut number_of_client = 0;
        // Only writers are recorded, because a reader has no pending writes that could be older than the writes of
        // others.
        if writes {
            let sessions = &self.sessions;
            let has_open = |client| {
                let of_client = sessions.values().filter(|session| session.client == client);
                of_client.flat_map(|it| it.opened.values()).any(|it| it.export == export)
            };
            let is_new;
            (number_of_client, is_new) =
                self.writers[export.0 as usize].open(client, seed, has_open);
            if is_new {
                self.note_writers(export);
            }
        }
        let writers = number_of_client | lasts;
        let described = describe(number, &geometry, origin);
        Ok(OpenResponse { writers, ..described }.to_bytes().to_vec())
    }

    fn note_writers(&mut self, id: ExportId) {
        if self.exports[id.0 as usize].writers.is_some() && !self.news.contains(&id) {
            self.news.push_back(id);
        }
    }

    /// Fails if other writers of the device exclude a client with this access mode: `READ_WRITE` allows no other
    /// writer, `MIGRATION` allows one.
    fn expect_free(&self, export: ExportId, mode: AccessMode) -> Result<(), Errno> {
        let writers = || {
            let others = self.all_opened().filter(|opened| opened.export == export);
            others.filter(|opened| opened.mode != AccessMode::READ_ONLY)
        };
        // Commands of a client that has already closed the device may still change the device. So the client counts as
        // a writer until these commands complete.
        let leaves = |(number, work): (&u64, &OutstandingCommands)| {
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
        let OpenDevice { export, mode, number: opening } =
            opened.copied().ok_or(Errno::ENOTCONN)?;
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

/// Returns the session response, which contains the lower of the versions of client and server.
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

/// Removes empty components from a device name. Returns `None` if the name is empty, too long, not UTF-8, or has a
/// component `.` or `..`.
fn clean(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty()).collect();
    let leads_elsewhere = parts.iter().any(|part| matches!(*part, "." | ".."));
    let whole = parts.join("/");
    let fits = !whole.is_empty() && whole.len() <= super::MAX_NAME;
    (fits && !leads_elsewhere).then_some(whole)
}

/// Returns the open response that describes a device.
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
