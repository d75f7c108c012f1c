//! Result files, which are replaced atomically.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use ib_os::signals::TemporaryPath;

use crate::failure::Failure;

/// Writes a result file that a user named; see [`replace`].
///
/// # Errors
/// Fails with a message that names the file.
pub(crate) fn write_result<E: From<io::Error> + std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), Failure> {
    replace(path, 0o777, write)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))
}

/// Replaces a file atomically: writes a temporary file in the same directory, syncs it and renames it.
///
/// The previous file remains if an error or a signal ends the writing. The new file gets its owner, and its permissions
/// limited to `mask`. A device or pipe is written directly.
///
/// # Errors
/// Fails if `write` fails, if the folder takes no file, or if the disk is full.
pub(crate) fn replace<E: From<io::Error>>(
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
    // A killed process with the same process ID may have left the file.
    let _ = fs::remove_file(temporary.path());
    let mut options = File::options();
    let file = options.write(true).create_new(true).mode(0o666 & mask).open(temporary.path())?;
    if let Some(former) = former {
        // Only root can change the owner. Permissions are set afterwards, because `chown` may clear some.
        let _ = fchown(&file, Some(former.uid()), Some(former.gid()));
        file.set_permissions(Permissions::from_mode(former.mode() & 0o777 & mask))?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    temporary.persist(path)?;
    // Syncing the directory makes the new name durable. Some file systems cannot sync a directory.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Returns the temporary file's path, which is in the folder of the file.
pub(crate) fn temporary_path(path: &Path) -> PathBuf {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(temporary)
}

/// Returns the file that a path refers to: symbolic links are kept, and their target is replaced.
fn target(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    // The kernel's limit of symbolic links.
    for _ in 0..40 {
        let Ok(link) = fs::read_link(&target) else { break };
        target = target.parent().unwrap_or(Path::new("")).join(link);
    }
    target
}

#[cfg(test)]
mod tests;
