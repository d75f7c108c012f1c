//! The simulator's side of the sockets.
//!
//! [`Server::wait`] blocks until something arrives, [`Server::next`] hands out what arrived, one
//! message after the other and each client in its turn, and [`Server::answer`] and
//! [`Server::send`] reply. Nothing ever blocks on a client: what one does not take is kept for it,
//! and what it does not take at all is dropped once it has gone.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::message::{Connect, Control, Request, TIMED_OUT, kind};
use ib_os::batch::{BATCH, Batch, send};
use ib_os::poll;
use ib_os::tick::Tick;

mod socket;

pub use socket::{Address, BindError};
use socket::{ControlSocket, DataSocket, Sender, bound_ports};

/// How many messages are kept for a client that takes none.
const MOST_KEPT: usize = 65_536;

/// How many control messages are read in succession while clients have something to say.
const CONTROL_TURNS: u32 = 4;

/// Clients have numbers below this one.
const MOST_NUMBERS: u32 = 1 << 16;

/// How many files are left for consoles and whatever else when clients are turned away.
const SPARE_FILES: usize = 96;

/// How often is looked whether clients are still alive.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The token of the control socket; clients have the tokens behind it, watched files the ones
/// from the middle on.
const CONTROL: Token = Token(0);

/// The token of the timer that has the clients looked after.
const TICK: Token = Token(usize::MAX - 1);

/// What arrived.
#[derive(Clone, Debug)]
pub enum Input {
    /// Somebody wants to be a client; to be answered with [`Server::accept`] or
    /// [`Server::refuse`].
    Connect {
        /// Who, for the answer.
        ticket: Ticket,
        /// What it wants.
        connect: Connect,
    },
    /// A client's control message, which is to be answered with [`Server::answer`].
    Control {
        /// The client.
        client: u32,
        /// The message.
        message: Control,
    },
    /// A client's management datagram.
    Request {
        /// The client.
        client: u32,
        /// The datagram with its addresses.
        request: Request,
    },
    /// A client left or died; its number will be used again.
    Gone {
        /// The client.
        client: u32,
    },
    /// A watched file can be read or written.
    Ready(usize),
}

/// Somebody who waits for the answer to a connect message.
#[derive(Clone, Debug)]
pub struct Ticket {
    sender: Sender,
    connect: Connect,
}

/// What was refused, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Datagrams that are no message: wrong length, wrong magic number, impossible lengths.
    pub malformed: u64,
    /// Messages that name a client which their sender is not, or that another user sent, and
    /// requests from a LID that is not their client's.
    pub forged: u64,
    /// Messages for clients that took nothing for too long.
    pub overflowed: u64,
}

struct Client {
    data: DataSocket,
    control: Sender,
    /// What the client has not taken yet.
    kept: VecDeque<[u8; Request::LENGTH]>,
    /// Whether it said that it takes nothing now.
    full: bool,
}

/// The sockets of a simulator.
pub struct Server {
    address: Address,
    control: ControlSocket,
    poll: Poll,
    events: Events,
    clients: Vec<Option<Client>>,
    /// The clients for whom something was kept since the last flush.
    unsent: Vec<u32>,
    /// The clients whose sockets may hold something, in turn.
    ready: VecDeque<u32>,
    /// How many files the process may have open.
    files: usize,
    control_ready: bool,
    /// How many control messages are read before it is a client's turn.
    control_turns: u32,
    inputs: VecDeque<Input>,
    watched: BTreeMap<usize, i32>,
    batch: Batch<{ Request::LENGTH }>,
    /// The client whose datagrams the batch holds, and which of them are still to be handed out.
    batched: (u32, Range<usize>),
    tick: Tick,
    refused: Refused,
}

impl Server {
    /// Opens the control socket. The process may have as many files open from now on as the system
    /// lets it.
    ///
    /// # Errors
    /// Fails when the name or port is in use or cannot be had.
    pub fn bind(address: Address) -> Result<Self, BindError> {
        let files = poll::allow_files();
        let control = ControlSocket::bind(&address)?;
        let failed = |source| BindError { address: address.to_string(), source };
        let poll = Poll::new().map_err(failed)?;
        let source = control.as_fd().as_raw_fd();
        poll.registry()
            .register(&mut SourceFd(&source), CONTROL, Interest::READABLE)
            .map_err(failed)?;
        let tick = Tick::every(LOOK_EVERY).map_err(failed)?;
        let source = tick.as_fd().as_raw_fd();
        poll.registry()
            .register(&mut SourceFd(&source), TICK, Interest::READABLE)
            .map_err(failed)?;
        Ok(Self {
            address,
            control,
            poll,
            events: Events::with_capacity(256),
            clients: Vec::new(),
            unsent: Vec::new(),
            ready: VecDeque::new(),
            files,
            control_ready: true,
            control_turns: CONTROL_TURNS,
            inputs: VecDeque::new(),
            watched: BTreeMap::new(),
            batch: Batch::new(),
            batched: (0, 0..0),
            tick,
            refused: Refused::default(),
        })
    }

