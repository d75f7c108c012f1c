//! The client's side: attaches an HCA to a port of a fabric that another process simulates.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use ib_link::Datagram;
use ib_types::Instant;
use ib_wire::mad::MgmtClass;

use super::frame::Frame;
use super::message::{ClientMessage, PortDetails, ResolvedPort, ServerMessage};
use super::protocol::{VERSION, hca_daemon_address, socket_name};
use super::ring::{Files, Rings, Side};
use ib_os::alarm::Alarm;
use ib_os::clock;
use ib_os::poll;
use ib_os::seqpacket::{self, Received};
use ib_os::unix;

/// Time that a client waits for a response of the simulator.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The simulator and the port to attach to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachOptions {
    /// Name of the simulator, as given to `ibfabric sim --name`.
    pub name: String,
    /// Name of the node, optionally followed by `:port`; if no port is given, the first port of the
    /// node. `None` means the first host of the fabric.
    pub node: Option<String>,
}

/// Error of attaching an HCA to a port of a simulator or HCA daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// No simulator or HCA daemon listens.
    #[error(
        "no {} listens on @{socket}: {source}; expected a running `{}`",
        kind(name),
        command(name)
    )]
    NoServer {
        /// Name of the socket.
        socket: String,
        /// Name of the simulator or HCA daemon.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The server refused the request.
    #[error("{} refuses: {why}", server(name))]
    Refused {
        /// Name of the simulator or HCA daemon.
        name: String,
        /// The reason.
        why: String,
    },
    /// The server sent an invalid message.
    #[error("{} sent an invalid message: {what}", server(name))]
    Malformed {
        /// Name of the simulator or HCA daemon.
        name: String,
        /// The reason why the message is invalid.
        what: String,
    },
    /// The server did not respond in time.
    #[error("{} did not respond within {} s", server(name), RESPONSE_TIMEOUT.as_secs())]
    Silent {
        /// Name of the simulator or HCA daemon.
        name: String,
    },
    /// The server has disconnected.
    #[error("{} has disconnected", server(name))]
    Gone {
        /// Name of the simulator or HCA daemon.
        name: String,
    },
    /// A system call failed.
    #[error("{doing} for {}: {source}", server(name))]
    Io {
        /// Name of the simulator or HCA daemon.
        name: String,
        /// The operation that failed.
        doing: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

fn failed(name: &str, doing: &'static str) -> impl FnOnce(io::Error) -> AttachError {
    move |source| AttachError::Io { name: name.to_owned(), doing, source }
}

/// Returns the kind of the server with this name, for messages.
fn kind(name: &str) -> &'static str {
    hca_daemon_address(name).map_or("simulator", |_| "HCA daemon")
}

/// Returns the kind and the name of a server, for messages.
fn server(name: &str) -> String {
    match hca_daemon_address(name) {
        Some(address) => format!("the HCA daemon of {address}"),
        None => format!("the simulator {name}"),
    }
}

/// Returns the command that starts the server with this name.
fn command(name: &str) -> String {
    match hca_daemon_address(name) {
        Some(address) => format!("ibfabric hca --roce {address}"),
        None => format!("ibfabric sim --name {name}"),
    }
}

/// Connects to a simulator or HCA daemon.
fn call(base: &str) -> Result<OwnedFd, AttachError> {
    let no_server =
        |source| AttachError::NoServer { socket: socket_name(base), name: base.to_owned(), source };
    let socket = seqpacket::call(&socket_name(base)).map_err(no_server)?;
    unix::check_server(&socket).map_err(no_server)?;
    Ok(socket)
}

/// Waits for a message of a simulator.
fn answer(socket: &OwnedFd, base: &str) -> Result<(ServerMessage, Vec<OwnedFd>), AttachError> {
    let name = base.to_owned();
    let mut files = [poll::watched(socket.as_fd(), false)];
    poll::wait_any(&mut files, RESPONSE_TIMEOUT.as_millis() as i32)
        .map_err(failed(base, "waiting"))?;
    match seqpacket::receive(socket).map_err(failed(base, "receiving a response"))? {
        Received::Message(ServerMessage::Refused { why }, _) => {
            Err(AttachError::Refused { name, why })
        }
        Received::Message(message, files) => Ok((message, files)),
        Received::Malformed(what) => Err(AttachError::Malformed { name, what }),
        Received::Empty => Err(AttachError::Silent { name }),
        Received::Disconnected => Err(AttachError::Gone { name }),
    }
}

/// Returns the port to which an HCA with these options would attach, even if another HCA uses the
/// port. Returns `None` if the port does not exist.
///
/// # Errors
/// Fails if no simulator has the name, or if the simulator does not respond.
pub fn locate(options: &AttachOptions) -> Result<Option<ResolvedPort>, AttachError> {
    let socket = call(&options.name)?;
    locate_over(&socket, options)
}

/// Connects to the HCA daemon with this name. While the returned socket is open in any process, the daemon does not
/// exit for lack of users.
///
/// # Errors
/// Fails if no HCA daemon has the name, or if the daemon does not respond.
pub fn hold(name: &str) -> Result<OwnedFd, AttachError> {
    let socket = call(name)?;
    // A daemon that has responded counts this connection. A daemon that has not responded may be about to exit.
    locate_over(&socket, &AttachOptions { name: name.to_owned(), node: None })?;
    Ok(socket)
}

fn locate_over(
    socket: &OwnedFd,
    options: &AttachOptions,
) -> Result<Option<ResolvedPort>, AttachError> {
    let base = &options.name;
    let name = options.node.clone().unwrap_or_default();
    let question = ClientMessage::Resolve { number: 0, name };
    seqpacket::request(socket, &question, &[]).map_err(failed(base, "sending a request"))?;
    match answer(socket, base)? {
        (ServerMessage::Resolved { place, .. }, _) => Ok(place.map(Into::into)),
        _ => {
            let what = "expected a response to the lookup".to_owned();
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
    /// Number of reported changes of the port's state.
    changes: u64,
    questions: u32,
    answer: Option<(u32, Answer)>,
}

/// Response of a simulator to a request of the client.
enum Answer {
    /// The port that was looked up; `None` if there is no such port.
    Resolved(Option<ResolvedPort>),
    /// The reason why the client does not get a management class; `None` if it gets the class.
    Served(Option<String>),
}

impl AttachedPort {
    /// Attaches to a port. If `class` is not `None`, the client serves this management class at the
    /// port.
    ///
    /// # Errors
    /// Fails if no simulator has the name, if the simulator refuses the port, or if a system call
    /// fails.
    pub fn attach(
        options: &AttachOptions,
        class: impl Into<Option<MgmtClass>>,
    ) -> Result<Self, AttachError> {
        let AttachOptions { name: base, node } = options;
        let socket = call(base)?;
        let classes = class.into().iter().map(|class| class.0).collect();
        let hello = ClientMessage::Hello { version: VERSION, node: node.clone(), classes };
        seqpacket::request(&socket, &hello, &[]).map_err(failed(base, "sending the hello"))?;
        let malformed = |what| AttachError::Malformed { name: base.clone(), what };
        let (port, files) = match answer(&socket, base)? {
            (ServerMessage::Welcome { version: VERSION, port }, files) => (port, files),
            (ServerMessage::Welcome { version, .. }, _) => {
                return Err(malformed(format!(
                    "found protocol version {version}, expected {VERSION}"
                )));
            }
            _ => return Err(malformed("expected a response to the hello".to_owned())),
        };
        let count = files.len();
        let Ok([memory, simulator, client]) = <[OwnedFd; 3]>::try_from(files) else {
            return Err(malformed(format!("found {count} descriptors, expected 3")));
        };
        let files = Files { memory, bells: [simulator, client] };
        let rings = Rings::open(files, Side::Client).map_err(failed(base, "mapping the rings"))?;
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

    /// Returns the last reported state of the port.
    #[must_use]
    pub const fn details(&self) -> &PortDetails {
        &self.details
    }

    /// Returns the number of changes of the port's state that the simulator has reported.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns the name of the simulator.
    #[must_use]
    pub fn simulator(&self) -> &str {
        &self.name
    }

    /// Processes waiting messages of the simulator.
    ///
    /// # Errors
    /// Fails if the simulator has disconnected, or sent an invalid message.
    pub fn receive_messages(&mut self) -> Result<(), AttachError> {
        loop {
            let received = seqpacket::receive(&self.socket);
            match received.map_err(failed(&self.name, "receiving a message"))? {
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
                    self.answer = Some((number, Answer::Resolved(place.map(Into::into))));
                }
                Received::Message(ServerMessage::Served { number, refusal }, _) => {
                    self.answer = Some((number, Answer::Served(refusal)));
                }
                Received::Message(ServerMessage::Refused { why }, _) => {
                    return Err(AttachError::Refused { name: self.name.clone(), why });
                }
                Received::Message(ServerMessage::Welcome { .. }, _) => {}
            }
        }
    }

    /// Looks up a port by IP address, GID, LID or node name. Returns `None` if the fabric has no
    /// such port.
    ///
    /// # Errors
    /// Fails if the simulator has disconnected, or does not respond.
    pub fn resolve(&mut self, name: &str) -> Result<Option<ResolvedPort>, AttachError> {
        let name = name.to_owned();
        match self.request(|number| ClientMessage::Resolve { number, name })? {
            Answer::Resolved(place) => Ok(place),
            Answer::Served(_) => Err(self.malformed("a response to a look-up")),
        }
    }

    /// Requests to serve another management class at the port, until the port is detached.
    ///
    /// # Errors
    /// Fails if another client serves the class at the port, if the simulator has disconnected, or if it does not
    /// respond.
    pub fn serve(&mut self, class: MgmtClass) -> Result<(), AttachError> {
        match self.request(|number| ClientMessage::Serve { number, class: class.0 })? {
            Answer::Served(None) => Ok(()),
            Answer::Served(Some(why)) => Err(AttachError::Refused { name: self.name.clone(), why }),
            Answer::Resolved(_) => Err(self.malformed("a response to the request for a class")),
        }
    }

    /// Sends a request, and waits for the response.
    fn request(
        &mut self,
        message: impl FnOnce(u32) -> ClientMessage,
    ) -> Result<Answer, AttachError> {
        self.questions += 1;
        let number = self.questions;
        seqpacket::request(&self.socket, &message(number), &[])
            .map_err(failed(&self.name, "sending a request"))?;
        let end = clock::now() + RESPONSE_TIMEOUT;
        loop {
            self.receive_messages()?;
            if let Some((answered, answer)) = self.answer.take()
                && answered == number
            {
                return Ok(answer);
            }
            let left = end.since(clock::now());
            if left.is_zero() {
                return Err(AttachError::Silent { name: self.name.clone() });
            }
            let mut files = [poll::watched(self.socket.as_fd(), false)];
            poll::wait_any_for(&mut files, left).map_err(failed(&self.name, "waiting"))?;
        }
    }

    fn malformed(&self, expected: &str) -> AttachError {
        AttachError::Malformed { name: self.name.clone(), what: format!("expected {expected}") }
    }

    /// Calls `write` to write a packet directly into the ring. Returns false if the ring is full or
    /// `write` returned `None`.
    pub fn send_with(&mut self, write: impl FnOnce(&mut [u8]) -> Option<(Frame, usize)>) -> bool {
        self.rings.put_with(write)
    }

    /// Sends a MAD. Returns false if the ring is full.
    pub fn send(&mut self, datagram: &Datagram) -> bool {
        self.rings.put(Frame::from_datagram(datagram), &datagram.mad.0)
    }

    /// Passes the next received frame to `read`. Returns false if no frame was waiting.
    pub fn receive(&mut self, read: impl FnOnce(Frame, &[u8])) -> bool {
        self.rings.take_with(read)
    }

    /// If the simulator sleeps, wakes it when there are frames or free slots for it.
    pub fn flush(&mut self) {
        self.rings.flush();
    }

    /// Returns the descriptors to poll: the event counter of the rings, and the socket.
    #[must_use]
    pub fn files(&self) -> [BorrowedFd<'_>; 2] {
        [self.rings.bell(), self.socket.as_fd()]
    }

    /// Requests a wake-up when a frame arrives and, if `wants_room` is true, also when a slot is
    /// free. Returns false if a frame or slot is available already.
    pub fn begin_wait(&mut self, wants_room: bool) -> bool {
        self.rings.may_sleep(true, wants_room)
    }

    /// Processes the descriptors of [`AttachedPort::files`] that became readable.
    ///
    /// # Errors
    /// Fails if the simulator has disconnected, or sent an invalid message.
    pub fn end_wait(&mut self, [bell, socket]: [bool; 2]) -> Result<(), AttachError> {
        if bell {
            self.rings.silence();
        }
        if socket {
            self.receive_messages()?;
        }
        Ok(())
    }

    /// Waits until a frame or message arrives, a slot is free (if `wants_room` is true), `until` is reached, or
    /// `alarm` becomes readable. Processes the messages that arrive.
    ///
    /// # Errors
    /// Fails if the simulator has disconnected or sent an invalid message, or if a system call
    /// fails.
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
        poll::wait_any_for(&mut files[..count], left).map_err(failed(&self.name, "waiting"))?;
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
