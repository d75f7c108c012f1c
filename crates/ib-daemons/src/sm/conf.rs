//! Reads and writes OpenSM's configuration file. Each line has a key and its value.

use std::io::Write as _;
use std::path::Path;

use super::settings::{IGNORED, KEYS, REFUSED, Settings};
use crate::error::DaemonError;
use crate::input;
use crate::result_file;

/// OpenSM's default path of the configuration file.
pub const DEFAULT: &str = "/etc/opensm/opensm.conf";

/// OpenSM's default path of the partition file.
pub const PARTITIONS: &str = "/etc/opensm/partitions.conf";

/// Applies the text of a configuration file to `settings`; returns notes about ignored keys.
///
/// # Errors
/// Fails at the first value that is invalid or not supported.
pub fn read(path: &Path, text: &[u8], settings: &mut Settings) -> Result<Vec<String>, DaemonError> {
    let usual = Path::new(PARTITIONS);
    let notes = apply(&path.display().to_string(), text, settings)?;
    // A configuration file of OpenSM contains the default path of the partition file even if the partition file does
    // not exist. In this case the path is ignored.
    if settings.partition_config_file.as_deref().is_some_and(|p| p == usual && !p.exists()) {
        settings.partition_config_file = None;
    }
    Ok(notes)
}

/// Applies the lines of a configuration file to `settings`; returns notes about ignored keys.
fn apply(name: &str, bytes: &[u8], settings: &mut Settings) -> Result<Vec<String>, DaemonError> {
    let mut notes = Vec::new();
    for (line, number) in bytes.split(|&byte| byte == b'\n').zip(1..) {
        let at = |what: String| DaemonError::Failed(format!("{name}:{number}: {what}"));
        let line = without_comment(line)
            .map_err(|_| at("found bytes that are not UTF-8, expected text".to_owned()))?;
        if line.is_empty() {
            continue;
        }
        let (key, value) = key_and_value(line);
        if !is_key(key.split('=').next().unwrap_or(key)) {
            notes.push(format!(
                "{name}:{number}: found `{key}`, expected a key that OpenSM or ibfabric knows; \
                 ignored"
            ));
            continue;
        }
        if value.is_empty() || value.starts_with('=') || !is_key(key) {
            return Err(at(format!("found `{line}`, expected a key, a blank and a value")));
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
                "{name}:{number}: {key}: ignored: ibfabric does not support this key of OpenSM"
            ));
        }
    }
    Ok(notes)
}

/// Returns the part of a line before its comment. In OpenSM, `#` starts a comment even within quotes.
fn without_comment(line: &[u8]) -> Result<&str, std::str::Utf8Error> {
    let end = line.iter().position(|&byte| byte == b'#').unwrap_or(line.len());
    std::str::from_utf8(&line[..end]).map(str::trim)
}

/// Splits a line into key and value at its first blank, and removes quotes around the value. If the value is a lone
/// quote character, returns an empty value.
fn key_and_value(line: &str) -> (&str, &str) {
    let (key, value) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let value = value.trim();
    let inner = |quote: char| match value.strip_prefix(quote)? {
        "" => Some(""),
        rest => rest.strip_suffix(quote),
    };
    (key, inner('"').or_else(|| inner('\'')).unwrap_or(value))
}

/// Returns true if the word is a key of OpenSM.
fn is_key(word: &str) -> bool {
    KEYS.iter().any(|key| key.name == word) || IGNORED.iter().any(|(name, _)| *name == word)
}

/// Returns true if both values are zero, in any notation of numbers.
fn both_zero(one: &str, other: &str) -> bool {
    let zero = |text| input::number::<u64>(text) == Some(0);
    zero(one) && zero(other)
}

/// Writes a configuration file with all keys and their values.
///
/// # Errors
/// Fails if the file cannot be written or if a value cannot be represented, for example because `#` would start a
/// comment.
pub fn write(path: &Path, settings: &Settings) -> Result<(), DaemonError> {
    let mut text = Vec::new();
    let mut settings = settings.clone();
    writeln!(text, "# Configuration of the subnet manager, with OpenSM's keys.")
        .expect("writing to memory succeeds");
    for key in KEYS {
        if !key.about.is_empty() {
            write!(text, "\n# {}\n", key.about).expect("writing to memory succeeds");
        }
        let value = (key.field)(&mut settings).show();
        let line = notation(key.name, &value).ok_or_else(|| {
            DaemonError::Failed(format!(
                "{}: {}: found `{value}`, expected a value without `#` and line breaks",
                path.display(),
                key.name
            ))
        })?;
        writeln!(text, "{line}").expect("writing to memory succeeds");
    }
    result_file::replace(path, 0o777, |out| out.write_all(&text))
        .map_err(|error| DaemonError::Failed(format!("cannot write {}: {error}", path.display())))
}

/// Returns the line of a key and its value, with quotes if necessary; `None` if the line cannot represent the value.
fn notation(key: &str, value: &str) -> Option<String> {
    let lines = [format!("{key} {value}"), format!("{key} \"{value}\"")];
    lines.into_iter().find(|line| {
        let read = without_comment(line.as_bytes()).map(key_and_value);
        !line.contains(['\n', '\r']) && read == Ok((key, value)) && !value.starts_with('=')
    })
}

#[cfg(test)]
mod tests;
