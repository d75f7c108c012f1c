//! A disk in a file or on a block device.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use ib_block::{Discard, Errno, Geometry, Operation, Origin};

use super::ring::Ring;
use super::workers::{FileKind, Workers};
use super::{DiskError, Job};
use ib_os::alarm::Bell;

/// Maximum length of a discard in bytes.
const MAX_DISCARD: u64 = 1 << 30;

/// The extended attribute of a file that contains the list of clients that write to it.
const WRITERS: &str = "user.ibfabric.writers";

/// Maximum length in bytes of the value of the extended attribute [`WRITERS`].
const MAX_WRITERS: usize = 4096;

/// A file or block device, with the io_uring and the threads for its I/O.
#[derive(Debug)]
pub(super) struct FileDisk {
    file: Arc<File>,
    kind: FileKind,
    read_only: bool,
    ring: Option<Ring>,
    workers: Workers,
}

impl FileDisk {
    pub(super) fn open(path: PathBuf, bell: Bell) -> Result<(Self, Geometry, Origin), DiskError> {
        let failed = |error| DiskError::File { path: path.clone(), error };
        let (file, read_only) = open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let kind = if metadata.is_file() {
            FileKind::Regular
        } else if metadata.file_type().is_block_device() {
            FileKind::Block
        } else {
            return Err(DiskError::Kind { path });
        };
        let (size, logical_block, physical_block) = match kind {
            FileKind::Regular => (metadata.len(), 512, 4096),
            FileKind::Block => block_device(&file).map_err(failed)?,
        };
        if size < u64::from(logical_block) {
            return Err(DiskError::Empty { path, length: size, block: logical_block });
        }
        let granularity = match kind {
            FileKind::Regular => u32::try_from(metadata.blksize()).unwrap_or(4096),
            FileKind::Block => logical_block,
        };
        let discard = Discard { granularity, alignment: 0, max: MAX_DISCARD };
        let geometry = Geometry {
            size: size / u64::from(logical_block) * u64::from(logical_block),
            logical_block,
            physical_block,
            discard: (!read_only).then_some(discard),
            secure_erase: false,
            // The kernel's page cache acts as a write cache.
            write_back: true,
            fua: true,
            read_only,
        };
        let origin = origin(&path, kind, &metadata).map_err(failed)?;
        let file = Arc::new(file);
        let workers = Workers::new(Arc::clone(&file), kind, bell);
        // If the kernel does not support or permit io_uring, threads execute all jobs.
        let ring = Ring::new(Arc::clone(&file)).ok();
        Ok((Self { file, kind, read_only, ring, workers }, geometry, origin))
    }

    /// Returns the stored list of writing clients; `None` if the file cannot store the list in an attribute.
    pub(super) fn kept_writers(&self) -> Option<Vec<u8>> {
        // Only regular files store the list. A reboot removes the attributes of a device node, and can assign the node
        // to another device.
        if self.read_only || self.kind != FileKind::Regular {
            return None;
        }
        let mut found = vec![0; MAX_WRITERS];
        match rustix::fs::fgetxattr(&*self.file, WRITERS, &mut found[..]) {
            Ok(length) => found.truncate(length),
            Err(rustix::io::Errno::NODATA) => found.clear(),
            Err(_) => return None,
        }
        // Stores the same list again to check that the attribute is not only readable, but also writable.
        self.keep_writers(&found).is_ok().then_some(found)
    }

    /// Stores the list of writing clients in the attribute, and syncs the file.
    pub(super) fn keep_writers(&self, writers: &[u8]) -> Result<(), Errno> {
        use rustix::fs::XattrFlags;
        let kept = rustix::fs::fsetxattr(&*self.file, WRITERS, writers, XattrFlags::empty());
        // The attribute must be on the medium before the data that a new client writes.
        kept.map_err(io::Error::from).and_then(|()| self.file.sync_all()).map_err(|error| {
            // Removes the attribute, because it may still hold the previous, outdated list.
            let _ = rustix::fs::fremovexattr(&*self.file, WRITERS);
            super::errno(&error)
        })
    }

    #[cfg(test)]
    pub(super) fn without_ring(&mut self) {
        self.ring = None;
    }

    pub(super) fn submit(&mut self, job: Job) {
        let by_ring =
            matches!(job.command.operation, Operation::Read | Operation::Write | Operation::Flush);
        match &mut self.ring {
            Some(ring) if by_ring => ring.submit(job),
            _ => self.workers.submit(job),
        }
    }

    /// Returns a descriptor that is readable when an io_uring job has completed.
    pub(super) fn bell(&self) -> Option<BorrowedFd<'_>> {
        self.ring.as_ref().map(Ring::bell)
    }

    pub(super) fn flush(&mut self) {
        if let Some(ring) = &mut self.ring {
            ring.flush();
        }
    }

    pub(super) fn poll(&mut self) -> Option<(u64, Errno)> {
        self.ring.as_mut().and_then(Ring::poll).or_else(|| self.workers.poll())
    }
}

/// Opens a file for reading and writing, or read-only if writing is not permitted. Also returns
/// true if the file was opened read-only.
fn open(path: &PathBuf) -> io::Result<(File, bool)> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok((file, false)),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Ok((File::open(path)?, true))
        }
        Err(error) => Err(error),
    }
}

/// Returns the size, the logical block size and the physical block size of a block device, in bytes.
fn block_device(file: &File) -> io::Result<(u64, u32, u32)> {
    // The requests BLKGETSIZE64, BLKSSZGET and BLKPBSZGET of `<linux/fs.h>`.
    const SIZE: libc::Ioctl = 0x8008_1272_u32 as libc::Ioctl;
    const LOGICAL: libc::Ioctl = 0x1268;
    const PHYSICAL: libc::Ioctl = 0x127b;
    let fd = file.as_raw_fd();
    let (mut size, mut logical, mut physical) = (0_u64, 0_i32, 0_u32);
    let check = |result: i32| if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: the system call writes eight bytes to `size`.
    check(unsafe { libc::ioctl(fd, SIZE, &raw mut size) })?;
    // SAFETY: the system call writes four bytes to `logical`.
    check(unsafe { libc::ioctl(fd, LOGICAL, &raw mut logical) })?;
    // SAFETY: the system call writes four bytes to `physical`.
    check(unsafe { libc::ioctl(fd, PHYSICAL, &raw mut physical) })?;
    let logical = logical.cast_unsigned().max(512);
    Ok((size, logical, physical.max(logical)))
}

/// Returns the origin: `medium` identifies the file or block device, and `cache` identifies the boot.
/// A reboot loses writes that are only in the page cache.
fn origin(path: &Path, kind: FileKind, metadata: &Metadata) -> io::Result<Origin> {
    let medium = match kind {
        // The creation time is included because inode numbers are reused. The device number is not,
        // because a reboot can change it.
        FileKind::Regular => {
            let made = metadata.created().ok();
            let made = made.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
            format!("{} {:?}", metadata.ino(), made.map(|it| it.as_nanos()))
        }
        FileKind::Block => format!("{} {:?}", path.display(), name_of(metadata.rdev())),
    };
    let started = fs::read("/proc/sys/kernel/random/boot_id")?;
    Ok(Origin { medium: crc32fast::hash(medium.as_bytes()), cache: crc32fast::hash(&started) })
}

/// Returns a persistent identifier of a block device, if it has one.
fn name_of(device: u64) -> Option<Vec<u8>> {
    let place = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let files = ["wwid", "device/wwid", "dm/uuid", "md/uuid", "serial", "loop/backing_file"];
    files.iter().find_map(|file| fs::read(Path::new(&place).join(file)).ok())
}
