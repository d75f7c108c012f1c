//! Event files of a context: its completion channels, and the file of its asynchronous events.
//!
//! The program's descriptor is that of an `eventfd(2)`. It is readable while events wait, so that
//! `poll`, `epoll` and blocking reads work. As with the kernel's files, a read returns one event.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use super::abi::{AsyncEventRecord, bytes_of};
use crate::errno::Errno;
use crate::readiness::Readiness;

/// Maximum number of unread events of an event file. Further events are dropped.
const MOST: usize = 1 << 16;

/// Object to which an event refers, with its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Cq(u32),
    Qp(u32),
    Srq(u32),
    Device,
}

/// An event that the program has not read yet.
struct Event {
    source: Source,
    bytes: Vec<u8>,
}

/// An event file.
pub(super) struct EventFile {
    readiness: Readiness,
    queue: VecDeque<Event>,
}

impl EventFile {
    /// Creates an event file. Returns the file and the program's descriptor of the file.
    ///
    /// # Errors
    /// Fails if the process cannot open another descriptor.
    pub(super) fn create() -> Result<(Self, OwnedFd), Errno> {
        let (readiness, descriptor) = Readiness::open(libc::O_CLOEXEC)?;
        Ok((Self { readiness, queue: VecDeque::new() }, descriptor))
    }

    /// Adds a completion event of a CQ. The program identifies the CQ by `user_handle`.
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
        self.readiness.raise();
    }

    /// Reads the next event into a buffer. Returns the size and the source of the event.
    ///
    /// # Errors
    /// Fails with `EAGAIN` if no event waits, and with `EINVAL` if the buffer is too small.
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
        if self.queue.is_empty() {
            self.readiness.lower();
        }
    }
}
