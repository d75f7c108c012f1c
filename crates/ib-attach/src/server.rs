//! The simulator's side: the socket, and the rings of each client.
//!
//! The simulator polls the server's descriptor, and [`AttachServer::socket`] and
//! [`AttachServer::bell`] of each client. It processes the clients' messages
//! ([`AttachServer::next`]) and frames ([`AttachServer::take`]), and sends frames to them
//! ([`AttachServer::put`]). No call blocks.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ib_wire::mad::MgmtClass;
use rustix::net::{SocketFlags, accept_with};

use super::frame::{Frame, MAX_PAYLOAD};
use super::message::{ClientMessage, PortDetails, ResolvedPort, ServerMessage};
use super::protocol::{VERSION, socket_name};
use super::ring::{Files, Rings, Side};
use ib_os::seqpacket::{self, Received};

/// Maximum number of clients.
const MAX_CLIENTS: usize = 4096;

/// Maximum number of queued messages for a client that does not read.
const MAX_UNSENT: usize = 64;

/// The socket at which a simulator accepts HCAs of other processes.
pub struct AttachServer {
    listener: OwnedFd,
    clients: BTreeMap<usize, Client>,
    next: usize,
    malformed: u64,
}

struct Client {
    socket: OwnedFd,
    /// The rings; `None` until the client is admitted.
    rings: Option<Rings>,
    /// Messages that did not fit into the socket's buffer yet.
    unsent: Vec<ServerMessage>,
}

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The client requests a port. The simulator or HCA daemon calls [`AttachServer::admit`] or
    /// [`AttachServer::refuse`].
    Hello {
        /// Name of the port; `None` for the first host of the fabric.
        node: Option<String>,
        /// Management classes that the client serves.
        classes: Vec<MgmtClass>,
    },
    /// The client looks up a port. The simulator or HCA daemon calls [`AttachServer::answer`].
    Resolve {
        /// Number of the request, which the response repeats.
        number: u32,
        /// The name or address of the port.
        name: String,
    },
    /// The client requests to serve another management class. The simulator or HCA daemon calls
    /// [`AttachServer::answer_class`].
    Serve {
        /// Number of the request, which the response repeats.
        number: u32,
        /// The management class.
        class: MgmtClass,
    },
    /// The client closes the connection deliberately.
    Bye,
    /// The client has disconnected without `Bye`, or has sent an invalid message.
    Disconnected,
}

impl AttachServer {
    /// Opens the socket of a simulator.
    ///
    /// # Errors
    /// Fails if the name is in use or too long.
    pub fn bind(base: &str) -> io::Result<Self> {
        let listener = seqpacket::listen_at(&socket_name(base), SocketFlags::NONBLOCK)?;
        Ok(Self { listener, clients: BTreeMap::new(), next: 0, malformed: 0 })
    }

