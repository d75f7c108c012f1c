//! A device for programs, over NBD: a socket of the system, its connections, and a device of a server behind them, in one
//! thread.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ib_block::{Command, Errno, Operation, ReadData};
use ib_nbd::{Export, NbdError, RequestToken, Session};
use ib_types::Instant;
use slab::Slab;

use crate::rtrs::RemoteDisk;
use ib_os::clock;
use ib_os::poll::{self, Interest};
use ib_os::sockopt;

mod crowd;
mod gather;

use crowd::{Crowd, FINISHING};

/// Where programs connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A socket in the file system, of the owner and the group.
    Unix(PathBuf),
    /// A port of TCP, on loopback.
    Tcp(SocketAddr),
}

/// Why programs cannot connect.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Nobody is authenticated, so nobody from outside may come.
    #[error("{0}: programs connect over loopback only")]
    NotLoopback(SocketAddr),
    /// Somebody listens there, or something else is there.
    #[error("{}: {error}", path.display())]
    Unix {
        /// The socket.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The port cannot be had.
    #[error("{address}: {error}")]
    Tcp {
        /// The port.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
}

/// The most connections at once.
const MOST: usize = 256;

/// The memory budget of all programs, in bytes. With the input buffers (32 MiB), the guarantees of single programs (a
/// quarter of it), and the few requests of up to 32 MiB beyond, it is less than 1 GiB.
const MOST_KEPT: usize = 576 << 20;

/// The time after which a program that takes no answer is disconnected if others wait for memory.
const STALLED: Duration = Duration::from_secs(30);

/// The time between two looks for programs that have gone while they wait for memory.
const LOOK_FOR_GONE: Duration = Duration::from_secs(1);

/// The least memory, in bytes, of which free parts are returned to the system once most of it is free.
const TRIMMED: usize = 64 << 20;

/// So much is read of a connection, and no more than there is room for then, before another one is looked at, in bytes.
const ROUND: usize = 256 << 10;

/// How much that was sent may wait to be taken by a program, in bytes: whole answers of the usual lengths, so that neither end
/// is woken for parts of one.
const ROOM: usize = 512 << 10;

/// How often it is looked whether programs want to connect while there is always something else to do.
const ACCEPT_EVERY: Duration = Duration::from_millis(1);

/// When it is looked again whether there are files for a program that wants to connect.
const WITHOUT_FILES: Duration = Duration::from_millis(100);

/// How long a program may take to choose a device.
const PATIENCE: Duration = Duration::from_secs(30);

/// What stands behind the device that programs see.
pub trait Backing {
    /// Asks for something to be done with it; with the data of a write.
    fn submit(&mut self, user: u64, command: Command, data: &[u8]);

    /// Returns something that has ended: the user's number, and how.
    fn poll(&mut self) -> Option<(u64, Errno)>;

    /// Takes what the read has read that [`Backing::poll`] has told last.
    fn take_data(&mut self) -> ReadData;

    /// Takes back what was taken and is not needed any more.
    fn give_back(&mut self, data: ReadData);

    /// Returns how often something may have been lost that was not flushed.
    fn losses(&self) -> u64;
}

/// The server of programs.
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
    /// Whether a program that has gone may have changes in flight.
    has_heirs: bool,
    /// When it is looked next whether programs want to connect.
    accept_at: Instant,
    /// Whether there were no more files for one that wanted to.
    lacks_files: bool,
    /// Whether somebody else has the device.
    is_held: bool,
    /// [`MOST_KEPT`], but in tests.
    most_kept: usize,
    /// The memory of outstanding requests of disconnected programs, in bytes.
    orphaned: usize,
    /// The most memory that programs had since free memory was returned to the system.
    peak: usize,
    /// True if a program waits for memory.
    lacks_memory: bool,
}

/// The device while somebody else has it.
struct Nothing;