    /// Returns where the server listens.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns what was refused so far.
    #[must_use]
    pub const fn refused(&self) -> Refused {
        self.refused
    }

    /// Watches another file: [`Input::Ready`] with this key reports that it is readable.
    ///
    /// # Errors
    /// Fails if the system cannot watch it.
    pub fn watch(&mut self, file: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        self.watch_for(file, key, Interest::READABLE)
    }

    /// Watches another file like [`Server::watch`], and also reports that it is writable.
    ///
    /// # Errors
    /// Fails if the system cannot watch it.
    pub fn watch_both(&mut self, file: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        self.watch_for(file, key, Interest::READABLE | Interest::WRITABLE)
    }

    fn watch_for(&mut self, file: BorrowedFd<'_>, key: usize, what: Interest) -> io::Result<()> {
        let file = file.as_raw_fd();
        let token = Token(usize::MAX / 2 + key);
        self.poll.registry().register(&mut SourceFd(&file), token, what)?;
        self.watched.insert(key, file);
        Ok(())
    }

    /// Watches a file no longer; it must still be open.
    ///
    /// # Errors
    /// Fails when the file was not watched.
    pub fn unwatch(&mut self, key: usize) -> io::Result<()> {
        let file = self.watched.remove(&key).ok_or(io::ErrorKind::NotFound)?;
        self.poll.registry().deregister(&mut SourceFd(&file))
    }

    /// Has a watched file come up again behind all that has arrived, without anything new.
    pub fn again(&mut self, key: usize) {
        self.inputs.push_back(Input::Ready(key));
    }

    /// As [`Server::wait`], and returns as well when one of the descriptors is ready.
    ///
    /// # Errors
    /// Fails if the system call does.
    pub fn wait_beside(
        &mut self,
        limit: Option<Duration>,
        others: &[poll::Interest<'_>],
    ) -> io::Result<()> {
        if self.is_busy() {
            return self.wait(limit);
        }
        let own = libc::pollfd { fd: self.poll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut files: Vec<_> = others.iter().map(poll::Interest::watched).chain([own]).collect();
        let limit = limit.unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
        poll::wait_any_for(&mut files, limit)?;
        self.wait(Some(Duration::ZERO))
    }

    /// Returns whether there is something left to hand out.
    fn is_busy(&self) -> bool {
        !self.batched.1.is_empty()
            || !self.inputs.is_empty()
            || !self.ready.is_empty()
            || self.control_ready
    }

    /// Waits until something arrives, at most for a time; returns at once while there is something
    /// left to hand out.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let busy = self.is_busy();
        // The tick comes before any limit that is longer.
        let limit = limit.filter(|&limit| limit < LOOK_EVERY);
        match self.poll.poll(&mut self.events, if busy { Some(Duration::ZERO) } else { limit }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        self.control_turns = CONTROL_TURNS;
        let (mut writable, mut ticked) = (Vec::new(), false);
        for event in &self.events {
            match event.token() {
                CONTROL => self.control_ready = true,
                TICK => {
                    self.tick.take();
                    ticked = true;
                }
                Token(token) if token >= usize::MAX / 2 => {
                    self.inputs.push_back(Input::Ready(token - usize::MAX / 2));
                }
                Token(token) => {
                    let client = token as u32 - 1;
                    if (event.is_readable() || event.is_error()) && !self.ready.contains(&client) {
                        self.ready.push_back(client);
                    }
                    if event.is_writable() {
                        writable.push(client);
                    }
                }
            }
        }
        for client in writable {
            if let Some(Some(state)) = self.clients.get_mut(client as usize)
                && state.full
            {
                state.full = false;
                self.push(client);
                self.watch_client(client);
            }
        }
        if ticked {
            self.look();
        }
        Ok(())
    }

    /// Returns the next message that arrived; `None` when there is nothing more for now.
    #[allow(clippy::should_implement_trait, reason = "nothing ends: later there may be more")]
    pub fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(index) = self.batched.1.next() {
                match self.batch.datagram(index).map(Request::parse) {
                    Some(Ok(request)) => {
                        return Some(Input::Request { client: self.batched.0, request });
                    }
                    Some(Err(_)) | None => self.refused.malformed += 1,
                }
                continue;
            }
            if let Some(input) = self.inputs.pop_front() {
                return Some(input);
            }
            if self.control_ready && self.control_turns > 0 {
                self.control_turns -= 1;
                self.read_control();
                continue;
            }
            let client = self.ready.pop_front()?;
            self.read_client(client);
            self.control_turns = CONTROL_TURNS;
        }
    }

