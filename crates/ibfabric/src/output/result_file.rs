//! Result files of commands.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

pub(crate) use ib_daemons::result_file::{replace, temporary_path};

use crate::failure::Failure;

/// Writes the result file at `path`, which a user has specified by an option. [`replace`] replaces an existing file.
///
/// # Errors
/// Fails with a message that contains the name of the file.
pub(crate) fn write_result<E: From<io::Error> + std::fmt::Display>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), Failure> {
    replace(path, 0o777, write)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))
}
