//! Event files: completion channels and asynchronous events of a context.
//!
//! The descriptor of the program is that of an `eventfd(2)`, which is readable while events wait: `poll`, `epoll` and blocking
//! reads work. A read returns one event, as that of the kernel's files does.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::abi::{AsyncEventRecord, bytes_of};
use crate::errno::Errno;

/// Maximum number of waiting events of a file.
const MOST: usize = 1 << 16;

/// Object that an event is about, by its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Cq(u32),
    Qp(u32),
    Srq(u32),
    Device,
}

/// A waiting event.
struct Event {
    source: Source,
    bytes: Vec<u8>,
}

/// An event file.
pub(super) struct EventFile {
    event: OwnedFd,
    queue: VecDeque<Event>,
}

impl EventFile {
    /// Creates a file; returns it with the descriptor for the program.
    ///
    /// # Errors
    /// Fails if the process has no more descriptors.
    pub(super) fn create() -> Result<(Self, OwnedFd), Errno> {
        // SAFETY: the call takes numbers only.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(Errno::last());
        }
        // SAFETY: the descriptor was just opened and has no other owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let event = descriptor.try_clone().map_err(|_| Errno::last())?;
        Ok((Self { event, queue: VecDeque::new() }, descriptor))
    }

    /// Adds a completion event of a CQ, which the program knows by its own handle.
    pub(super) fn push_completion(&mut self, cq: u32, user_handle: u64) {
        self.push(Source::Cq(cq), user_handle.to_ne_bytes().to_vec());
    }

    /// Adds an asynchronous event about an object.
    pub(super) fn push_async(&mut self, source: Source, element: u64, event_type: u32) {
        self.push(source, bytes_of(&AsyncEventRecord { element, event_type, reserved: 0 }));
    }

    fn push(&mut self, source: Source, bytes: Vec<u8>) {
        if self.queue.len() >= MOST {
            return;
        }
        self.queue.push_back(Event { source, bytes });
        let one = 1_u64;
        // SAFETY: the call reads eight live bytes. It cannot block: the counter is at most the number of events.
        unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Reads the next event into a buffer; returns its size and its source.
    ///
    /// # Errors
    /// `EAGAIN` if no event waits, `EINVAL` if the buffer is too small.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> Result<(usize, Source), Errno> {
        let event = self.queue.front().ok_or(Errno::AGAIN)?;
        let size = event.bytes.len();
        buffer.get_mut(..size).ok_or(Errno::INVALID)?.copy_from_slice(&event.bytes);
        let source = event.source;
        self.queue.pop_front();
        self.lower();
        Ok((size, source))
    }

    /// Removes the waiting events of an object that is destroyed.
    pub(super) fn forget(&mut self, source: Source) {
        self.queue.retain(|event| event.source != source);
        self.lower();
    }

    /// Makes the descriptor unreadable if no event waits.
    fn lower(&self) {
        let mut polled =
            libc::pollfd { fd: self.event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the call reads and writes the one live structure.
        let is_raised = unsafe { libc::poll(&raw mut polled, 1, 0) } == 1;
        if self.queue.is_empty() && is_raised {
            let mut count = 0_u64;
            // SAFETY: the call writes eight live bytes. It does not block: the counter is above zero, and only this
            // type, under the lock of its owner, reads it.
            unsafe { libc::read(self.event.as_raw_fd(), (&raw mut count).cast(), 8) };
        }
    }
}
