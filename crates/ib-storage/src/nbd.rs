//! NBD server: one thread drives a listening socket, its connections, and the block device that it
//! exports.
//!
//! The rule for memory: a client may allocate if all clients together stay within the budget, or if
//! the client stays within its guarantee. All clients have the same guarantee. The guarantees
//! together are a quarter of the budget, and come in addition to the budget. A client that may not
//! allocate waits for a turn. Only a few clients have a turn at a time. In its turn, a client
//! receives the rest of one write, or executes one request and reads the response. While others
//! wait, the server disconnects a client that sends nothing for a second of its turn, reads no
//! response for 30 s, or can no longer read responses.
//!
//! The rule for disconnected clients: after a client has disconnected, the server first executes
//! the writes that this client has sent, and then later requests of other clients, as a local disk
//! does.
//!
//! | module | holds |
//! |---|---|
//! | `listener` | the listening socket |
//! | `connection` | a client: its socket and its session |
//! | `budget` | the memory budget |

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use budget::{Budget, TURNS, Usage};
use connection::{Connection, STALLED, TURN};
use ib_block::{Command, Errno, Operation, ReadData};
use ib_nbd::{Export, NbdError, RequestToken, Session};
use ib_os::poll::Interest;
use ib_os::{clock, poll};
use ib_types::Instant;
use listener::Listener;
use slab::Slab;

use crate::rtrs::RemoteDisk;

mod budget;
mod connection;
mod listener;

pub use listener::{ListenError, NbdAddress};

/// Maximum number of connections at a time.
const MAX_CONNECTIONS: usize = 256;

/// Interval at which the server checks whether clients that wait for memory have disconnected.
const CHECK_DISCONNECTED: Duration = Duration::from_secs(1);

/// The block device that the server exports.
pub trait Backing {
    /// Submits a request to the device. The caller must not submit requests before the device was open
    /// for the first time. `data` is the data of a write; for other requests, it is empty.
    ///
    /// # Panics
    /// Panics if the length of `data` differs from the length of the write.
    fn submit(&mut self, user: u64, command: Command, data: &[u8]);

    /// Returns the number and status of the next completed request. A request with the status
    /// [`Errno::ECONNABORTED`] or [`Errno::ETIMEDOUT`] may have been executed in part.
    fn poll(&mut self) -> Option<(u64, Errno)>;

    /// Returns the data of the completed read that the last call of [`Backing::poll`] returned.
    fn take_data(&mut self) -> ReadData;

    /// Gives a buffer of [`Backing::take_data`] back to the device for reuse.
    fn give_back(&mut self, data: ReadData);

    /// Returns how many times unflushed writes of the device may have been lost.
    fn losses(&self) -> u64;
}

/// An NBD server.
#[derive(Debug)]
pub struct NbdServer {
    listener: Listener,
    exports: Arc<[Export]>,
    connections: Slab<Connection>,
    /// Number of connections accepted so far.
    accepted: u64,
    /// Requests in flight at the device.
    executing: Slab<Executing>,
    /// Errors of closed connections, oldest first.
    failed: VecDeque<NbdError>,
    /// True while the server serves only disconnected clients, because one of them may have left writes in
    /// flight or unread input.
    serves_gone: bool,
    /// True while other code of this process, such as a load generator, uses the device.
    is_held: bool,
    budget: Budget,
}

/// A request in flight at the device.
#[derive(Clone, Copy, Debug)]
struct Executing {
    /// Key of the request's connection in `NbdServer::connections`, and the connection's number,
    /// because keys are reused.
    connection: (usize, u64),
    token: RequestToken,
    operation: Operation,
    /// The length of the request's data in bytes.
    held: usize,
}

