//! The sockets of a service of IB ACM: programs of the machine, each with a stream of requests and answers.
//!
//! A program that takes its answers slowly, sends half a request or none at all keeps nobody else waiting: it is read
//! from no further while too many of its answers wait, and one that sends what cannot be a request is closed.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_acm::ClientId;
use ib_wire::acm::{ByteOrder, ClientHeader, HEADER_LENGTH};
use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

/// Where a service listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// The path of a Unix socket, which is for its owner and group.
    pub unix: Option<PathBuf>,
    /// Addresses of TCP.
    pub tcp: Vec<SocketAddr>,
    /// The most programs at a time.
    pub most_clients: usize,
    /// Whether sockets are taken that a service manager has opened (`LISTEN_FDS`).
    pub inherited: bool,
}

/// What was not taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rejected {
    /// Programs that have sent what cannot be a request.
    pub malformed: u64,
    /// Programs beyond the most.
    pub crowded: u64,
}

/// The largest piece that is read from a program at a time.
const PIECE: usize = 64 * 1024;

/// How many bytes of answers may wait for a program until no more is read from it.
const MOST_UNSENT: usize = 256 * 1024;

/// How many requests of a program may wait for their answers until no more is read from it.
const MOST_WAITING: u32 = 1024;

/// Tokens of listeners, and of what else is watched; those of programs follow.
const LISTENERS: usize = 16;
const WATCHED: usize = 1024;
const FIRST: usize = LISTENERS + WATCHED;

enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Unix(stream) => stream,
            Self::Tcp(stream) => stream,
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
}

struct Client {
    id: ClientId,
    stream: Stream,
    /// What is not a whole request yet.
    input: Vec<u8>,
    /// Answers, and how much of them is sent.
    output: Vec<u8>,
    sent: usize,
    /// How many requests wait.
    waiting: u32,
    /// Whether there may be more to be read.
    readable: bool,
    /// Whether the stream has taken no more.
    blocked: bool,
    /// Whether nothing more will come, so that only the answers are left.
    ended: bool,
}

impl Client {
    /// Whether what has come holds something that can be taken.
    fn has_request(&self) -> bool {
        let Some(header) = self.input.first_chunk::<HEADER_LENGTH>() else { return false };
        // One without a sound length is taken, too: as nonsense.
        let length = ClientHeader::parse(header).length().map_or(0, |(length, _)| length);
        self.input.len() >= length
    }

    fn is_held(&self) -> bool {
        self.waiting >= MOST_WAITING || self.output.len() - self.sent >= MOST_UNSENT
    }

    /// Sends what it can; false when the program is gone.
    fn flush(&mut self) -> bool {
        while self.sent < self.output.len() && !self.blocked {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return false,
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        if self.sent >= PIECE {
            // Whoever is always behind keeps no more than that.
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
            if self.output.capacity() > PIECE {
                self.output.shrink_to(PIECE);
            }
        }
        true
    }
}

/// The sockets of a service.
pub struct Server {
    poll: Poll,
    events: Events,
    listeners: Vec<Listener>,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    count: usize,
    most: usize,
    generation: u64,
    /// Programs that may have said something.
    ready: BTreeSet<usize>,
    /// Listeners at which somebody may wait.
    calling: BTreeSet<usize>,
    buffer: Vec<u8>,
    rejected: Rejected,
    /// Whether watched files have become readable.
    watched: Vec<bool>,
    /// A socket's file, which goes with the service.
    file: Option<PathBuf>,
}

/// Why a service cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("listening on {place}: {source}{hint}")]
pub struct ListenError {
    place: String,
    source: io::Error,
    hint: &'static str,
}

impl Server {
    /// Listens.
    ///
    /// A file that an ended service has left is replaced; one of a running service is not.
    ///
    /// # Errors
    /// Fails when a socket cannot be had.
    pub fn bind(options: &ServerOptions) -> Result<Self, ListenError> {
        let failed = |place: &str, hint| {
            let place = place.to_owned();
            move |source| ListenError { place, source, hint }
        };
        ib_os::poll::allow_files();
        let poll = Poll::new().map_err(failed("sockets", ""))?;
        let mut listeners = Vec::new();
        if options.inherited {
            listeners = inherited().map_err(failed("the sockets of the service manager", ""))?;
        }
        let mut file = None;
        if let Some(path) = &options.unix {
            let place = path.display().to_string();
            let hint = in_use(path);
            let listener = bind_unix(path).map_err(failed(&place, hint))?;
            listeners.push(Listener::Unix(listener));
            file = Some(path.clone());
        }
        for address in &options.tcp {
            let place = address.to_string();
            let listener = TcpListener::bind(*address).map_err(failed(&place, ""))?;
            listeners.push(Listener::Tcp(listener));
        }
        for (token, listener) in listeners.iter_mut().enumerate() {
            let source: &mut dyn Source = match listener {
                Listener::Unix(listener) => listener,
                Listener::Tcp(listener) => listener,
            };
            let registered = poll.registry().register(source, Token(token), Interest::READABLE);
            registered.map_err(failed("sockets", ""))?;
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            calling: (0..listeners.len()).collect(),
            listeners,
            clients: Vec::new(),
            free: Vec::new(),
            count: 0,
            most: options.most_clients.max(1),
            generation: 0,
            ready: BTreeSet::new(),
            buffer: vec![0; PIECE],
            rejected: Rejected::default(),
            watched: Vec::new(),
            file,
        })
    }

