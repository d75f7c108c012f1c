//! The control protocol of all daemons: newline-delimited JSON over a private Unix socket.
//!
//! Each request is one line, and each [`Reply`] is one line. The socket has the abstract name `NAME:console`, or a path
//! in the file system. Client and server accept only processes of the same user or of root.
//!
//! | module | holds |
//! |---|---|
//! | `reply` | [`Reply`] |
//! | `queued` | control sockets whose requests an event loop answers |

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use ib_os::poll;
use ib_os::unix;
use serde::Serialize;

mod queued;
mod reply;

pub use queued::ServedSocket;
pub use reply::Reply;

/// Maximum length of a request in bytes.
const LONGEST: usize = 64 * 1024;
/// Maximum number of simultaneous connections.
const MOST: usize = 64;

fn name(base: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{base}:console"))
}

/// The server of a control socket.
pub struct LineServer {
    listener: UnixListener,
    connections: BTreeMap<usize, Connection>,
    next: usize,
    refused: u64,
    /// True if the last connection could not be accepted, because the process has no free descriptors.
    has_failed: bool,
}

struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    /// Bytes of replies that the socket has not accepted yet.
    unsent: VecDeque<u8>,
}

/// Result of [`LineServer::next_line`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// A request.
    Line(String),
    /// No line is available: the next line is incomplete, or the client has not read the last reply yet.
    Pending,
    /// The client has disconnected or has sent too long a line; the caller must close the connection.
    Closed,
}