    fn read_control(&mut self) {
        let mut bytes = [0; Control::LENGTH + 1];
        let (length, sender) = match self.control.receive(&mut bytes) {
            Ok(Some(received)) => received,
            Ok(None) => {
                self.control_ready = false;
                return;
            }
            // An error here is about an earlier answer to somebody who has gone.
            Err(_) => return,
        };
        if !sender.is_own_user() {
            self.refused.forged += 1;
            return;
        }
        let Ok(message) = Control::parse(&bytes[..length]) else {
            self.refused.malformed += 1;
            return;
        };
        if message.kind == kind::CONNECT {
            let connect = Connect::parse(&message.payload);
            if !sender.may_be(&self.address, connect.id) {
                self.refused.forged += 1;
                self.reply(&sender, &Control::new(0, kind::ERROR, &[]));
                return;
            }
            // A client that connects again has restarted: its old entry is removed.
            let before = self
                .clients
                .iter()
                .position(|client| client.as_ref().is_some_and(|client| client.control == sender));
            if let Some(before) = before {
                self.forget(before as u32);
            }
            self.inputs.push_back(Input::Connect {
                ticket: Ticket { sender, connect: connect.clone() },
                connect,
            });
            return;
        }
        let known = self.clients.get(message.client as usize).and_then(Option::as_ref);
        if known.is_none_or(|client| client.control != sender) {
            self.refused.forged += 1;
            self.reply(&sender, &Control::new(message.client, kind::ERROR, &[]));
            return;
        }
        let client = message.client;
        if message.kind == kind::DISCONNECT {
            self.reply(&sender, &message);
            self.forget(client);
            return;
        }
        self.inputs.push_back(Input::Control { client, message });
    }

    fn read_client(&mut self, client: u32) {
        let Some(Some(state)) = self.clients.get_mut(client as usize) else { return };
        let count = match self.batch.receive(state.data.as_fd()) {
            Ok(count) => count,
            Err(_) => return self.forget(client),
        };
        self.batched = (client, 0..count);
        // Fewer than were asked for means that the socket was empty, and what comes later is told
        // again.
        if count == BATCH {
            self.ready.push_back(client);
        }
    }

