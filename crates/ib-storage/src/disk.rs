//! Where the data of block devices lies: memory, files, and block devices of the system.
//!
//! | module | holds |
//! |---|---|
//! | `memory` | a device in memory |
//! | `file` | a device in a file, or a block device of the system |
//! | `ring` | files by io_uring, where the system has it |
//! | `workers` | files by threads, for what has no other way |
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

/// Something that is to be done with a device, with data that lies in memory which HCAs reach.
#[derive(Clone, Debug)]
pub struct Job {
    /// The user's number of it.
    pub id: u64,
    /// What is to be done; it was checked ([`Geometry::check`]).
    pub command: Command,
    /// Where its data lies, or has to be put.
    pub memory: Arc<Memory>,
    /// From which byte of that on.
    pub offset: usize,
}

impl Job {
    /// Returns the address of `length` bytes of the data, from byte `done` on.
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

/// A device.
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

/// Why a device cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The file cannot be opened, or not be asked how long it is.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is no file of data and no block device.
    #[error("{}: expected a file or a block device", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// It holds less than a block.
    #[error("{}: {length} bytes: expected at least {block}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// Its length in bytes.
        length: u64,
        /// The length of a block in bytes.
        block: u32,
    },
    /// There is not so much memory.
    #[error("no {0} bytes of memory are left")]
    OutOfMemory(u64),
    /// The system has no random numbers.
    #[error("no random numbers: {0}")]
    NoRandomness(io::Error),
    /// A device is whole blocks.
    #[error("a device of {0} bytes: expected a multiple of 512, at least 512")]
    Size(u64),
}

impl Disk {
    /// Makes a device in memory, filled with zeros, of a size in bytes.
    ///
    /// # Errors
    /// Fails when the size is not whole blocks of 512 bytes, or there is no memory.
    pub fn in_memory(size: u64) -> Result<Self, DiskError> {
        let (disk, geometry) = memory::MemoryDisk::new(size)?;
        // It is gone with the process.
        let random = ib_os::random().map_err(DiskError::NoRandomness)?;
        let medium = u32::from_le_bytes(*random.first_chunk().expect("it is longer"));
        let origin = Origin { medium, cache: 0 };
        Ok(Self { geometry, origin, kind: Kind::Memory(disk) })
    }

    /// Opens a file or a block device; the bell is rung when something has ended. What cannot be written can be read.
    ///
    /// # Errors
    /// Fails when it cannot be opened, or is none of both.
    pub fn open(path: impl Into<PathBuf>, bell: Bell) -> Result<Self, DiskError> {
        let (disk, geometry, origin) = file::FileDisk::open(path.into(), bell)?;
        Ok(Self { geometry, origin, kind: Kind::File(Box::new(disk)) })
    }

    /// Returns what the device is like.
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Returns where its data comes from.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the memory that the device is, byte for byte, if it is one in memory: who reads needs to ask for nothing.
    #[must_use]
    pub const fn memory(&self) -> Option<&Arc<Memory>> {
        match &self.kind {
            Kind::Memory(disk) => Some(disk.memory()),
            Kind::File(_) => None,
        }
    }

    /// Returns what was kept last about who has written to the device, empty if nothing was; `None` where it cannot be kept.
    #[must_use]
    pub(crate) fn kept_writers(&self) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::File(disk) => disk.kept_writers(),
        }
    }

    /// Keeps something about who has written to the device, beside its data.
    pub(crate) fn keep_writers(&self, writers: &[u8]) -> Result<(), Errno> {
        match &self.kind {
            Kind::Memory(_) => Err(Errno::EOPNOTSUPP),
            Kind::File(disk) => disk.keep_writers(writers),
        }
    }

    /// Starts something.
    pub fn submit(&mut self, job: Job) {
        match &mut self.kind {
            Kind::Memory(disk) => disk.submit(&job),
            Kind::File(disk) => disk.submit(job),
        }
    }

    /// Hands what was started to the system, where that was put off to do it at once for many.
    pub fn flush(&mut self) {
        if let Kind::File(disk) = &mut self.kind {
            disk.flush();
        }
    }

    /// Returns a file that can be read when something has ended, beside the bell that was given.
    #[must_use]
    pub fn bell(&self) -> Option<BorrowedFd<'_>> {
        match &self.kind {
            Kind::Memory(_) => None,
            Kind::File(disk) => disk.bell(),
        }
    }

    /// Returns something that has ended: its number, and how.
    pub fn poll(&mut self) -> Option<(u64, Errno)> {
        match &mut self.kind {
            Kind::Memory(disk) => disk.poll(),
            Kind::File(disk) => disk.poll(),
        }
    }
}

/// Returns the number of a system's error.
fn errno(error: &io::Error) -> Errno {
    let number = error.raw_os_error().and_then(|number| u16::try_from(number).ok());
    number.filter(|number| (1..512).contains(number)).map_or(Errno::EIO, Errno)
}

#[cfg(test)]
mod tests;
