//! Reads input files and numbers.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use ib_topology::Fabric;
use ib_topology::read::{Included, is_message, read_with};

use crate::error::DaemonError;
use crate::message::note;
use crate::routing_files::MOST_WARNINGS;

/// Maximum size of an input file in bytes.
const MAX_SIZE: u64 = 1 << 30;

/// Reads a whole file of at most 1 GiB; `-` is standard input.
///
/// # Errors
/// Fails if the file cannot be read or is larger than 1 GiB.
pub fn bytes(path: &Path) -> Result<Vec<u8>, DaemonError> {
    read(path, MAX_SIZE)
        .map_err(|error| DaemonError::Failed(format!("cannot read {}: {error}", path.display())))
}

/// Reads a whole file of at most `max_size` bytes; `-` is standard input.
pub(crate) fn read(path: &Path, max_size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(max_size + 1).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(max_size + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > max_size {
        return Err(io::Error::other(format!("expected at most {max_size} bytes")));
    }
    Ok(bytes)
}

/// Reads a text file of at most 1 GiB; `-` is standard input.
///
/// # Errors
/// Fails if the file cannot be read or is not UTF-8.
pub fn text(path: &Path) -> Result<String, DaemonError> {
    String::from_utf8(bytes(path)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
        DaemonError::Failed(format!("{}:{line}: found bytes that are not UTF-8", path.display()))
    })
}

/// Reads a fabric file, and the files that it includes.
///
/// # Errors
/// Fails if a file cannot be read or parsed.
pub fn fabric_file(path: &Path) -> Result<Fabric, DaemonError> {
    let (name, bytes) = (path.display().to_string(), bytes(path)?);
    let fabric = read_with(&name, &bytes, &mut included).map_err(DaemonError::failed)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().zip(1..).map(|(line, number)| (line.trim_ascii_start(), number));
    let messages: Vec<(&str, u32)> = lines.filter(|(line, _)| is_message(line)).collect();
    for (line, number) in messages.iter().take(MOST_WARNINGS) {
        note!("{name}:{number}: ignored the message `{line}`");
    }
    if let Some(more) = messages.len().checked_sub(MOST_WARNINGS + 1) {
        note!("{name}: {} more warnings like these", more + 1);
    }
    Ok(fabric)
}

/// Reads the file `name` of an `include` line in the file `including`. The path `name` is relative to the directory of
/// `including`.
fn included(including: &str, name: &str) -> Result<Included, String> {
    let path = match Path::new(including).parent() {
        Some(directory) => directory.join(name),
        None => PathBuf::from(name),
    };
    let bytes = read(&path, MAX_SIZE).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Included { name: path.display().to_string(), bytes })
}

/// Parses a number as `strtoul` does with base 0: 0x1f is 31, and 010 is 8.
#[must_use]
pub fn number<T: TryFrom<u64>>(word: &str) -> Option<T> {
    let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16),
        None if word.len() > 1 && word.starts_with('0') => u64::from_str_radix(word, 8),
        None => word.parse(),
    };
    value.ok().and_then(|value| T::try_from(value).ok())
}
