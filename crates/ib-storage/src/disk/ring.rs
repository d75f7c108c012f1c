//! File I/O with io_uring, which executes many jobs at once without blocking threads.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ib_block::{Command, Errno, Operation};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};
use slab::Slab;

use super::{Job, errno};

/// Maximum number of jobs in flight at the kernel. Further jobs are queued.
const ENTRIES: u32 = 256;

/// An `io_uring` instance and its jobs in flight.
pub(super) struct Ring {
    ring: IoUring,
    file: Arc<File>,
    /// Unfinished jobs. The key of a job is the user data of its ring entries.
    jobs: Slab<RunningJob>,
    /// Jobs that were not passed to the kernel yet.
    waiting: VecDeque<usize>,
    in_flight: usize,
    ended: VecDeque<(u64, Errno)>,
    /// The event descriptor, which is readable when a job has completed.
    bell: OwnedFd,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ring({} jobs)", self.jobs.len())
    }
}

#[derive(Debug)]
struct RunningJob {
    job: Job,
    /// Number of bytes of the job that earlier ring entries have transferred.
    done: u64,
}

impl Ring {
    pub(super) fn new(file: Arc<File>) -> io::Result<Self> {
        let ring = IoUring::new(ENTRIES)?;
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        ring.submitter().register_eventfd(bell.as_raw_fd())?;
        let (waiting, ended) = (VecDeque::new(), VecDeque::new());
        Ok(Self { ring, file, jobs: Slab::new(), waiting, in_flight: 0, ended, bell })
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(super) fn submit(&mut self, job: Job) {
        let number = self.jobs.insert(RunningJob { job, done: 0 });
        self.waiting.push_back(number);
    }

    /// Passes queued jobs to the kernel.
    pub(super) fn flush(&mut self) {
        while self.in_flight < ENTRIES as usize
            && let Some(&number) = self.waiting.front()
        {
            self.waiting.pop_front();
            let entry = match self.entry(number) {
                Ok(entry) => entry.user_data(number as u64),
                Err(error) => {
                    let job = self.jobs.remove(number).job;
                    self.ended.push_back((job.id, errno(&error)));
                    continue;
                }
            };
            // SAFETY: the job keeps the entry's memory allocated until its completion, and `self`
            // keeps the file open.
            let pushed = unsafe { self.ring.submission().push(&entry) };
            if pushed.is_err() {
                self.waiting.push_front(number);
                break;
            }
            self.in_flight += 1;
        }
        // Entries that the kernel does not accept now are submitted together with the next entries.
        self.ring.submit().ok();
    }

    fn entry(&self, number: usize) -> io::Result<squeue::Entry> {
        let RunningJob { job, done } = &self.jobs[number];
        let Command { operation, offset, length, fua } = job.command;
        let file = types::Fd(self.file.as_raw_fd());
        let left = (length - done) as usize;
        let data = || job.data(*done, left);
        let (place, count) = (offset + done, left as u32);
        Ok(match operation {
            Operation::Read => opcode::Read::new(file, data()?, count).offset(place).build(),
            Operation::Write => {
                let flags = if fua { libc::RWF_DSYNC } else { 0 };
                let write = opcode::Write::new(file, data()?, count).offset(place);
                write.rw_flags(flags).build()
            }
            _ => opcode::Fsync::new(file).flags(types::FsyncFlags::DATASYNC).build(),
        })
    }

    pub(super) fn poll(&mut self) -> Option<(u64, Errno)> {
        if self.ended.is_empty() {
            self.reap();
        }
        self.ended.pop_front()
    }

    fn reap(&mut self) {
        // Resets the event before it reads the ring, so that it misses no completion.
        rustix::io::read(&self.bell, &mut [0; 8]).ok();
        let mut again = false;
        for entry in self.ring.completion() {
            let number = entry.user_data() as usize;
            self.in_flight -= 1;
            let it = &mut self.jobs[number];
            let moves = matches!(it.job.command.operation, Operation::Read | Operation::Write);
            let length = it.job.command.length;
            let done = match u64::try_from(entry.result()) {
                Err(_) => {
                    let error = io::Error::from_raw_os_error(-entry.result());
                    let is_early = matches!(
                        error.kind(),
                        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                    );
                    if is_early { None } else { Some(errno(&error)) }
                }
                // No bytes were transferred: the file was truncated.
                Ok(0) if moves && length > it.done => Some(Errno::EIO),
                Ok(moved) => {
                    it.done += if moves { moved } else { 0 };
                    (!moves || it.done >= length).then_some(Errno::OK)
                }
            };
            match done {
                Some(errno) => {
                    let job = self.jobs.remove(number).job;
                    self.ended.push_back((job.id, errno));
                }
                None => {
                    self.waiting.push_back(number);
                    again = true;
                }
            }
        }
        if again || !self.waiting.is_empty() {
            self.flush();
        }
    }
}

impl Drop for Ring {
    /// Waits for the jobs in flight, because the kernel still accesses their memory. The memory can
    /// be reused only afterwards.
    fn drop(&mut self) {
        self.waiting.clear();
        while self.in_flight > 0 {
            if self.ring.submit_and_wait(1).is_err() {
                // If the wait fails, the memory of the jobs is never freed: the kernel may still
                // access it.
                std::mem::forget(std::mem::take(&mut self.jobs));
                return;
            }
            self.reap();
        }
    }
}
