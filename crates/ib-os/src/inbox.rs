//! What other threads want done with HCAs that their own thread drives.
//!
//! `T` is what that thread drives: one HCA, several, or the hosts of a simulated fabric.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_queue::SegQueue;

use crate::alarm::{Alarm, Bell};

/// Something to be done with what a thread drives.
pub type Work<T> = Box<dyn FnOnce(&mut T) + Send>;

struct Shared<T> {
    works: SegQueue<Work<T>>,
    /// Whether there is something, or was a moment ago.
    pending: AtomicBool,
    /// What ends the wait of the thread that drives the HCA.
    bell: Mutex<Bell>,
    /// Whether the HCA has gone.
    has_ended: AtomicBool,
}

/// An HCA's side.
pub struct Inbox<T> {
    shared: Arc<Shared<T>>,
    alarm: Alarm,
}

/// What other threads have of HCAs, while these are driven.
pub struct Handle<T>(Arc<Shared<T>>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Why something was not done with an HCA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Undone {
    /// The HCA is not there any more.
    #[error("the adapter has gone")]
    Gone,
    /// Its thread has not come to it.
    #[error("the adapter's program does not drive it at the moment")]
    Busy,
}

impl<T> Inbox<T> {
    /// Returns an empty inbox.
    ///
    /// # Errors
    /// Fails if the process has no more descriptors.
    pub fn new() -> io::Result<Self> {
        let alarm = Alarm::new()?;
        let shared = Shared {
            works: SegQueue::new(),
            pending: AtomicBool::new(false),
            bell: Mutex::new(alarm.bell()),
            has_ended: AtomicBool::new(false),
        };
        Ok(Self { shared: Arc::new(shared), alarm })
    }

    /// Returns a handle for another thread.
    #[must_use]
    pub fn handle(&self) -> Handle<T> {
        Handle(Arc::clone(&self.shared))
    }

    /// Returns whether there may be something to do.
    pub fn is_pending(&self) -> bool {
        self.shared.pending.load(Ordering::Relaxed)
    }

    /// Makes the alarm silent that has rung.
    pub fn silence(&self) {
        self.alarm.silence();
    }

    /// Returns the file that can be read while there may be something to do.
    pub fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.alarm)
    }

    /// Returns the next thing to do.
    pub fn next(&self) -> Option<Work<T>> {
        if self.shared.pending.swap(false, Ordering::SeqCst) {
            self.alarm.silence();
        }
        let next = self.shared.works.pop();
        if next.is_some() {
            self.shared.pending.store(true, Ordering::Relaxed);
        }
        next
    }

    /// Has a wait that is about to begin ended by whoever wants something; returns the alarm to wait with, or
    /// `None` when there is something already.
    pub fn begin_wait<'a>(&'a self, alarm: Option<&'a Alarm>) -> Option<&'a Alarm> {
        let alarm = alarm.unwrap_or(&self.alarm);
        *self.shared.bell.lock().unwrap_or_else(PoisonError::into_inner) = alarm.bell();
        (!self.shared.pending.load(Ordering::SeqCst)).then_some(alarm)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::SeqCst);
        // Whoever waits for something hears that it will not be done.
        while self.shared.works.pop().is_some() {}
    }
}

impl<T> Handle<T> {
    /// Does something with the HCAs in the thread that drives them, and waits for that, so long at most.
    ///
    /// # Errors
    /// Fails when the HCAs have gone, or nobody drives them; then it is not done later either.
    pub fn with<R: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Result<R, Undone> {
        let (sender, receiver) = sync_channel(1);
        let begun = Arc::new(AtomicBool::new(false));
        let beginning = Arc::clone(&begun);
        self.0.works.push(Box::new(move |device: &mut T| {
            if beginning.swap(true, Ordering::SeqCst) {
                // Whoever wanted it has given up.
                return;
            }
            sender.send(work(device)).ok();
        }));
        self.0.pending.store(true, Ordering::SeqCst);
        if self.0.has_ended.load(Ordering::SeqCst) {
            while self.0.works.pop().is_some() {}
            return Err(Undone::Gone);
        }
        self.0.bell.lock().unwrap_or_else(PoisonError::into_inner).ring();
        match receiver.recv_timeout(patience) {
            Ok(done) => Ok(done),
            Err(RecvTimeoutError::Disconnected) => Err(Undone::Gone),
            Err(RecvTimeoutError::Timeout) if !begun.swap(true, Ordering::SeqCst) => {
                Err(Undone::Busy)
            }
            // It is being done at this moment.
            Err(RecvTimeoutError::Timeout) => receiver.recv().map_err(|_| Undone::Gone),
        }
    }

    /// Has something done with the HCAs as soon as its thread comes to it.
    pub fn later(&self, work: impl FnOnce(&mut T) + Send + 'static) {
        self.0.works.push(Box::new(work));
        self.0.pending.store(true, Ordering::SeqCst);
        if self.0.has_ended.load(Ordering::SeqCst) {
            while self.0.works.pop().is_some() {}
            return;
        }
        self.0.bell.lock().unwrap_or_else(PoisonError::into_inner).ring();
    }
}
