//! A thread that writes the daemon's files. Each file is replaced atomically.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use super::shared::lock;
use crate::result_file;

/// Replaces a file atomically: if the daemon is killed meanwhile, the old content remains.
///
/// # Errors
/// Fails if the directory is not writable or the disk is full.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    result_file::replace(path, 0o777, |out| out.write_all(bytes))
}

/// A job that writes files; it returns error messages.
pub(super) type Job = Box<dyn FnOnce() -> Vec<String> + Send>;

/// A thread that writes files, so that the SM does not wait for the disk.
pub(super) struct Writer {
    queue: Arc<(Mutex<JobQueue>, Condvar)>,
    thread: Option<JoinHandle<()>>,
    failed: Receiver<String>,
}

/// The queue of jobs, with at most the newest job of each kind.
#[derive(Default)]
struct JobQueue {
    jobs: [Option<Job>; 2],
    ends: bool,
}

/// A kind of files. At most one job of each kind is queued.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Cache = 0,
    Dumps = 1,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub(super) fn start() -> io::Result<Self> {
        let queue = Arc::<(Mutex<JobQueue>, Condvar)>::default();
        let (sender, failed) = channel();
        let own = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("files".to_owned());
        let thread = Some(thread.spawn(move || write(&own, &sender))?);
        Ok(Self { queue, thread, failed })
    }

    /// Queues a job. If a job of the same kind is queued already, replaces it.
    pub(super) fn write(&self, kind: Kind, job: Job) {
        lock(&self.queue.0).jobs[kind as usize] = Some(job);
        self.queue.1.notify_one();
    }

    /// Returns the error messages of jobs since the last call.
    pub(super) fn failed(&self) -> Vec<String> {
        self.failed.try_iter().collect()
    }

    /// Waits until all jobs are done and the thread has ended. Returns the error messages since the last call of
    /// [`Writer::failed`].
    pub(super) fn finish(&mut self) -> Vec<String> {
        lock(&self.queue.0).ends = true;
        self.queue.1.notify_one();
        if let Some(thread) = self.thread.take() {
            // The result is ignored: if the thread has panicked, the panic was printed already.
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

fn write(queue: &(Mutex<JobQueue>, Condvar), failed: &Sender<String>) {
    loop {
        let mut jobs = lock(&queue.0);
        let job = loop {
            if let Some(job) = jobs.jobs.iter_mut().find_map(Option::take) {
                break job;
            }
            if jobs.ends {
                return;
            }
            jobs = queue.1.wait(jobs).unwrap_or_else(std::sync::PoisonError::into_inner);
        };
        drop(jobs);
        for text in job() {
            // The send cannot fail, since the receiver exists longer than this thread.
            let _ = failed.send(text);
        }
    }
}

#[cfg(test)]
mod tests;
