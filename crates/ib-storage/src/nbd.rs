//! NBD server: a listening socket, its connections, and the block device behind them, driven by one thread.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use ib_block::{Command, Errno, Operation, ReadData};
use ib_nbd::{Export, NbdError, RequestToken, Session};
use ib_types::Instant;
use slab::Slab;

use crate::rtrs::RemoteDisk;
use ib_os::clock;
use ib_os::poll::{self, Interest};

mod address;
mod connection;
mod crowd;
mod gather;
mod nothing;

use connection::{Connection, Listener, STALLED, Stream, TURN};
use crowd::{Crowd, FINISHING};
use nothing::Nothing;

pub use address::{ListenError, Place};

/// Maximum number of connections.
const MOST: usize = 256;

/// Memory budget of all clients, in bytes. Beyond it come the input buffers (32 MiB), the guarantees of single clients
/// (a quarter of the budget), and a few requests of up to 32 MiB. The total is less than 1 GiB.
const MOST_KEPT: usize = 576 << 20;

/// Interval of checks for disconnected clients that wait for memory.
const LOOK_FOR_GONE: Duration = Duration::from_secs(1);

/// Minimum peak memory, in bytes, above which free memory is returned to the system.
const TRIMMED: usize = 64 << 20;

/// Interval of accepting connections while the server is busy.
const ACCEPT_EVERY: Duration = Duration::from_millis(1);

/// Pause after an accept that failed for lack of descriptors.
const WITHOUT_FILES: Duration = Duration::from_millis(100);

/// Timeout of the NBD handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// The block device behind the server.
pub trait Backing {
    /// Submits a request; a write has data.
    fn submit(&mut self, user: u64, command: Command, data: &[u8]);

    /// Returns a completed request: its number, and the result.
    fn poll(&mut self) -> Option<(u64, Errno)>;

    /// Takes the data of the read that [`Backing::poll`] has returned last.
    fn take_data(&mut self) -> ReadData;

    /// Returns a buffer that is no longer needed.
    fn give_back(&mut self, data: ReadData);

    /// Returns the number of events that may have lost unflushed writes.
    fn losses(&self) -> u64;
}

/// An NBD server.
#[derive(Debug)]
pub struct NbdServer {
    listener: Listener,
    exports: Arc<[Export]>,
    connections: Slab<Connection>,
    last: u64,
    /// What the device does.
    under_way: Slab<Asked>,
    /// Errors of closed connections, oldest first.
    failed: VecDeque<NbdError>,
    /// True if a disconnected client may have writes in flight.
    has_heirs: bool,
    /// Time of the next accept.
    accept_at: Instant,
    /// True if the last accept failed for lack of descriptors.
    lacks_files: bool,
    /// True if another user has taken the device.
    is_held: bool,
    /// [`MOST_KEPT`], except in tests.
    most_kept: usize,
    /// Memory of outstanding requests of disconnected clients, in bytes.
    orphaned: usize,
    /// Peak memory since free memory was last returned to the system.
    peak: usize,
    /// True if a client waits for memory.
    lacks_memory: bool,
}

/// A request in flight at the device.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Its connection: slot and number.
    connection: (usize, u64),
    token: RequestToken,
    operation: Operation,
    /// The length of its data in bytes.
    held: usize,
}

impl NbdServer {
    /// Listens for clients, and offers them at least one device.
    ///
    /// # Errors
    /// Fails if the address is in use, cannot be opened, or is not local.
    pub fn listen(place: &Place, exports: Arc<[Export]>) -> Result<Self, ListenError> {
        let listener = match place {
            Place::Unix(path) => {
                let listener = ib_os::unix::listen(path, 0o660);
                let failed = |error| ListenError::Unix { path: path.clone(), error };
                Listener::Unix(listener.map_err(failed)?, path.clone())
            }
            Place::Tcp(address) if !address.ip().is_loopback() => {
                return Err(ListenError::NotLoopback(*address));
            }
            Place::Tcp(address) => {
                let listener = TcpListener::bind(address).and_then(|listener| {
                    listener.set_nonblocking(true)?;
                    Ok(listener)
                });
                let failed = |error| ListenError::Tcp { address: *address, error };
                Listener::Tcp(listener.map_err(failed)?)
            }
        };
        let (connections, under_way) = (Slab::new(), Slab::new());
        Ok(Self {
            listener,
            exports,
            connections,
            last: 0,
            under_way,
            failed: VecDeque::new(),
            has_heirs: false,
            accept_at: Instant::ZERO,
            lacks_files: false,
            is_held: false,
            most_kept: MOST_KEPT,
            orphaned: 0,
            peak: 0,
            lacks_memory: false,
        })
    }

