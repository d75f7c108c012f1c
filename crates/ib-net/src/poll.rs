//! Waits for one file: `poll(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Waits until a file can be read or, when asked for, written, at most so many milliseconds. A
/// signal ends the wait early.
pub(crate) fn wait(file: BorrowedFd<'_>, writable: bool, milliseconds: i32) -> io::Result<()> {
    let events = libc::POLLIN | if writable { libc::POLLOUT } else { 0 };
    let mut polled = libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 };
    // SAFETY: the call reads and writes the one live structure that it is told of.
    if unsafe { libc::poll(&raw mut polled, 1, milliseconds) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}
