//! The simulator's side: the socket, and the rings of each client.
//!
//! The owner watches the server's file, and [`AttachServer::socket`] and [`AttachServer::bell`] of each client, takes what clients say
//! ([`AttachServer::next`]) and what they send ([`AttachServer::take`]), and hands them what comes for
//! them ([`AttachServer::put`]). Nothing here waits.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ib_wire::mad::MgmtClass;
use rustix::net::{SocketFlags, accept_with};

use super::frame::{Frame, MOST};
use super::message::{ClientMessage, PortDetails, ResolvedPort, ServerMessage};
use super::protocol::{VERSION, socket_name};
use super::ring::{Files, Rings, Side};
use ib_os::seqpacket::{self, Received};

/// How many clients there can be.
const MOST_CLIENTS: usize = 4096;

/// How many messages are kept for a client that takes none.
const MOST_UNSENT: usize = 64;

/// The sockets of a simulator for HCAs.
pub struct AttachServer {
    listener: OwnedFd,
    clients: BTreeMap<usize, Client>,
    next: usize,
    malformed: u64,
}

struct Client {
    socket: OwnedFd,
    /// There once it is welcome.
    rings: Option<Rings>,
    /// What was not taken for want of room, to be sent with the next chance.
    unsent: Vec<ServerMessage>,
}

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// It wants a port; to be answered with [`AttachServer::admit`] or [`AttachServer::refuse`].
    Hello {
        /// What the port is found by; the first host of the fabric without it.
        node: Option<String>,
        /// The classes of management datagrams that it serves.
        classes: Vec<MgmtClass>,
    },
    /// It asks for a port; to be answered with [`AttachServer::answer`].
    Resolve {
        /// What the answer is known by.
        number: u32,
        /// The name.
        name: String,
    },
    /// It disconnects.
    Bye,
    /// It has disconnected without a goodbye, or has sent a malformed message.
    Disconnected,
}

impl AttachServer {
    /// Opens the socket of a simulator's name.
    ///
    /// # Errors
    /// Fails when the name is in use or too long.
    pub fn bind(base: &str) -> io::Result<Self> {
        let listener = seqpacket::listen_at(&socket_name(base), SocketFlags::NONBLOCK)?;
        Ok(Self { listener, clients: BTreeMap::new(), next: 0, malformed: 0 })
    }

    /// Returns how many messages and frames were none.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Takes those who call; returns the keys of new ones, whose socket is to be watched.
    pub fn accept(&mut self) -> Vec<usize> {
        let mut new = Vec::new();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        while let Ok(socket) = accept_with(&self.listener, flags) {
            let is_full = self.clients.len() >= MOST_CLIENTS;
            let why = if ib_os::unix::is_own_user(&socket) {
                is_full.then(|| format!("{MOST_CLIENTS} adapters are attached, expected fewer"))
            } else {
                Some("the simulator serves its own user only".to_owned())
            };
            if let Some(why) = why {
                // Whoever does not take even this learns it from the closed connection.
                let _ = seqpacket::send(&socket, &ServerMessage::Refused { why }, &[]);
                continue;
            }
            self.clients.insert(self.next, Client { socket, rings: None, unsent: Vec::new() });
            new.push(self.next);
            self.next += 1;
        }
        new
    }