    /// Has [`Server::wait`] end when a file can be read that could not be before; returns what [`Server::rang`] knows it
    /// by. The file has to stay open as long as the server.
    ///
    /// # Errors
    /// Fails when the system cannot watch it, or there are 1024 already.
    pub fn watch(&mut self, file: &impl AsFd) -> io::Result<usize> {
        let number = self.watched.len();
        if number >= WATCHED {
            return Err(io::Error::other("1024 files are watched already"));
        }
        let file = file.as_fd().as_raw_fd();
        let token = Token(LISTENERS + number);
        self.poll.registry().register(&mut SourceFd(&file), token, Interest::READABLE)?;
        self.watched.push(false);
        Ok(number)
    }

    /// Returns whether a watched file has become readable since it was asked last.
    pub fn rang(&mut self, number: usize) -> bool {
        std::mem::take(&mut self.watched[number])
    }

    /// Returns the addresses of TCP that are listened on.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn tcp(&self) -> io::Result<Vec<SocketAddr>> {
        let tcp = self.listeners.iter().filter_map(|listener| match listener {
            Listener::Tcp(listener) => Some(listener.local_addr()),
            Listener::Unix(_) => None,
        });
        tcp.collect()
    }

    /// Returns whether there is a socket that programs can call at.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Returns the path of the first Unix socket that is listened on.
    #[must_use]
    pub fn unix(&self) -> Option<PathBuf> {
        self.listeners.iter().find_map(|listener| match listener {
            Listener::Unix(listener) => {
                listener.local_addr().ok()?.as_pathname().map(Path::to_owned)
            }
            Listener::Tcp(_) => None,
        })
    }

    /// Returns how many programs are connected.
    #[must_use]
    pub const fn clients(&self) -> usize {
        self.count
    }

    /// Returns what was not taken.
    #[must_use]
    pub const fn rejected(&self) -> Rejected {
        self.rejected
    }

    /// Waits until a program says something or takes what it is sent, so long at most.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let limit = if self.ready.is_empty() { limit } else { Duration::ZERO };
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &self.events {
            let Token(token) = event.token();
            if token < LISTENERS {
                self.calling.insert(token);
            } else if let Some(watched) = self.watched.get_mut(token - LISTENERS) {
                *watched = true;
            } else if let Some(Some(client)) =
                token.checked_sub(FIRST).and_then(|slot| self.clients.get_mut(slot))
            {
                client.readable |=
                    event.is_readable() || event.is_read_closed() || event.is_error();
                client.blocked &= !event.is_writable();
                self.ready.insert(token - FIRST);
            }
        }
        Ok(())
    }

    /// Takes what programs have said: `take` is handed each request, writes its answer to the end of the buffer and
    /// returns true, or false where the answer comes later ([`Server::reply`]). Returns whether there was anything.
    pub fn serve(
        &mut self,
        mut take: impl FnMut(ClientId, (&ClientHeader, &[u8], ByteOrder), &mut Vec<u8>) -> bool,
    ) -> bool {
        let mut moved = false;
        for token in std::mem::take(&mut self.calling) {
            moved |= self.accept(token);
        }
        for slot in std::mem::take(&mut self.ready) {
            moved |= self.turn(slot, &mut take);
        }
        moved
    }

    fn accept(&mut self, token: usize) -> bool {
        let mut moved = false;
        // The others have their turn before all who call are let in.
        for _ in 0..256 {
            let accepted = match &self.listeners[token] {
                Listener::Unix(listener) => listener.accept().map(|(it, _)| Stream::Unix(it)),
                Listener::Tcp(listener) => listener.accept().map(|(it, _)| Stream::Tcp(it)),
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return moved,
                // Out of files: those who call wait until somebody has left.
                Err(_) => break,
            };
            moved = true;
            self.admit(stream);
        }
        self.calling.insert(token);
        moved
    }

    fn admit(&mut self, mut stream: Stream) {
        if self.count >= self.most {
            self.rejected.crowded += 1;
            return;
        }
        if let Stream::Tcp(stream) = &stream {
            // An answer that leaves late is better than none.
            let _ = stream.set_nodelay(true);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.clients.push(None);
            self.clients.len() - 1
        });
        let token = Token(FIRST + slot);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(stream.source(), token, interest).is_err() {
            self.free.push(slot);
            return;
        }
        self.generation += 1;
        self.count += 1;
        self.clients[slot] = Some(Client {
            id: ClientId(self.generation << 24 | slot as u64),
            stream,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            waiting: 0,
            readable: true,
            blocked: false,
            ended: false,
        });
        self.ready.insert(slot);
    }

    /// Gives a program its turn: what it has said is taken, its answers are sent.
    fn turn(
        &mut self,
        slot: usize,
        take: &mut impl FnMut(ClientId, (&ClientHeader, &[u8], ByteOrder), &mut Vec<u8>) -> bool,
    ) -> bool {
        let Some(Some(client)) = self.clients.get_mut(slot) else { return false };
        let mut moved = false;
        let mut is_sound = true;
        if !client.is_held() && client.has_request() {
            // It was held in the middle of what had come.
            moved = true;
            is_sound = take_requests(client, &[], take);
        }
        if is_sound && client.readable && !client.is_held() && !client.ended {
            match client.stream.read(&mut self.buffer) {
                Ok(0) => client.ended = true,
                Ok(length) => {
                    moved = true;
                    is_sound = take_requests(client, &self.buffer[..length], take);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => client.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => is_sound = false,
            }
        }
        if !is_sound {
            self.rejected.malformed += u64::from(moved);
        }
        let is_there = client.flush() && is_sound;
        let has_answers = client.waiting > 0 || client.sent < client.output.len();
        let has_request = client.has_request();
        if !is_there || client.ended && !has_answers && !has_request {
            self.close(slot);
        } else if !client.is_held() && (client.readable && !client.ended || has_request) {
            self.ready.insert(slot);
        }
        moved
    }

    fn close(&mut self, slot: usize) {
        if let Some(mut client) = self.clients[slot].take() {
            let _ = self.poll.registry().deregister(client.stream.source());
            self.count -= 1;
            self.free.push(slot);
        }
    }

    /// Sends an answer that has come late. That of a program that is gone goes nowhere.
    pub fn reply(&mut self, id: ClientId, bytes: &[u8]) {
        let slot = (id.0 & 0xff_ffff) as usize;
        if let Some(Some(client)) = self.clients.get_mut(slot)
            && client.id == id
        {
            client.waiting = client.waiting.saturating_sub(1);
            client.output.extend_from_slice(bytes);
            self.ready.insert(slot);
        }
    }
}

