//! Periodic timer: `timerfd_create(2)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A periodic timer: a file descriptor that becomes readable once in each period.
///
/// An event loop that polls this file descriptor can wait without a time limit, which is cheaper than a time limit for
/// each wait.
pub struct Tick(OwnedFd);

impl Tick {
    /// Starts a timer.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
    pub fn every(period: Duration) -> io::Result<Self> {
        // SAFETY: the call takes only numbers.
        let file = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the file was just created and has no other owner.
        let file = unsafe { OwnedFd::from_raw_fd(file) };
        let period = libc::timespec {
            tv_sec: period.as_secs() as libc::time_t,
            tv_nsec: period.subsec_nanos().into(),
        };
        let setting = libc::itimerspec { it_interval: period, it_value: period };
        // SAFETY: the call reads the live structure that it is given, and writes nothing.
        let result = unsafe {
            libc::timerfd_settime(file.as_raw_fd(), 0, &raw const setting, std::ptr::null_mut())
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(Self(file)) }
    }

    /// Makes the file descriptor unreadable until the next period ends.
    pub fn take(&self) {
        let mut ticks = 0u64;
        // SAFETY: the call writes at most eight bytes into the live number. If no period has ended, it fails, which is
        // not an error here.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut ticks).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Tick {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
