//! A queue of work that other threads send to the driver thread of HCAs.
//!
//! `T` is the state that the driver thread owns: one HCA, several HCAs, or the hosts of a simulated fabric.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_queue::SegQueue;

use crate::alarm::{Alarm, Bell};

/// A closure that runs in the driver thread.
pub type Work<T> = Box<dyn FnOnce(&mut T) + Send>;

struct Shared<T> {
    works: SegQueue<Work<T>>,
    /// True if the queue may contain work.
    pending: AtomicBool,
    /// Bell of the alarm on which the driver thread waits.
    bell: Mutex<Bell>,
    /// True if the inbox was dropped.
    has_ended: AtomicBool,
}

/// The driver thread's end of the work queue.
pub struct Inbox<T> {
    shared: Arc<Shared<T>>,
    alarm: Alarm,
}

/// Handle of other threads to the work queue, with which they run closures in the driver thread.
pub struct Handle<T>(Arc<Shared<T>>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The reason why a closure was not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkError {
    /// The inbox was dropped.
    #[error("the HCA was closed")]
    Closed,
    /// The driver thread has not run the closure within the timeout.
    #[error("the program of the HCA does not respond")]
    TimedOut,
}

impl<T> Inbox<T> {
    /// Creates an empty inbox.
    ///
    /// # Errors
    /// Fails if the process has no free file descriptors.
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

    /// Returns a handle, which other threads can use.
    #[must_use]
    pub fn handle(&self) -> Handle<T> {
        Handle(Arc::clone(&self.shared))
    }

    /// Returns true if the queue may contain work.
    pub fn is_pending(&self) -> bool {
        self.shared.pending.load(Ordering::Relaxed)
    }

    /// Makes the file descriptor of the inbox unreadable until work is queued again.
    pub fn silence(&self) {
        self.alarm.silence();
    }

    /// Returns the file descriptor that is readable while the queue may contain work.
    pub fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.alarm)
    }

    /// Returns the next closure to run; `None` if the queue is empty.
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

    /// Returns the alarm on which the driver thread must wait, or `None` if the queue may already contain work.
    ///
    /// The driver thread must call this function before each wait. The returned alarm is `alarm`, or the inbox's own
    /// alarm if `alarm` is `None`. New work rings this alarm.
    pub fn begin_wait<'a>(&'a self, alarm: Option<&'a Alarm>) -> Option<&'a Alarm> {
        let alarm = alarm.unwrap_or(&self.alarm);
        *self.shared.bell.lock().unwrap_or_else(PoisonError::into_inner) = alarm.bell();
        (!self.shared.pending.load(Ordering::SeqCst)).then_some(alarm)
    }
}

impl<T> Drop for Inbox<T> {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::SeqCst);
        // Dropping the queued closures makes `Handle::with` fail in the threads that wait for the results.
        while self.shared.works.pop().is_some() {}
    }
}

impl<T> Handle<T> {
    /// Runs a closure in the driver thread and waits for its result. The timeout applies only until the driver thread
    /// starts the closure.
    ///
    /// # Errors
    /// Fails if the inbox was dropped, or if the driver thread does not start the closure before the timeout. In these
    /// cases the closure is never run.
    pub fn with<R: Send + 'static>(
        &self,
        timeout: Duration,
        work: impl FnOnce(&mut T) -> R + Send + 'static,
    ) -> Result<R, WorkError> {
        let (sender, receiver) = sync_channel(1);
        let is_claimed = Arc::new(AtomicBool::new(false));
        let claim = Arc::clone(&is_claimed);
        self.0.works.push(Box::new(move |device: &mut T| {
            if claim.swap(true, Ordering::SeqCst) {
                // The thread that queued the closure has timed out, so the closure is not run.
                return;
            }
            sender.send(work(device)).ok();
        }));
        self.0.pending.store(true, Ordering::SeqCst);
        if self.0.has_ended.load(Ordering::SeqCst) {
            while self.0.works.pop().is_some() {}
            return Err(WorkError::Closed);
        }
        self.0.bell.lock().unwrap_or_else(PoisonError::into_inner).ring();
        match receiver.recv_timeout(timeout) {
            Ok(result) => Ok(result),
            Err(RecvTimeoutError::Disconnected) => Err(WorkError::Closed),
            Err(RecvTimeoutError::Timeout) if !is_claimed.swap(true, Ordering::SeqCst) => {
                Err(WorkError::TimedOut)
            }
            // The driver thread is already running the closure, so the result is awaited without a timeout.
            Err(RecvTimeoutError::Timeout) => receiver.recv().map_err(|_| WorkError::Closed),
        }
    }

    /// Queues a closure for the driver thread and does not wait for it.
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
