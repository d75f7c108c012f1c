//! Daemons: detaching from the terminal, and notifications to the service manager.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status that [`status_of`] returns if a signal has killed the child, or if the child's status is unknown.
const KILLED: u8 = 2;

/// Identifies the process in which [`detach`] has returned.
#[derive(Debug)]
pub enum Detached {
    /// The calling process. The value is its exit status: 0 if the background process has started, or else the exit
    /// status of the background process.
    Caller(u8),
    /// The background process. Its standard files are still those of the calling process.
    Background(Starting),
}

/// A background process that is starting. The calling process waits until the background process has started or exited.
#[derive(Debug)]
pub struct Starting(UnixStream);

/// Forks a background process in a new session. The calling process waits until the background process calls
/// [`Starting::finish`]. The working directory is unchanged, so that relative paths remain valid.
///
/// The process must call this function before it starts its first thread and opens its first device.
///
/// # Errors
/// Fails if the system cannot create a process.
pub fn detach() -> io::Result<Detached> {
    let (mut reader, writer) = UnixStream::pair()?;
    // SAFETY: the call has no arguments. The process has no other threads yet, so the child inherits no lock that it
    // could never release.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child > 0 {
        drop(writer);
        let has_started = reader.read_exact(&mut [0]).is_ok();
        return Ok(Detached::Caller(if has_started { 0 } else { status_of(child) }));
    }
    drop(reader);
    // SAFETY: the call has no arguments. It cannot fail in a process that was just forked.
    unsafe { libc::setsid() };
    Ok(Detached::Background(Starting(writer)))
}

/// Closes all inherited descriptors except standard input, output and error. Thus, a daemon does not hold open the
/// files of the program that started it.
///
/// The process must call this function before it opens its first descriptor. On systems without `close_range(2)`
/// (Linux 5.9), the descriptors remain open.
pub fn close_inherited_files() {
    // SAFETY: the caller guarantees that no Rust object owns one of these descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
}

/// Waits until a child process exits; returns its exit status.
fn status_of(child: libc::pid_t) -> u8 {
    let mut status = 0;
    loop {
        // SAFETY: the call writes the status to a live variable of the right type.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if waited == child && libc::WIFEXITED(status) {
            return libc::WEXITSTATUS(status) as u8;
        }
        let again = waited < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if !again {
            return KILLED;
        }
    }
}

impl Starting {
    /// Replaces the standard files of the background process by `/dev/null`, and standard error by `log` if there is a
    /// log. Then reports the successful start to the calling process.
    ///
    /// # Errors
    /// Fails if the standard files cannot be replaced.
    pub fn finish(mut self, log: Option<&File>) -> io::Result<()> {
        let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
        for (standard, file) in [(0, &null), (1, &null), (2, log.unwrap_or(&null))] {
            // SAFETY: the call takes only file descriptors, and no Rust object owns the standard ones.
            if unsafe { libc::dup2(file.as_raw_fd(), standard) } < 0 {
                return Err(io::Error::last_os_error());
            }
        }
        // An error is ignored: it means that the calling process, which waits for this byte, was killed.
        let _ = self.0.write_all(&[1]);
        Ok(())
    }
}

/// Sends a notification such as `READY=1` to the service manager, as sd_notify(3) does.
///
/// Returns false if there is no service manager to notify.
///
/// # Errors
/// Fails if the message cannot be sent to the socket that `NOTIFY_SOCKET` names.
pub fn notify(state: &str) -> io::Result<bool> {
    match std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) {
        None => Ok(false),
        Some(path) => send_message(path.as_bytes(), state).map(|()| true),
    }
}

/// Sends a message to the socket at `path`. If the path begins with `@`, the rest is an abstract name.
fn send_message(path: &[u8], state: &str) -> io::Result<()> {
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// Returns the sockets that the service manager has opened for this process, as sd_listen_fds(3) does. Returns at most
/// `limit` sockets. A second call returns an empty list.
#[must_use]
pub fn inherited_sockets(limit: usize) -> Vec<OwnedFd> {
    static ARE_TAKEN: AtomicBool = AtomicBool::new(false);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<i32>().ok());
    let is_own = number("LISTEN_PID") == Some(std::process::id() as i32);
    if !is_own || ARE_TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).clamp(0, limit as i32);
    // SAFETY: the service manager passes these descriptors to this process, and only one call takes ownership of them.
    (3..3 + count).map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect()
}

#[cfg(test)]
mod tests;
