//! OpenSM's configuration file, read and written: a key and its value on each line.

use std::io::Write as _;
use std::path::Path;

use super::files;
use super::settings::{IGNORED, KEYS, REFUSED, Settings};
use crate::failure::Failure;
use crate::input;

/// Where OpenSM looks for the file when it is told of none.
pub(super) const DEFAULT: &str = "/etc/opensm/opensm.conf";

/// Where OpenSM looks for partitions when it is told of no file.
pub(super) const PARTITIONS: &str = "/etc/opensm/partitions.conf";

/// Reads the text of a file into settings; returns what is to be said of it, a sentence each: what
/// means nothing here.
///
/// # Errors
/// Fails on the first value that is none of its key, and on what cannot be had here.
pub(super) fn read(
    path: &Path,
    text: &[u8],
    settings: &mut Settings,
) -> Result<Vec<String>, Failure> {
    let usual = Path::new(PARTITIONS);
    let notes = apply(&path.display().to_string(), text, settings)?;
    // OpenSM's own file names it whether it is there or not.
    if settings.partition_config_file.as_deref().is_some_and(|p| p == usual && !p.exists()) {
        settings.partition_config_file = None;
    }
    Ok(notes)
}

/// Applies the lines of a file; returns what is to be said of them.
fn apply(name: &str, bytes: &[u8], settings: &mut Settings) -> Result<Vec<String>, Failure> {
    let mut notes = Vec::new();
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
        if let Some(known) = KEYS.iter().find(|known| known.name == key) {
            settings.set(key, value).map_err(wrong)?;
            settings.set_by(known.name, format!("{name}:{number}: {key}"));
        } else if key == "no_partition_enforcement" {
            let mut off = false;
            super::settings::Field::Switch(&mut off).read(value).map_err(wrong)?;
            if off {
                settings.set("part_enforce", "off").map_err(wrong)?;
            }
        } else if let Some((_, usual)) = IGNORED.iter().find(|(known, _)| *known == key) {
            let refused = REFUSED.iter().find(|(known, _)| *known == key);
            let is_none = value == "(null)" && refused.is_some();
            if usual.is_empty() || *usual == value || both_zero(usual, value) || is_none {
                continue;
            }
            if let Some((_, why)) = refused {
                return Err(wrong(format!(
                    "found `{value}`, which is not supported: {why}; expected `{usual}`"
                )));
            }
            notes.push(format!(
                "{name}:{number}: {key}: ignored: OpenSM knows it, but there is no such thing here"
            ));
        } else {
            notes.push(format!(
                "{name}:{number}: found `{key}`, expected a key that OpenSM or ibfabric knows; \
                 ignored"
            ));
        }
    }
    Ok(notes)
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
