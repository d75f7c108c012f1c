//! Periodic timer: `timerfd_create(2)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A file descriptor that is readable once in every period.
///
/// Including it in a wait without a time limit is cheaper than a time limit for each wait.
pub struct Tick(OwnedFd);

impl Tick {
    /// Starts a timer.
    ///
    /// # Errors
    /// Fails if the system has no more file descriptors.
    pub fn every(period: Duration) -> io::Result<Self> {
        // SAFETY: the call takes no memory.
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

    /// Resets the timer's file descriptor until the next tick.
    pub fn take(&self) {
        let mut ticks = 0u64;
        // SAFETY: the call writes up to eight bytes into the live number. It fails if there was no tick, which is no error
        // here.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut ticks).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Tick {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
