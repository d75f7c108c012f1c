//! The daemon's files, replaced as a whole by a thread of their own.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use super::shared::lock;
use crate::result_file;

/// Replaces a file as a whole: a daemon that is killed leaves the former one.
///
/// # Errors
/// Fails if the directory cannot be written or the disk is full.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    result_file::replace(path, 0o777, |out| out.write_all(bytes))
}

/// Writes something; returns what went wrong, a sentence each.
pub(super) type Job = Box<dyn FnOnce() -> Vec<String> + Send>;

/// Writes files in a thread of its own, so that nobody waits for a disk.
pub(super) struct Writer {
    desk: Arc<(Mutex<Desk>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    failed: Receiver<String>,
}

/// What there is to write: of each kind the newest.
#[derive(Default)]
struct Desk {
    jobs: [Option<Job>; 2],
    ends: bool,
}

/// A kind of files.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Cache = 0,
    Dumps = 1,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails when the system makes no further thread.
    pub(super) fn start() -> io::Result<Self> {
        let desk = Arc::<(Mutex<Desk>, Condvar)>::default();
        let (sender, failed) = channel();
        let own = Arc::clone(&desk);
        let thread = std::thread::Builder::new().name("files".to_owned());
        let thread = Some(thread.spawn(move || write(&own, &sender))?);
        Ok(Self { desk, thread, failed })
    }

    /// Has files written; those of the kind that were not begun yet are not any more.
    pub(super) fn write(&self, kind: Kind, job: Job) {
        lock(&self.desk.0).jobs[kind as usize] = Some(job);
        self.desk.1.notify_one();
    }

    /// Returns what has gone wrong since it was asked last.
    pub(super) fn failed(&self) -> Vec<String> {
        self.failed.try_iter().collect()
    }

    /// Waits until everything is written; returns what has gone wrong.
    pub(super) fn finish(&mut self) -> Vec<String> {
        lock(&self.desk.0).ends = true;
        self.desk.1.notify_one();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        self.failed()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

fn write(desk: &(Mutex<Desk>, Condvar), failed: &Sender<String>) {
    loop {
        let mut left = lock(&desk.0);
        let job = loop {
            if let Some(job) = left.jobs.iter_mut().find_map(Option::take) {
                break job;
            }
            if left.ends {
                return;
            }
            left = desk.1.wait(left).unwrap_or_else(std::sync::PoisonError::into_inner);
        };
        drop(left);
        for text in job() {
            // The writer is only dropped after this thread.
            let _ = failed.send(text);
        }
    }
}

#[cfg(test)]
mod tests;
