//! The lock file that prevents a second ACM service. Like ibacm's, it contains the process ID.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use crate::error::DaemonError;

/// A locked file. Dropping the value unlocks the file but does not remove it.
pub(super) struct Lock(#[expect(dead_code, reason = "the file is only kept open")] File);

impl Lock {
    /// Locks a file and writes the process ID to it. If the file does not exist, it is created.
    ///
    /// # Errors
    /// Fails if another process holds the lock, or if the file cannot be written.
    pub(super) fn acquire(path: &Path) -> Result<Self, DaemonError> {
        let failed = |error: std::io::Error| {
            DaemonError::Failed(format!("cannot lock {}: {error}", path.display()))
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o640);
        let mut file = options.open(path).map_err(failed)?;
        // This lock also excludes ibacm: ibacm uses lockf(3), which sets an fcntl(2) lock like this one.
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::ACCESS | Errno::AGAIN) => {
                let mut owner = String::new();
                // The file may still be empty: a process writes its ID only after it has locked the file.
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim().parse::<u32>();
                let owner = owner.map_or(String::new(), |pid| format!(", process {pid}"));
                return Err(DaemonError::Failed(format!(
                    "another ACM service is running{owner}: it has locked {}; to run a second one, set another \
                     lock_file in ibacm_opts.cfg",
                    path.display()
                )));
            }
            Err(error) => return Err(failed(error.into())),
            Ok(()) => {}
        }
        let pid = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(pid.as_bytes()));
        written.map_err(failed)?;
        Ok(Self(file))
    }
}
