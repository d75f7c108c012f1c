//! The client sockets of the ACM service. Each client program sends requests and receives replies over one
//! connection.
//!
//! A slow client does not block the others. Its input is left unread while too many of its requests are pending or too
//! many reply bytes are unsent. A client that sends a malformed request is disconnected.

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

/// Addresses on which the server listens, and the maximum number of its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// Path of a Unix socket, which is created with mode 0660.
    pub unix: Option<PathBuf>,
    /// TCP addresses.
    pub tcp: Vec<SocketAddr>,
    /// Maximum number of simultaneously connected clients; 0 counts as 1.
    pub max_clients: usize,
    /// True if the server also listens on the sockets that systemd has opened (`LISTEN_FDS`).
    pub is_socket_activated: bool,
}

/// How many clients the server has disconnected, for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectedClients {
    /// Number of clients that sent a malformed request.
    pub malformed: u64,
    /// Number of clients that connected while [`ServerOptions::max_clients`] others were connected.
    pub over_limit: u64,
}

/// Size of the read buffer, in bytes.
const READ_SIZE: usize = 64 * 1024;

/// If a client has at least this many unsent reply bytes, its input is left unread.
const MAX_UNSENT: usize = 256 * 1024;

/// If a client has at least this many pending requests, its input is left unread.
const MAX_PENDING: u32 = 1024;

/// Number of poll tokens that are reserved for listeners, beginning with token 0.
const MAX_LISTENERS: usize = 16;

/// Number of poll tokens that are reserved for files of [`Server::watch`]. They follow the tokens of the listeners.
const MAX_WATCHED: usize = 1024;

/// Poll token of the first client.
const FIRST_CLIENT: usize = MAX_LISTENERS + MAX_WATCHED;

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
    /// Received bytes that were not handled yet: whole requests of a throttled client, or the start of a request.
    input: Vec<u8>,
    /// Bytes of replies. The first `sent` of them were passed to the socket already.
    output: Vec<u8>,
    sent: usize,
    /// Number of requests that were passed to `handle` and wait for a reply through [`Server::reply`].
    pending: u32,
    /// True if the socket may have unread data; false after a read has found none.
    is_readable: bool,
    /// True if the last write found the socket's buffer full.
    is_write_blocked: bool,
    /// True if the client has shut down its sending side. It sends no more requests, but still receives replies.
    is_at_eof: bool,
}

impl Client {
    /// Returns true if `input` starts with a whole request, or with a header whose length is invalid.
    fn has_request(&self) -> bool {
        let Some(header) = self.input.first_chunk::<HEADER_LENGTH>() else { return false };
        // A header with an invalid length counts as a whole request, so that `handle_requests` rejects it.
        let length = ClientHeader::parse(header).length().map_or(0, |(length, _)| length);
        self.input.len() >= length
    }

    /// Returns true if the client has too many pending requests or unsent reply bytes. Then its input is left unread.
    fn is_throttled(&self) -> bool {
        self.pending >= MAX_PENDING || self.output.len() - self.sent >= MAX_UNSENT
    }

