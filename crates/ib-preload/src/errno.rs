//! Error numbers of the C library.

/// An error number, as failed calls store it in `errno`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const INVALID: Self = Self(libc::EINVAL);
    pub(crate) const AGAIN: Self = Self(libc::EAGAIN);
    pub(crate) const NO_SPACE: Self = Self(libc::ENOSPC);
    pub(crate) const NO_MEMORY: Self = Self(libc::ENOMEM);
    pub(crate) const IO: Self = Self(libc::EIO);
    pub(crate) const FAULT: Self = Self(libc::EFAULT);
    pub(crate) const NOT_TTY: Self = Self(libc::ENOTTY);
    pub(crate) const NOT_SUPPORTED: Self = Self(libc::EOPNOTSUPP);
    pub(crate) const BUSY: Self = Self(libc::EBUSY);
    pub(crate) const NO_DEVICE: Self = Self(libc::ENODEV);
    pub(crate) const NO_ENTRY: Self = Self(libc::ENOENT);
    pub(crate) const NO_SYSTEM_CALL: Self = Self(libc::ENOSYS);

    /// Returns the value of `errno`, which the last failed C library call of this thread has set.
    pub(crate) fn last() -> Self {
        Self(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
    }

    /// Stores the error number in `errno`.
    pub(crate) fn store(self) {
        // SAFETY: the address is that of this thread's `errno`, which always exists.
        unsafe { *libc::__errno_location() = self.0 };
    }
}