    /// Returns the TCP port; `None` for a Unix socket.
    #[must_use]
    pub fn port(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Unix(..) => None,
            Listener::Tcp(listener) => listener.local_addr().ok(),
        }
    }

    /// Returns the number of connected clients.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns true if no request is in flight, including those of disconnected clients, and no client is connected.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.under_way.is_empty()
    }

    /// Serves clients while another user has taken the idle device ([`NbdServer::is_idle`]): clients connect and finish
    /// the handshake, and their requests wait. Returns true if there was any progress.
    pub fn progress_without(&mut self) -> bool {
        self.is_held = true;
        self.move_on(&mut Nothing)
    }

    /// Returns the oldest error of a closed connection that was not returned yet.
    pub fn poll_failed(&mut self) -> Option<NbdError> {
        self.failed.pop_front()
    }

    /// Exchanges requests and responses between clients and a device; returns true if there was any progress.
    pub fn progress(&mut self, disk: &mut impl Backing) -> bool {
        self.is_held = false;
        self.move_on(disk)
    }

    fn move_on(&mut self, disk: &mut impl Backing) -> bool {
        let now = clock::now();
        let mut moved = false;
        if now >= self.accept_at {
            self.accept_at = now + ACCEPT_EVERY;
            self.lacks_files = false;
            moved = self.accept(disk.losses());
        }
        while let Some((user, errno)) = disk.poll() {
            moved = true;
            let Asked { connection: (at, number), token, operation, held } =
                self.under_way.remove(user as usize);
            let data = disk.take_data();
            // Each connected client is notified of a loss, not only the first one that flushes.
            if let Some(it) = self.connections.get_mut(at).filter(|it| it.number == number) {
                let has_lost = operation == Operation::Flush
                    && std::mem::replace(&mut it.losses, disk.losses()) != disk.losses();
                let errno = if has_lost { Errno::EIO } else { errno };
                it.session.complete(token, errno, data);
            } else {
                self.orphaned -= held;
                disk.give_back(data);
            }
        }
        // Reads all queued requests before it checks for disconnects, so that a successor connection never overtakes the
        // writes of the one before.
        moved |= self.take_turns(now);
        let mut over = Vec::new();
        let mut has_read = false;
        let mut crowd = self.crowd();
        for (at, connection) in &mut self.connections {
            let reads = !self.is_held && (!self.has_heirs || connection.is_gone);
            let reads = reads && (connection.has_turn || crowd.lets_read(&connection.session));
            let before = connection.session.kept();
            match connection.read(now, reads) {
                Ok(read) => has_read |= read,
                Err(_) => over.push(at),
            }
            crowd.kept = crowd.kept - before + connection.session.kept();
        }
        moved |= has_read;
        let leaves = has_read && self.note_the_gone();
        self.has_heirs = (self.has_heirs || leaves) && self.is_being_changed();
        let mut extras = FINISHING - self.extras().min(FINISHING);
        self.lacks_memory = false;
        for (at, connection) in &mut self.connections {
            let number = connection.number;
            // The remaining input of a disconnected client is read.
            if !self.is_held && (!self.has_heirs || connection.is_gone) {
                loop {
                    let session = &mut connection.session;
                    let before = session.kept();
                    // The data of a write has arrived already.
                    if crowd.holds_up(session) && !session.is_writing() {
                        if extras == 0 || session.requests() > 0 || session.unsent() > 0 {
                            self.lacks_memory |= session.next_held() > 0;
                            break;
                        }
                        extras -= 1;
                        connection.is_extra = true;
                    }
                    let Some(request) = session.poll_request() else { break };
                    moved = true;
                    let Command { operation, .. } = request.command;
                    let (token, held) = (request.token, request.held());
                    let asked = Asked { connection: (at, number), token, operation, held };
                    let user = self.under_way.insert(asked) as u64;
                    disk.submit(user, request.command, request.data);
                    crowd.kept = crowd.kept - before + session.kept();
                }
                // The rest of a partially received write never comes.
                if connection.has_ended
                    && connection.session.takes()
                    && (connection.session.is_writing() || !crowd.holds_up(&connection.session))
                {
                    connection.session.end();
                }
            }
            if connection.has_ended && connection.session.is_choosing() {
                connection.session.end();
            }
            if crowd.is_half_full() {
                let before = connection.session.kept();
                connection.session.shrink();
                crowd.kept = crowd.kept - before + connection.session.kept();
            }
            let sent = connection.send(now);
            while let Some(data) = connection.session.poll_used() {
                disk.give_back(data);
            }
            moved |= matches!(sent, Ok(true));
            if connection.deadline <= now && connection.session.is_choosing() {
                connection.session.give_up();
                over.push(at);
            } else if sent.is_err() || connection.session.is_over() {
                over.push(at);
            }
        }
        over.sort_unstable();
        over.dedup();
        // Their memory may be available for other clients now.
        moved |= !over.is_empty();
        for at in over {
            let connection = self.connections.remove(at);
            self.orphaned += connection.session.outstanding();
            self.has_heirs |= connection.session.requests() > 0;
            self.failed.extend(connection.session.failed().cloned());
        }
        self.has_heirs &= self.is_being_changed();
        if self.lacks_memory {
            moved |= self.disconnect_gone() | self.disconnect_stalled(now);
        }
        self.return_memory();
        moved
    }

    /// Gives turns to clients that have input and need one to finish a partially received write. Otherwise all of them could
    /// wait indefinitely. A client keeps its turn until the write is complete. Returns true if a client was disconnected.
    fn take_turns(&mut self, now: Instant) -> bool {
        let crowd = self.crowd();
        let mut needy = Vec::new();
        for (at, it) in &mut self.connections {
            let needs_turn = !it.has_ended && crowd.needs_turn(&it.session);
            it.has_turn &= needs_turn;
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
        let mut free = FINISHING - self.turns();
        let mut others_wait = false;
        let mut idle = Vec::new();
        for (at, file) in needy.into_iter().zip(files) {
            let it = &mut self.connections[at];
            match (it.has_turn, file.revents != 0) {
                (false, true) if free > 0 => {
                    free -= 1;
                    (it.has_turn, it.input_at) = (true, now);
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
            let connection = self.connections.remove(at);
            self.orphaned += connection.session.outstanding();
            self.failed.push_back(NbdError::Unfinished(TURN.as_secs()));
        }
        !idle.is_empty()
    }

    /// Returns the number of clients that have a turn.
    fn turns(&self) -> usize {
        self.connections.iter().filter(|(_, it)| it.has_turn).count()
    }

    /// Returns the memory use of all clients, and their limits.
    fn crowd(&self) -> Crowd {
        let kept: usize = self.connections.iter().map(|(_, it)| it.session.kept()).sum();
        Crowd::new(kept + self.orphaned, self.most_kept, self.connections.len())
    }

    /// Returns the number of clients with a request that exceeds both the budget and their guarantee.
    fn extras(&mut self) -> usize {
        let mut count = 0;
        for (_, it) in &mut self.connections {
            it.is_extra &= it.session.requests() > 0 || it.session.unsent() > 0;
            count += usize::from(it.is_extra);
        }
        count
    }

    /// Closes connections of clients that have disconnected while they waited for memory, because they can read no
    /// response. Returns true if there were any.
    fn disconnect_gone(&mut self) -> bool {
        let crowd = self.crowd();
        let waits = |it: &Connection| {
            crowd.holds_up(&it.session) && !it.session.is_writing() && it.session.next_held() > 0
        };
        let waiting: Vec<usize> =
            self.connections.iter().filter(|(_, it)| waits(it)).map(|(at, _)| at).collect();
        let file = |&at: &usize| poll::hung_up(self.connections[at].stream.as_fd());
        let mut files: Vec<_> = waiting.iter().map(file).collect();
        if poll::wait_any(&mut files, 0).is_err() {
            return false;
        }
        // A client that has only shut down its sending side still reads responses.
        let is_gone = |file: &libc::pollfd| file.revents & (libc::POLLHUP | libc::POLLERR) != 0;
        let gone = waiting.iter().zip(&files).filter(|(_, file)| is_gone(file));
        let gone: Vec<usize> = gone.map(|(&at, _)| at).collect();
        for &at in &gone {
            let connection = self.connections.remove(at);
            self.orphaned += connection.session.outstanding();
            self.has_heirs |= connection.session.requests() > 0;
        }
        !gone.is_empty()
    }

    /// Disconnects clients that have read no response for [`STALLED`] and use more than their guarantee; returns true if
    /// there were any.
    fn disconnect_stalled(&mut self, now: Instant) -> bool {
        let guaranteed = self.crowd().guaranteed;
        let stalled = |it: &Connection| it.stalled_at(guaranteed).is_some_and(|at| at <= now);
        let stalled: Vec<usize> =
            self.connections.iter().filter(|(_, it)| stalled(it)).map(|(at, _)| at).collect();
        for &at in &stalled {
            let connection = self.connections.remove(at);
            self.orphaned += connection.session.outstanding();
            self.failed.push_back(NbdError::Stalled(STALLED.as_secs()));
        }
        !stalled.is_empty()
    }

    /// Returns free memory to the system after a peak, because the allocator keeps it otherwise.
    fn return_memory(&mut self) {
        let kept = self.crowd().kept;
        self.peak = self.peak.max(kept);
        if self.peak >= TRIMMED && kept <= self.peak / 4 {
            self.peak = kept;
            // SAFETY: the call has no preconditions.
            #[cfg(target_env = "gnu")]
            unsafe {
                libc::malloc_trim(0)
            };
        }
    }

    /// Detects disconnected clients; returns true if any of them has left requests.
    fn note_the_gone(&mut self) -> bool {
        let crowd = self.crowd();
        if self.connections.len() < 2 {
            return self.connections.iter().any(|(_, it)| it.leaves(crowd));
        }
        let there = || self.connections.iter().filter(|(_, it)| !it.is_gone);
        let mut files: Vec<_> = there().map(|(_, it)| poll::hung_up(it.stream.as_fd())).collect();
        let places: Vec<usize> = there().map(|(at, _)| at).collect();
        // Without an event no client has disconnected.
        if poll::wait_any(&mut files, 0).is_err() {
            return false;
        }
        for (at, file) in places.into_iter().zip(files) {
            self.connections[at].is_gone |= file.revents != 0;
        }
        self.connections.iter().any(|(_, it)| it.leaves(crowd))
    }

    /// Returns true if a disconnected client has writes in flight, or unread input. These writes may be executed late after
    /// a path failure, but must be executed before later requests of other clients, as on a local disk.
    fn is_being_changed(&self) -> bool {
        // Input of clients that read no responses does not block others.
        let crowd = self.crowd();
        if self.connections.iter().any(|(_, it)| it.is_gone && crowd.takes(&it.session)) {
            return true;
        }
        self.under_way.iter().any(|(_, asked)| {
            let (at, number) = asked.connection;
            let connection = self.connections.get(at).filter(|it| it.number == number);
            let leaves = |it: &Connection| it.is_gone || it.session.has_ended();
            asked.operation.is_change() && connection.is_none_or(leaves)
        })
    }

    fn accept(&mut self, losses: u64) -> bool {
        let mut moved = false;
        while self.connections.len() < MOST {
            let stream = match &self.listener {
                Listener::Unix(listener, _) => {
                    listener.accept().map(|(stream, _)| Stream::Unix(stream))
                }
                Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            };
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // No descriptors are free: waiting clients are accepted later.
                Err(_) => {
                    self.lacks_files = true;
                    self.accept_at = clock::now() + WITHOUT_FILES;
                    break;
                }
            };
            if stream.prepare().is_err() {
                continue;
            }
            moved = true;
            self.last += 1;
            let session = Session::new(Arc::clone(&self.exports));
            let (number, deadline) = (self.last, clock::now() + PATIENCE);
            let (is_gone, has_ended) = (false, false);
            let (took_at, input_at) = (clock::now(), clock::now());
            let (has_turn, is_extra) = (false, false);
            let connection = Connection {
                number,
                is_gone,
                has_ended,
                deadline,
                losses,
                took_at,
                has_turn,
                input_at,
                is_extra,
                stream,
                session,
            };
            self.connections.insert(connection);
        }
        moved
    }

    /// Waits until the server may have work, another descriptor is readable, or a deadline has passed.
    ///
    /// # Errors
    /// Fails when the system does.
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

    /// Adds the descriptors to wait for; returns the latest time to call [`NbdServer::progress`] again.
    pub fn interests<'a>(&'a mut self, files: &mut Vec<Interest<'a>>) -> Instant {
        let mut until = Instant::NEVER;
        if self.lacks_files {
            until = self.accept_at;
        } else {
            // Connections that were polled are served afterwards.
            self.accept_at = Instant::ZERO;
            let accepts = (self.connections.len() < MOST).then_some(self.listener.as_fd());
            files.extend(accepts.map(Interest::to_read));
        }
        if self.lacks_memory {
            until = until.min(clock::now() + LOOK_FOR_GONE);
        }
        let crowd = self.crowd();
        let has_free_turns = self.turns() < FINISHING;
        for (_, connection) in &mut self.connections {
            if connection.session.is_choosing() {
                until = until.min(connection.deadline);
            }
            let is_choosing = connection.session.is_choosing();
            let takes = !self.is_held && (!self.has_heirs || connection.is_gone) || is_choosing;
            let needs_turn = !connection.has_turn && crowd.needs_turn(&connection.session);
            if needs_turn && !has_free_turns {
                until = until.min(clock::now() + TURN);
            }
            let may_read = connection.has_turn
                || crowd.lets_read(&connection.session)
                || needs_turn && has_free_turns;
            let takes = takes && !connection.has_ended && may_read;
            let reads = takes && connection.session.room().is_some();
            let writes = connection.session.unsent() > 0;
            if self.lacks_memory {
                until = until.min(connection.stalled_at(crowd.guaranteed).unwrap_or(until));
            }
            // The system repeatedly reports errors of a descriptor even if no events are requested.
            if reads || writes {
                files.push(Interest { file: connection.stream.as_fd(), reads, writes });
            }
        }
        until
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = &self.listener {
            // Another process may have removed it.
            std::fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests;