    /// Sends replies until the socket's buffer is full; returns false if the connection is broken.
    fn flush(&mut self) -> bool {
        while self.sent < self.output.len() && !self.is_write_blocked {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return false,
                Ok(length) => self.sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.is_write_blocked = true;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        if self.sent >= READ_SIZE {
            // Frees the sent bytes, so that the output of a client that never reads all replies does not grow without
            // limit.
            self.output.drain(..self.sent);
            self.sent = 0;
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
            if self.output.capacity() > READ_SIZE {
                self.output.shrink_to(READ_SIZE);
            }
        }
        true
    }
}

/// The listeners and client connections of the service.
pub struct Server {
    poll: Poll,
    events: Events,
    listeners: Vec<Listener>,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    client_count: usize,
    max_clients: usize,
    generation: u64,
    /// Indices in `clients` of the clients that may have input to read or replies to send.
    ready: BTreeSet<usize>,
    /// Indices of the listeners that may have connections to accept.
    ready_listeners: BTreeSet<usize>,
    buffer: Vec<u8>,
    rejected: RejectedClients,
    /// For each watched file: true if it became readable since the last call of [`Server::take_readable`] for it.
    watched: Vec<bool>,
    /// Path of the Unix socket that the server has created; the file is removed when the server is dropped.
    socket_file: Option<PathBuf>,
}

/// Error: the server cannot listen on an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {source}{hint}")]
pub struct ListenError {
    address: String,
    source: io::Error,
    hint: &'static str,
}

impl Server {
    /// Listens on all addresses in `options`.
    ///
    /// A Unix socket file on which no process accepts connections is replaced.
    ///
    /// # Errors
    /// Fails if a socket cannot be bound or polled.
    pub fn bind(options: &ServerOptions) -> Result<Self, ListenError> {
        let failed = |address: &str, hint| {
            let address = address.to_owned();
            move |source| ListenError { address, source, hint }
        };
        ib_os::poll::allow_files();
        let poll = Poll::new().map_err(failed("sockets", ""))?;
        let mut listeners = Vec::new();
        if options.is_socket_activated {
            listeners = inherited_listeners().map_err(failed("the sockets of LISTEN_FDS", ""))?;
        }
        let mut socket_file = None;
        if let Some(path) = &options.unix {
            let name = path.display().to_string();
            let hint = in_use_hint(path);
            let listener = bind_unix(path).map_err(failed(&name, hint))?;
            listeners.push(Listener::Unix(listener));
            socket_file = Some(path.clone());
        }
        for address in &options.tcp {
            let bound = TcpListener::bind(*address);
            let listener = bound.map_err(failed(&address.to_string(), ""))?;
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
            ready_listeners: (0..listeners.len()).collect(),
            listeners,
            clients: Vec::new(),
            free: Vec::new(),
            client_count: 0,
            max_clients: options.max_clients.max(1),
            generation: 0,
            ready: BTreeSet::new(),
            buffer: vec![0; READ_SIZE],
            rejected: RejectedClients::default(),
            watched: Vec::new(),
            socket_file,
        })
    }

    /// Makes [`Server::wait`] return when the given file becomes readable. Returns the index of the file for
    /// [`Server::take_readable`]. The file must remain open while the server exists.
    ///
    /// # Errors
    /// Fails if the file cannot be polled, or if 1024 files are watched already.
    pub fn watch(&mut self, file: &impl AsFd) -> io::Result<usize> {
        let number = self.watched.len();
        if number >= MAX_WATCHED {
            return Err(io::Error::other("1024 files are watched already, the maximum"));
        }
        let file = file.as_fd().as_raw_fd();
        let token = Token(MAX_LISTENERS + number);
        self.poll.registry().register(&mut SourceFd(&file), token, Interest::READABLE)?;
        self.watched.push(false);
        Ok(number)
    }

    /// Returns true if the watched file with this index has become readable since the last call for this file.
    pub fn take_readable(&mut self, index: usize) -> bool {
        std::mem::take(&mut self.watched[index])
    }

