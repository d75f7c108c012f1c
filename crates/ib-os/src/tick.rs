//! A timer that ticks: `timerfd_create(2)`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A file that can be read once in every period.
///
/// Who waits for files without a limit and has this one among them is spared to set a timer of the
/// system's again with every wait.
pub struct Tick(OwnedFd);

impl Tick {
    /// Starts a timer.
    ///
    /// # Errors
    /// Fails when the system has no more files.
    pub fn every(period: Duration) -> io::Result<Self> {
        // SAFETY: the call takes no memory.
        let file = unsafe {
            libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC)
        };
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the file was just made and is nobody else's.
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

    /// Takes the ticks that were, so that the file can be read only after the next one.
    pub fn take(&self) {
        let mut ticks = 0u64;
        // SAFETY: the call writes up to eight bytes into the live number. It fails when there was
        // no tick, which is as good.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut ticks).cast(), size_of::<u64>()) };
    }
}

impl AsFd for Tick {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
