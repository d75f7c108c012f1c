//! Node-name-map files, which assign names to node GUIDs.
//!
//! ```text
//! # comment
//! 0x0008f104003f125c "leaf 1, rack 11"
//! 0x0008f104003f125d leaf-2    # quotes are optional
//! ```
//!
//! [`crate::Fabric::rename`] applies the names to a fabric.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use ib_types::Guid;

use crate::error::ParseError;
use crate::text::{Fault, Line, Lines, checked};

/// Reads a node-name-map file. Returns the name of each node GUID.
///
/// A GUID has hexadecimal digits, with or without `0x` before them. A name without quotes ends at a `#` or at the end
/// of the line.
///
/// # Errors
/// Fails if a line is not a GUID and a name, or if a GUID is repeated.
pub fn parse(file_name: &str, bytes: &[u8]) -> Result<BTreeMap<Guid, String>, ParseError> {
    names(checked(file_name, bytes)?).map_err(|fault| fault.at(file_name))
}

fn names(text: &str) -> Result<BTreeMap<Guid, String>, Fault> {
    let mut names = BTreeMap::new();
    for mut line in Lines::new(text, 0, 1) {
        line.skip_blanks();
        if matches!(line.peek(), None | Some(b'#')) {
            continue;
        }
        let start = line;
        let guid = guid(&mut line)?;
        let name = name(&mut line)?;
        match names.entry(guid) {
            Entry::Vacant(entry) => entry.insert(name.to_owned()),
            Entry::Occupied(_) => return Err(start.expected("a GUID that is not named above")),
        };
    }
    Ok(names)
}

/// Reads a GUID and the blanks after it.
fn guid(line: &mut Line<'_>) -> Result<Guid, Fault> {
    let expected = "a GUID of up to 16 hexadecimal digits";
    let start = *line;
    let rest = line.rest();
    let end = rest.find([' ', '\t', '"', '#']).unwrap_or(rest.len());
    let guid: Guid = rest[..end].parse().map_err(|_| start.expected(expected))?;
    if guid.is_zero() {
        return Err(start.expected("a GUID other than zero"));
    }
    line.seek(line.position() + end);
    line.skip_blanks();
    Ok(guid)
}

fn name<'a>(line: &mut Line<'a>) -> Result<&'a str, Fault> {
    if line.peek() == Some(b'"') {
        let name = line.quoted("a name")?;
        line.end("the end of the line")?;
        return Ok(name);
    }
    let name = line.rest().split(['#', '"']).next().unwrap_or_default().trim_ascii_end();
    if name.is_empty() {
        return Err(line.expected("a name in quotes"));
    }
    line.seek(line.position() + name.len());
    line.end("the end of the line")?;
    Ok(name)
}

#[cfg(test)]
mod tests;