    /// Returns the TCP addresses on which the server listens.
    ///
    /// # Errors
    /// Fails if the system does not return the address of a listener.
    pub fn tcp_addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let tcp = self.listeners.iter().filter_map(|listener| match listener {
            Listener::Tcp(listener) => Some(listener.local_addr()),
            Listener::Unix(_) => None,
        });
        tcp.collect()
    }

    /// Returns true if the server has at least one listener.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Returns the path of the first Unix socket on which the server listens; `None` if it listens on none.
    #[must_use]
    pub fn unix_path(&self) -> Option<PathBuf> {
        self.listeners.iter().find_map(|listener| match listener {
            Listener::Unix(listener) => {
                listener.local_addr().ok()?.as_pathname().map(Path::to_owned)
            }
            Listener::Tcp(_) => None,
        })
    }

    /// Returns the number of connected clients.
    #[must_use]
    pub const fn client_count(&self) -> usize {
        self.client_count
    }

    /// Returns how many clients the server has disconnected, by reason.
    #[must_use]
    pub const fn rejected(&self) -> RejectedClients {
        self.rejected
    }

    /// Waits until a client connects, a client can be read from or written to, or a watched file is readable, but at
    /// most for `limit`. Returns at once if a client is ready already.
    ///
    /// # Errors
    /// Fails if polling fails.
    pub fn wait(&mut self, limit: Duration) -> io::Result<()> {
        let limit = if self.ready.is_empty() { limit } else { Duration::ZERO };
        match self.poll.poll(&mut self.events, Some(limit)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &self.events {
            let Token(token) = event.token();
            if token < MAX_LISTENERS {
                self.ready_listeners.insert(token);
            } else if let Some(watched) = self.watched.get_mut(token - MAX_LISTENERS) {
                *watched = true;
            } else if let Some(Some(client)) =
                token.checked_sub(FIRST_CLIENT).and_then(|slot| self.clients.get_mut(slot))
            {
                client.is_readable |=
                    event.is_readable() || event.is_read_closed() || event.is_error();
                client.is_write_blocked &= !event.is_writable();
                self.ready.insert(token - FIRST_CLIENT);
            }
        }
        Ok(())
    }

    /// Accepts connections, passes each request to `handle` and sends replies; returns true if there was any input.
    ///
    /// `handle` appends the reply to the buffer and returns true. If it returns false instead, the caller must later
    /// pass the reply to [`Server::reply`].
    pub fn serve(
        &mut self,
        mut handle: impl FnMut(ClientId, (&ClientHeader, &[u8], ByteOrder), &mut Vec<u8>) -> bool,
    ) -> bool {
        let mut progressed = false;
        for token in std::mem::take(&mut self.ready_listeners) {
            progressed |= self.accept(token);
        }
        for slot in std::mem::take(&mut self.ready) {
            progressed |= self.serve_client(slot, &mut handle);
        }
        progressed
    }

    fn accept(&mut self, token: usize) -> bool {
        let mut progressed = false;
        // At most 256 new connections are accepted before connected clients are served again.
        for _ in 0..256 {
            let accepted = match &self.listeners[token] {
                Listener::Unix(listener) => listener.accept().map(|(it, _)| Stream::Unix(it)),
                Listener::Tcp(listener) => listener.accept().map(|(it, _)| Stream::Tcp(it)),
            };
            let stream = match accepted {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return progressed,
                // For example, the process is out of file descriptors. The connection remains in the backlog, and the
                // next call of `serve` tries again.
                Err(_) => break,
            };
            progressed = true;
            self.admit(stream);
        }
        self.ready_listeners.insert(token);
        progressed
    }

    fn admit(&mut self, mut stream: Stream) {
        if self.client_count >= self.max_clients {
            self.rejected.over_limit += 1;
            return;
        }
        if let Stream::Tcp(stream) = &stream {
            // If TCP_NODELAY cannot be set, replies are only slower.
            let _ = stream.set_nodelay(true);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.clients.push(None);
            self.clients.len() - 1
        });
        let token = Token(FIRST_CLIENT + slot);
        let interest = Interest::READABLE | Interest::WRITABLE;
        if self.poll.registry().register(stream.source(), token, interest).is_err() {
            self.free.push(slot);
            return;
        }
        self.generation += 1;
        self.client_count += 1;
        self.clients[slot] = Some(Client {
            id: ClientId(self.generation << 24 | slot as u64),
            stream,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            pending: 0,
            is_readable: true,
            is_write_blocked: false,
            is_at_eof: false,
        });
        self.ready.insert(slot);
    }

    /// Reads once from a client, handles its requests and sends its replies; returns true if there was any input.
    fn serve_client(
        &mut self,
        slot: usize,
        handle: &mut impl FnMut(ClientId, (&ClientHeader, &[u8], ByteOrder), &mut Vec<u8>) -> bool,
    ) -> bool {
        let Some(Some(client)) = self.clients.get_mut(slot) else { return false };
        let mut progressed = false;
        let mut is_valid = true;
        if !client.is_throttled() && client.has_request() {
            // The input contains requests that were left unhandled while the client was throttled.
            progressed = true;
            is_valid = handle_requests(client, &[], handle);
        }
        if is_valid && client.is_readable && !client.is_throttled() && !client.is_at_eof {
            match client.stream.read(&mut self.buffer) {
                Ok(0) => client.is_at_eof = true,
                Ok(length) => {
                    progressed = true;
                    is_valid = handle_requests(client, &self.buffer[..length], handle);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    client.is_readable = false;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => is_valid = false,
            }
        }
        if !is_valid {
            self.rejected.malformed += u64::from(progressed);
        }
        let is_open = client.flush() && is_valid;
        let has_answers = client.pending > 0 || client.sent < client.output.len();
        let has_request = client.has_request();
        if !is_open || client.is_at_eof && !has_answers && !has_request {
            self.close(slot);
        } else if !client.is_throttled() && (client.is_readable && !client.is_at_eof || has_request)
        {
            self.ready.insert(slot);
        }
        progressed
    }

    fn close(&mut self, slot: usize) {
        if let Some(mut client) = self.clients[slot].take() {
            let _ = self.poll.registry().deregister(client.stream.source());
            self.client_count -= 1;
            self.free.push(slot);
        }
    }

    /// Queues a reply to a request for which `handle` of [`Server::serve`] returned false. Does nothing if the client
    /// has disconnected.
    pub fn reply(&mut self, id: ClientId, bytes: &[u8]) {
        let slot = (id.0 & 0xff_ffff) as usize;
        if let Some(Some(client)) = self.clients.get_mut(slot)
            && client.id == id
        {
            client.pending = client.pending.saturating_sub(1);
            client.output.extend_from_slice(bytes);
            self.ready.insert(slot);
        }
    }
}

