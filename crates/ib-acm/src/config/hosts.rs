//! Preloaded names and addresses of other machines, with their GIDs: the file `ibacm_hosts.data`.
//!
//! ```text
//! # name or address   GID
//! node-17             fe80::2:c903:a1:b2c3
//! 10.1.2.17           fe80::2:c903:a1:b2c3
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use ib_types::Gid;

use super::addresses::{expectation, unwritten};
use super::{Parsed, text};
use crate::Address;

/// Contents of a hosts file: its lines in the order of the file. Each line has a different address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFile {
    /// The lines.
    pub lines: Vec<HostLine>,
}

/// A line of a hosts file: a name or an address, and its GID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLine {
    /// Line number, from 1. The writer ignores it.
    pub line: usize,
    /// Name, IPv4 or IPv6 address.
    pub address: Address,
    /// GID of the port: not 0, and not a multicast GID.
    pub gid: Gid,
}

impl HostFile {
    /// Reads a hosts file. Invalid lines are ignored with a warning. A later line with the same address replaces the
    /// earlier one.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Parsed<Self> {
        let mut parsed: Parsed<Self> = Parsed::default();
        let mut seen = BTreeMap::new();
        for (number, bytes) in text::lines(bytes) {
            let Some(words) = parsed.words(number, bytes) else { continue };
            if words.is_empty() {
                continue;
            }
            let line = match line(number, &words) {
                Ok(line) => line,
                Err((found, expected)) => {
                    parsed.warn(number, found, expected, "the line is ignored");
                    continue;
                }
            };
            parsed.end(number, &words[2..]);
            let next = parsed.value.lines.len();
            let at = *seen.entry(line.address.clone()).or_insert(next);
            if at == next {
                parsed.value.lines.push(line);
            } else {
                let earlier = std::mem::replace(&mut parsed.value.lines[at], line);
                let expected = format!("an address other than that of line {}", earlier.line);
                parsed.warn(number, words[0], expected, "this line overrides the earlier one");
            }
        }
        parsed
    }

    /// Returns the text of the file. Lines that the reader would not accept become comments. Examples are lines with
    /// a LID or with a blank in a name.
    #[must_use]
    pub fn to_file(&self) -> String {
        let mut text = HEAD.to_owned();
        for line in &self.lines {
            let (address, gid) = (line.address.to_string(), line.gid.to_string());
            let words = [&*address, &*gid];
            let same = text::stands(&address) && self::line(line.line, &words).as_ref() == Ok(line);
            let content = words.join(" ");
            let content = if same { content } else { unwritten(&content) };
            writeln!(text, "{content}").expect("writing to a string never fails");
        }
        text
    }
}

const HEAD: &str = "\
# Preloaded names and addresses of other machines, which are resolved without a query.
#
# The service reads this file with `addr_preload acm_hosts`. Each line has a name, an IPv4 or an IPv6
# address, and the GID of its port.
#
# address gid
";

/// Parses the words of a line. An error consists of the found word and a description of the expected one.
fn line<'w>(line: usize, words: &[&'w str]) -> Result<HostLine, (&'w str, String)> {
    let address = words.first().copied().unwrap_or("");
    let address = Address::parse(address).map_err(|error| (address, expectation(&error)))?;
    let gid = words.get(1).copied().unwrap_or("");
    let number = gid.parse().ok().filter(|gid: &Gid| gid.0 != 0 && !gid.is_multicast());
    let expected = "the GID of a port, such as fe80::2:c903:a1:b2c3";
    let gid = number.ok_or_else(|| (gid, expected.to_owned()))?;
    Ok(HostLine { line, address, gid })
}

#[cfg(test)]
mod tests;
