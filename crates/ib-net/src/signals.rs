//! Being asked to end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGINT, SIGTERM};

/// A file that can be read once the process was asked to end by SIGTERM or SIGINT.
pub struct Termination(UnixStream);

impl Termination {
    /// Catches the signals from now on.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn catch() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        for signal in [SIGTERM, SIGINT] {
            signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Self(reader))
    }
}

impl AsFd for Termination {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
