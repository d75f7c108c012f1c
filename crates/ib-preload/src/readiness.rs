//! Descriptors of the program that are readable while an event waits: those of an `eventfd(2)`.

use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use crate::descriptors;
use crate::errno::Errno;

/// The library's own descriptor of the program's event file.
pub(crate) struct Readiness(OwnedFd);

impl Readiness {
    /// Opens an event file with the flags `O_CLOEXEC` and `O_NONBLOCK` of `flags`. Returns the library's descriptor
    /// and the program's.
    ///
    /// # Errors
    /// Fails if the process cannot open another descriptor.
    pub(crate) fn open(flags: i32) -> Result<(Self, OwnedFd), Errno> {
        // The flags of `eventfd` have the same values as those of `open`.
        let flags = flags & (libc::O_CLOEXEC | libc::O_NONBLOCK);
        // SAFETY: the call takes numbers only.
        let descriptor = unsafe { libc::eventfd(0, flags) };
        if descriptor < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let own = descriptors::duplicate(descriptor.as_fd())?;
        Ok((Self(own), descriptor))
    }

    /// Returns the number of the library's own descriptor.
    pub(crate) fn descriptor(&self) -> i32 {
        self.0.as_raw_fd()
    }

    /// Makes the descriptor readable. Each call writes to the eventfd, so that edge-triggered `epoll` reports each
    /// event.
    pub(crate) fn raise(&self) {
        let one = 1_u64;
        // SAFETY: the call reads eight live bytes. It cannot block: the counter of the eventfd is
        // far from its maximum.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes the descriptor unreadable.
    pub(crate) fn lower(&self) {
        let mut polled = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the call reads and writes one live structure.
        let is_raised = unsafe { libc::poll(&raw mut polled, 1, 0) } == 1;
        if is_raised {
            let mut count = 0_u64;
            // SAFETY: `read` fills eight live bytes. `read` does not block: the counter is above zero, and only this
            // function reads the counter, while its caller holds the lock of the device's state.
            unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
    }
}
