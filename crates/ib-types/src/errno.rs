//! Error numbers that RTRS and RNBD carry. They are Linux's numbers on every operating system.

use std::fmt;

/// A Linux error number; 0 means success. RTRS carries numbers up to 511.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub u16);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)+) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Self = Self($value);)+

            /// Returns the name, such as `"ENOENT"`; `None` if this type has no constant for the number.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    /// No error.
    OK = 0,
    /// Operation not permitted.
    EPERM = 1,
    /// No such file or directory.
    ENOENT = 2,
    /// Input/output error.
    EIO = 5,
    /// No such device or address.
    ENXIO = 6,
    /// Out of memory.
    ENOMEM = 12,
    /// Permission denied.
    EACCES = 13,
    /// Device or resource busy.
    EBUSY = 16,
    /// File exists.
    EEXIST = 17,
    /// No such device.
    ENODEV = 19,
    /// Not a directory.
    ENOTDIR = 20,
    /// Is a directory.
    EISDIR = 21,
    /// Invalid argument.
    EINVAL = 22,
    /// No space left on device.
    ENOSPC = 28,
    /// Read-only file system.
    EROFS = 30,
    /// Operation not supported.
    EOPNOTSUPP = 95,
    /// Network is down.
    ENETDOWN = 100,
    /// Connection aborted.
    ECONNABORTED = 103,
    /// Connection reset by peer.
    ECONNRESET = 104,
    /// Not connected.
    ENOTCONN = 107,
    /// Connection timed out.
    ETIMEDOUT = 110,
    /// Connection refused.
    ECONNREFUSED = 111,
    /// No route to host.
    EHOSTUNREACH = 113,
}

impl Errno {
    /// Returns true if the number is 0, which means success.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Errno {
    /// Writes the name of the number, or `error` and the number if it has no name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}
