//! GUID lists of OpenSM, with one GUID per line. They contain root switches, compute and I/O nodes, ports to ignore, or
//! routing orders.
//!
//! ```text
//! # comment
//! 0x0002c90200000001
//! 0x0002c90200000002 3     # text after the GUID is returned unparsed
//! ```
//!
//! If a line is malformed, it is skipped and reported; all other lines are used.

use ib_types::Guid;

/// A parsed GUID list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuidList {
    /// The GUIDs in the order of the file.
    pub entries: Vec<GuidEntry>,
    /// The malformed lines in the order of the file.
    pub discarded: Vec<DiscardedLine>,
}

/// A line with a GUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuidEntry {
    /// The line number, from 1.
    pub line: usize,
    /// The GUID, never zero.
    pub guid: Guid,
    /// The text after the GUID, without blanks around it and without a comment.
    pub rest: String,
}

/// A malformed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiscardedLine {
    /// The line number, from 1.
    pub line: usize,
    /// The text of the line, in which bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The text found and the text expected.
    pub reason: String,
}

impl GuidList {
    /// Returns the GUIDs without the text after them.
    pub fn guids(&self) -> impl ExactSizeIterator<Item = Guid> {
        self.entries.iter().map(|entry| entry.guid)
    }
}

/// Parses a GUID list. Empty lines, and comments from `#` to the end of a line, are skipped.
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
