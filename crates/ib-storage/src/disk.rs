//! Disks whose data is in memory, in a file or on a block device.
//!
//! | module | holds |
//! |---|---|
//! | `file` | a disk in a file or on a block device |
//! | `ring` | file I/O with io_uring, if the kernel supports it |
//! | `workers` | file I/O in threads: operations other than read, write and flush; all if io_uring is not available |
//!
//! Requests are asynchronous: [`Disk::submit`] starts a request, [`Disk::poll`] returns completed
//! requests, and an [`Alarm`](ib_os::alarm::Alarm) wakes the caller when a request has completed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use ib_block::{Command, Discard, Errno, Geometry, Operation, Origin};
use ib_hca::Memory;
use ib_os::alarm::Bell;

mod file;
mod ring;
mod workers;

/// A request for a disk. Its data is in memory that HCAs can access.
#[derive(Clone, Debug)]
pub struct Job {
    /// The number of the job, which the caller chooses.
    pub id: u64,
    /// The command. It must fit the geometry ([`Geometry::check`]).
    pub command: Command,
    /// The memory of the data to write, or of the buffer to read into.
    pub memory: Arc<Memory>,
    /// The offset in bytes of the data from the start of `memory`.
    pub offset: usize,
}

impl Job {
    /// Returns the address of byte `done` of the data. Fails if fewer than `length` bytes follow.
    fn data(&self, done: u64, length: usize) -> io::Result<*mut u8> {
        let start = self.offset.checked_add(done as usize);
        let end = start.and_then(|start| start.checked_add(length));
        match start.zip(end) {
            Some((start, end)) if end <= self.memory.len() => {
                Ok(std::ptr::with_exposed_provenance_mut(self.memory.address() as usize + start))
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }
}

/// A disk.
#[derive(Debug)]
pub struct Disk {
    geometry: Geometry,
    origin: Origin,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Memory(MemoryDisk),
    File(Box<file::FileDisk>),
}

/// Error of creating or opening a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The file cannot be opened, or its size cannot be queried.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The path is neither a regular file nor a block device.
    #[error(
        "{}: found a directory or special file, expected a regular file or a block device",
        path.display()
    )]
    Kind {
        /// The path.
        path: PathBuf,
    },
    /// The file is shorter than a block.
    #[error("{}: found {length} bytes, expected at least {block}", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
        /// The length of the file in bytes.
        length: u64,
        /// The length of a block in bytes.
        block: u32,
    },
    /// The memory of a disk cannot be allocated.
    #[error("cannot allocate {0} bytes of memory for the disk: expected a smaller size")]
    OutOfMemory(u64),
    /// The system's random number generator has failed.
    #[error("cannot read random numbers: {0}")]
    NoRandomness(io::Error),
    /// The size is not a positive multiple of the block size.
    #[error("found a disk size of {0} bytes, expected a multiple of 512, at least 512")]
    Size(u64),
}

impl Disk {
    /// Creates a disk of `size` bytes in memory, filled with zeros.
    ///
    /// # Errors
    /// Fails if the size is not a positive multiple of 512, or if the memory cannot be allocated.
    pub fn in_memory(size: u64) -> Result<Self, DiskError> {
        let (disk, geometry) = MemoryDisk::new(size)?;
        // The data is lost when the process exits. By the random medium number, clients detect that
        // another disk has replaced this one.
        let random = ib_os::random().map_err(DiskError::NoRandomness)?;
        let medium = u32::from_le_bytes(*random.first_chunk().expect("a seed has 32 bytes"));
        let origin = Origin { medium, cache: 0 };
        Ok(Self { geometry, origin, kind: Kind::Memory(disk) })
    }

    /// Opens a file or a block device; read-only if writing is not permitted. When a thread has completed a job, it
    /// signals `bell`.
    ///
    /// # Errors
    /// Fails if the path cannot be opened, or is neither a file nor a block device.
    pub fn open(path: impl Into<PathBuf>, bell: Bell) -> Result<Self, DiskError> {
        let (disk, geometry, origin) = file::FileDisk::open(path.into(), bell)?;
        Ok(Self { geometry, origin, kind: Kind::File(Box::new(disk)) })
    }