impl LineServer {
    /// Listens on the abstract socket of the given name.
    ///
    /// # Errors
    /// Fails if another process listens on this name.
    pub fn bind(base: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&name(base)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: BTreeMap::new(), next: 1, refused: 0, has_failed: false })
    }

    /// Listens on a socket in the file system that only its owner can open. Replaces an old socket at this path on
    /// which no process listens.
    ///
    /// # Errors
    /// Fails if another process listens at this path, if a file that is not a socket exists there, or if the directory
    /// is not writable.
    pub fn bind_at(path: &Path) -> io::Result<Self> {
        let listener = unix::listen(path, 0o600)?;
        Ok(Self { listener, connections: BTreeMap::new(), next: 1, refused: 0, has_failed: false })
    }

    /// Accepts new connections and returns their keys. The caller polls their sockets ([`LineServer::file`]). If there
    /// are too many clients, a new one gets a refusal and is disconnected.
    pub fn accept(&mut self) -> Vec<usize> {
        let mut new = Vec::new();
        loop {
            let (mut stream, _) = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.has_failed = error.kind() != io::ErrorKind::WouldBlock;
                    return new;
                }
            };
            if !unix::is_own_user(&stream) || stream.set_nonblocking(true).is_err() {
                self.refused += 1;
                continue;
            }
            if self.connections.len() >= MOST {
                self.refused += 1;
                // If the write fails, the client only sees that the connection is closed.
                let why = format!("too many control connections: {MOST} are open, the maximum");
                let _ = stream.write_all(refusal(&why).as_bytes());
                continue;
            }
            let connection = Connection { stream, received: Vec::new(), unsent: VecDeque::new() };
            self.connections.insert(self.next, connection);
            new.push(self.next);
            self.next += 1;
        }
    }

    /// Returns the socket of a connection. The caller polls it for reading and for writing.
    #[must_use]
    pub fn file(&self, key: usize) -> Option<BorrowedFd<'_>> {
        self.connections.get(&key).map(|connection| connection.stream.as_fd())
    }

    /// Returns how many connections and requests were refused.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the next request of a connection whose socket is ready. The caller repeats the call until it returns no
    /// line. While a client has not read its last reply, its next request is left unread.
    pub fn next_line(&mut self, key: usize) -> Received {
        let Some(connection) = self.connections.get_mut(&key) else { return Received::Closed };
        if connection.push().is_err() {
            return Received::Closed;
        }
        if !connection.unsent.is_empty() {
            return Received::Pending;
        }
        loop {
            if let Some(end) = connection.received.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = connection.received.drain(..=end).collect();
                return Received::Line(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if connection.received.len() > LONGEST {
                self.refused += 1;
                connection.unsent.extend(refusal("the line is too long").bytes());
                // The connection is closed even if the refusal could not be sent.
                let _ = connection.push();
                return Received::Closed;
            }
            let mut bytes = [0; 4096];
            match connection.stream.read(&mut bytes) {
                Ok(0) => return Received::Closed,
                Ok(length) => connection.received.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Received::Pending;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Received::Closed,
            }
        }
    }

    /// Queues a reply, which is sent as fast as the client reads.
    pub fn answer(&mut self, key: usize, line: &str) {
        if let Some(connection) = self.connections.get_mut(&key) {
            connection.unsent.extend(line.bytes());
            connection.unsent.push_back(b'\n');
        }
    }

    /// Closes a connection.
    pub fn close(&mut self, key: usize) {
        self.connections.remove(&key);
    }

    /// Serves all connections in a new thread until the process exits. `answer` returns the reply to a line.
    ///
    /// # Errors
    /// Fails if no thread can be created.
    pub fn serve(
        mut self,
        mut answer: impl FnMut(&str) -> String + Send + 'static,
    ) -> io::Result<()> {
        let serve = move || {
            loop {
                self.round(&mut answer);
            }
        };
        std::thread::Builder::new().name("console".to_owned()).spawn(serve).map(drop)
    }

    /// Waits until clients connect or send requests, and replies to the requests that have arrived by then.
    fn round(&mut self, answer: &mut dyn FnMut(&str) -> String) {
        let mut files = vec![poll::watched(self.listener.as_fd(), false)];
        let mut keys = Vec::new();
        for (&key, connection) in &self.connections {
            keys.push(key);
            // While a client does not read its reply, its requests are left unread.
            let mut file = poll::watched(connection.stream.as_fd(), true);
            file.events = if connection.unsent.is_empty() { libc::POLLIN } else { libc::POLLOUT };
            files.push(file);
        }
        if poll::wait_any(&mut files, -1).is_err() {
            // Polling fails while the system is out of memory, so the thread waits and tries again.
            std::thread::sleep(Duration::from_millis(100));
            return;
        }
        if files[0].revents != 0 {
            self.accept();
            if self.has_failed {
                // The process has no free descriptors, so the listening socket remains readable.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        let ready = keys.into_iter().zip(&files[1..]).filter(|(_, file)| file.revents != 0);
        for (key, _) in ready {
            loop {
                match self.next_line(key) {
                    Received::Line(line) => {
                        let line = answer(&line);
                        self.answer(key, &line);
                    }
                    Received::Pending => break,
                    Received::Closed => {
                        self.close(key);
                        break;
                    }
                }
            }
        }
    }
}

impl Connection {
    /// Sends as much of the last reply as fits the socket's buffer.
    fn push(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(self.unsent.as_slices().0) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns the reply line that refuses a connection or request.
fn refusal(reason: &str) -> String {
    Reply::failed(reason).to_line() + "\n"
}

impl AsFd for LineServer {
    /// Returns the listening socket, which is readable when a client connects.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A client of a control socket.
pub struct LineClient {
    stream: BufReader<UnixStream>,
}

impl LineClient {
    /// Connects to the abstract socket of the given name.
    ///
    /// # Errors
    /// Fails if no process listens on the socket, or if the process belongs neither to the client's user nor to root.
    pub fn connect(base: &str) -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&name(base)?)?;
        unix::check_server(&stream)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Connects to a socket in the file system.
    ///
    /// # Errors
    /// Fails if no process listens on the socket, or if the process belongs neither to the client's user nor to root.
    pub fn connect_at(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        unix::check_server(&stream)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Limits how long sending and receiving in [`LineClient::request`] may take. By default the time is unlimited.
    ///
    /// # Errors
    /// Fails if the limit is zero.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))
    }

    /// Sends a request and returns its reply.
    ///
    /// # Errors
    /// Fails if the server has disconnected, does not reply in time or sends a malformed reply. The connection is then
    /// unusable.
    pub fn request(&mut self, request: &impl Serialize) -> io::Result<Reply> {
        let line = serde_json::to_string(request)?;
        let reply = self.exchange(&line)?;
        serde_json::from_str(&reply)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    /// Sends a line and returns the reply line.
    fn exchange(&mut self, line: &str) -> io::Result<String> {
        let line = format!("{line}\n");
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        if let Err(error) = &sent
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            return sent.map(|()| String::new());
        }
        let mut answer = String::new();
        // The client reads even if it could not send: the server may have sent a refusal before it closed the
        // connection.
        let received = self.stream.read_line(&mut answer);
        if !answer.ends_with('\n') {
            sent?;
            if received? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        answer.truncate(answer.trim_end_matches('\n').len());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;
