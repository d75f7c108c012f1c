//! The HCA's side: a port of a fabric that another process simulates.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ib_link::Datagram;
use ib_types::Instant;
use ib_wire::mad::MgmtClass;

use super::frame::Frame;
use super::message::{ClientMessage, PortDetails, ResolvedPort, ServerMessage};
use super::protocol::{VERSION, socket_name};
use super::ring::{Files, Rings, Side};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::poll;
use ib_os::seqpacket::{self, Received};
use ib_os::unix;

/// How long a simulator may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which port of which simulator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachOptions {
    /// The name of the simulator, as `ibfabric sim --socket` has it.
    pub name: String,
    /// The node, with `:port` behind it where that is not its first one; the fabric's first host without
    /// one.
    pub node: Option<String>,
}

/// Why there is no port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Nobody listens.
    #[error(
        "no simulator listens on @{socket}: {source}; expected a running `ibfabric sim --socket {name}`"
    )]
    NoSimulator {
        /// The socket's name.
        socket: String,
        /// The simulator's name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The simulator does not give it.
    #[error("the simulator {name} refuses: {why}")]
    Refused {
        /// The simulator's name.
        name: String,
        /// Why.
        why: String,
    },
    /// The simulator says what is not understood.
    #[error("the simulator {name} says what is not understood: {what}")]
    Malformed {
        /// The simulator's name.
        name: String,
        /// What.
        what: String,
    },
    /// The simulator does not answer.
    #[error("the simulator {name} does not answer")]
    Silent {
        /// The simulator's name.
        name: String,
    },
    /// The simulator has gone.
    #[error("the simulator {name} has gone")]
    Gone {
        /// The simulator's name.
        name: String,
    },
    /// The system failed.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

fn failed(doing: &'static str) -> impl FnOnce(io::Error) -> AttachError {
    move |source| AttachError::Io { doing, source }
}

/// Calls a simulator.
fn call(base: &str) -> Result<OwnedFd, AttachError> {
    let no_simulator = |source| AttachError::NoSimulator {
        socket: socket_name(base),
        name: base.to_owned(),
        source,
    };
    let socket = seqpacket::call(&socket_name(base)).map_err(no_simulator)?;
    unix::check_server(&socket).map_err(no_simulator)?;
    Ok(socket)
}

/// Waits for an answer of a simulator.
fn answer(socket: &OwnedFd, base: &str) -> Result<(ServerMessage, Vec<OwnedFd>), AttachError> {
    let name = base.to_owned();
    let mut files = [poll::watched(socket.as_fd(), false)];
    poll::wait_any(&mut files, PATIENCE.as_millis() as i32).map_err(failed("waiting"))?;
    match seqpacket::receive(socket).map_err(failed("being answered"))? {
        Received::Message(ServerMessage::Refused { why }, _) => {
            Err(AttachError::Refused { name, why })
        }
        Received::Message(message, files) => Ok((message, files)),
        Received::Malformed(what) => Err(AttachError::Malformed { name, what }),
        Received::Empty => Err(AttachError::Silent { name }),
        Received::Disconnected => Err(AttachError::Gone { name }),
    }
}

/// Asks a simulator which port a process would get, whoever has it; `None` when there is none.
///
/// # Errors
/// Fails when no simulator has the name or it does not answer.
pub fn locate(options: &AttachOptions) -> Result<Option<ResolvedPort>, AttachError> {
    let base = &options.name;
    let socket = call(base)?;
    let name = options.node.clone().unwrap_or_default();
    let question = ClientMessage::Resolve { number: 0, name };
    seqpacket::request(&socket, &question, &[]).map_err(failed("asking the simulator"))?;
    match answer(&socket, base)? {
        (ServerMessage::Resolved { place, .. }, _) => Ok(place.map(Into::into)),
        _ => {
            let what = "no answer to a question".to_owned();
            Err(AttachError::Malformed { name: base.clone(), what })
        }
    }
}

/// A port of a fabric that another process simulates.
pub struct AttachedPort {
    name: String,
    socket: OwnedFd,
    rings: Rings,
    details: PortDetails,
    /// How often the port has changed.
    changes: u64,
    questions: u32,
    answer: Option<(u32, Option<ResolvedPort>)>,
}

impl AttachedPort {
    /// Attaches to a port, and serves a class of management datagrams there; none if `class` is `None`.
    ///
    /// # Errors
    /// Fails when no simulator has the name, it does not give the port, or the system fails.
    pub fn attach(
        options: &AttachOptions,
        class: impl Into<Option<MgmtClass>>,
    ) -> Result<Self, AttachError> {
        let AttachOptions { name: base, node } = options;
        let socket = call(base)?;
        let classes = class.into().iter().map(|class| class.0).collect();
        let hello = ClientMessage::Hello { version: VERSION, node: node.clone(), classes };
        seqpacket::request(&socket, &hello, &[]).map_err(failed("saying hello"))?;
        let malformed = |what| AttachError::Malformed { name: base.clone(), what };
        let (port, files) = match answer(&socket, base)? {
            (ServerMessage::Welcome { version: VERSION, port }, files) => (port, files),
            (ServerMessage::Welcome { version, .. }, _) => {
                return Err(malformed(format!("version {version}: expected {VERSION}")));
            }
            _ => return Err(malformed("no answer to hello".to_owned())),
        };
        let count = files.len();
        let Ok([memory, simulator, client]) = <[OwnedFd; 3]>::try_from(files) else {
            return Err(malformed(format!("{count} files: expected 3")));
        };
        let files = Files { memory, bells: [simulator, client] };
        let rings = Rings::open(files, Side::Client).map_err(failed("mapping the rings"))?;
        let details = PortDetails::try_from(port).map_err(malformed)?;
        Ok(Self {
            name: base.clone(),
            socket,
            rings,
            details,
            changes: 0,
            questions: 0,
            answer: None,
        })
    }

    /// Returns what the simulator has said of the port last.
    #[must_use]
    pub const fn details(&self) -> &PortDetails {
        &self.details
    }

    /// Returns how often the port has changed.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the name of the simulator.
    #[must_use]
    pub fn simulator(&self) -> &str {
        &self.name
    }

    /// Takes what the simulator has said since.
    ///
    /// # Errors
    /// Fails when it has gone or says what is not understood.
    pub fn listen(&mut self) -> Result<(), AttachError> {
        loop {
            match seqpacket::receive(&self.socket).map_err(failed("listening to the simulator"))? {
                Received::Empty => return Ok(()),
                Received::Disconnected => {
                    return Err(AttachError::Gone { name: self.name.clone() });
                }
                Received::Malformed(what) => {
                    return Err(AttachError::Malformed { name: self.name.clone(), what });
                }
                Received::Message(ServerMessage::Port(port), _) => {
                    let details = PortDetails::try_from(port);
                    let name = self.name.clone();
                    self.details = details.map_err(|what| AttachError::Malformed { name, what })?;
                    self.changes += 1;
                }
                Received::Message(ServerMessage::Resolved { number, place }, _) => {
                    self.answer = Some((number, place.map(Into::into)));
                }
                Received::Message(ServerMessage::Refused { why }, _) => {
                    return Err(AttachError::Refused { name: self.name.clone(), why });
                }
                Received::Message(ServerMessage::Welcome { .. }, _) => {}
            }
        }
    }

    /// Asks the simulator for the port that has an address, a GID or a LID, or of the node that has a name;
    /// `None` when there is none.
    ///
    /// # Errors
    /// Fails when the simulator has gone or does not answer.
    pub fn resolve(&mut self, name: &str) -> Result<Option<ResolvedPort>, AttachError> {
        self.questions += 1;
        let number = self.questions;
        let question = ClientMessage::Resolve { number, name: name.to_owned() };
        seqpacket::request(&self.socket, &question, &[]).map_err(failed("asking the simulator"))?;
        let end = clock::now() + PATIENCE;
        loop {
            self.listen()?;
            if let Some((answered, place)) = self.answer.take()
                && answered == number
            {
                return Ok(place);
            }
            let left = end.since(clock::now());
            if left.is_zero() {
                return Err(AttachError::Silent { name: self.name.clone() });
            }
            let mut files = [poll::watched(self.socket.as_fd(), false)];
            poll::wait_any_for(&mut files, left).map_err(failed("waiting"))?;
        }
    }

    /// Has a packet written straight into the ring; returns whether there was one, and false where there
    /// is no room.
    pub fn send_with(&mut self, write: impl FnOnce(&mut [u8]) -> Option<(Frame, usize)>) -> bool {
        self.rings.put_with(write)
    }

    /// Sends a management datagram; false when there is no room.
    pub fn send(&mut self, datagram: &Datagram) -> bool {
        self.rings.put(Frame::of(datagram), &datagram.mad.0)
    }

    /// Hands over what has come next; returns whether there was anything.
    pub fn receive(&mut self, read: impl FnOnce(Frame, &[u8])) -> bool {
        self.rings.take_with(read)
    }

    /// Wakes the simulator when it sleeps and has something to do.
    pub fn flush(&mut self) {
        self.rings.flush();
    }

    /// Returns the files that can be read when something has come: over the rings, and from the simulator.
    #[must_use]
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.rings.bell(), self.socket.as_fd()]
    }

    /// Has the simulator ring when something comes, or there is room again for one who `wants_room`; false when that is
    /// so already.
    pub fn begin_wait(&mut self, wants_room: bool) -> bool {
        self.rings.may_sleep(true, wants_room)
    }

    /// Takes note of which files can be read: what they say is heard.
    ///
    /// # Errors
    /// Fails when the simulator has gone or says what is not understood.
    pub fn end_wait(&mut self, [bell, socket]: [bool; 2]) -> Result<(), AttachError> {
        if bell {
            self.rings.silence();
        }
        if socket {
            self.listen()?;
        }
        Ok(())
    }

    /// Waits until something comes, there is room again for one who `wants_room`, a moment comes or an alarm
    /// rings; then listens to the simulator.
    ///
    /// # Errors
    /// Fails when the simulator has gone or the system fails.
    pub fn wait(
        &mut self,
        until: Instant,
        wants_room: bool,
        alarm: Option<&Alarm>,
    ) -> Result<(), AttachError> {
        if !self.begin_wait(wants_room) {
            return Ok(());
        }
        let left = until.since(clock::now());
        let none = self.socket.as_fd();
        let mut files = [
            poll::watched(self.rings.bell(), false),
            poll::watched(self.socket.as_fd(), false),
            poll::watched(alarm.map_or(none, AsFd::as_fd), false),
        ];
        let count = if alarm.is_some() { 3 } else { 2 };
        poll::wait_any_for(&mut files[..count], left).map_err(failed("waiting"))?;
        let [bell, socket, _] = files.map(|file| file.revents != 0);
        self.end_wait([bell, socket])
    }
}

impl Drop for AttachedPort {
    fn drop(&mut self) {
        self.rings.flush();
        let _ = seqpacket::send(&self.socket, &ClientMessage::Bye, &[]);
    }
}

#[cfg(test)]
mod tests;
