//! Files that are whole at every moment, whatever becomes of the process that writes them.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Replaces a file by another one: written under a temporary name, brought to the disk, and renamed.
///
/// Whoever is killed on the way leaves the old file.
///
/// # Errors
/// Fails when the directory cannot be written or the disk is full.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let result = written.and_then(|()| std::fs::rename(&temporary, path));
    if result.is_err() {
        // The first error is the one worth reporting.
        let _ = std::fs::remove_file(&temporary);
        return result;
    }
    // The new name is on the disk when the directory is. What cannot be synchronised, such as a
    // directory of a foreign system, keeps the file nevertheless.
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let _ = File::open(directory).and_then(|directory| directory.sync_all());
    }
    Ok(())
}
