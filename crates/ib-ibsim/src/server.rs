//! The simulator's side of the ibsim protocol.
//!
//! [`Server::wait`] blocks until there is input. [`Server::next`] returns one message per call,
//! from the clients in turn. [`Server::answer`] and [`Server::send`] reply. No call blocks on a
//! client: messages for a client whose socket is full are queued up to a limit. They are discarded
//! when the client disconnects.

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

/// Maximum number of queued messages for a client that does not read.
const MAX_QUEUED: usize = 65_536;

/// After this many control messages in succession, the server reads waiting MADs, so that control messages cannot delay
/// MADs indefinitely.
const CONTROL_TURNS: u32 = 4;

/// Maximum number of clients.
const MAX_CLIENT_NUMBERS: u32 = 1 << 16;

/// This many file descriptors are reserved for consoles and other uses. A client that would need
/// one of them is refused.
const SPARE_FILES: usize = 96;

/// Interval between checks for exited clients.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Poll token of the control socket. Client N has token N + 1; watched files have tokens in the
/// upper half of the number range.
const CONTROL: Token = Token(0);

/// Poll token of the timer that starts the checks for exited clients.
const TICK: Token = Token(usize::MAX - 1);

/// An input that [`Server::next`] returns: a message of a client or another event.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client wants to attach; the caller replies with [`Server::accept`] or [`Server::refuse`].
    Connect {
        /// Identifies the client in the caller's reply.
        ticket: Ticket,
        /// The connect message.
        connect: Connect,
    },
    /// A control message of a client; the caller replies with [`Server::answer`].
    Control {
        /// The client.
        client: u32,
        /// The message.
        message: Control,
    },
    /// A MAD from a client.
    Request {
        /// The client.
        client: u32,
        /// The MAD with its addresses.
        request: Request,
    },
    /// A client has disconnected or exited; its number will be reused.
    Gone {
        /// The client.
        client: u32,
    },
    /// The watched file with this key is ready.
    Ready(usize),
}

/// A client that waits for the reply to its connect message.
#[derive(Clone, Debug)]
pub struct Ticket {
    sender: Sender,
    connect: Connect,
}

/// Counts of dropped messages, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Malformed datagrams: wrong size, wrong magic number, inconsistent sizes.
    pub malformed: u64,
    /// Messages from another user, messages with the number of another client, and requests whose
    /// SLID is not a LID of the client's port.
    pub forged: u64,
    /// Messages for clients whose queue was full, because they did not read.
    pub overflowed: u64,
}

struct Client {
    data: DataSocket,
    control: Sender,
    /// MADs that were not sent to the client yet.
    kept: VecDeque<[u8; Request::LENGTH]>,
    /// True while the client's socket is full.
    full: bool,
}

/// The sockets of a simulator.
pub struct Server {
    address: Address,
    control: ControlSocket,
    poll: Poll,
    events: Events,
    clients: Vec<Option<Client>>,
    /// Clients with messages queued since the last flush.
    unsent: Vec<u32>,
    /// Clients whose sockets may have input, in the order in which they are read.
    ready: VecDeque<u32>,
    /// Maximum number of file descriptors of the process.
    files: usize,
    control_ready: bool,
    /// Number of control messages that the server may still read before it reads MADs of clients.
    control_turns: u32,
    inputs: VecDeque<Input>,
    watched: BTreeMap<usize, i32>,
    batch: Batch<{ Request::LENGTH }>,
    /// The client whose datagrams are in `batch`, and the indexes of the datagrams that
    /// [`Server::next`] has not returned yet.
    batched: (u32, Range<usize>),
    tick: Tick,
    refused: Refused,
}

