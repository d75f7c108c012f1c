//! Names and addresses of this machine's endpoints: the file `ibacm_addr.cfg`, called `acm_addr.cfg` before 2010.
//!
//! ```text
//! # name or address   device  port  P_Key
//! node-17             mlx5_0  1     default
//! node-17-2           mlx5_1  1     0x8001
//! 10.1.2.17           mlx5_0  1     default
//! ```

use std::collections::BTreeSet;
use std::fmt::Write;

use ib_types::PKey;

use super::{Parsed, text};
use crate::Address;

/// Maximum length of a device name in bytes.
pub const LONGEST_DEVICE: usize = 63;

/// Contents of an address file: its distinct lines, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressFile {
    /// The lines.
    pub lines: Vec<AddressLine>,
}

/// A line of an address file: a name or an address of an endpoint, which is a port of an HCA in a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLine {
    /// Line number, from 1. The writer ignores it.
    pub line: usize,
    /// Name, IPv4 or IPv6 address.
    pub address: Address,
    /// Device name of 1 to 63 bytes, such as `mlx5_0`.
    pub device: Box<str>,
    /// Port number, 1 to 255.
    pub port: u8,
    /// P_Key of the partition, not 0.
    pub p_key: PKey,
}

impl AddressFile {
    /// Reads an address file. Invalid and repeated lines are ignored with a warning.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Parsed<Self> {
        let mut parsed: Parsed<Self> = Parsed::default();
        let mut seen = BTreeSet::new();
        for (number, bytes) in text::lines(bytes) {
            let Some(words) = parsed.words(number, bytes) else { continue };
            if words.is_empty() {
                continue;
            }
            let (all, so) = (words.join(" "), "the line is ignored");
            match line(number, &words) {
                Ok(line) => {
                    parsed.end(number, &words[4..]);
                    let AddressLine { address, device, port, p_key, .. } = &line;
                    if seen.insert((address.clone(), device.clone(), *port, *p_key)) {
                        parsed.value.lines.push(line);
                    } else {
                        parsed.warn(number, &all, "an address that no earlier line has", so);
                    }
                }
                Err((found, expected)) => parsed.warn(number, found, expected, so),
            }
        }
        parsed
    }

    /// Returns the lines with names and, if `support_ips` is true, the lines with IP addresses. If the flag is false,
    /// the endpoints have the IP addresses of the machine's interfaces instead.
    pub fn in_use(&self, support_ips: bool) -> impl Iterator<Item = &AddressLine> {
        self.lines.iter().filter(move |line| support_ips || line.address.ip().is_none())
    }

    /// Returns the text of the file. Lines that the reader would not accept become comments. Examples are lines with
    /// a GID or with a blank in a name.
    #[must_use]
    pub fn to_file(&self) -> String {
        let mut text = HEAD.to_owned();
        for line in &self.lines {
            let AddressLine { address, device, port, p_key, .. } = line;
            let address = address.to_string();
            let p_key = match *p_key {
                PKey::DEFAULT => "default".to_owned(),
                other => other.to_string(),
            };
            let words = [&*address, device, &port.to_string(), &p_key];
            let content = words.join(" ");
            let again = self::line(line.line, &words);
            let same = words.iter().all(|word| text::stands(word)) && again.as_ref() == Ok(line);
            let content = if same { content } else { unwritten(&content) };
            writeln!(text, "{content}").expect("writing to a string never fails");
        }
        text
    }
}

const HEAD: &str = "\
# Names and addresses of this machine's InfiniBand endpoints.
#
# Each line has a name, an IPv4 or an IPv6 address; the device; its port; the P_Key in hexadecimal
# with 0x, or `default` for 0xffff. An endpoint may have several lines. Lines with IP addresses are
# used only with `support_ips_in_addr_cfg 1`. Otherwise the addresses of the interfaces are used.
#
# address device port pkey
";

/// Returns `content`, a line that the reader would reject, as a comment.
pub(super) fn unwritten(content: &str) -> String {
    format!("# not expressible: {}", text::visible(content))
}

/// Parses the words of a line. An error consists of the found word and a description of the expected one.
fn line<'w>(line: usize, words: &[&'w str]) -> Result<AddressLine, (&'w str, String)> {
    let word = |index: usize, expected: &str| {
        words.get(index).copied().ok_or_else(|| ("", expected.to_owned()))
    };
    let address = word(0, "a name or an IP address")?;
    let address = Address::parse(address).map_err(|error| (address, expectation(&error)))?;

    let expected = "a device name of 1 to 63 bytes";
    let device = word(1, expected)?;
    if device.len() > LONGEST_DEVICE || device.chars().any(char::is_control) {
        return Err((device, expected.to_owned()));
    }

    let expected = "a port, 1 to 255";
    let port = word(2, expected)?;
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse().ok().filter(|&port| digits && port != 0);
    let port = number.ok_or_else(|| (port, expected.to_owned()))?;

    let expected = "a P_Key: default, or a number whose lower 15 bits are not zero";
    let p_key = word(3, expected)?;
    let number = match p_key {
        _ if p_key.eq_ignore_ascii_case("default") => Some(PKey::DEFAULT),
        _ => text::number(p_key).and_then(|key| u16::try_from(key).ok()).map(PKey),
    };
    let number = number.filter(|key| key.partition() != 0);
    let p_key = number.ok_or_else(|| (p_key, expected.to_owned()))?;

    Ok(AddressLine { line, address, device: device.into(), port, p_key })
}

/// Returns the expected text of the warning about a word that is not an address.
pub(super) fn expectation(error: &crate::address::AddressError) -> String {
    format!("a name or an IP address ({error})")
}

#[cfg(test)]
mod tests;
