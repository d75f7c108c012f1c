//! Life in the background: leaving the terminal, and telling the service manager how it goes.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Goes on in the background: as a child of init, without terminal, standard input and output. The
/// working directory stays, so that relative paths mean what they meant.
///
/// To be called before the first thread is started and the first device is opened.
///
/// # Errors
/// Fails when the system makes no further process.
pub fn detach() -> io::Result<()> {
    // SAFETY: the call takes numbers only; the caller has no other threads yet.
    if unsafe { libc::daemon(1, 0) } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Tells the service manager something, such as `READY=1`, when it wants to know: sd_notify(3).
///
/// Returns whether somebody was told.
///
/// # Errors
/// Fails when the socket that the environment names takes no message.
pub fn notify(state: &str) -> io::Result<bool> {
    match std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) {
        None => Ok(false),
        Some(path) => tell(path.as_bytes(), state).map(|()| true),
    }
}

/// Sends a message to a socket with a path, or with an abstract name behind an `@`.
fn tell(path: &[u8], state: &str) -> io::Result<()> {
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests;
