//! Waits for file descriptors: `poll(2)` and `ppoll(2)`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

/// Waits until a file is readable (if `writable` is true, until it is readable or writable) or until the given number
/// of milliseconds has passed. A signal ends the wait early.
pub fn wait(file: BorrowedFd<'_>, writable: bool, milliseconds: i32) -> io::Result<()> {
    wait_any(&mut [watched(file, writable)], milliseconds)
}

/// Waits until one of several files is ready or the given number of milliseconds has passed. [`watched`] returns the
/// entry for a file.
pub fn wait_any(files: &mut [libc::pollfd], milliseconds: i32) -> io::Result<()> {
    let count = files.len() as libc::nfds_t;
    // SAFETY: the call reads and writes the live structures that it is given.
    if unsafe { libc::poll(files.as_mut_ptr(), count, milliseconds) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// Waits until one of several files is ready. The time limit has a resolution of nanoseconds.
pub fn wait_any_for(files: &mut [libc::pollfd], limit: Duration) -> io::Result<()> {
    let limit = libc::timespec {
        tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    let count = files.len() as libc::nfds_t;
    // SAFETY: the call reads the live time limit, and reads and writes the live structures that it is given. It gets no
    // signal mask.
    let result =
        unsafe { libc::ppoll(files.as_mut_ptr(), count, &raw const limit, std::ptr::null()) };
    if result < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

/// Returns a `pollfd` with which [`wait_any`] waits for a file to become readable or, if `writable` is true, also
/// writable.
pub fn watched(file: BorrowedFd<'_>, writable: bool) -> libc::pollfd {
    let events = libc::POLLIN | if writable { libc::POLLOUT } else { 0 };
    libc::pollfd { fd: file.as_raw_fd(), events, revents: 0 }
}

/// Returns a `pollfd` with which [`wait_any`] waits until the peer of a socket has disconnected.
pub fn hung_up(file: BorrowedFd<'_>) -> libc::pollfd {
    libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 }
}

/// A file descriptor and the directions for which to wait.
#[derive(Clone, Copy, Debug)]
pub struct Interest<'f> {
    /// The descriptor.
    pub file: BorrowedFd<'f>,
    /// True if the wait ends when the file descriptor is readable.
    pub reads: bool,
    /// True if the wait ends when the file descriptor is writable.
    pub writes: bool,
}

impl<'f> Interest<'f> {
    /// Returns an interest that ends the wait only when the file is readable.
    #[must_use]
    pub const fn to_read(file: BorrowedFd<'f>) -> Self {
        Self { file, reads: true, writes: false }
    }

    /// Returns the `pollfd` for [`wait_any`]. Even if `reads` and `writes` are false, an error ends the wait.
    pub fn watched(&self) -> libc::pollfd {
        let reads = if self.reads { libc::POLLIN } else { 0 };
        let writes = if self.writes { libc::POLLOUT } else { 0 };
        libc::pollfd { fd: self.file.as_raw_fd(), events: reads | writes, revents: 0 }
    }
}

/// Raises the soft limit of file descriptors to the hard limit, at most to 65,536; returns the soft limit.
pub fn allow_files() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call writes the live structure that it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return usize::MAX;
    }
    // 65,536 descriptors suffice, because no server of this project has more clients.
    let most = limit.rlim_max.min(1 << 16);
    if limit.rlim_cur < most {
        let raised = libc::rlimit { rlim_cur: most, ..limit };
        // SAFETY: the call reads the live structure that it is given.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            limit = raised;
        }
    }
    usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX).min(1 << 16)
}
