//! The file that keeps a second service from starting, as ibacm has it: with the number of the process, and locked.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

use crate::error::DaemonError;

/// A lock, for as long as it is held. The file stays.
pub(super) struct Lock(#[expect(dead_code, reason = "it is held open and nothing else")] File);

impl Lock {
    /// Takes a lock.
    ///
    /// # Errors
    /// Fails when another process has it, or the file cannot be written.
    pub(super) fn take(path: &Path) -> Result<Self, DaemonError> {
        let failed = |error: std::io::Error| {
            DaemonError::Failed(format!("cannot lock {}: {error}", path.display()))
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false).mode(0o640);
        let mut file = options.open(path).map_err(failed)?;
        // The kind of lock that lockf(3) takes.
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::ACCESS | Errno::AGAIN) => {
                let mut owner = String::new();
                // Whoever has just taken it may not have written its number yet.
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim().parse::<u32>();
                let owner = owner.map_or(String::new(), |number| format!(", process {number}"));
                return Err(DaemonError::Failed(format!(
                    "another service of IB ACM runs{owner}: it has locked {}; another lock_file in \
                     ibacm_opts.cfg lets a second one run",
                    path.display()
                )));
            }
            Err(error) => return Err(failed(error.into())),
            Ok(()) => {}
        }
        let number = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.write_all(number.as_bytes()));
        written.map_err(failed)?;
        Ok(Self(file))
    }
}