    /// Returns the number of invalid messages and frames.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Accepts new clients. Returns their keys, which the other functions take as `client`. The simulator must poll
    /// [`AttachServer::socket`] of each client.
    pub fn accept(&mut self) -> Vec<usize> {
        let mut new = Vec::new();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            let is_full = self.clients.len() >= MAX_CLIENTS;
            let why = if ib_os::unix::is_own_user(&socket) {
                is_full.then(|| format!("the maximum of {MAX_CLIENTS} HCAs is already attached"))
            } else {
                Some("only the user of the server can attach HCAs".to_owned())
            };
            if let Some(why) = why {
                // If the refusal cannot be sent, the client sees only that the connection is
                // closed.
                let _ = seqpacket::send(&socket, &ServerMessage::Refused { why }, &[]);
                continue;
            }
            self.clients.insert(self.next, Client { socket, rings: None, unsent: Vec::new() });
            new.push(self.next);
            self.next += 1;
        }
        new
    }

    /// Returns true if no client is connected.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Returns the socket of a client.
    #[must_use]
    pub fn socket(&self, client: usize) -> Option<BorrowedFd<'_>> {
        self.clients.get(&client).map(|client| client.socket.as_fd())
    }

    /// Returns the event counter by which a client wakes the simulator; `None` until the client is
    /// admitted.
    #[must_use]
    pub fn bell(&self, client: usize) -> Option<BorrowedFd<'_>> {
        self.clients.get(&client)?.rings.as_ref().map(Rings::bell)
    }

    /// Returns the next event of a client; `None` if no event is waiting.
    pub fn next(&mut self, client: usize) -> Option<ClientEvent> {
        let it = self.clients.get_mut(&client)?;
        it.flush_unsent();
        Some(match seqpacket::receive(&it.socket) {
            Ok(Received::Empty) => return None,
            Ok(Received::Message(ClientMessage::Hello { version, node, classes }, _)) => {
                if version != VERSION {
                    self.refuse(
                        client,
                        format!("found version {version} of the protocol, expected {VERSION}"),
                    );
                    return None;
                }
                if it.rings.is_some() {
                    self.malformed += 1;
                    return Some(ClientEvent::Disconnected);
                }
                let classes = classes.into_iter().map(MgmtClass).collect();
                ClientEvent::Hello { node, classes }
            }
            Ok(Received::Message(ClientMessage::Resolve { number, name }, _)) => {
                ClientEvent::Resolve { number, name }
            }
            Ok(Received::Message(ClientMessage::Serve { number, class }, _)) => {
                ClientEvent::Serve { number, class: MgmtClass(class) }
            }
            Ok(Received::Message(ClientMessage::Bye, _)) => ClientEvent::Bye,
            Ok(Received::Malformed(_)) => {
                self.malformed += 1;
                ClientEvent::Disconnected
            }
            Ok(Received::Disconnected) | Err(_) => ClientEvent::Disconnected,
        })
    }

    /// Gives a client its port. From then on, the simulator also polls the client's event counter.
    ///
    /// # Errors
    /// Fails if the system has no more memory or descriptors, or if the client has disconnected.
    pub fn admit(&mut self, client: usize, port: &PortDetails) -> io::Result<()> {
        let it = self.clients.get_mut(&client).ok_or(io::ErrorKind::NotFound)?;
        let files = Files::new()?;
        let [simulator, other] = &files.bells;
        let welcome = ServerMessage::Welcome { version: VERSION, port: port.into() };
        seqpacket::send(&it.socket, &welcome, &[&files.memory, simulator, other])?;
        it.rings = Some(Rings::open(files, Side::Simulator)?);
        Ok(())
    }

    /// Refuses the port that a client requests, and closes the connection. `why` is the reason.
    pub fn refuse(&mut self, client: usize, why: String) {
        if let Some(it) = self.clients.remove(&client) {
            let _ = seqpacket::send(&it.socket, &ServerMessage::Refused { why }, &[]);
        }
    }

    /// Notifies a client that its port has changed.
    pub fn notify_port(&mut self, client: usize, port: &PortDetails) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.send(ServerMessage::Port(port.into()));
        }
    }

    /// Responds to the lookup of a port.
    pub fn answer(&mut self, client: usize, number: u32, place: Option<&ResolvedPort>) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.send(ServerMessage::Resolved { number, place: place.map(Into::into) });
        }
    }

    /// Responds to the request for another management class. `refusal` is the reason why the client does not get the
    /// class.
    pub fn answer_class(&mut self, client: usize, number: u32, refusal: Option<String>) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.send(ServerMessage::Served { number, refusal });
        }
    }

    /// Closes the connection of a client.
    pub fn close(&mut self, client: usize) {
        self.clients.remove(&client);
    }

    /// Takes the next frame of a client and appends its bytes to `bytes`. Returns `None` if no frame is waiting.
    /// Returns `Some(None)` for an invalid frame, and counts it as malformed.
    pub fn take(&mut self, client: usize, bytes: &mut Vec<u8>) -> Option<Option<Frame>> {
        let rings = self.clients.get_mut(&client)?.rings.as_mut()?;
        let frame = rings.take(bytes)?.ok();
        self.malformed += u64::from(frame.is_none());
        Some(frame)
    }

    /// Returns true if the ring to a client has a free slot.
    #[must_use]
    pub fn has_room(&self, client: usize) -> bool {
        let rings = self.clients.get(&client).and_then(|client| client.rings.as_ref());
        rings.is_some_and(|rings| rings.room() > 0)
    }

    /// Puts a frame into the ring to a client. Returns false if the ring is full, or if the bytes exceed the maximum
    /// packet size.
    pub fn put(&mut self, client: usize, frame: Frame, bytes: &[u8]) -> bool {
        let rings = self.clients.get_mut(&client).and_then(|client| client.rings.as_mut());
        rings.is_some_and(|rings| bytes.len() <= MAX_PAYLOAD && rings.put(frame, bytes))
    }

    /// Wakes a client if frames or free slots are available for it.
    pub fn flush(&mut self, client: usize) {
        if let Some(rings) = self.clients.get_mut(&client).and_then(|client| client.rings.as_mut())
        {
            rings.flush();
        }
    }

    /// Announces to a client that the simulator will sleep until the client sends a frame (`wants_frames`), or until
    /// the ring to the client has a free slot (`wants_room`). Returns false if a frame or slot is available already.
    pub fn may_sleep(&mut self, client: usize, wants_frames: bool, wants_room: bool) -> bool {
        let rings = self.clients.get_mut(&client).and_then(|client| client.rings.as_mut());
        rings.is_none_or(|rings| rings.may_sleep(wants_frames, wants_room))
    }

    /// Resets the event counter by which a client wakes the simulator.
    pub fn silence(&self, client: usize) {
        if let Some(rings) = self.clients.get(&client).and_then(|client| client.rings.as_ref()) {
            rings.silence();
        }
    }
}

impl AsFd for AttachServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Client {
    /// Sends a message. If the socket's buffer is full, queues the message until the client has
    /// read earlier ones.
    fn send(&mut self, message: ServerMessage) {
        // A message with a newer port state replaces a queued message with an older one.
        if matches!(message, ServerMessage::Port(_)) {
            self.unsent.retain(|kept| !matches!(kept, ServerMessage::Port(_)));
        }
        // If the queue of a client that does not read is full, the message is dropped.
        if self.unsent.len() < MAX_UNSENT {
            self.unsent.push(message);
        }
        self.flush_unsent();
    }

    fn flush_unsent(&mut self) {
        while let Some(first) = self.unsent.first() {
            match seqpacket::send(&self.socket, first, &[]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A sent message leaves the queue. Errors other than a full socket mean that the
                // client has disconnected, which `next` reports.
                _ => drop(self.unsent.remove(0)),
            }
        }
    }
}
