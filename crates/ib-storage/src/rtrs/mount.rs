//! The statistics and control tree as a file system, by FUSE.
//!
//! | module | holds |
//! |---|---|
//! | `sources` | the control sockets that the tree comes from |
//! | `files` | what the kernel asks, and is answered |
//!
//! The file system is a client of control sockets ([`super::control`]): it may come and go, and wait for whom it likes,
//! without those who move data. Several sockets have their sessions side by side. As root it is mounted by the system
//! call, by others by `fusermount3`.

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

/// How many threads answer the kernel: one that waits for a program stops no other ones.
const THREADS: usize = 4;

/// Why there is no file system.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MountError {
    /// The system has no FUSE.
    #[error("/dev/fuse: {0}: expected a Linux with FUSE; `modprobe fuse` may help")]
    NoFuse(io::Error),
    /// What mounts for those who may not is not there.
    #[error(
        "only root may mount without fusermount3, which is not installed: it is in the package fuse3"
    )]
    NoHelper,
    /// It is no directory.
    #[error("{}: {source}: expected a directory", dir.display())]
    Directory {
        /// What was named.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The program that had mounted something there has gone without an end.
    #[error(
        "{dir}: something is mounted there whose program has gone: `umount {dir}` or `fusermount3 -u {dir}` ends it",
        dir = dir.display()
    )]
    Stale {
        /// The directory.
        dir: PathBuf,
    },
    /// Nobody has the files.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// It cannot be mounted, or not be ended.
    #[error("{}: {source}", dir.display())]
    Mount {
        /// The directory.
        dir: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// A tree that is mounted; it is until [`TreeMount::close`], the end of this, or until somebody else ends it.
pub struct TreeMount {
    dir: PathBuf,
    /// The number of its device, which nothing else has.
    number: u64,
    session: BackgroundSession,
    is_over: Arc<AtomicBool>,
}

impl TreeMount {
    /// Mounts the files of some control sockets on a directory. The bell rings when somebody else ends that.
    ///
    /// # Errors
    /// Fails when nobody listens at a socket, or nothing can be mounted there.
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
        // The working directory may be another one when it ends.
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
        let files = Files::new(sources, Ended { is_over: Arc::clone(&is_over), bell });
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied if !has_helper() => {
                MountError::NoHelper
            }
            _ => MountError::Mount { dir: dir.clone(), source: told(source) },
        };
        let session = Session::new(files, &dir, &config).map_err(failed)?;
        let session = session.spawn().map_err(failed)?;
        let number = device_number(&dir).map_err(failed)?;
        Ok(Self { dir, number, session, is_over })
    }

    /// Returns whether somebody else has ended it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Ends it, also while files of it are open: they are of no use once the process has ended.
    ///
    /// # Errors
    /// Fails when the system does.
    pub fn close(self) -> Result<(), MountError> {
        let Self { dir, number, session, .. } = self;
        // It unmounts, unless somebody else has. Its threads are not waited for, which answer as long as files are open.
        drop(session);
        if device_number(&dir).is_ok_and(|now| now == number) {
            // Root does not unmount what is in use, but takes it away.
            let ended = unmount(&dir, UnmountFlags::DETACH).map_err(io::Error::from);
            ended.map_err(|source| MountError::Mount { dir, source })?;
        }
        Ok(())
    }
}

/// Returns the number of the device that a directory is on.
fn device_number(dir: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(dir)?.dev())
}

/// Returns whether there is a program that mounts for those who may not, where it is looked for.
fn has_helper() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/sbin", "/bin"].map(PathBuf::from);
    let dirs: Vec<PathBuf> = std::env::split_paths(&paths).chain(usual).collect();
    let names = ["fusermount3", "fusermount"];
    std::env::var_os("FUSERMOUNT_PATH").is_some()
        || dirs.iter().any(|dir| names.iter().any(|name| dir.join(name).exists()))
}

/// What `fusermount3` says has its name before it, and a line's end behind.
fn told(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(_) => error,
        None => io::Error::new(error.kind(), error.to_string().trim().to_owned()),
    }
}

/// Tells that the kernel asks no more.
struct Ended {
    is_over: Arc<AtomicBool>,
    bell: Bell,
}

impl Ended {
    fn tell(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.bell.ring();
    }
}
