//! A stream socket with deadlines.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::ServiceAddress;

/// A connection to a service.
#[derive(Debug)]
pub(super) enum Stream {
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    Tcp(TcpStream),
}

/// Evaluates an expression for the TCP socket or the Unix domain socket of a [`Stream`].
macro_rules! either {
    ($stream:expr, $name:ident => $work:expr) => {
        match $stream {
            #[cfg(unix)]
            Stream::Unix($name) => $work,
            Stream::Tcp($name) => $work,
        }
    };
}

impl Stream {
    /// Connects to a service. The timeout applies to each address of the host.
    pub(super) fn connect(service: &ServiceAddress, timeout: Duration) -> io::Result<Self> {
        match service {
            #[cfg(unix)]
            ServiceAddress::Unix(path) => {
                let stream = connect_local(path, timeout)?;
                check_service(&stream)?;
                Ok(Self::Unix(stream))
            }
            ServiceAddress::Tcp { host, port } => {
                let mut last = None;
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = Some(error),
                    }
                }
                let none = || io::Error::new(io::ErrorKind::NotFound, "the host has no address");
                Err(last.unwrap_or_else(none))
            }
        }
    }

    /// Writes all bytes, with one system call unless the system accepts only a part of the bytes.
    pub(super) fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            either!(self, stream => stream.set_write_timeout(Some(left(deadline)?)))?;
            match either!(self, stream => stream.write(bytes)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) => again(error)?,
            }
        }
        Ok(())
    }

    /// Waits for bytes and returns their number; 0 at the end of the stream.
    pub(super) fn read(&mut self, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
        loop {
            either!(self, stream => stream.set_read_timeout(Some(left(deadline)?)))?;
            match either!(self, stream => stream.read(buffer)) {
                Ok(read) => return Ok(read),
                Err(error) => again(error)?,
            }
        }
    }
}

/// Returns the time until a deadline. Fails if the deadline has passed.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// Returns `Ok` after an interruption or a timeout, so that the caller repeats the system call. Returns other errors.
fn again(error: io::Error) -> io::Result<()> {
    match error.kind() {
        // If the socket timeout expires, the system reports `WouldBlock` or `TimedOut`. The caller checks the deadline.
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Ok(()),
        _ => Err(error),
    }
}

/// Checks that the process that serves a socket belongs to this process's user or to root.
///
/// # Errors
/// Fails with [`io::ErrorKind::PermissionDenied`] if another user serves the socket.
#[cfg(unix)]
pub(super) fn check_service(socket: impl std::os::fd::AsFd) -> io::Result<()> {
    let found = rustix::net::sockopt::socket_peercred(socket)?.uid;
    let own = rustix::process::geteuid();
    if found.is_root() || found == own {
        return Ok(());
    }
    let (found, own) = (found.as_raw(), own.as_raw());
    let message = format!("user {found} serves the socket: expected user {own} or root");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Connects to a Unix domain socket. If the backlog of the listener is full, the system blocks the call until the send
/// timeout of the connecting socket expires.
#[cfg(unix)]
fn connect_local(
    path: &std::path::Path,
    timeout: Duration,
) -> io::Result<std::os::unix::net::UnixStream> {
    use rustix::net::{self, sockopt};

    let socket = net::socket(net::AddressFamily::UNIX, net::SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    // A timeout of 0 would mean no limit.
    let timeout = timeout.max(Duration::from_millis(1));
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(timeout))?;
    let address = net::SocketAddrUnix::new(path)?;
    let deadline = Instant::now() + timeout;
    loop {
        match net::connect(&socket, &address) {
            Ok(()) => return Ok(socket.into()),
            Err(rustix::io::Errno::INTR) if Instant::now() < deadline => {}
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error.into()),
        }
    }
}
