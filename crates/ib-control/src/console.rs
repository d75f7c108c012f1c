//! Lines of text over a private Unix socket: one line asks, one line answers.
//!
//! The socket has the abstract name `NAME:console`, or a path in the file system. Both ends serve and
//! call only processes of the same user or of root.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use ib_os::poll;
use ib_os::unix;

mod later;

pub use later::Serving;

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
    refused: u64,
}

struct Connection {
    stream: UnixStream,
    received: Vec<u8>,
    /// What the other side has not taken yet of its last answer.
    unsent: VecDeque<u8>,
}

/// What [`ConsoleServer::next_line`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A line that is to be answered.
    Line(String),
    /// Nothing for now: the line is not whole, or the answer to the last one is not taken yet.
    Nothing,
    /// The other side has left or sent what is no line; the connection is to be closed.
    Ended,
}

impl ConsoleServer {
    /// Opens the socket of a name.
    ///
    /// # Errors
    /// Fails when the name is in use.
    pub fn bind(base: &str) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&name(base)?)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, connections: BTreeMap::new(), next: 1, refused: 0 })
    }

    /// Opens a socket in the file system, of the owner only, also where one was left behind.
    ///
    /// # Errors
    /// Fails when somebody listens there, something else is there, or the directory takes no socket.
    pub fn bind_at(path: &Path) -> io::Result<Self> {
        let listener = unix::listen(path, 0o600)?;
        Ok(Self { listener, connections: BTreeMap::new(), next: 1, refused: 0 })
    }

    /// Takes new connections; returns the keys of those to be watched with [`ConsoleServer::file`].
    /// Further clients get a refusal and are disconnected.
    pub fn accept(&mut self) -> Vec<usize> {
        let mut new = Vec::new();
        while let Ok((mut stream, _)) = self.listener.accept() {
            if !unix::is_own_user(&stream) || stream.set_nonblocking(true).is_err() {
                self.refused += 1;
                continue;
            }
            if self.connections.len() >= MOST {
                self.refused += 1;
                // Whoever does not take even this learns it from the closed connection.
                let why = format!("too many control connections: {MOST} are open, the maximum");
                let _ = stream.write_all(refusal(&why).as_bytes());
                continue;
            }
            let connection = Connection { stream, received: Vec::new(), unsent: VecDeque::new() };
            self.connections.insert(self.next, connection);
            new.push(self.next);
            self.next += 1;
        }
        new
    }

    /// Returns the file of a connection. It is to be watched for both directions.
    #[must_use]
    pub fn file(&self, key: usize) -> Option<BorrowedFd<'_>> {
        self.connections.get(&key).map(|connection| connection.stream.as_fd())
    }

    /// Returns how many connections and lines were refused.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the next line of a connection whose file is ready; to be asked until it says
    /// otherwise. A console whose answer is not taken yet gets no other one.
    pub fn next_line(&mut self, key: usize) -> Asked {
        let Some(connection) = self.connections.get_mut(&key) else { return Asked::Ended };
        if connection.push().is_err() {
            return Asked::Ended;
        }
        if !connection.unsent.is_empty() {
            return Asked::Nothing;
        }
        loop {
            if let Some(end) = connection.received.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = connection.received.drain(..=end).collect();
                return Asked::Line(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if connection.received.len() > LONGEST {
                self.refused += 1;
                connection.unsent.extend(refusal("the line is too long").bytes());
                // What it does not take at once it never gets.
                let _ = connection.push();
                return Asked::Ended;
            }
            let mut bytes = [0; 4096];
            match connection.stream.read(&mut bytes) {
                Ok(0) => return Asked::Ended,
                Ok(length) => connection.received.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Asked::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Asked::Ended,
            }
        }
    }

    /// Answers with one line. What the console does not take at once it gets when it reads on.
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

    /// Answers in a thread of its own for as long as the process lives.
    ///
    /// # Errors
    /// Fails when the system makes no further thread.
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

    /// Waits for consoles and answers what they ask.
    fn round(&mut self, answer: &mut dyn FnMut(&str) -> String) {
        let mut files = vec![poll::watched(self.listener.as_fd(), false)];
        let mut keys = Vec::new();
        for (&key, connection) in &self.connections {
            keys.push(key);
            // One that does not take its answer is not read from.
            let mut file = poll::watched(connection.stream.as_fd(), true);
            file.events = if connection.unsent.is_empty() { libc::POLLIN } else { libc::POLLOUT };
            files.push(file);
        }
        if poll::wait_any(&mut files, -1).is_err() {
            // Out of memory for the moment.
            std::thread::sleep(Duration::from_millis(100));
            return;
        }
        if files[0].revents != 0 {
            self.accept();
        }
        let ready = keys.into_iter().zip(&files[1..]).filter(|(_, file)| file.revents != 0);
        for (key, _) in ready {
            loop {
                match self.next_line(key) {
                    Asked::Line(line) => {
                        let line = answer(&line);
                        self.answer(key, &line);
                    }
                    Asked::Nothing => break,
                    Asked::Ended => {
                        self.close(key);
                        break;
                    }
                }
            }
        }
    }
}

impl Connection {
    /// Sends what is left of an answer, as far as the other side takes it.
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

/// Returns the line that tells a console that it is not listened to, as answers tell it.
fn refusal(why: &str) -> String {
    format!("{{\"ok\":false,\"text\":\"{why}\",\"data\":null}}\n")
}

impl AsFd for ConsoleServer {
    /// Returns the file that can be read when somebody wants to connect.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// The side that asks.
pub struct ConsoleClient {
    stream: BufReader<UnixStream>,
}

impl ConsoleClient {
    /// Connects to the socket of a name.
    ///
    /// # Errors
    /// Fails if no process listens there, or one of another user than the own and root.
    pub fn connect(base: &str) -> io::Result<Self> {
        let stream = UnixStream::connect_addr(&name(base)?)?;
        unix::check_server(&stream)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Connects to a socket in the file system.
    ///
    /// # Errors
    /// Fails if no process listens there, or one of another user than the own and root.
    pub fn connect_at(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        unix::check_server(&stream)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Has [`ConsoleClient::ask`] wait for an answer so long at most; indefinitely without this.
    ///
    /// # Errors
    /// Fails when that is no time at all.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))
    }

    /// Sends a line and returns the line that answers it.
    ///
    /// # Errors
    /// Fails when the other side has gone, or does not answer in time; then nothing more can be asked.
    pub fn ask(&mut self, line: &str) -> io::Result<String> {
        let line = line.replace(['\n', '\r'], " ") + "\n";
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        if let Err(error) = &sent
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        {
            return sent.map(|()| String::new());
        }
        let mut answer = String::new();
        // A server that has disconnected may have sent a refusal before.
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
