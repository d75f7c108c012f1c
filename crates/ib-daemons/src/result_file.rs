//! Replaces result files atomically.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use ib_os::signals::TemporaryPath;

/// Replaces a file atomically: writes a temporary file in the same directory, syncs it and renames it.
///
/// If an error or a signal interrupts the writing, the old file remains. The new file gets the owner of the old one,
/// and its permissions masked by `mask`. A device or pipe is written directly.
///
/// # Errors
/// Fails if `write` fails, if the directory is not writable, or if the disk is full.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    mask: u32,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let former = fs::metadata(path).ok();
    if former.as_ref().is_some_and(|former| !former.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        write(&mut out)?;
        return Ok(out.flush()?);
    }
    let path = &target(path);
    let temporary = TemporaryPath::new(temporary_path(path));
    // A killed process with the same process ID may have left a temporary file.
    let _ = fs::remove_file(temporary.path());
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o666 & mask).open(temporary.path())?;
    if let Some(former) = former {
        // Only root can change the owner, so a failure is ignored. The permissions are set after the owner, because
        // `chown` may clear some of them.
        let _ = fchown(&file, Some(former.uid()), Some(former.gid()));
        file.set_permissions(Permissions::from_mode(former.mode() & 0o777 & mask))?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    temporary.persist(path)?;
    // The rename is durable once the directory is synced. A failure is ignored, because some file systems cannot sync a
    // directory.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Returns the path of the temporary file, which is in the directory of the result file.
pub fn temporary_path(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(temporary)
}

/// Resolves symbolic links, so that the file to which they point is replaced.
fn target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    // The kernel has the same limit of 40 symbolic links in a path.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    target
}

#[cfg(test)]
mod tests;
