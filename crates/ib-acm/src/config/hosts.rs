//! GIDs of other machines that are known before anyone asks: `ibacm_hosts.data`.
//!
//! ```text
//! # name or address   GID
//! node-17             fe80::2:c903:a1:b2c3
//! 10.1.2.17           fe80::2:c903:a1:b2c3
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use ib_types::Gid;

use super::addresses::{unwritten, wanted};
use super::{Parsed, text};
use crate::Address;

/// The lines of a file of hosts, in its order; no address stands twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFile {
    /// The lines.
    pub lines: Vec<HostLine>,
}

/// The GID of a name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostLine {
    /// The line, counted from 1; of no meaning to the writer.
    pub line: usize,
    /// A name, an IPv4 or an IPv6 address.
    pub address: Address,
    /// The port's GID: not zero and not that of a group.
    pub gid: Gid,
}

impl HostFile {
    /// Reads a file of hosts. A line that is none is passed over with a warning. Of an address that stands
    /// there twice the later line counts, in the place of the earlier one.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Parsed<Self> {
        let mut parsed: Parsed<Self> = Parsed::default();
        let mut known = BTreeMap::new();
        for (number, bytes) in text::lines(bytes) {
            let Some(words) = parsed.words(number, bytes) else { continue };
            if words.is_empty() {
                continue;
            }
            let line = match line(number, &words) {
                Ok(line) => line,
                Err((found, expected)) => {
                    parsed.warn(number, found, expected, "the line is passed over");
                    continue;
                }
            };
            parsed.end(number, &words[2..]);
            let next = parsed.value.lines.len();
            let at = *known.entry(line.address.clone()).or_insert(next);
            if at == next {
                parsed.value.lines.push(line);
            } else {
                let earlier = std::mem::replace(&mut parsed.value.lines[at], line);
                let expected = format!("an address other than that of line {}", earlier.line);
                parsed.warn(number, words[0], expected, "this line counts, not the earlier one");
            }
        }
        parsed
    }

    /// Returns the text of the file. A line that would be read as something else, such as that of a LID
    /// or of a name with a blank in it, becomes a comment.
    #[must_use]
    pub fn to_file(&self) -> String {
        let mut text = HEAD.to_owned();
        for line in &self.lines {
            let (address, gid) = (line.address.to_string(), line.gid.to_string());
            let words = [&*address, &*gid];
            let same = text::stands(&address) && self::line(line.line, &words).as_ref() == Ok(line);
            let content = words.join(" ");
            let content = if same { content } else { unwritten(&content) };
            writeln!(text, "{content}").expect("a string takes everything");
        }
        text
    }
}

const HEAD: &str = "\
# GIDs of the ports that names and IP addresses stand for, so that nobody has to be asked.
#
# The service reads this with `addr_preload acm_hosts`. Each line gives a name, an IPv4 or an IPv6
# address, and a GID.
#
# address gid
";

/// Reads a line; an error is what was found and what was expected.
fn line<'w>(line: usize, words: &[&'w str]) -> Result<HostLine, (&'w str, String)> {
    let address = words.first().copied().unwrap_or("");
    let address = Address::parse(address).map_err(|error| (address, wanted(&error)))?;
    let gid = words.get(1).copied().unwrap_or("");
    let number = gid.parse().ok().filter(|gid: &Gid| gid.0 != 0 && !gid.is_multicast());
    let expected = "a port's GID such as fe80::2:c903:a1:b2c3";
    let gid = number.ok_or_else(|| (gid, expected.to_owned()))?;
    Ok(HostLine { line, address, gid })
}

#[cfg(test)]
mod tests;
