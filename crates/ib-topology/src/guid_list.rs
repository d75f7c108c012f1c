//! Files of one GUID a line, as OpenSM takes them: root switches, compute and I/O nodes, ports to
//! leave out, routing orders.
//!
//! ```text
//! # comment
//! 0x0002c90200000001
//! 0x0002c90200000002 3     # what stands behind the GUID is the caller's
//! ```
//!
//! A line of another form is discarded and named, it does not spoil the file.

use ib_types::Guid;

/// What a GUID list holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidList {
    /// The GUIDs in the order of the file.
    pub entries: Vec<GuidEntry>,
    /// The lines that are no GUID, in the order of the file.
    pub discarded: Vec<DiscardedLine>,
}

/// A line of a GUID list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidEntry {
    /// The line, counted from 1.
    pub line: usize,
    /// The GUID, never zero.
    pub guid: Guid,
    /// What stands behind the GUID, without blanks around it and without a comment.
    pub rest: String,
}

/// A line that was discarded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedLine {
    /// The line, counted from 1.
    pub line: usize,
    /// The line's text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// What was found and what was expected.
    pub reason: String,
}

impl GuidList {
    /// Returns the GUIDs alone.
    pub fn guids(&self) -> impl ExactSizeIterator<Item = Guid> {
        self.entries.iter().map(|entry| entry.guid)
    }
}

/// Reads a GUID list. Empty lines and comments, which `#` starts, are skipped.
///
/// A GUID is 1 to 16 hexadecimal digits with or without `0x`.
#[must_use]
pub fn parse(bytes: &[u8]) -> GuidList {
    let mut list = GuidList::default();
    for (index, line) in bytes.split(|&b| b == b'\n').enumerate() {
        let line_number = index + 1;
        match entry(line) {
            Ok(None) => {}
            Ok(Some((guid, rest))) => {
                let rest = rest.to_owned();
                list.entries.push(GuidEntry { line: line_number, guid, rest });
            }
            Err(reason) => list.discarded.push(DiscardedLine {
                line: line_number,
                text: String::from_utf8_lossy(line.trim_ascii()).into_owned(),
                reason,
            }),
        }
    }
    list
}

fn entry(line: &[u8]) -> Result<Option<(Guid, &str)>, String> {
    let line = std::str::from_utf8(line).map_err(|error| {
        format!("found byte 0x{:02x}, expected UTF-8 text", line[error.valid_up_to()])
    })?;
    let content = line.split('#').next().unwrap_or_default().trim_ascii();
    if content.is_empty() {
        return Ok(None);
    }
    let (first, rest) = content.split_once([' ', '\t']).unwrap_or((content, ""));
    let guid: Guid = first
        .parse()
        .map_err(|_| format!("found `{first}`, expected a GUID of 1 to 16 hexadecimal digits"))?;
    if guid.is_zero() {
        return Err(format!("found `{first}`, expected a GUID other than zero"));
    }
    Ok(Some((guid, rest.trim_ascii())))
}

#[cfg(test)]
mod tests;