impl NbdServer {
    /// Listens for clients. `exports` must contain at least one export.
    ///
    /// # Errors
    /// Fails if the address is in use, is not a loopback address or Unix socket, or cannot be
    /// opened.
    pub fn listen(address: &NbdAddress, exports: Arc<[Export]>) -> Result<Self, ListenError> {
        Ok(Self {
            listener: Listener::open(address)?,
            exports,
            connections: Slab::new(),
            accepted: 0,
            executing: Slab::new(),
            failed: VecDeque::new(),
            serves_gone: false,
            is_held: false,
            budget: Budget::new(),
        })
    }

    /// Returns the TCP address and port; `None` for a Unix socket.
    #[must_use]
    pub fn port(&self) -> Option<SocketAddr> {
        self.listener.port()
    }

    /// Returns the number of connected clients.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns true if no client is connected, and no request is in flight, not even one of a
    /// disconnected client.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.executing.is_empty()
    }

    /// Serves clients while other code of this process, such as a load generator, uses the device.
    /// The server must be idle ([`NbdServer::is_idle`]) before that code uses the device. Clients can
    /// connect and finish the handshake, but their requests wait. Returns true if there was any
    /// progress.
    pub fn progress_without(&mut self) -> bool {
        self.is_held = true;
        self.serve(&mut Nothing)
    }

    /// Returns the oldest error of a closed connection that was not returned yet.
    pub fn poll_failed(&mut self) -> Option<NbdError> {
        self.failed.pop_front()
    }

    /// Exchanges requests and responses between clients and a device; returns true if there was any progress.
    pub fn progress(&mut self, disk: &mut impl Backing) -> bool {
        self.is_held = false;
        self.serve(disk)
    }

    fn serve(&mut self, disk: &mut impl Backing) -> bool {
        let now = clock::now();
        let mut moved = self.listener.is_due(now) && self.accept(disk.losses());
        moved |= self.complete(disk);
        // Reads all queued requests before it checks for disconnects. So the requests of a new
        // connection never overtake the writes that a disconnected client has left.
        moved |= self.give_input_turns(now);
        let mut closed = Vec::new();
        let has_read = self.read(now, &mut closed);
        moved |= has_read;
        let has_left = has_read && self.detect_disconnects();
        self.serves_gone = (self.serves_gone || has_left) && self.has_work_of_gone();
        moved |= self.execute_and_send(now, disk, &mut closed);
        closed.sort_unstable();
        closed.dedup();
        // Closing a connection counts as progress, because other clients can now use its memory.
        moved |= !closed.is_empty();
        for at in closed {
            let why = self.connections[at].session.failed().cloned();
            self.close(at, why);
        }
        self.serves_gone &= self.has_work_of_gone();
        if self.budget.is_short {
            moved |= self.disconnect_blocking(now);
        }
        self.budget.return_memory(self.usage());
        moved
    }

    fn accept(&mut self, losses: u64) -> bool {
        let mut moved = false;
        while self.connections.len() < MAX_CONNECTIONS {
            let Some(stream) = self.listener.accept() else { break };
            if stream.prepare().is_err() {
                continue;
            }
            moved = true;
            self.accepted += 1;
            let session = Session::new(Arc::clone(&self.exports));
            self.connections.insert(Connection::new(self.accepted, losses, stream, session));
        }
        moved
    }

    /// Queues the responses to requests that the device has completed. Returns true if there were any.
    fn complete(&mut self, disk: &mut impl Backing) -> bool {
        let mut moved = false;
        while let Some((user, errno)) = disk.poll() {
            moved = true;
            let Executing { connection: (at, number), token, operation, held } =
                self.executing.remove(user as usize);
            let data = disk.take_data();
            // The device reports a loss of writes once. Each connected client gets the error at its
            // next flush.
            if let Some(it) = self.connections.get_mut(at).filter(|it| it.number == number) {
                let has_lost = operation == Operation::Flush
                    && std::mem::replace(&mut it.losses, disk.losses()) != disk.losses();
                let errno = if has_lost { Errno::EIO } else { errno };
                it.session.complete(token, errno, data);
            } else {
                self.budget.orphaned -= held;
                disk.give_back(data);
            }
        }
        moved
    }

    /// Reads input. After the handshake, reads only from clients that the server serves now and
    /// that have memory for more input. Adds connections whose reads failed to `closed`.
    fn read(&mut self, now: Instant, closed: &mut Vec<usize>) -> bool {
        let mut has_read = false;
        let mut usage = self.usage();
        for (at, connection) in &mut self.connections {
            let is_served = !self.is_held && (!self.serves_gone || connection.is_gone);
            let has_memory = connection.has_input_turn || usage.admits_input(&connection.session);
            let before = connection.session.kept();
            match connection.read(now, is_served && has_memory) {
                Ok(read) => has_read |= read,
                Err(_) => closed.push(at),
            }
            usage.changed(before, connection.session.kept());
        }
        has_read
    }

    /// Passes requests to the device, and sends responses. Adds connections that have ended to `closed`.
    fn execute_and_send(
        &mut self,
        now: Instant,
        disk: &mut impl Backing,
        closed: &mut Vec<usize>,
    ) -> bool {
        let mut moved = false;
        let mut usage = self.usage();
        let mut turns = TURNS.saturating_sub(self.request_turns());
        self.budget.is_short = false;
        let Self { connections, executing, budget, is_held, serves_gone, .. } = self;
        for (at, connection) in connections {
            let number = connection.number;
            // While disconnected clients have left requests, only those requests are executed.
            if !*is_held && (!*serves_gone || connection.is_gone) {
                loop {
                    let session = &mut connection.session;
                    let before = session.kept();
                    if usage.request_needs_turn(session) {
                        if turns == 0 || session.requests() > 0 || session.unsent() > 0 {
                            budget.is_short |= session.next_held() > 0;
                            break;
                        }
                        turns -= 1;
                        connection.has_request_turn = true;
                    }
                    let Some(request) = session.poll_request() else { break };
                    moved = true;
                    let Command { operation, .. } = request.command;
                    let (token, held) = (request.token, request.held());
                    let user = Executing { connection: (at, number), token, operation, held };
                    let user = executing.insert(user) as u64;
                    disk.submit(user, request.command, request.data);
                    usage.changed(before, session.kept());
                }
                // The client has disconnected, and no complete request is left. The rest of a
                // partially received write never arrives, so the session ends.
                let session = &mut connection.session;
                if connection.has_ended && session.takes() && !usage.request_needs_turn(session) {
                    session.end();
                }
            }
            let session = &mut connection.session;
            if connection.has_ended && session.is_choosing() {
                session.end();
            }
            if usage.is_half_full() {
                let before = session.kept();
                session.shrink();
                usage.changed(before, session.kept());
            }
            let sent = connection.send(now);
            let session = &mut connection.session;
            while let Some(data) = session.poll_used() {
                disk.give_back(data);
            }
            moved |= matches!(sent, Ok(true));
            if connection.deadline <= now && session.is_choosing() {
                session.give_up();
                closed.push(at);
            } else if sent.is_err() || session.is_over() {
                closed.push(at);
            }
        }
        moved
    }

    /// Closes a connection. Its outstanding requests still count towards the memory of all clients.
    fn close(&mut self, at: usize, why: Option<NbdError>) {
        let connection = self.connections.remove(at);
        self.budget.orphaned += connection.session.outstanding();
        self.serves_gone |= connection.session.requests() > 0;
        self.failed.extend(why);
    }

    /// Gives input turns to clients that have input but no memory to finish a partially received
    /// write. Without turns, all of them could wait indefinitely. A client keeps its turn until the
    /// write is complete. Returns true if a client was disconnected.
    fn give_input_turns(&mut self, now: Instant) -> bool {
        let usage = self.usage();
        let mut needy = Vec::new();
        for (at, it) in &mut self.connections {
            let needs_turn = !it.has_ended && usage.input_needs_turn(&it.session);
            it.has_input_turn &= needs_turn;
            needy.extend(needs_turn.then_some(at));
        }
        if needy.is_empty() || self.is_held {
            return false;
        }
        let file = |&at: &usize| poll::watched(self.connections[at].stream.as_fd(), false);
        let mut files: Vec<_> = needy.iter().map(file).collect();
        if poll::wait_any(&mut files, 0).is_err() {
            return false;
        }
        let mut free = TURNS - self.input_turns();
        let mut others_wait = false;
        let mut idle = Vec::new();
        for (at, file) in needy.into_iter().zip(files) {
            let it = &mut self.connections[at];
            match (it.has_input_turn, file.revents != 0) {
                (false, true) if free > 0 => {
                    free -= 1;
                    (it.has_input_turn, it.input_at) = (true, now);
                }
                (false, true) => others_wait = true,
                (true, false) if it.input_at + TURN <= now => idle.push(at),
                _ => {}
            }
        }
        if !others_wait {
            return false;
        }
        for &at in &idle {
            self.close(at, Some(NbdError::Unfinished(TURN.as_secs())));
        }
        !idle.is_empty()
    }

    /// Returns the number of clients that have a turn to receive the rest of a write.
    fn input_turns(&self) -> usize {
        self.connections.iter().filter(|(_, it)| it.has_input_turn).count()
    }

    /// Returns the number of clients that have a turn to execute a request. A turn ends when the
    /// response is sent.
    fn request_turns(&mut self) -> usize {
        let mut count = 0;
        for (_, it) in &mut self.connections {
            it.has_request_turn &= it.session.requests() > 0 || it.session.unsent() > 0;
            count += usize::from(it.has_request_turn);
        }
        count
    }

    fn usage(&self) -> Usage {
        self.budget.usage(self.connections.iter().map(|(_, it)| &it.session))
    }

    /// Disconnects clients that block other clients. Returns true if there were any. Such a client
    /// * has read no response for [`STALLED`] and uses more memory than its guarantee, or
    /// * waits for memory and can no longer read responses.
    fn disconnect_blocking(&mut self, now: Instant) -> bool {
        let usage = self.usage();
        let (mut stalled, mut waiting) = (Vec::new(), Vec::new());
        for (at, it) in &self.connections {
            if it.stalled_at(usage.guaranteed).is_some_and(|at| at <= now) {
                stalled.push(at);
            } else if usage.request_needs_turn(&it.session) && it.session.next_held() > 0 {
                waiting.push(at);
            }
        }
        let file = |&at: &usize| poll::hung_up(self.connections[at].stream.as_fd());
        let mut files: Vec<_> = waiting.iter().map(file).collect();
        if poll::wait_any(&mut files, 0).is_err() {
            files.clear();
        }
        // Ignores `POLLRDHUP`: a client that has only shut down its sending side still reads
        // responses.
        let is_gone = |file: &libc::pollfd| file.revents & (libc::POLLHUP | libc::POLLERR) != 0;
        let gone = waiting.into_iter().zip(&files).filter(|(_, file)| is_gone(file));
        let gone: Vec<usize> = gone.map(|(at, _)| at).collect();
        for &at in &stalled {
            self.close(at, Some(NbdError::Stalled(STALLED.as_secs())));
        }
        for &at in &gone {
            self.close(at, None);
        }
        !stalled.is_empty() || !gone.is_empty()
    }

    /// Detects disconnected clients. Returns true if a disconnected client has left requests in
    /// flight or unread input.
    fn detect_disconnects(&mut self) -> bool {
        let usage = self.usage();
        if self.connections.len() >= 2 {
            let there = || self.connections.iter().filter(|(_, it)| !it.is_gone);
            let file = |(_, it): (usize, &Connection)| poll::hung_up(it.stream.as_fd());
            let mut files: Vec<_> = there().map(file).collect();
            let slots: Vec<usize> = there().map(|(at, _)| at).collect();
            // If the poll fails, assumes that no client has disconnected.
            if poll::wait_any(&mut files, 0).is_err() {
                return false;
            }
            for (at, file) in slots.into_iter().zip(files) {
                self.connections[at].is_gone |= file.revents != 0;
            }
        }
        self.connections.iter().any(|(_, it)| it.leaves(usage))
    }

    /// Returns true if a disconnected client has left writes in flight or unread input. As on a
    /// local disk, its writes must be executed before later requests of other clients. This holds
    /// even if a path failure of a remote device delays the writes.
    fn has_work_of_gone(&self) -> bool {
        // Unread input counts as work only if the client has memory for its next request. Otherwise,
        // a disconnected client whose unsent responses use up its memory would block other clients.
        let usage = self.usage();
        if self.connections.iter().any(|(_, it)| it.is_gone && usage.takes(&it.session)) {
            return true;
        }
        self.executing.iter().any(|(_, it)| {
            let (at, number) = it.connection;
            let connection = self.connections.get(at).filter(|it| it.number == number);
            let has_left = |it: &Connection| it.is_gone || it.session.has_ended();
            it.operation.is_change() && connection.is_none_or(has_left)
        })
    }

    /// Waits until the server or `disk` has work, one of the descriptors `others` is readable, or
    /// the time is `until`.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn wait(
        &mut self,
        disk: &mut RemoteDisk,
        until: Instant,
        others: &[BorrowedFd<'_>],
    ) -> io::Result<()> {
        let mut files: Vec<Interest<'_>> = others.iter().copied().map(Interest::to_read).collect();
        let due = self.interests(&mut files);
        disk.wait_with(until.min(due), &files)
    }

    /// Adds to `files` the descriptors for which the caller must wait. Returns the latest time at
    /// which the caller must call [`NbdServer::progress`] again.
    pub fn interests<'a>(&'a mut self, files: &mut Vec<Interest<'a>>) -> Instant {
        let usage = self.usage();
        let has_free_turns = self.input_turns() < TURNS;
        let now = clock::now();
        let mut until = self.listener.pause().unwrap_or(Instant::NEVER);
        if until == Instant::NEVER && self.connections.len() < MAX_CONNECTIONS {
            files.push(Interest::to_read(self.listener.as_fd()));
        }
        if self.budget.is_short {
            until = until.min(now + CHECK_DISCONNECTED);
        }
        for (_, connection) in &mut self.connections {
            let is_choosing = connection.session.is_choosing();
            if is_choosing {
                until = until.min(connection.deadline);
            }
            let is_served = !self.is_held && (!self.serves_gone || connection.is_gone);
            let needs_turn =
                !connection.has_input_turn && usage.input_needs_turn(&connection.session);
            if needs_turn && !has_free_turns {
                until = until.min(now + TURN);
            }
            let has_memory = connection.has_input_turn
                || usage.admits_input(&connection.session)
                || needs_turn && has_free_turns;
            let reads = (is_served || is_choosing)
                && !connection.has_ended
                && has_memory
                && connection.session.room().is_some();
            let writes = connection.session.unsent() > 0;
            if self.budget.is_short {
                until = until.min(connection.stalled_at(usage.guaranteed).unwrap_or(until));
            }
            // Leaves out sockets on which the server waits for nothing, since the kernel would
            // repeatedly report their errors.
            if reads || writes {
                files.push(Interest { file: connection.stream.as_fd(), reads, writes });
            }
        }
        until
    }
}

/// The block device of the NBD server while other code uses the real device. It gets no requests.
pub(super) struct Nothing;

impl Backing for Nothing {
    fn submit(&mut self, _: u64, command: Command, _: &[u8]) {
        unreachable!("{command:?} was submitted while other code uses the device");
    }

    fn poll(&mut self) -> Option<(u64, Errno)> {
        None
    }

    fn take_data(&mut self) -> ReadData {
        ReadData::default()
    }

    fn give_back(&mut self, _: ReadData) {}

    fn losses(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests;
