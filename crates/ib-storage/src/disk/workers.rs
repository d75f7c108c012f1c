//! File I/O in threads.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ib_block::{Command, Errno, Operation};

use super::{Job, errno};
use ib_os::alarm::Bell;

/// The kind of a file. Discarding and zeroing work differently on files and block devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Regular,
    Block,
}

/// Number of threads that execute the jobs of a file.
const THREADS: usize = 4;

/// Threads that execute jobs. They start with the first job, and exit when `Workers` is dropped.
#[derive(Debug)]
pub(super) struct Workers {
    file: Arc<File>,
    kind: FileKind,
    bell: Bell,
    jobs: Option<Sender<Job>>,
    ended: (Sender<Ended>, Receiver<Ended>),
}

/// The number and status of a completed job.
type Ended = (u64, Errno);

impl Workers {
    pub(super) fn new(file: Arc<File>, kind: FileKind, bell: Bell) -> Self {
        Self { file, kind, bell, jobs: None, ended: channel() }
    }

    pub(super) fn submit(&mut self, job: Job) {
        if self.jobs.is_none() {
            self.jobs = self.start();
        }
        let id = job.id;
        let is_queued = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !is_queued {
            // No thread could be started.
            self.ended.0.send((id, Errno::ENOMEM)).expect("`self` owns the receiver");
        }
    }

    pub(super) fn poll(&mut self) -> Option<(u64, Errno)> {
        self.ended.1.try_recv().ok()
    }

    /// Starts the threads, and returns the sender of their jobs; `None` if no thread could be
    /// started.
    fn start(&self) -> Option<Sender<Job>> {
        let (sender, receiver) = channel::<Job>();
        let receiver = Arc::new(Mutex::new(receiver));
        let started = (0..THREADS).filter(|_| {
            let (receiver, ended) = (Arc::clone(&receiver), self.ended.0.clone());
            let (file, kind, bell) = (Arc::clone(&self.file), self.kind, self.bell.clone());
            let work = move || {
                loop {
                    let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = next else { return };
                    let done = run(&file, kind, &job);
                    let sent =
                        ended.send((job.id, done.map_or_else(|it| errno(&it), |()| Errno::OK)));
                    if sent.is_err() {
                        return;
                    }
                    bell.ring();
                }
            };
            thread::Builder::new().name("disk".to_owned()).spawn(work).is_ok()
        });
        (started.count() > 0).then_some(sender)
    }
}

/// Executes a job.
fn run(file: &File, kind: FileKind, job: &Job) -> io::Result<()> {
    let Command { operation, offset, length, fua } = job.command;
    match operation {
        Operation::Read => move_all(length, |done, left| read_at(file, job, done, left))?,
        Operation::Write => move_all(length, |done, left| write_at(file, job, done, left))?,
        Operation::Flush => return file.sync_data(),
        Operation::Discard => discard(file, kind, offset, length)?,
        Operation::WriteZeroes | Operation::SecureErase => clear(file, kind, offset, length)?,
    }
    if fua && operation != Operation::Write && operation != Operation::Read {
        return file.sync_data();
    }
    Ok(())
}

/// Repeats a read or write until all bytes of the job are transferred.
fn move_all(length: u64, mut once: impl FnMut(u64, usize) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < length {
        match once(done, (length - done) as usize) {
            // No bytes were transferred: the file was truncated.
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(moved) => done += moved as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads `length` bytes of the job's range, from byte `done` of the range on. Returns how many bytes
/// were read.
fn read_at(file: &File, job: &Job, done: u64, length: usize) -> io::Result<usize> {
    let to = job.data(done, length)?;
    let offset = (job.command.offset + done) as libc::off_t;
    // SAFETY: `Job::data` has checked the range. Other threads access the memory only with atomics.
    let moved = unsafe { libc::pread(file.as_raw_fd(), to.cast(), length, offset) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Writes `length` bytes of the job's range, from byte `done` of the range on. Returns how many
/// bytes were written.
fn write_at(file: &File, job: &Job, done: u64, length: usize) -> io::Result<usize> {
    let from = job.data(done, length)?;
    let data = libc::iovec { iov_base: from.cast(), iov_len: length };
    let offset = (job.command.offset + done) as libc::off_t;
    let flags = if job.command.fua { libc::RWF_DSYNC } else { 0 };
    // SAFETY: `Job::data` has checked the range. Other threads access the memory only with atomics.
    let moved = unsafe { libc::pwritev2(file.as_raw_fd(), &raw const data, 1, offset, flags) };
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Discards a range. Afterwards the range reads as zeros in a file, and is undefined on a block
/// device.
fn discard(file: &File, kind: FileKind, offset: u64, length: u64) -> io::Result<()> {
    const DISCARD: libc::Ioctl = 0x1277;
    match kind {
        FileKind::Regular => allocate(file, PUNCH, offset, length),
        FileKind::Block => range(file, DISCARD, offset, length),
    }
}

/// Fills a range with zeros.
fn clear(file: &File, kind: FileKind, offset: u64, length: u64) -> io::Result<()> {
    const ZERO_OUT: libc::Ioctl = 0x127f;
    match kind {
        FileKind::Block => range(file, ZERO_OUT, offset, length),
        FileKind::Regular => match allocate(file, libc::FALLOC_FL_ZERO_RANGE, offset, length) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
                allocate(file, PUNCH, offset, length)
            }
            done => done,
        },
    }
}

const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

fn allocate(file: &File, mode: i32, offset: u64, length: u64) -> io::Result<()> {
    let (offset, length) = (offset as libc::off_t, length as libc::off_t);
    // SAFETY: the system call accesses no memory of the process.
    let result = unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn range(file: &File, request: libc::Ioctl, offset: u64, length: u64) -> io::Result<()> {
    let range = [offset, length];
    // SAFETY: the system call only reads the offset and the length in `range`.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), request, range.as_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