/// Takes the requests in what a program has sent; false when it sends none.
fn take_requests(
    client: &mut Client,
    bytes: &[u8],
    take: &mut impl FnMut(ClientId, (&ClientHeader, &[u8], ByteOrder), &mut Vec<u8>) -> bool,
) -> bool {
    let mut kept = std::mem::take(&mut client.input);
    let whole = if kept.is_empty() {
        bytes
    } else {
        kept.extend_from_slice(bytes);
        &kept[..]
    };
    let mut rest = whole;
    let mut is_sound = true;
    while let Some(header) = rest.first_chunk() {
        let header = ClientHeader::parse(header);
        let Ok((length, order)) = header.length() else {
            is_sound = false;
            break;
        };
        let Some(request) = rest.get(..length) else { break };
        if client.is_held() {
            break;
        }
        if !take(client.id, (&header, &request[HEADER_LENGTH..], order), &mut client.output) {
            client.waiting += 1;
        }
        rest = &rest[length..];
    }
    client.input = rest.to_vec();
    is_sound
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // It may have been taken away.
            let _ = fs::remove_file(file);
        }
    }
}

/// Returns what may help whoever cannot have a socket's file.
fn in_use(path: &Path) -> &'static str {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => "; a service answers there already",
        Err(_) => "",
    }
}

/// Listens on a Unix socket of its owner and group.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let bound = match std::os::unix::net::UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = {
                use std::os::unix::fs::FileTypeExt;
                fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
            };
            let is_left = is_socket && std::os::unix::net::UnixStream::connect(path).is_err();
            if !is_left {
                return Err(error);
            }
            fs::remove_file(path)?;
            std::os::unix::net::UnixListener::bind(path)?
        }
        bound => bound?,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(0o660))?;
    bound.set_nonblocking(true)?;
    Ok(UnixListener::from_std(bound))
}

/// Returns the sockets that a service manager has opened: `sd_listen_fds(3)`.
fn inherited() -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for file in ib_os::daemon::inherited_sockets(LISTENERS - 4) {
        // A socket of netlink, which ibacm.socket has too, cannot be served without the kernel's help.
        let address = rustix::net::getsockname(&file).map_err(io::Error::from)?;
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::CLOEXEC)?;
        match address.address_family() {
            rustix::net::AddressFamily::UNIX => {
                let listener = std::os::unix::net::UnixListener::from(file);
                listener.set_nonblocking(true)?;
                listeners.push(Listener::Unix(UnixListener::from_std(listener)));
            }
            rustix::net::AddressFamily::INET | rustix::net::AddressFamily::INET6 => {
                let listener = std::net::TcpListener::from(file);
                listener.set_nonblocking(true)?;
                listeners.push(Listener::Tcp(TcpListener::from_std(listener)));
            }
            _ => {}
        }
    }
    Ok(listeners)
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let poll = self.poll.as_raw_fd();
        f.debug_struct("Server").field("poll", &poll).field("clients", &self.count).finish()
    }
}

#[cfg(test)]
mod tests;