impl Backing for Nothing {
    fn submit(&mut self, _: u64, command: Command, _: &[u8]) {
        unreachable!("{command:?} is not taken while the device is somebody else's");
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

/// A request that the device does.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Of which connection, by place and number.
    connection: (usize, u64),
    token: RequestToken,
    operation: Operation,
    /// The length of its data in bytes.
    held: usize,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    /// Whether the program has gone: what it has sent may not be read yet.
    is_gone: bool,
    /// Whether all was read that it has sent.
    has_ended: bool,
    /// Until when the program has to have chosen a device.
    deadline: Instant,
    /// How often something may have been lost that was not flushed, as far as the program was told.
    losses: u64,
    /// Time of the last answer that the program took, or when it had none to take.
    took_at: Instant,
    /// True if its outstanding request exceeds the budget and its guarantee.
    is_extra: bool,
    stream: Stream,
    session: Session,
}

#[derive(Debug)]
enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

#[derive(Debug)]
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl NbdServer {
    /// Listens for programs, which are offered some devices, at least one.
    ///
    /// # Errors
    /// Fails when the place is taken, cannot be had, or is open to others.
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

    /// Returns the port, where it is one of TCP.
    #[must_use]
    pub fn port(&self) -> Option<SocketAddr> {
        match &self.listener {
            Listener::Unix(..) => None,
            Listener::Tcp(listener) => listener.local_addr().ok(),
        }
    }

    /// Returns how many programs are connected.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether nothing is in flight, not even for a program that has gone, and nobody is there who might ask.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.under_way.is_empty()
    }

    /// Moves what can be moved while somebody else has the device, who took it when it was idle
    /// ([`NbdServer::is_idle`]): programs connect and choose, and what they ask for waits. Returns whether there was anything.
    pub fn progress_without(&mut self) -> bool {
        self.is_held = true;
        self.move_on(&mut Nothing)
    }

    /// Returns the oldest error that ended a connection and was not returned yet.
    pub fn poll_failed(&mut self) -> Option<NbdError> {
        self.failed.pop_front()
    }