impl Server {
    /// Opens the control socket. Raises the soft limit of file descriptors to the hard limit.
    ///
    /// # Errors
    /// Fails if the socket name or the port is in use or not available.
    pub fn bind(address: Address) -> Result<Self, BindError> {
        let files = poll::allow_files();
        let control = ControlSocket::bind(&address)?;
        let failed = |source| BindError { address: address.to_string(), source };
        let poll = Poll::new().map_err(failed)?;
        let source = control.as_fd().as_raw_fd();
        poll.registry()
            .register(&mut SourceFd(&source), CONTROL, Interest::READABLE)
            .map_err(failed)?;
        let tick = Tick::every(CHECK_INTERVAL).map_err(failed)?;
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

    /// Returns the listening address.
    #[must_use]
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the counts of dropped messages, by reason.
    #[must_use]
    pub const fn refused(&self) -> Refused {
        self.refused
    }

    /// Watches a file besides the server's sockets. [`Input::Ready`] with this key reports that the
    /// file is readable.
    ///
    /// # Errors
    /// Fails if the system cannot watch the file.
    pub fn watch(&mut self, file: BorrowedFd<'_>, key: usize) -> io::Result<()> {
        self.watch_for(file, key, Interest::READABLE)
    }

    /// Watches a file like [`Server::watch`], and also reports that the file is writable.
    ///
    /// # Errors
    /// Fails if the system cannot watch the file.
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

    /// Stops watching a file. The file must still be open.
    ///
    /// # Errors
    /// Fails if the file was not watched.
    pub fn unwatch(&mut self, key: usize) -> io::Result<()> {
        let file = self.watched.remove(&key).ok_or(io::ErrorKind::NotFound)?;
        self.poll.registry().deregister(&mut SourceFd(&file))
    }

    /// Queues another [`Input::Ready`] with the key of a watched file, behind the inputs that are
    /// already queued.
    pub fn again(&mut self, key: usize) {
        self.inputs.push_back(Input::Ready(key));
    }

    /// Waits like [`Server::wait`], but also returns when one of the given descriptors is ready.
    ///
    /// # Errors
    /// Fails if a system call fails.
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
        let limit = limit.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL);
        poll::wait_any_for(&mut files, limit)?;
        self.wait(Some(Duration::ZERO))
    }

    /// Returns true if [`Server::next`] may return input without a call of [`Server::wait`] before.
    fn is_busy(&self) -> bool {
        !self.batched.1.is_empty()
            || !self.inputs.is_empty()
            || !self.ready.is_empty()
            || self.control_ready
    }

    /// Waits for input up to a time limit. Does not wait if [`Server::next`] may already have
    /// input.
    ///
    /// # Errors
    /// Fails if a system call failed.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        let busy = self.is_busy();
        // Time limits of `CHECK_INTERVAL` or more are ignored, because the timer that starts the
        // checks for exited clients ends the wait earlier.
        let limit = limit.filter(|&limit| limit < CHECK_INTERVAL);
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

    /// Returns the next message of a client or another event; `None` if there is none at present.
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
            // The receive call also fails if an earlier reply was sent to a client that has exited.
            // This error is ignored.
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
            // If a client connects again, its process has restarted, so the client's old state is
            // removed.
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
        // If the batch is not full, the socket is empty now. Later datagrams cause a new poll
        // event.
        if count == BATCH {
            self.ready.push_back(client);
        }
    }

    /// Watches a client's socket for input and, while its send buffer is full, also for free space.
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

    /// Accepts a client. The reply contains the given name of the client's node. Returns the
    /// client's number.
    ///
    /// # Errors
    /// Fails and refuses the client if the client's socket cannot be opened.
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

    /// Opens the socket of a new client. The client gets the lowest free number whose socket name
    /// or port is not in use by another process.
    fn open(&self, id: u32) -> io::Result<(u32, DataSocket)> {
        let free = |&number: &u32| self.clients.get(number as usize).is_none_or(Option::is_none);
        for client in (0..MAX_CLIENT_NUMBERS).filter(free) {
            match DataSocket::open(&self.address, client, id) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                opened => return opened.map(|data| (client, data)),
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// Refuses a client that wants to attach.
    pub fn refuse(&mut self, ticket: &Ticket) {
        self.reply(&ticket.sender, &Control::new(0, kind::ERROR, &[]));
    }

    /// Replies to a client's control message.
    pub fn answer(&mut self, client: u32, message: &Control) {
        if let Some(Some(state)) = self.clients.get(client as usize) {
            let sender = state.control.clone();
            self.reply(&sender, message);
        }
    }

    fn reply(&self, to: &Sender, message: &Control) {
        // A send error means that the client has exited. The next check for exited clients will
        // remove it.
        let _ = self.control.send(to, &message.to_bytes());
    }

    /// Refuses a request whose SLID is that of another port. The request is returned to the client
    /// as undelivered.
    pub fn refuse_request(&mut self, client: u32, request: &Request) {
        self.refused.forged += 1;
        self.send(client, &Request { status: TIMED_OUT, ..*request });
    }

    /// Disconnects a client. [`Input::Gone`] reports the disconnect later.
    pub fn disconnect(&mut self, client: u32) {
        self.forget(client);
    }

    /// Returns the number of clients.
    #[must_use]
    pub fn client_count(&self) -> usize {
        self.clients.iter().flatten().count()
    }

    /// Queues a MAD for a client. The MAD is sent by the next [`Server::flush`] at the latest,
    /// unless the client's socket is full.
    pub fn send(&mut self, client: u32, request: &Request) {
        let Some(Some(state)) = self.clients.get_mut(client as usize) else { return };
        if state.kept.len() >= MAX_QUEUED {
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

    /// Sends queued messages until the sockets are full.
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

    /// Removes clients that have exited without a disconnect message.
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
        // A failed deregistration has no effect, because the socket is closed when `state` is
        // dropped on return.
        let _ = self.poll.registry().deregister(&mut SourceFd(&source));
        self.inputs.push_back(Input::Gone { client });
    }
}

#[cfg(test)]
mod tests;
