//! Alarms, with which another thread or a signal ends a wait early.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use ib_link::{LinkError, MadLink};
use ib_types::Instant;

use crate::poll;

/// A file descriptor that becomes readable when its [`Bell`] is rung.
#[derive(Debug)]
pub struct Alarm {
    reader: UnixStream,
    bell: Bell,
}

/// A handle with which any thread can ring an [`Alarm`].
#[derive(Clone, Debug)]
pub struct Bell(Arc<UnixStream>);

impl Alarm {
    /// Creates an alarm that is not ringing.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
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

    /// Waits until the alarm is rung, and then resets it.
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
    /// Rings the alarm. If the alarm was rung since its last reset, the call has no effect.
    pub fn ring(&self) {
        let _ = (&*self.0).write(&[1]);
    }

    /// Returns a file descriptor. A write to this descriptor rings the alarm.
    pub fn file(&self) -> io::Result<UnixStream> {
        self.0.try_clone()
    }
}

/// A link on which a thread can wait for MADs until an alarm is rung.
pub trait AlarmedLink: MadLink {
    /// Waits until a MAD arrives, until the given time, or until the alarm is rung.
    ///
    /// # Errors
    /// Fails if [`MadLink::wait`] would fail.
    fn wait_alarmed(&mut self, until: Instant, alarm: &Alarm) -> Result<(), LinkError>;
}
