//! OpenSM's configuration file, read and written: a key and its value on each line.

use std::io::Write as _;
use std::path::Path;

use super::files;
use super::settings::{IGNORED, KEYS, Settings};
use crate::failure::{Failure, say};
use crate::input;

/// Where OpenSM looks for the file when it is told of none.
pub(super) const DEFAULT: &str = "/etc/opensm/opensm.conf";

/// Where OpenSM looks for partitions when it is told of no file.
pub(super) const PARTITIONS: &str = "/etc/opensm/partitions.conf";

/// Reads a file into settings. What it says that means nothing here is named, all in one line.
///
/// # Errors
/// Fails when the file cannot be read, and on the first value that is none of its key.
pub(super) fn read(path: &Path, settings: &mut Settings) -> Result<(), Failure> {
    let usual = Path::new(PARTITIONS);
    let text = input::bytes(path)?;
    let ignored = apply(&path.display().to_string(), &text, settings)?;
    if !ignored.is_empty() {
        say!("{}: ignored, as there is no such thing here: {}", path.display(), ignored.join(", "));
    }
    // OpenSM's own file names it whether it is there or not.
    if settings.partition_config_file.as_deref().is_some_and(|p| p == usual && !p.exists()) {
        settings.partition_config_file = None;
    }
    Ok(())
}

/// Applies the lines of a file; returns the keys that were ignored.
fn apply(name: &str, bytes: &[u8], settings: &mut Settings) -> Result<Vec<String>, Failure> {
    let mut ignored = Vec::new();
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        let at = |what: String| Failure::Unusable(format!("{name}:{number}: {what}"));
        let line = std::str::from_utf8(line)
            .map_err(|_| at("found bytes that are not UTF-8, expected text".to_owned()))?
            .trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once([' ', '\t', '=']).unwrap_or((line, ""));
        let value = value.trim();
        if value.is_empty() {
            return Err(at(format!("found `{key}` alone, expected a value behind it")));
        }
        let wrong = |what: String| at(format!("{key}: {what}"));
        if KEYS.iter().any(|known| known.name == key) {
            settings.set(key, value).map_err(wrong)?;
        } else if key == "no_partition_enforcement" {
            let mut off = false;
            super::settings::Field::Switch(&mut off).read(value).map_err(wrong)?;
            if off {
                settings.set("part_enforce", "off").map_err(wrong)?;
            }
        } else {
            let known = IGNORED.iter().find(|(known, _)| *known == key);
            let harmless = known.is_some_and(|&(_, usual)| {
                usual.is_empty() || usual == value || both_zero(usual, value)
            });
            if !harmless && !ignored.iter().any(|other| other == key) {
                ignored.push(key.to_owned());
            }
        }
    }
    Ok(ignored)
}

/// Returns true for two ways of writing nothing at all.
fn both_zero(one: &str, other: &str) -> bool {
    let zero = |text| input::number::<u64>(text) == Some(0);
    zero(one) && zero(other)
}

/// Writes a file with all keys and their values.
///
/// # Errors
/// Fails when the file cannot be written.
pub(super) fn write(path: &Path, settings: &Settings) -> Result<(), Failure> {
    let mut text = Vec::new();
    let mut settings = settings.clone();
    writeln!(text, "# How ibfabric manages a subnet. The keys are OpenSM's.").expect("memory");
    for key in KEYS {
        if !key.about.is_empty() {
            write!(text, "\n# {}\n", key.about).expect("memory takes everything");
        }
        let value = (key.field)(&mut settings).show();
        writeln!(text, "{} {value}", key.name).expect("memory takes everything");
    }
    files::replace(path, &text)
        .map_err(|error| Failure::Unusable(format!("cannot write {}: {error}", path.display())))
}

#[cfg(test)]
mod tests;