    /// Has it told when a client takes something again, while it takes nothing.
    fn watch_client(&mut self, client: u32) {
        let Some(Some(state)) = self.clients.get(client as usize) else { return };
        let source = state.data.as_fd().as_raw_fd();
        let token = Token(client as usize + 1);
        let interest =
            if state.full { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        if self.poll.registry().reregister(&mut SourceFd(&source), token, interest).is_err() {
            self.forget(client);
        }
    }

    /// Makes a client of somebody; the answer carries the name of the node that it is on. Returns
    /// the client's number.
    ///
    /// # Errors
    /// Fails when the sockets for it cannot be had; it is refused then.
    pub fn accept(&mut self, ticket: &Ticket, node: &str) -> io::Result<u32> {
        if self.client_count() + SPARE_FILES > self.files {
            self.refuse(ticket);
            return Err(io::Error::other(format!(
                "{} clients are attached, and no more files may be open (see `ulimit -n`)",
                self.client_count()
            )));
        }
        let opened = self.open(ticket.connect.id).and_then(|(client, data)| {
            let source = data.as_fd().as_raw_fd();
            let token = Token(client as usize + 1);
            self.poll.registry().register(&mut SourceFd(&source), token, Interest::READABLE)?;
            Ok((client, data))
        });
        let (client, data) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                self.refuse(ticket);
                return Err(error);
            }
        };
        let connected = Connect { node: node.to_owned(), ..ticket.connect.clone() };
        let connected = Connect { id: client, ..connected };
        let state =
            Client { data, control: ticket.sender.clone(), kept: VecDeque::new(), full: false };
        if client as usize >= self.clients.len() {
            self.clients.resize_with(client as usize + 1, || None);
        }
        self.clients[client as usize] = Some(state);
        self.reply(&ticket.sender, &Control::new(client, kind::CONNECT, &connected.to_bytes()));
        Ok(client)
    }

    /// Opens the socket of a new client: under the lowest number that no client has, and whose name or
    /// port nobody else has either.
    fn open(&self, id: u32) -> io::Result<(u32, DataSocket)> {
        let free = |&number: &u32| self.clients.get(number as usize).is_none_or(Option::is_none);
        for client in (0..MOST_NUMBERS).filter(free) {
            match DataSocket::open(&self.address, client, id) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                opened => return opened.map(|data| (client, data)),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Turns somebody away.
    pub fn refuse(&mut self, ticket: &Ticket) {
        self.reply(&ticket.sender, &Control::new(0, kind::ERROR, &[]));
    }

    /// Answers a client's control message.
    pub fn answer(&mut self, client: u32, message: &Control) {
        if let Some(Some(state)) = self.clients.get(client as usize) {
            let sender = state.control.clone();
            self.reply(&sender, message);
        }
    }

    fn reply(&self, to: &Sender, message: &Control) {
        // Who does not take the answer has gone, which the next look will find.
        let _ = self.control.send(to, &message.to_bytes());
    }

    /// Refuses a request that claims to come from somebody else: its client gets it back as one that
    /// was not delivered.
    pub fn refuse_request(&mut self, client: u32, request: &Request) {
        self.refused.forged += 1;
        self.send(client, &Request { status: TIMED_OUT, ..*request });
    }

    /// Sends a client away: [`Input::Gone`] follows.
    pub fn disconnect(&mut self, client: u32) {
        self.forget(client);
    }

    /// Returns how many clients are attached.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.clients.iter().flatten().count()
    }

    /// Hands a client a datagram; it leaves with [`Server::flush`] at the latest.
    pub fn send(&mut self, client: u32, request: &Request) {
        let Some(Some(state)) = self.clients.get_mut(client as usize) else { return };
        if state.kept.len() >= MOST_KEPT {
            self.refused.overflowed += 1;
            return;
        }
        if state.kept.is_empty() {
            self.unsent.push(client);
        }
        state.kept.push_back(request.to_bytes());
        if state.kept.len() >= BATCH && !state.full {
            self.push(client);
        }
    }

    /// Sends what is kept, as far as the clients take it.
    pub fn flush(&mut self) {
        let mut unsent = std::mem::take(&mut self.unsent);
        for client in unsent.drain(..) {
            self.push(client);
        }
        self.unsent = unsent;
    }

    fn push(&mut self, client: u32) {
        let Some(Some(state)) = self.clients.get_mut(client as usize) else { return };
        while !state.kept.is_empty() && !state.full {
            let (first, _) = state.kept.as_slices();
            match send(state.data.as_fd(), first) {
                Ok(0) => {
                    state.full = true;
                    return self.watch_client(client);
                }
                Ok(sent) => drop(state.kept.drain(..sent)),
                Err(_) => return self.forget(client),
            }
        }
    }

    /// Looks for clients that died without a word.
    fn look(&mut self) {
        let ports = match self.address {
            Address::Port(_) => bound_ports(),
            Address::Name(_) => None,
        };
        let is_dead = |client: &Option<Client>| {
            client.as_ref().is_some_and(|client| client.control.is_dead(ports.as_ref()))
        };
        let clients = (0..).zip(&self.clients);
        let dead: Vec<u32> =
            clients.filter(|(_, client)| is_dead(client)).map(|(number, _)| number).collect();
        for client in dead {
            self.forget(client);
        }
    }

    fn forget(&mut self, client: u32) {
        let Some(state) = self.clients.get_mut(client as usize).and_then(Option::take) else {
            return;
        };
        let source = state.data.as_fd().as_raw_fd();
        // A socket that is about to be closed need not be watched; it cannot matter if it was not.
        let _ = self.poll.registry().deregister(&mut SourceFd(&source));
        self.inputs.push_back(Input::Gone { client });
    }
}

#[cfg(test)]
mod tests;
