//! Mounts the statistics and control tree as a FUSE file system.
//!
//! | module | holds |
//! |---|---|
//! | `sources` | the control sockets from which the tree is read |
//! | `files` | the FUSE requests of the kernel |
//!
//! The file system is a client of control sockets ([`super::control`]), so it cannot block the
//! servers and clients of RTRS. The directories contain the sessions of all sockets. Root mounts
//! the file system with a system call, other users with `fusermount3`.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fuser::{BackgroundSession, Config, MountOption, Session};
use rustix::mount::{UnmountFlags, unmount};

use crate::rtrs::control::ControlError;
use ib_os::alarm::Bell;

mod files;
mod sources;

use files::Files;
use sources::Sources;

/// Number of threads that handle FUSE requests of the kernel. A thread blocks while it waits for a
/// control socket.
const THREADS: usize = 4;

/// Error of mounting or unmounting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The kernel has no FUSE.
    #[error("cannot open /dev/fuse: {0}: expected read and write permission; try `modprobe fuse`")]
    NoFuse(io::Error),
    /// The user is not root, and `fusermount3` is not installed.
    #[error(
        "only root can mount without fusermount3, which is not installed: install the package fuse3"
    )]
    NoHelper,
    /// The path is not a directory.
    #[error("{}: {source}: expected a directory", dir.display())]
    Directory {
        /// The path.
        dir: PathBuf,
        /// The reason why the path is not usable as a directory.
        source: io::Error,
    },
    /// A FUSE file system is still mounted on the directory, but its program has exited.
    #[error(
        "{dir}: the program of the mounted file system has exited: unmount it with `umount {dir}` or `fusermount3 -u {dir}`",
        dir = dir.display()
    )]
    Stale {
        /// The directory.
        dir: PathBuf,
    },
    /// A control socket cannot be connected.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// The directory cannot be mounted or unmounted.
    #[error("cannot mount or unmount {}: {source}", dir.display())]
    Mount {
        /// The directory.
        dir: PathBuf,
        /// The reason why the file system cannot be mounted or unmounted.
        source: io::Error,
    },
}

/// A mounted tree. The tree is unmounted by [`TreeMount::close`], when this value is dropped, or by
/// another process.
pub struct TreeMount {
    dir: PathBuf,
    /// The device number of the file system, which no other mounted file system has.
    number: u64,
    session: BackgroundSession,
    is_over: Arc<AtomicBool>,
}

impl TreeMount {
    /// Mounts the trees of the control sockets on a directory. Rings `bell` when another process
    /// unmounts the file system.
    ///
    /// # Errors
    /// Fails if no server listens on a socket, or if the directory cannot be mounted.
    pub fn open(dir: &Path, sockets: Vec<PathBuf>, bell: Bell) -> Result<Self, MountError> {
        let sources = Sources::connect(sockets)?;
        match std::fs::metadata(dir) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                let (dir, source) = (dir.to_owned(), io::ErrorKind::NotADirectory.into());
                return Err(MountError::Directory { dir, source });
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => {
                return Err(MountError::Stale { dir: dir.to_owned() });
            }
            Err(source) => return Err(MountError::Directory { dir: dir.to_owned(), source }),
        }
        std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .map_err(MountError::NoFuse)?;
        // The path is made absolute, since the working directory may change before the file system
        // is unmounted.
        let failed = |source| MountError::Mount { dir: dir.to_owned(), source };
        let dir = dir.canonicalize().map_err(failed)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName("ibfabric-rtrs".to_owned()),
            MountOption::Subtype("ibfabric".to_owned()),
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
            MountOption::NoExec,
            MountOption::NoAtime,
        ];
        config.n_threads = Some(THREADS);
        let files = Files::new(sources, EndNotifier { is_over: Arc::clone(&is_over), bell });
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if !has_helper() => {
                MountError::NoHelper
            }
            _ => MountError::Mount { dir: dir.clone(), source: trimmed(source) },
        };
        let session = Session::new(files, &dir, &config).map_err(failed)?;
        let session = session.spawn().map_err(failed)?;
        let number = device_number(&dir).map_err(failed)?;
        Ok(Self { dir, number, session, is_over })
    }

    /// Returns true if another process has unmounted the file system.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Unmounts the file system, even if files are open. After this process exits, they could not
    /// be read anyway.
    ///
    /// # Errors
    /// Fails if a system call fails.
    pub fn close(self) -> Result<(), MountError> {
        let Self { dir, number, session, .. } = self;
        // Dropping the session unmounts the file system, unless another process has done so. The
        // session's threads run until all files are closed, so they are not joined.
        drop(session);
        if device_number(&dir).is_ok_and(|now| now == number) {
            // If root drops the session while files are open, the file system stays mounted. Then it
            // must be detached.
            let ended = unmount(&dir, UnmountFlags::DETACH).map_err(io::Error::from);
            ended.map_err(|source| MountError::Mount { dir, source })?;
        }
        Ok(())
    }
}

/// Returns the device number of the file system that contains a directory.
fn device_number(dir: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(dir)?.dev())
}

/// Returns true if `fusermount3` or `fusermount` exists where the `fuser` library searches for it.
fn has_helper() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/sbin", "/bin"].map(PathBuf::from);
    let dirs: Vec<PathBuf> = std::env::split_paths(&paths).chain(usual).collect();
    let names = ["fusermount3", "fusermount"];
    std::env::var_os("FUSERMOUNT_PATH").is_some()
        || dirs.iter().any(|dir| names.iter().any(|name| dir.join(name).exists()))
}

/// Removes the newline at the end of an error message of `fusermount3`.
fn trimmed(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(_) => error,
        None => io::Error::new(error.kind(), error.to_string().trim().to_owned()),
    }
}

/// Notifies the owner of the mount that the kernel has unmounted the file system.
struct EndNotifier {
    is_over: Arc<AtomicBool>,
    bell: Bell,
}

impl EndNotifier {
    fn notify(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}