/// Appends `bytes` to the client's unhandled input, and passes each whole request to `handle` until the client is
/// throttled. Returns false if a request has an invalid length.
fn handle_requests(
    client: &mut Client,
    bytes: &[u8],
    handle: &mut impl FnMut(ClientId, (&ClientHeader, &[u8], ByteOrder), &mut Vec<u8>) -> bool,
) -> bool {
    let mut kept = std::mem::take(&mut client.input);
    let whole = if kept.is_empty() {
        bytes
    } else {
        kept.extend_from_slice(bytes);
        &kept[..]
    };
    let mut rest = whole;
    let mut is_valid = true;
    while let Some(header) = rest.first_chunk() {
        let header = ClientHeader::parse(header);
        let Ok((length, order)) = header.length() else {
            is_valid = false;
            break;
        };
        let Some(request) = rest.get(..length) else { break };
        if client.is_throttled() {
            break;
        }
        if !handle(client.id, (&header, &request[HEADER_LENGTH..], order), &mut client.output) {
            client.pending += 1;
        }
        rest = &rest[length..];
    }
    client.input = rest.to_vec();
    is_valid
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(file) = &self.socket_file {
            // A failure is ignored, because another process may have removed the socket file.
            let _ = fs::remove_file(file);
        }
    }
}

/// Returns an addition to an error message, if another process accepts connections on this Unix socket; otherwise an
/// empty text.
fn in_use_hint(path: &Path) -> &'static str {
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => "; another service listens there",
        Err(_) => "",
    }
}

/// Listens on a Unix socket with mode 0660. An old socket file on which no process accepts connections is removed
/// first.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    let bound = match std::os::unix::net::UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            let is_socket = {
                use std::os::unix::fs::FileTypeExt;
                fs::symlink_metadata(path).is_ok_and(|it| it.file_type().is_socket())
            };
            let is_stale = is_socket && std::os::unix::net::UnixStream::connect(path).is_err();
            if !is_stale {
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

/// Returns the listening sockets that systemd has opened, as `sd_listen_fds(3)` finds them.
fn inherited_listeners() -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for file in ib_os::daemon::inherited_sockets(MAX_LISTENERS - 4) {
        // `ibacm.socket` also passes a netlink socket, which is skipped: only the kernel's SA client sends requests
        // there.
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
        f.debug_struct("Server").field("poll", &poll).field("clients", &self.client_count).finish()
    }
}

#[cfg(test)]
mod tests;
