//! Numbers of errors. On the wire they are those of Linux, on whatever system.

use std::fmt;

/// The number of an error, 1 to 511; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Errno(pub u16);

macro_rules! errnos {
    ($($(#[$doc:meta])* $name:ident = $value:literal,)+) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Self = Self($value);)+

            /// Returns the name of the constant; `None` for one that has none here.
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
    /// Not permitted.
    EPERM = 1,
    /// No such thing.
    ENOENT = 2,
    /// Input or output failed.
    EIO = 5,
    /// No such session.
    ENXIO = 6,
    /// No memory.
    ENOMEM = 12,
    /// Refused for want of a right.
    EACCES = 13,
    /// It is in use.
    EBUSY = 16,
    /// It is there already.
    EEXIST = 17,
    /// No such device.
    ENODEV = 19,
    /// It is no directory.
    ENOTDIR = 20,
    /// It is a directory.
    EISDIR = 21,
    /// What was said makes no sense.
    EINVAL = 22,
    /// No room.
    ENOSPC = 28,
    /// It can only be read.
    EROFS = 30,
    /// It is not done here.
    EOPNOTSUPP = 95,
    /// There is no network.
    ENETDOWN = 100,
    /// The connection was given up.
    ECONNABORTED = 103,
    /// The connection was refused, or ended.
    ECONNRESET = 104,
    /// There is no connection.
    ENOTCONN = 107,
    /// It took too long.
    ETIMEDOUT = 110,
    /// Nobody listens.
    ECONNREFUSED = 111,
    /// Nobody answers.
    EHOSTUNREACH = 113,
}

impl Errno {
    /// Returns whether there is no error.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Errno {
    /// Writes the name, or the number where there is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}
