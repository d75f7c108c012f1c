//! Alarms: another thread or a signal ends a wait early.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use ib_link::{LinkError, MadLink};
use ib_types::Instant;

use crate::poll;

/// A file descriptor that is readable after its [`Bell`] was rung.
#[derive(Debug)]
pub struct Alarm {
    reader: UnixStream,
    bell: Bell,
}

/// Rings an [`Alarm`], from any thread.
#[derive(Clone, Debug)]
pub struct Bell(Arc<UnixStream>);

impl Alarm {
    /// Creates an alarm that was not rung.
    ///
    /// # Errors
    /// Fails if the system has no more file descriptors.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok(Self { reader, bell: Bell(Arc::new(writer)) })
    }

    /// Returns the bell of the alarm.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Waits until the alarm is rung, and resets it.
    ///
    /// # Errors
    /// Fails if the system call failed.
    pub fn wait(&self) -> io::Result<()> {
        poll::wait(self.as_fd(), false, -1)?;
        self.silence();
        Ok(())
    }

    /// Resets the alarm.
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
    /// Rings the alarm. Further rings before its reset have no effect.
    pub fn ring(&self) {
        let _ = (&*self.0).write(&[1]);
    }

    /// Returns a file descriptor that rings the alarm when it is written to.
    pub fn file(&self) -> io::Result<UnixStream> {
        self.0.try_clone()
    }
}

/// A link whose wait can be ended by an alarm.
pub trait AlarmedLink: MadLink {
    /// Waits until a MAD arrives, a time is reached, or the alarm is rung.
    ///
    /// # Errors
    /// Fails as [`MadLink::wait`].
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError>;
}
