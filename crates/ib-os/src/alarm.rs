//! What ends a wait early: another thread, or a signal.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use ib_link::{LinkError, MadLink};
use ib_types::Instant;

use crate::poll;

/// A file that can be read after somebody has rung.
#[derive(Debug)]
pub struct Alarm {
    reader: UnixStream,
    bell: Bell,
}

/// What rings an [`Alarm`], from any thread.
#[derive(Clone, Debug)]
pub struct Bell(Arc<UnixStream>);

impl Alarm {
    /// Makes an alarm that nobody has rung.
    ///
    /// # Errors
    /// Fails when the system has no more files.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader, bell: Bell(Arc::new(writer)) })
    }

    /// Returns what rings it.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Waits until it rings, and makes it silent again.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn wait(&self) -> io::Result<()> {
        poll::wait(self.as_fd(), false, -1)?;
        self.silence();
        Ok(())
    }

    /// Makes it silent again.
    pub fn silence(&self) {
        let mut rings = [0; 256];
        while matches!((&self.reader).read(&mut rings), Ok(length) if length > 0) {}
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }
}

impl Bell {
    /// Rings. One ring more or less makes no difference to an alarm that rings already.
    pub fn ring(&self) {
        let _ = (&*self.0).write(&[1]);
    }

    /// Returns a file that rings when it is written to.
    pub fn file(&self) -> io::Result<UnixStream> {
        self.0.try_clone()
    }
}

/// A link whose wait also ends when an alarm rings.
pub trait AlarmedLink: MadLink {
    /// Waits until something comes, the clock reaches a moment, or the alarm rings.
    ///
    /// # Errors
    /// As [`MadLink::wait`].
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError>;
}