    /// Returns the geometry of the disk.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns the two numbers by which RNBD clients detect that the disk was replaced or has lost
    /// completed writes.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the memory that holds the data of the disk, if [`Disk::in_memory`] created it. Returns
    /// `None` for a file or block device. The caller may read data from this memory directly.
    #[must_use]
    pub const fn memory(&self) -> Option<&Arc<Memory>> {
        match &self.kind {
            Kind::Memory(disk) => Some(disk.memory()),
            Kind::File(_) => None,
        }
    }

    /// Returns the stored list of clients that write to the disk; empty if there is none yet.
    /// Returns `None` if the list cannot be stored.
    #[must_use]
    pub(crate) fn kept_writers(&self) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::File(disk) => disk.kept_writers(),
        }
    }

    /// Stores the list of clients that write to the disk, so that it survives a restart. Fails for a
    /// disk in memory.
    pub(crate) fn keep_writers(&self, writers: &[u8]) -> Result<(), Errno> {
        match &self.kind {
            Kind::Memory(_) => Err(Errno::EOPNOTSUPP),
            Kind::File(disk) => disk.keep_writers(writers),
        }
    }

    /// Submits a job. The caller must call [`Disk::flush`] after it has submitted one or several jobs.
    pub fn submit(&mut self, job: Job) {
        match &mut self.kind {
            Kind::Memory(disk) => disk.submit(&job),
            Kind::File(disk) => disk.submit(job),
        }
    }

    /// Passes the submitted jobs to the kernel, many of them in one system call.
    pub fn flush(&mut self) {
        if let Kind::File(disk) = &mut self.kind {
            disk.flush();
        }
    }

    /// Returns a descriptor that is readable when an io_uring job has completed; `None` if the disk
    /// does not use io_uring.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::File(disk) => disk.bell(),
        }
    }

    /// Returns the number and status of the next completed job.
    pub fn poll(&mut self) -> Option<(u64, Errno)> {
        match &mut self.kind {
            Kind::Memory(disk) => disk.poll(),
            Kind::File(disk) => disk.poll(),
        }
    }
}

/// Returns the error number of `error`; EIO if it has none.
fn errno(error: &io::Error) -> Errno {
    let number = error.raw_os_error().and_then(|number| u16::try_from(number).ok());
    number.filter(|number| (1..512).contains(number)).map_or(Errno::EIO, Errno)
}

/// Maximum length in bytes of a discard of a disk in memory.
const MAX_DISCARD: u64 = 4 << 20;

/// A disk in memory. Jobs complete immediately.
#[derive(Debug)]
pub(super) struct MemoryDisk {
    memory: Arc<Memory>,
    ended: VecDeque<(u64, Errno)>,
}

impl MemoryDisk {
    pub(super) fn new(size: u64) -> Result<(Self, Geometry), DiskError> {
        if size == 0 || !size.is_multiple_of(512) {
            return Err(DiskError::Size(size));
        }
        let length = usize::try_from(size).ok();
        let memory = length.and_then(|length| Memory::zeroed(length).ok());
        let memory = memory.ok_or(DiskError::OutOfMemory(size))?;
        let discard = Discard { granularity: 512, alignment: 0, max: MAX_DISCARD };
        let geometry = Geometry {
            discard: Some(discard),
            physical_block: 4096,
            // A disk in memory has no write cache.
            write_back: false,
            fua: false,
            ..Geometry::new(size, 512)
        };
        Ok((Self { memory, ended: VecDeque::new() }, geometry))
    }

    pub(super) const fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    pub(super) fn submit(&mut self, job: &Job) {
        let Command { operation, offset, length, .. } = job.command;
        let (at, length) = (offset as usize, length as usize);
        let done = match operation {
            Operation::Read => job.memory.copy_from(job.offset, &self.memory, at, length),
            Operation::Write => self.memory.copy_from(at, &job.memory, job.offset, length),
            Operation::Flush => Ok(()),
            Operation::Discard | Operation::SecureErase | Operation::WriteZeroes => {
                self.memory.fill(at, length, 0)
            }
        };
        self.ended.push_back((job.id, if done.is_ok() { Errno::OK } else { Errno::EIO }));
    }

    pub(super) fn poll(&mut self) -> Option<(u64, Errno)> {
        self.ended.pop_front()
    }
}

#[cfg(test)]
mod tests;