    /// Returns the socket of a client.
    #[must_use]
    pub fn socket(&self, client: usize) -> Option<BorrowedFd<'_>> {
        self.clients.get(&client).map(|client| client.socket.as_fd())
    }

    /// Returns the event counter by which a client wakes the simulator, once it was admitted.
    #[must_use]
    pub fn bell(&self, client: usize) -> Option<BorrowedFd<'_>> {
        self.clients.get(&client)?.rings.as_ref().map(Rings::bell)
    }

    /// Returns what a client says next; `None` when it says nothing for now.
    pub fn next(&mut self, client: usize) -> Option<ClientEvent> {
        let it = self.clients.get_mut(&client)?;
        it.send_rest();
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
            Ok(Received::Message(ClientMessage::Bye, _)) => ClientEvent::Bye,
            Ok(Received::Malformed(_)) => {
                self.malformed += 1;
                ClientEvent::Disconnected
            }
            Ok(Received::Disconnected) | Err(_) => ClientEvent::Disconnected,
        })
    }

    /// Gives a client its port. Its event counter is to be watched then.
    ///
    /// # Errors
    /// Fails when the system has no more memory or files, or the client has gone.
    pub fn admit(&mut self, client: usize, port: &PortDetails) -> io::Result<()> {
        let it = self.clients.get_mut(&client).ok_or(io::ErrorKind::NotFound)?;
        let files = Files::new()?;
        let [simulator, other] = &files.bells;
        let welcome = ServerMessage::Welcome { version: VERSION, port: port.into() };
        seqpacket::send(&it.socket, &welcome, &[&files.memory, simulator, other])?;
        it.rings = Some(Rings::open(files, Side::Simulator)?);
        Ok(())
    }

    /// Turns a client away.
    pub fn refuse(&mut self, client: usize, why: String) {
        if let Some(it) = self.clients.remove(&client) {
            let _ = seqpacket::send(&it.socket, &ServerMessage::Refused { why }, &[]);
        }
    }

    /// Tells a client that its port has changed.
    pub fn tell(&mut self, client: usize, port: &PortDetails) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.say(ServerMessage::Port(port.into()));
        }
    }

    /// Answers a client that has asked for a port.
    pub fn answer(&mut self, client: usize, number: u32, place: Option<&ResolvedPort>) {
        if let Some(it) = self.clients.get_mut(&client) {
            it.say(ServerMessage::Resolved { number, place: place.map(Into::into) });
        }
    }

    /// Closes everything of a client.
    pub fn close(&mut self, client: usize) {
        self.clients.remove(&client);
    }

    /// Takes the next frame of a client; its bytes are appended to `bytes`. What is no frame is counted, and
    /// returned as `Some(None)`.
    pub fn take(&mut self, client: usize, bytes: &mut Vec<u8>) -> Option<Option<Frame>> {
        let rings = self.clients.get_mut(&client)?.rings.as_mut()?;
        let frame = rings.take(bytes)?.ok();
        self.malformed += u64::from(frame.is_none());
        Some(frame)
    }

    /// Returns whether a client has room for a frame.
    #[must_use]
    pub fn has_room(&self, client: usize) -> bool {
        let rings = self.clients.get(&client).and_then(|client| client.rings.as_ref());
        rings.is_some_and(|rings| rings.room() > 0)
    }

    /// Hands a client a frame; false when it has no room, or the bytes are longer than any packet.
    pub fn put(&mut self, client: usize, frame: Frame, bytes: &[u8]) -> bool {
        let rings = self.clients.get_mut(&client).and_then(|client| client.rings.as_mut());
        rings.is_some_and(|rings| bytes.len() <= MOST && rings.put(frame, bytes))
    }

    /// Wakes a client for which something was put in or taken out.
    pub fn flush(&mut self, client: usize) {
        if let Some(rings) = self.clients.get_mut(&client).and_then(|client| client.rings.as_mut())
        {
            rings.flush();
        }
    }

    /// Says that the simulator will sleep until a client has something, if it `wants_frames`, or has room, if
    /// it `wants_room`; returns false when it need not.
    pub fn may_sleep(&mut self, client: usize, wants_frames: bool, wants_room: bool) -> bool {
        let rings = self.clients.get_mut(&client).and_then(|client| client.rings.as_mut());
        rings.is_none_or(|rings| rings.may_sleep(wants_frames, wants_room))
    }

    /// Has the event counter of a client be silent again.
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
    /// Sends a message, or keeps it until the client has taken others.
    fn say(&mut self, message: ServerMessage) {
        // Of two states of the port only the newer one matters.
        if matches!(message, ServerMessage::Port(_)) {
            self.unsent.retain(|kept| !matches!(kept, ServerMessage::Port(_)));
        }
        // Whoever asks and takes no answers goes without.
        if self.unsent.len() < MOST_UNSENT {
            self.unsent.push(message);
        }
        self.send_rest();
    }

    fn send_rest(&mut self) {
        while let Some(first) = self.unsent.first() {
            match seqpacket::send(&self.socket, first, &[]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Whoever has gone is heard of by its socket.
                _ => drop(self.unsent.remove(0)),
            }
        }
    }
}
