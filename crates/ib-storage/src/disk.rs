//! Disks in memory, in files and on block devices of the system.
//!
//! | module | holds |
//! |---|---|
//! | `memory` | a device in memory |
//! | `file` | a device in a file, or a block device of the system |
//! | `ring` | file I/O by io_uring, if the system supports it |
//! | `workers` | file I/O by threads, for other operations and systems |
//!
//! Requests are asynchronous: [`Disk::submit`] starts a request, [`Disk::poll`] returns completed ones, and an
//! [`Alarm`](ib_os::alarm::Alarm) wakes the caller when a request has completed.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;

use ib_block::{Command, Errno, Geometry, Origin};
use ib_hca::Memory;

use ib_os::alarm::Bell;

mod file;
mod memory;
mod ring;
mod workers;

/// A request for a disk, whose data is in memory of HCAs.
#[derive(Clone, Debug)]
pub struct Job {
    /// The user's number of the job.
    pub id: u64,
    /// The command, which fits the geometry ([`Geometry::check`]).
    pub command: Command,
    /// The memory of the data to write, or of the buffer to read into.
    pub memory: Arc<Memory>,
    /// The offset of the data in this memory, in bytes.
    pub offset: usize,
}

impl Job {
    /// Returns the address of `length` bytes of the data, starting at byte `done`.
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
    Memory(memory::MemoryDisk),
    File(Box<file::FileDisk>),
}

/// Error of creating or opening a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The file cannot be opened, or its size cannot be queried.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The path is neither a regular file nor a block device.
    #[error("{}: expected a file or a block device", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// The file is shorter than a block.
    #[error("{}: found {length} bytes, expected at least {block}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The length of a block in bytes.
        block: u32,
    },
    /// The memory of a disk cannot be allocated.
    #[error("cannot allocate {0} bytes of memory")]
    OutOfMemory(u64),
    /// The system's random number generator has failed.
    #[error("cannot read random numbers: {0}")]
    NoRandomness(io::Error),
    /// The size is not a positive multiple of the block size.
    #[error("found a disk size of {0} bytes, expected a multiple of 512, at least 512")]
    Size(u64),
}

impl Disk {
    /// Creates a disk in memory, filled with zeros. The size is in bytes.
    ///
    /// # Errors
    /// Fails if the size is not a positive multiple of 512, or if the memory cannot be allocated.
    pub fn in_memory(size: u64) -> Result<Self, DiskError> {
        let (disk, geometry) = memory::MemoryDisk::new(size)?;
        // The data is lost with the process, so each process has another medium.
        let random = ib_os::random().map_err(DiskError::NoRandomness)?;
        let medium = u32::from_le_bytes(*random.first_chunk().expect("a seed has 32 bytes"));
        let origin = Origin { medium, cache: 0 };
        Ok(Self { geometry, origin, kind: Kind::Memory(disk) })
    }

    /// Opens a file or a block device, read-only if it cannot be written. The bell is rung when a job of a thread has completed.
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

    /// Returns the identification of the data, by which RNBD clients detect that it was replaced.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the memory of a disk in memory, from which data may be read directly; `None` for a file.
    #[must_use]
    pub const fn memory(&self) -> Option<&Arc<Memory>> {
        match &self.kind {
            Kind::Memory(disk) => Some(disk.memory()),
            Kind::File(_) => None,
        }
    }

    /// Returns the stored writers of the disk, empty if there are none yet. `None` if they cannot be stored.
    #[must_use]
    pub(crate) fn kept_writers(&self) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::File(disk) => disk.kept_writers(),
        }
    }

    /// Stores the writers of the disk beside its data.
    pub(crate) fn keep_writers(&self, writers: &[u8]) -> Result<(), Errno> {
        match &self.kind {
            Kind::Memory(_) => Err(Errno::EOPNOTSUPP),
            Kind::File(disk) => disk.keep_writers(writers),
        }
    }

    /// Starts a job.
    pub fn submit(&mut self, job: Job) {
        match &mut self.kind {
            Kind::Memory(disk) => disk.submit(&job),
            Kind::File(disk) => disk.submit(job),
        }
    }

    /// Passes the submitted jobs to the system, many in one call.
    pub fn flush(&mut self) {
        if let Kind::File(disk) = &mut self.kind {
            disk.flush();
        }
    }

    /// Returns a descriptor that is readable when a job of io_uring has completed; `None` without io_uring.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::File(disk) => disk.bell(),
        }
    }

    /// Returns the next completed job: its number and status.
    pub fn poll(&mut self) -> Option<(u64, Errno)> {
        match &mut self.kind {
            Kind::Memory(disk) => disk.poll(),
            Kind::File(disk) => disk.poll(),
        }
    }
}

/// Returns the error number of a system error; EIO if there is none.
fn errno(error: &io::Error) -> Errno {
    let number = error.raw_os_error().and_then(|number| u16::try_from(number).ok());
    number.filter(|number| (1..512).contains(number)).map_or(Errno::EIO, Errno)
}

#[cfg(test)]
mod tests;