    /// Moves what can be moved between programs and a device; returns whether there was anything.
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
            // Whoever has gone is told nothing. Each of the others is told of a loss, not only who flushes first.
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
        // Whoever asks for something because a program has gone does so after it has gone: so what they ask for is read first,
        // and then it is looked who has gone, before any of it is done.
        let mut over = Vec::new();
        let mut has_read = false;
        let mut crowd = self.crowd();
        // Some of those that wait with half a request are let finish it: else all of them could.
        let mut finishing = FINISHING;
        for (at, connection) in &mut self.connections {
            let reads = !self.is_held && (!self.has_heirs || connection.is_gone);
            let reads = reads && crowd.lets_read(&connection.session, &mut finishing);
            let before = connection.session.kept();
            match connection.read(reads) {
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
            // Of one that has gone itself the rest is taken.
            if !self.is_held && (!self.has_heirs || connection.is_gone) {
                loop {
                    let session = &mut connection.session;
                    let before = session.kept();
                    // The data of a write is there already.
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
                if connection.has_ended
                    && connection.session.takes()
                    && !crowd.holds_up(&connection.session)
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
        // What they had may be for others now.
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

    /// Returns the memory that all programs have and may have.
    fn crowd(&self) -> Crowd {
        let kept: usize = self.connections.iter().map(|(_, it)| it.session.kept()).sum();
        Crowd::new(kept + self.orphaned, self.most_kept, self.connections.len())
    }

    /// Returns the number of programs with a request that exceeds the budget and their guarantee.
    fn extras(&mut self) -> usize {
        let mut count = 0;
        for (_, it) in &mut self.connections {
            it.is_extra &= it.session.requests() > 0 || it.session.unsent() > 0;
            count += usize::from(it.is_extra);
        }
        count
    }

    /// Disconnects programs that have gone while they waited for memory: none of them can take an answer. Returns true if
    /// there were any.
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
        // A program that only sends no more still takes answers.
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

    /// Disconnects programs that have taken no answer for [`STALLED`] and have more than their guarantee; returns true if there
    /// were any.
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

    /// Returns free memory to the system once programs have much less than they had: the allocator keeps it otherwise.
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

    /// Finds out which programs have gone; returns whether there are any that have left something.
    fn note_the_gone(&mut self) -> bool {
        let crowd = self.crowd();
        if self.connections.len() < 2 {
            return self.connections.iter().any(|(_, it)| it.leaves(crowd));
        }
        let there = || self.connections.iter().filter(|(_, it)| !it.is_gone);
        let mut files: Vec<_> = there().map(|(_, it)| poll::hung_up(it.stream.as_fd())).collect();
        let places: Vec<usize> = there().map(|(at, _)| at).collect();
        // Without news nobody has gone.
        if poll::wait_any(&mut files, 0).is_err() {
            return false;
        }
        for (at, file) in places.into_iter().zip(files) {
            self.connections[at].is_gone |= file.revents != 0;
        }
        self.connections.iter().any(|(_, it)| it.leaves(crowd))
    }

    /// Returns whether a program that has gone has changes in flight, or has sent more. They may be done late, when a path
    /// has failed; a disk of this machine would do them before anything that others ask for afterwards.
    fn is_being_changed(&self) -> bool {
        // Who takes no answers does not hold up others with what it may have sent.
        let crowd = self.crowd();
        if self.connections.iter().any(|(_, it)| it.is_gone && crowd.takes(&it.session)) {
            return true;
        }
        let changes = |it: &Asked| !matches!(it.operation, Operation::Read | Operation::Flush);
        self.under_way.iter().any(|(_, asked)| {
            let (at, number) = asked.connection;
            let connection = self.connections.get(at).filter(|it| it.number == number);
            let leaves = |it: &Connection| it.is_gone || it.session.has_ended();
            changes(asked) && connection.is_none_or(leaves)
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
                // There are no more files: whoever waits is accepted later.
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
            let (took_at, is_extra) = (clock::now(), false);
            let connection = Connection {
                number,
                is_gone,
                has_ended,
                deadline,
                losses,
                took_at,
                is_extra,
                stream,
                session,
            };
            self.connections.insert(connection);
        }
        moved
    }

    /// Waits until there may be something to do, some other file can be read, or a moment comes.
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
            // What is waited for is looked at afterwards.
            self.accept_at = Instant::ZERO;
            let accepts = (self.connections.len() < MOST).then_some(self.listener.as_fd());
            files.extend(accepts.map(Interest::to_read));
        }
        if self.lacks_memory {
            until = until.min(clock::now() + LOOK_FOR_GONE);
        }
        let crowd = self.crowd();
        let mut finishing = FINISHING;
        for (_, connection) in &mut self.connections {
            if connection.session.is_choosing() {
                until = until.min(connection.deadline);
            }
            let is_choosing = connection.session.is_choosing();
            let takes = !self.is_held && (!self.has_heirs || connection.is_gone) || is_choosing;
            let takes = takes
                && !connection.has_ended
                && crowd.lets_read(&connection.session, &mut finishing);
            let reads = takes && connection.session.room().is_some();
            let writes = connection.session.unsent() > 0;
            if self.lacks_memory {
                until = until.min(connection.stalled_at(crowd.guaranteed).unwrap_or(until));
            }
            // Of a file nothing is wanted of the system tells nevertheless that it has broken, again and again.
            if reads || writes {
                files.push(Interest { file: connection.stream.as_fd(), reads, writes });
            }
        }
        until
    }
}

impl Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = &self.listener {
            // It may have been removed by somebody else.
            std::fs::remove_file(path).ok();
        }
    }
}

impl Connection {
    /// Reads what the program has sent, as far as there is room for it; what is more than the choice of a device only where
    /// that is wanted. Returns whether there was anything.
    fn read(&mut self, is_wanted: bool) -> io::Result<bool> {
        let mut length = 0;
        while length < ROUND && !self.has_ended && (is_wanted || self.session.is_choosing()) {
            let Some(room) = self.session.room() else { break };
            match self.stream.read(room) {
                Ok(0) => {
                    (self.is_gone, self.has_ended) = (true, true);
                    return Ok(true);
                }
                Ok(read) => {
                    self.session.handle(read);
                    length += read;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length > 0)
    }

    /// Returns whether the program has gone and has something in flight, or may have asked for more.
    fn leaves(&self, crowd: Crowd) -> bool {
        self.is_gone && (self.session.requests() > 0 || crowd.takes(&self.session))
    }

    /// Returns the time at which the program is disconnected if others wait for memory.
    fn stalled_at(&self, guaranteed: usize) -> Option<Instant> {
        let holds = self.session.unsent() > 0 && self.session.kept() > guaranteed;
        holds.then_some(self.took_at + STALLED)
    }

    /// Sends what waits; returns whether there was anything that could be sent.
    fn send(&mut self, now: Instant) -> io::Result<bool> {
        let mut moved = false;
        if self.session.unsent() == 0 {
            self.took_at = now;
        }
        while self.session.unsent() > 0 {
            match gather::send(self.stream.as_fd(), self.session.output()) {
                Ok(length) => {
                    self.session.sent(length);
                    (moved, self.took_at) = (true, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(moved)
    }
}

impl Stream {
    fn prepare(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_nonblocking(true)?;
                // With less it works as well. What TCP has grows by itself, unless it is set.
                sockopt::buffer(self.as_fd(), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, ROOM)).ok();
            }
            Self::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(room),
            Self::Tcp(stream) => stream.read(room),
        }
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(stream) => stream.as_fd(),
            Self::Tcp(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests;
