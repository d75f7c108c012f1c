//! Lines of text over a private Unix socket: one line asks, one line answers.
//!
//! The socket has the abstract name `NAME:console`. Only processes of the same user, or of root, are
//! listened to.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

/// The longest line that is taken.
const LONGEST: usize = 64 * 1024;
/// How many consoles may be open at once.
const MOST: usize = 64;

fn name(base: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{base}:console"))
}

/// The side that answers.
pub struct ConsoleServer {
    listener: UnixListener,
    connections: BTreeMap<usize, Connection>,
    next: usize,
}

struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    lines: VecDeque<String>,
}

impl ConsoleServer {
    /// Opens the socket of a name.
    ///
    /// # Errors
    /// Fails when the name is in use.
    pub fn bind(base: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&name(base)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: BTreeMap::new(), next: 1 })
    }

    /// Takes new connections; returns the keys of those to be watched with [`ConsoleServer::file`].
    pub fn accept(&mut self) -> Vec<usize> {
        let mut new = Vec::new();
        while let Ok((stream, _)) = self.listener.accept() {
            let welcome = is_own_user(&stream)
                && self.connections.len() < MOST
                && stream.set_nonblocking(true).is_ok();
            if !welcome {
                continue;
            }
            let connection = Connection { stream, received: Vec::new(), lines: VecDeque::new() };
            self.connections.insert(self.next, connection);
            new.push(self.next);
            self.next += 1;
        }
        new
    }

    /// Returns the file of a connection.
    #[must_use]
    pub fn file(&self, key: usize) -> Option<BorrowedFd<'_>> {
        self.connections.get(&key).map(|connection| connection.stream.as_fd())
    }

    /// Reads what a connection has sent; returns its lines, and whether it has ended.
    pub fn read(&mut self, key: usize) -> (Vec<String>, bool) {
        let Some(connection) = self.connections.get_mut(&key) else { return (Vec::new(), true) };
        let mut bytes = [0; 4096];
        let ended = loop {
            match connection.stream.read(&mut bytes) {
                Ok(0) => break true,
                Ok(length) => connection.received.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break true,
            }
            if connection.received.len() > LONGEST {
                break true;
            }
        };
        while let Some(end) = connection.received.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = connection.received.drain(..=end).collect();
            connection.lines.push_back(String::from_utf8_lossy(&line[..end]).into_owned());
        }
        (connection.lines.drain(..).collect(), ended)
    }

    /// Answers with one line. A console that does not read its answers is closed.
    ///
    /// # Errors
    /// Fails when the console has gone or does not read.
    pub fn answer(&mut self, key: usize, line: &str) -> io::Result<()> {
        let connection = self.connections.get_mut(&key).ok_or(io::ErrorKind::NotConnected)?;
        // An answer may be longer than what the socket holds; the other side is reading it.
        connection.stream.set_nonblocking(false)?;
        connection.stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        let result = connection
            .stream
            .write_all(line.as_bytes())
            .and_then(|()| connection.stream.write_all(b"\n"));
        connection.stream.set_nonblocking(true)?;
        result
    }

    /// Closes a connection.
    pub fn close(&mut self, key: usize) {
        self.connections.remove(&key);
    }
}

impl AsFd for ConsoleServer {
    /// Returns the file that can be read when somebody wants to connect.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// Tells whether the process at the other end belongs to this process's user, or to root.
fn is_own_user(stream: &UnixStream) -> bool {
    let mut credentials = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option's value is a live `ucred` of the length given.
    let result = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    // SAFETY: the call only returns a number.
    result == 0 && (credentials.uid == unsafe { libc::geteuid() } || credentials.uid == 0)
}

/// The side that asks.
pub struct ConsoleClient {
    stream: BufReader<UnixStream>,
}

impl ConsoleClient {
    /// Connects to the socket of a name.
    ///
    /// # Errors
    /// Fails when nobody listens there.
    pub fn connect(base: &str) -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&name(base)?)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends a line and returns the line that answers it.
    ///
    /// # Errors
    /// Fails when the other side has gone.
    pub fn ask(&mut self, line: &str) -> io::Result<String> {
        let stream = self.stream.get_mut();
        stream.write_all(line.replace(['\n', '\r'], " ").as_bytes())?;
        stream.write_all(b"\n")?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        answer.truncate(answer.trim_end_matches('\n').len());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;
